//! The table of users and the rule who is let in.
//!
//! Owns the entries and the order of the checks. Must not know how hashes and digests are made.

use std::sync::{Arc, OnceLock};

use deepmq_model::Name;
use deepmq_storage::seam::Random;
use hashbrown::HashMap;
use parking_lot::RwLock;

use super::attempts::Attempts;
use super::password::{Password, PasswordHash, Secret};
use super::recall::{Digest, RecallKey};
use super::user::User;

/// All users of a broker, in memory. Shared by reference; a login locks it only to find its entry.
#[derive(Debug)]
pub struct Users {
    entries: RwLock<HashMap<Name, Arc<Entry>>>,
    key: RecallKey,
    random: Arc<dyn Random>,
    attempts: Attempts,
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
    /// A table of nobody.
    pub fn new(random: Arc<dyn Random>) -> Self {
        let (key, attempts) = (RecallKey::draw(&*random), Attempts::default());
        Self { entries: RwLock::default(), key, random, attempts }
    }

    /// How many logins were tried, as far as front-ends note it.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Hashes a plain password, which blocks for tens of milliseconds; the plain one comes along for [`Users::remember`].
    pub fn hash(&self, password: Password) -> (PasswordHash, Option<Secret>) {
        password.into_hash(&*self.random)
    }

    /// Takes a user in, or changes it. Who is logged in stays so.
    pub(crate) fn set(&self, user: User, hash: PasswordHash) {
        let mut entries = self.entries.write();
        let known = entries.get(&user.name).filter(|entry| entry.hash == hash);
        let recalled = known.and_then(|entry| entry.recalled.get().cloned());
        let recalled = recalled.map_or_else(OnceLock::new, OnceLock::from);
        entries.insert(user.name.clone(), Arc::new(Entry { user: Arc::new(user), hash, recalled }));
    }

    /// Nobody logs in under this name any more.
    pub(crate) fn remove(&self, name: &str) {
        self.entries.write().remove(name);
    }

    /// Remembers the plain password of a hash, so that a first login need not be verified.
    pub(crate) fn remember(&self, name: &str, hash: &PasswordHash, plain: &Secret) {
        if let Some(entry) = self.entry(name).filter(|entry| entry.hash == *hash) {
            entry.recalled.get_or_init(|| self.key.digest(plain.expose()));
        }
    }

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
            // The time to a refusal must not tell how the password is stored.
            if !entry.hash.is_slow(password) {
                PasswordHash::verify_nothing(password);
            }
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

#[cfg(test)]
mod tests;
