//! `[[user]]` and `[[vhost]]` of the configuration file.
//!
//! Owns their form in the file. Must not know how a password is hashed or checked.

use deepmq_broker::users::{Password, PasswordHash, Secret, UserSpec, VhostAccess};
use deepmq_model::Name;
use deepmq_model::topology::NAME_BYTES_MAX;
use serde::{Deserialize, Deserializer};

/// One `[[user]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawUser")]
pub(crate) struct UserTable(pub(crate) UserSpec);

impl PartialEq for UserTable {
    /// One user per name; the rest of a spec holds secrets that are not to be compared.
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

/// One `[[vhost]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VhostTable {
    #[serde(deserialize_with = "name")]
    pub(crate) name: Name,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawUser {
    #[serde(deserialize_with = "name")]
    name: Name,
    password: Option<String>,
    password_hash: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    vhosts: Option<Vec<String>>,
    #[serde(default)]
    loopback_only: bool,
}

impl TryFrom<RawUser> for UserTable {
    type Error = String;

    fn try_from(raw: RawUser) -> Result<Self, String> {
        let wrong = |what: &str| format!("user {:?}: {what}", raw.name);
        let password = match (raw.password.map(Secret::new), raw.password_hash) {
            (Some(plain), None) if plain.expose().is_empty() => return Err(wrong("the password is empty")),
            (Some(plain), None) => Password::Plain(plain),
            (None, Some(hash)) => {
                Password::Hash(PasswordHash::parse(&hash).map_err(|error| wrong(&error.to_string()))?)
            }
            _ => return Err(wrong("give one of password and password-hash")),
        };
        Ok(Self(UserSpec {
            tags: names(raw.tags),
            vhosts: raw.vhosts.map_or(VhostAccess::All, |vhosts| VhostAccess::Only(names(vhosts))),
            loopback_only: raw.loopback_only,
            ..UserSpec::new(raw.name, password)
        }))
    }
}

fn names(texts: Vec<String>) -> Vec<Name> {
    texts.into_iter().map(Name::from).collect()
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(serde::de::Error::custom("a name must have 1 to 255 bytes"));
    }
    Ok(name.into())
}
