//! A user: as it is configured and as it is once logged in.
//!
//! Owns who it is. Must not know what it may do, or how passwords are checked.

use deepmq_model::Name;

use super::password::{Password, PasswordHash, Secret};

/// The word `guest`, hashed beforehand: a broker with its default user starts without the work and memory of argon2.
const GUEST_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$cmIHQ2soIgyKcKfxo6Y3+w$6DEnYzNsUbXxIIt/s5C6ZKwzqvGy9KdgcquPW8rZ9j0";

/// A user to be, with its password.
#[derive(Debug, Clone)]
pub struct UserSpec {
    /// Its name, unique in the broker: 1 to 255 bytes.
    pub name: Name,
    /// What it logs in with.
    pub password: Password,
    /// RabbitMQ's tags, e.g. `administrator`; any word is allowed.
    pub tags: Vec<Name>,
    /// The vhosts in which it may do everything at first.
    pub vhosts: VhostAccess,
    /// Whether it may log in only from the machine the broker runs on.
    pub loopback_only: bool,
    /// Whether it is made only when a broker starts for the first time, so that it stays away once it was deleted.
    pub first_start_only: bool,
}

impl UserSpec {
    /// A user without tags that may do everything in every vhost, from anywhere.
    pub fn new(name: impl Into<Name>, password: Password) -> Self {
        Self {
            name: name.into(),
            password,
            tags: Vec::new(),
            vhosts: VhostAccess::All,
            loopback_only: false,
            first_start_only: false,
        }
    }

    /// RabbitMQ's default user `guest`: an administrator with a well-known password, hence from loopback only.
    pub fn guest() -> Self {
        let hash = PasswordHash::parse(GUEST_HASH).expect("a valid hash of the word guest");
        Self {
            tags: vec!["administrator".into()],
            loopback_only: true,
            first_start_only: true,
            ..Self::new("guest", Password::Known(Secret::new("guest"), hash))
        }
    }
}

/// The vhosts in which a configured user gets the permission to do everything, when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VhostAccess {
    /// Every one there is then.
    All,
    /// These by name, as far as they exist.
    Only(Vec<Name>),
}

/// A user that has logged in, as it was at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: Name,
    /// Its tags.
    pub tags: Vec<Name>,
    /// Whether it may log in only from the machine the broker runs on.
    pub loopback_only: bool,
}

impl User {
    /// Whether the user carries `tag`.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| &**own == tag)
    }
}
