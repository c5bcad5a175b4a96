//! Passwords: plain for as short as possible, hashed for keeping.
//!
//! Owns the argon2id parameters and the forms of stored hashes. Must not know users.

mod rabbit;

use std::fmt;

use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use deepmq_storage::seam::Random;
use rabbit::RabbitHash;
use zeroize::Zeroizing;

/// The name of our own algorithm, beside RabbitMQ's.
const ARGON2ID: &str = "argon2id";

/// A password in plain. Its memory is overwritten when it is dropped, and it never shows in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Keeps `plain`, which may be any bytes.
    pub fn new(plain: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(plain.into()))
    }

    /// The plain password.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A password as it is configured.
#[derive(Debug, Clone)]
pub enum Password {
    /// In plain; hashed, and then forgotten, when the user is put into the table.
    Plain(Secret),
    /// Already hashed.
    Hash(PasswordHash),
    /// Both, so that neither hashing nor a first verification is due: for a password that is no secret.
    Known(Secret, PasswordHash),
}

impl Password {
    /// The hash to keep, and the plain password if it is at hand.
    pub(super) fn into_hash(self, random: &dyn Random) -> (PasswordHash, Option<Secret>) {
        match self {
            Self::Plain(secret) => (PasswordHash::of(secret.expose(), random), Some(secret)),
            Self::Hash(hash) => (hash, None),
            Self::Known(secret, hash) => (hash, Some(secret)),
        }
    }
}

/// A stored password.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Stored);

#[derive(Clone, PartialEq, Eq)]
enum Stored {
    /// In the PHC string format: `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`.
    Argon2id(Box<phc::PasswordHash>),
    Rabbit(RabbitHash),
    /// No password is right.
    Nothing,
}

impl PasswordHash {
    /// Largest memory a stored hash may ask for, in KiB: a hash is checked by everyone who tries to log in.
    const MEMORY_KIB_MAX: u32 = 256 * 1024;
    /// The largest number of passes a stored hash may ask for, for the same reason.
    const PASSES_MAX: u32 = 64;

    /// Hashes `plain` under a fresh salt, at the cost OWASP's password storage cheat sheet recommends (19 MiB of memory,
    /// 2 passes, 1 lane). Blocks for tens of milliseconds.
    pub fn of(plain: &[u8], random: &dyn Random) -> Self {
        let mut salt = [0; 16];
        random.fill(&mut salt);
        let hash = argon2id().hash_password_with_salt(plain, &salt);
        let hash = hash.expect("a password is far shorter than the 4 GiB that argon2 takes");
        Self(Stored::Argon2id(Box::new(hash)))
    }

    /// Of a user who cannot log in with a password.
    pub fn nothing() -> Self {
        Self(Stored::Nothing)
    }

    /// Reads a hash as it is stored under the name of its algorithm: `argon2id`, `rabbit_password_hashing_sha256` or
    /// `rabbit_password_hashing_sha512`. An empty one of any of them is [`PasswordHash::nothing`].
    ///
    /// # Errors
    /// If it is not one, or of another algorithm.
    pub fn read(algorithm: &str, text: &str) -> Result<Self, HashError> {
        let rabbit = rabbit::Algorithm::of(algorithm);
        match rabbit {
            None if algorithm != ARGON2ID => Err(HashError::Algorithm),
            _ if text.is_empty() => Ok(Self::nothing()),
            None => Self::parse(text),
            Some(rabbit) => Ok(Self(Stored::Rabbit(RabbitHash::read(rabbit, text)?))),
        }
    }

    /// The name of its algorithm.
    pub fn algorithm(&self) -> &'static str {
        match &self.0 {
            Stored::Argon2id(_) | Stored::Nothing => ARGON2ID,
            Stored::Rabbit(hash) => hash.algorithm().name(),
        }
    }

    /// Reads an argon2id hash in the PHC string format.
    ///
    /// # Errors
    /// If it is not one, not of argon2id, or asks for more work than the broker is willing to do per login.
    pub fn parse(text: &str) -> Result<Self, HashError> {
        let hash = phc::PasswordHash::new(text).map_err(|_| HashError::Malformed)?;
        if hash.algorithm.as_str() != Algorithm::Argon2id.as_str() {
            return Err(HashError::NotArgon2id);
        }
        if hash.salt.is_none() || hash.hash.is_none() {
            return Err(HashError::Malformed);
        }
        let params = Params::try_from(&hash).map_err(|_| HashError::Malformed)?;
        if params.m_cost() > Self::MEMORY_KIB_MAX || params.t_cost() > Self::PASSES_MAX {
            return Err(HashError::TooCostly);
        }
        Ok(Self(Stored::Argon2id(Box::new(hash))))
    }

    /// Whether `plain` is the password. Blocks for as long as the hash's parameters say.
    pub fn verify(&self, plain: &[u8]) -> bool {
        // RabbitMQ refuses an empty password too, whatever is stored.
        match &self.0 {
            _ if plain.is_empty() => false,
            Stored::Argon2id(hash) => argon2id().verify_password(plain, &**hash).is_ok(),
            Stored::Rabbit(hash) => hash.verify(plain),
            Stored::Nothing => false,
        }
    }

    /// Whether a refusal by [`PasswordHash::verify`] takes as long as one by a hash of our own.
    pub(super) fn is_slow(&self, plain: &[u8]) -> bool {
        matches!(self.0, Stored::Argon2id(_)) && !plain.is_empty()
    }

    /// Does the work of verifying a hash of default cost, for nothing: so that a login without a hash takes as long as
    /// one with it.
    pub(super) fn verify_nothing(plain: &[u8]) {
        let mut wasted = [0; 32];
        let done = argon2id().hash_password_into(plain, b"a fixed salt", &mut wasted);
        debug_assert!(done.is_ok(), "the salt and the output are long enough");
        std::hint::black_box(wasted);
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl fmt::Display for PasswordHash {
    /// The text to be stored, beside the name of the algorithm.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Stored::Argon2id(hash) => hash.fmt(f),
            Stored::Rabbit(hash) => f.write_str(&hash.text()),
            Stored::Nothing => Ok(()),
        }
    }
}

/// Why a text is no hash the broker takes. Who wrote it can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// It does not have the form of a PHC string with salt and hash.
    #[error("not a password hash of the form $argon2id$v=19$m=19456,t=2,p=1$salt$hash")]
    Malformed,
    /// It is the hash of another algorithm.
    #[error("not an argon2id hash")]
    NotArgon2id,
    /// Its parameters make each login too costly.
    #[error("the hash asks for more than 256 MiB or 64 passes per login")]
    TooCostly,
    /// The algorithm is none of those that are known.
    #[error(
        "hashing_algorithm must be argon2id, rabbit_password_hashing_sha256 or rabbit_password_hashing_sha512"
    )]
    Algorithm,
    /// It does not have the form that RabbitMQ gives it.
    #[error("not the base64 of four bytes of salt and a digest, as RabbitMQ writes it")]
    NotRabbit,
}

#[cfg(test)]
thread_local! {
    /// How often this thread did argon2's work.
    pub(super) static ARGON2_WORK: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// For one piece of work.
fn argon2id() -> Argon2<'static> {
    #[cfg(test)]
    ARGON2_WORK.set(ARGON2_WORK.get() + 1);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

#[cfg(test)]
mod tests {
    use deepmq_storage::seam::SeededRandom;

    use super::*;

    #[test]
    fn a_hash_verifies_its_password_only_also_after_being_stored() {
        let hash = PasswordHash::of(b"correct", &SeededRandom::new(1));
        let stored = hash.to_string();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        let read = PasswordHash::parse(&stored).unwrap();
        assert_eq!(read, hash);
        assert!(read.verify(b"correct"));
        assert!(!read.verify(b"Correct"));
    }

    #[test]
    fn one_password_hashes_differently_each_time() {
        let random = SeededRandom::new(1);
        assert_ne!(PasswordHash::of(b"same", &random), PasswordHash::of(b"same", &random));
    }

    #[test]
    fn other_texts_are_refused_saying_why() {
        let check = |text: &str, why| assert_eq!(PasswordHash::parse(text), Err(why), "{text}");
        let tail = "c2FsdHNhbHQ$MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI";
        assert!(PasswordHash::parse(&format!("$argon2id$v=19$m=262144,t=64,p=1${tail}")).is_ok());
        check("guest", HashError::Malformed);
        check("$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ", HashError::Malformed);
        check(&format!("$argon2id$v=19$m=1,t=2,p=1${tail}"), HashError::Malformed);
        check(&format!("$argon2i$v=19$m=19456,t=2,p=1${tail}"), HashError::NotArgon2id);
        check(&format!("$argon2id$v=19$m=262145,t=2,p=1${tail}"), HashError::TooCostly);
        check(&format!("$argon2id$v=19$m=19456,t=65,p=1${tail}"), HashError::TooCostly);
    }

    #[test]
    fn neither_plain_nor_hash_shows_when_printed_for_debugging() {
        let hash = PasswordHash::of(b"hidden", &SeededRandom::new(1));
        let printed = format!("{:?} {:?}", Password::Plain(Secret::new("hidden")), Password::Hash(hash));
        assert_eq!(printed, "Plain(Secret(..)) Hash(PasswordHash(..))");
    }
}
