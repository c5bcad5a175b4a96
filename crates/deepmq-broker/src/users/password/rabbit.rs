//! RabbitMQ's salted hashes: four bytes of salt, then SHA-256 or SHA-512 of salt and password.
//!
//! Owns their form, base64. They are quick to try out, so they are read for users who come from there, and never made here.

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

use super::HashError;

const SALT_BYTES: usize = 4;

/// A hash that RabbitMQ made.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct RabbitHash {
    algorithm: Algorithm,
    salt: [u8; SALT_BYTES],
    digest: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    pub(super) fn of(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|algorithm| algorithm.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "rabbit_password_hashing_sha256",
            Self::Sha512 => "rabbit_password_hashing_sha512",
        }
    }

    fn digest(self, salt: &[u8], plain: &[u8]) -> Box<[u8]> {
        match self {
            Self::Sha256 => Sha256::new().chain_update(salt).chain_update(plain).finalize().as_slice().into(),
            Self::Sha512 => Sha512::new().chain_update(salt).chain_update(plain).finalize().as_slice().into(),
        }
    }

    fn digest_bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

impl RabbitHash {
    pub(super) fn read(algorithm: Algorithm, text: &str) -> Result<Self, HashError> {
        let bytes = Base64::decode_vec(text.trim_end()).map_err(|_| HashError::NotRabbit)?;
        let (salt, digest) = bytes.split_first_chunk().ok_or(HashError::NotRabbit)?;
        if digest.len() != algorithm.digest_bytes() {
            return Err(HashError::NotRabbit);
        }
        Ok(Self { algorithm, salt: *salt, digest: digest.into() })
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn verify(&self, plain: &[u8]) -> bool {
        self.algorithm.digest(&self.salt, plain).ct_eq(&self.digest).into()
    }

    pub(super) fn text(&self) -> String {
        Base64::encode_string(&[&self.salt, &*self.digest].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_made_by_rabbitmq_verifies_its_password_only() {
        // The example of RabbitMQ's own documentation of the algorithm: "test12" under the salt 908D C60A.
        let text = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
        let hash = RabbitHash::read(Algorithm::Sha256, text).unwrap();
        assert!(hash.verify(b"test12") && !hash.verify(b"test1"));
        assert_eq!(hash.text(), text);
    }

    #[test]
    fn sha512_has_the_same_form() {
        let mut bytes = vec![1, 2, 3, 4];
        bytes.extend(Algorithm::Sha512.digest(&[1, 2, 3, 4], b"pw"));
        let hash = RabbitHash::read(Algorithm::Sha512, &Base64::encode_string(&bytes)).unwrap();
        assert!(hash.verify(b"pw") && !hash.verify(b""));
    }

    #[test]
    fn a_hash_of_another_length_is_refused() {
        for text in ["", "AAAA", "not base64!", &Base64::encode_string(&[0; 37])] {
            assert_eq!(RabbitHash::read(Algorithm::Sha256, text).err(), Some(HashError::NotRabbit), "{text}");
        }
    }
}
