//! Settings from a TOML file.
//!
//! Owns reading the file and saying where in it something is wrong. Must not know the settings.

use std::path::Path;

use anyhow::{Context, anyhow};

use super::settings::Settings;

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> anyhow::Result<Settings> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("the configuration file {} can not be read; give another with --config", path.display())
    })?;
    parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(&text, span.start));
        anyhow!("{}:{line}: {}; correct or remove it", path.display(), error.message().trim_end())
    })
}

pub(super) fn parse(text: &str) -> Result<Settings, toml::de::Error> {
    toml::from_str(text)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
