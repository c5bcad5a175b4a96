//! Randomness: names the broker makes up, salts, keys.
//!
//! Owns where random bytes come from. Must not know what they are used for.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random bytes.
pub trait Random: fmt::Debug + Send + Sync {
    /// Fills `bytes` with random ones.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator, fit for keys and salts.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes)
            .expect("the operating system's generator does not fail once it is seeded at boot");
    }
}

/// A generator that repeats itself: the same seed gives the same bytes in the same order of calls. Not fit for keys.
///
/// The algorithm is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): its state
/// only ever counts up, so one atomic addition makes it safe to share.
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// A generator at the start of `seed`'s sequence.
    pub const fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    fn next(&self) -> u64 {
        let state = self.state.fetch_add(Self::STEP, Ordering::Relaxed).wrapping_add(Self::STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            for (byte, random) in chunk.iter_mut().zip(self.next().to_le_bytes()) {
                *byte = random;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeded_generator_follows_the_published_sequence() {
        let random = SeededRandom::new(1_234_567);
        let drawn = [random.next(), random.next(), random.next()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_byte_of_any_length_is_filled() {
        for source in [&SystemRandom as &dyn Random, &SeededRandom::new(1)] {
            let mut bytes = [0; 61];
            source.fill(&mut bytes);
            assert!(bytes.chunks(20).all(|chunk| chunk.len() < 20 || chunk.iter().any(|&byte| byte != 0)));
            assert_ne!(bytes.last_chunk::<5>(), Some(&[0; 5]));
        }
    }

    #[test]
    fn the_system_generator_does_not_repeat_itself() {
        let (mut first, mut second) = ([0; 16], [0; 16]);
        SystemRandom.fill(&mut first);
        SystemRandom.fill(&mut second);
        assert_ne!(first, second);
    }
}
