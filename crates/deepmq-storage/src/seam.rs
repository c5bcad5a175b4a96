//! The one seam through which clocks, randomness and the disk enter the broker.
//!
//! Everything above asks a [`Seam`] instead of the operating system, so the whole broker runs on simulated time,
//! seeded randomness and a disk in memory, and a run can be repeated from its seed. Owns the bundle; each trait, with
//! its real and its simulated implementation, lives in its own file. Must not know who uses it and for what.

mod clock;
mod disk;
mod random;

use std::sync::Arc;

pub use clock::{Clock, Monotonic, SimClock, SystemClock};
pub(crate) use disk::PAGE_BYTES;
pub use disk::{Disk, DiskFile, Entry, LockError, LockGuard, OpenMode, Owner, RealDisk, SimDisk};
pub use random::{Random, SeededRandom, SystemRandom};

/// The outside world as the broker sees it. Cheap to clone: the clones share clock, randomness and disk.
#[derive(Debug, Clone)]
pub struct Seam {
    /// Both clocks: the one for durations and the one for dates.
    pub clock: Arc<dyn Clock>,
    /// The source of every random byte.
    pub random: Arc<dyn Random>,
    /// The file system.
    pub disk: Arc<dyn Disk>,
}

impl Seam {
    /// The operating system's clocks, randomness and file system.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(SystemClock::start()),
            random: Arc::new(SystemRandom),
            disk: Arc::new(RealDisk),
        }
    }

    /// A world of its own that behaves the same for the same seed: time stands still, the disk is empty.
    ///
    /// Who wants to advance the clock puts a [`SimClock`] it keeps a handle of into [`Seam::clock`].
    pub fn simulated(seed: u64) -> Self {
        Self {
            clock: Arc::new(SimClock::new()),
            random: Arc::new(SeededRandom::new(seed)),
            disk: Arc::new(SimDisk::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_world() {
        let draw = |seed| {
            let seam = Seam::simulated(seed);
            let mut bytes = [0; 16];
            seam.random.fill(&mut bytes);
            (bytes, seam.clock.now(), seam.clock.wall())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7).0, draw(8).0);
    }
}
