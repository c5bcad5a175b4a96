//! What is remembered of a password that was verified.
//!
//! Owns the key of this process and the digest under it. Must not know users or stored hashes.
//!
//! The digest stays in memory beside its key and is never written, sent or logged: whoever can read it can read the
//! passwords as they arrive. The key makes it worthless outside this process, and incomparable with any digest made
//! elsewhere.

use std::fmt;

use deepmq_storage::seam::Random;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The process's secret, drawn at start.
pub(super) struct RecallKey {
    inner: Zeroizing<[u8; 64]>,
    outer: Zeroizing<[u8; 64]>,
}

impl RecallKey {
    pub(super) fn draw(random: &dyn Random) -> Self {
        let block = || {
            let mut block = Zeroizing::new([0; 64]);
            random.fill(&mut *block);
            block
        };
        Self { inner: block(), outer: block() }
    }

    /// HMAC's construction (RFC 2104) with two independent blocks of key instead of one padded twice.
    pub(super) fn digest(&self, plain: &[u8]) -> Digest {
        let inner = Sha256::new().chain_update(self.inner.as_slice()).chain_update(plain).finalize();
        Digest(Sha256::new().chain_update(self.outer.as_slice()).chain_update(inner).finalize().into())
    }
}

impl fmt::Debug for RecallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecallKey(..)")
    }
}

/// A password as it is remembered.
#[derive(Clone)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    /// Whether both are of the same password, in a time that does not tell where they differ.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

#[cfg(test)]
mod tests {
    use deepmq_storage::seam::SeededRandom;

    use super::*;

    #[test]
    fn a_digest_matches_the_same_password_under_the_same_key_only() {
        let random = SeededRandom::new(1);
        let (key, other_key) = (RecallKey::draw(&random), RecallKey::draw(&random));
        let digest = key.digest(b"password");
        assert!(digest.matches(&key.digest(b"password")));
        assert!(!digest.matches(&key.digest(b"passwor")));
        assert!(!digest.matches(&other_key.digest(b"password")));
    }
}
