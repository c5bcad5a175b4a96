//! Settings from a TOML file.
//!
//! Owns reading the file and saying where in it something is wrong, in words of its own: the parser's are for programmers.
//! Must not know the settings.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::{Deserialize, Deserializer};

use super::settings::Settings;

/// What is wrong in a file.
#[derive(Debug)]
pub(super) struct Wrong {
    line: usize,
    pub(super) sentence: String,
}

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> anyhow::Result<Settings> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        anyhow!("the configuration file {shown} can not be read: {error}; give another with --config")
    })?;
    parse(&text).map_err(|Wrong { line, sentence }| anyhow!("{shown}:{line}: {sentence}"))
}

pub(super) fn parse(text: &str) -> Result<Settings, Wrong> {
    let wrong = |error: &toml::de::Error, sentence| Wrong {
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        sentence,
    };
    // Asked first for TOML alone, for what is wrong then is told in the terms of TOML.
    if let Err(error) = text.parse::<toml::Table>() {
        let what = match error.message().trim_end() {
            what if what.starts_with("invalid type: integer") => "the number has more than 64 bits",
            what => what,
        };
        return Err(wrong(&error, format!("this is not TOML ({what}); correct or remove it")));
    }
    toml::from_str(text).map_err(|error| wrong(&error, sentence(error.message().trim_end())))
}

/// A path, for which any text will do.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    String::deserialize(deserializer).map(|path| Some(path.into()))
}

/// What serde says, as a sentence; words of our own pass.
fn sentence(message: &str) -> String {
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{field} is missing; add it");
    }
    if let Some((field, known)) =
        message.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", expected "))
    {
        let known = known.trim_start_matches("one of ");
        return format!("there is no setting {field} here, there are {known}; correct or remove it");
    }
    let mismatch = message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "));
    match mismatch {
        Some(("map", "a sequence")) => {
            "there may be several of this; write its name in double brackets, as in [[user]]".to_owned()
        }
        Some((found, "a sequence")) => {
            format!("{} is no list; write a list, as in [\"a\", \"b\"]", value(found))
        }
        Some((found, "a string")) => format!("{} is no text; write a text in quotes", value(found)),
        Some((found, "a boolean")) => format!("{} is neither; write true or false", value(found)),
        Some((found, _)) => {
            format!("{} is no section; write its name in brackets, as in [limits]", value(found))
        }
        None => format!("{message}; correct or remove it"),
    }
}

/// What was found, without its type: `5` of "integer `5`".
fn value(found: &str) -> &str {
    match found {
        "sequence" => "a list",
        "map" => "a section",
        _ => found.find(['`', '"']).and_then(|at| found.get(at..)).unwrap_or(found),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
