//! Who may log in: the table of users and the two ways to check a password.
//!
//! Owns users, their passwords and the rule who is let in. Must not know protocols, mechanisms or how a refusal is
//! worded to a peer.
//!
//! A stored password is an argon2id hash, which costs tens of milliseconds to check by design: too slow for thousands
//! of connects per second, and nothing to do on an async thread. So there are two paths:
//!
//! 1. [`Users::authenticate_fast`] costs microseconds. It compares a keyed SHA-256 digest of the password with the
//!    one remembered from a successful verification in this process, or from a password given in plain, and answers only if they agree.
//! 2. [`Users::authenticate_slow`] blocks and always pays for argon2, whoever asks: a wrong password, an unknown user
//!    and a user who may not come from afar all cost the same, so the time to a refusal tells nothing. On success it
//!    remembers the digest.
//!
//! A user whose password changes starts with nothing remembered.

mod attempts;
mod password;
mod recall;
mod table;
mod user;

pub use attempts::{Attempts, SOURCES_MAX, Source, Tally};
pub use password::{HashError, Password, PasswordHash, Secret};
pub use table::{AuthError, Users};
pub use user::{User, UserSpec, VhostAccess};
