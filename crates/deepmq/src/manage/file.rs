//! The file that says which broker is managed, and by whom.
//!
//! Owns where it is and what stands in it. Must not know flags or the environment's other variables.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

/// The variable that names another file.
const VARIABLE: &str = "DEEPMQ_CLIENT_CONFIG";

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientFile {
    pub(super) url: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

impl ClientFile {
    /// Reads the file that `DEEPMQ_CLIENT_CONFIG` names, which must be there, or else the user's own, which need not.
    pub(super) fn read() -> anyhow::Result<Self> {
        if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
            let path = PathBuf::from(named);
            let Some(text) = text(&path)? else {
                bail!("{VARIABLE} names {}, which does not exist", path.display())
            };
            return Self::parse(&path, &text);
        }
        let Some(path) = own_path() else { return Ok(Self::default()) };
        text(&path)?.map_or(Ok(Self::default()), |text| Self::parse(&path, &text))
    }

    fn parse(path: &Path, text: &str) -> anyhow::Result<Self> {
        let parsed = toml::from_str(text);
        parsed.with_context(|| format!("{} may hold url, user and password, and is wrong", path.display()))
    }
}

/// `deepmq/client.toml` where the user's settings are.
fn own_path() -> Option<PathBuf> {
    let not_empty = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = not_empty("XDG_CONFIG_HOME").or_else(|| Some(not_empty("HOME")?.join(".config")))?;
    Some(settings.join("deepmq").join("client.toml"))
}

/// The text of a file; none if there is none.
fn text(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} can not be read", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_any_of_three_settings_and_nothing_else() {
        let parse = |text| ClientFile::parse(Path::new("client.toml"), text);
        assert_eq!(parse("").unwrap(), ClientFile::default());
        let file = parse("url = \"http://broker:1\"\nuser = \"ann\"").unwrap();
        assert_eq!((file.url.as_deref(), file.user.as_deref()), (Some("http://broker:1"), Some("ann")));
        let wrong = format!("{:#}", parse("pasword = \"x\"").unwrap_err());
        assert!(
            wrong.starts_with("client.toml may hold url, user and password") && wrong.contains("pasword")
        );
    }
}
