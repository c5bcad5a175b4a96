//! Settings from a TOML file.
//!
//! Owns reading the file and saying where in it something is wrong. Must not know the settings.

use std::path::Path;

use anyhow::anyhow;

use super::settings::Settings;

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> anyhow::Result<Settings> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        anyhow!("the configuration file {shown} can not be read: {error}; give another with --config")
    })?;
    parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(&text, span.start));
        anyhow!("{shown}:{line}: {}; correct or remove it", error.message().trim_end())
    })
}

pub(super) fn parse(text: &str) -> Result<Settings, toml::de::Error> {
    toml::from_str(text)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
