//! The table of users and the rule who is let in.
//!
//! Owns the entries and the order of the checks. Must not know how hashes and digests are made.

use std::sync::{Arc, OnceLock};

use deepmq_model::Name;
use deepmq_storage::seam::Random;
use hashbrown::HashMap;
use parking_lot::RwLock;

use super::password::PasswordHash;
use super::recall::{Digest, RecallKey};
use super::user::{User, UserSpec};

/// All users of a broker, in memory. Shared by reference; a login locks it only to find its entry.
#[derive(Debug)]
pub struct Users {
    entries: RwLock<HashMap<Name, Arc<Entry>>>,
    key: RecallKey,
    random: Arc<dyn Random>,
}

/// Replaced as a whole when its user changes, so that what is remembered of an old password goes with it, even while
/// a login with the old one is under way.
#[derive(Debug)]
struct Entry {
    user: Arc<User>,
    hash: PasswordHash,
    recalled: OnceLock<Digest>,
}

impl Users {
    /// A table of `specs`. Hashes every plain password, which takes tens of milliseconds each.
    ///
    /// # Errors
    /// If a name is empty or too long, or given twice.
    pub fn new(specs: Vec<UserSpec>, random: Arc<dyn Random>) -> Result<Self, UsersError> {
        let key = RecallKey::draw(&*random);
        let users = Self { entries: RwLock::default(), key, random };
        for spec in specs {
            let name = spec.name.clone();
            if users.put(spec)? {
                return Err(UsersError::Duplicate { name });
            }
        }
        Ok(users)
    }

    /// Creates the user, or replaces the one of that name; says whether there was one. Hashing a plain password blocks for
    /// tens of milliseconds. Who is logged in stays so.
    ///
    /// # Errors
    /// If the name is empty or too long.
    pub fn put(&self, spec: UserSpec) -> Result<bool, UsersError> {
        let UserSpec { name, password, tags, vhosts, loopback_only } = spec;
        if name.is_empty() || name.len() > Self::NAME_BYTES_MAX {
            return Err(UsersError::Name { name });
        }
        let (hash, plain) = password.into_hash(&*self.random);
        let recalled = OnceLock::new();
        if let Some(plain) = plain {
            recalled.get_or_init(|| self.key.digest(plain.expose()));
        }
        let user = Arc::new(User { name: name.clone(), tags, vhosts, loopback_only });
        let entry = Arc::new(Entry { user, hash, recalled });
        Ok(self.entries.write().insert(name, entry).is_some())
    }

    /// Longest name in bytes: what a short string of AMQP can carry.
    pub const NAME_BYTES_MAX: usize = 255;

    /// The user of that name, logged in or not.
    pub fn get(&self, name: &str) -> Option<Arc<User>> {
        self.entry(name).map(|entry| entry.user.clone())
    }

    /// Lets the user in if the password is known to be right from an earlier login. Costs microseconds and never blocks.
    /// `None` means not that the login is refused but that [`Users::authenticate_slow`] has to decide.
    pub fn authenticate_fast(&self, name: &str, password: &[u8], loopback: bool) -> Option<Arc<User>> {
        let entry = self.entry(name)?;
        let known = entry.recalled.get()?;
        let matches = known.matches(&self.key.digest(password));
        (matches && entry.admits(loopback)).then(|| entry.user.clone())
    }

    /// Decides whether the user is let in; `loopback` says whether the peer is on this machine. Blocks: to be called where
    /// blocking is allowed, and by at most [`slow_logins_max`](crate::Limits::slow_logins_max) callers at once. A login
    /// that had to wait for its turn may find the password known by now and costs nothing then.
    ///
    /// # Errors
    /// Why not. The peer must not learn which it was.
    pub fn authenticate_slow(
        &self,
        name: &str,
        password: &[u8],
        loopback: bool,
    ) -> Result<Arc<User>, AuthError> {
        if let Some(user) = self.authenticate_fast(name, password, loopback) {
            return Ok(user);
        }
        // Asked before the password is looked at: the refusal of a far peer must not depend on it.
        let entry = self
            .entry(name)
            .ok_or(AuthError::UnknownUser)
            .and_then(|entry| if entry.admits(loopback) { Ok(entry) } else { Err(AuthError::LoopbackOnly) });
        let entry = entry.inspect_err(|_| PasswordHash::verify_nothing(password))?;
        if !entry.hash.verify(password) {
            return Err(AuthError::WrongPassword);
        }
        entry.recalled.get_or_init(|| self.key.digest(password));
        Ok(entry.user.clone())
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        self.entries.read().get(name).cloned()
    }
}

impl Entry {
    fn admits(&self, loopback: bool) -> bool {
        loopback || !self.user.loopback_only
    }
}

/// Why a login is refused: for the log alone. A peer is told one and the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There is no user of that name.
    #[error("no such user")]
    UnknownUser,
    /// The password is not the user's.
    #[error("wrong password")]
    WrongPassword,
    /// The user may only log in from this machine, whatever the password.
    #[error("user can only connect via localhost")]
    LoopbackOnly,
}

/// Why a user is not taken into the table. Who configures it can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsersError {
    /// The name is empty or too long.
    #[error("user name {name:?} must have 1 to {} bytes", Users::NAME_BYTES_MAX)]
    Name {
        /// The name as given.
        name: Name,
    },
    /// Two users were given the same name.
    #[error("user {name:?} is given twice")]
    Duplicate {
        /// The name.
        name: Name,
    },
}

#[cfg(test)]
mod tests;
