//! How long things took, counted by size.
//!
//! Owns the bounds of the sizes and the counts. Must not know what was measured, or a clock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds of the sizes that are told apart; what takes longer is counted beside them. From what a fast disk needs to
/// what a client would give up at.
pub const LATENCY_BOUNDS: [Duration; 14] = [
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Counts that any thread may add to.
#[derive(Debug, Default)]
pub struct Latencies {
    counts: [AtomicU64; LATENCY_BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    /// How many took at most as long as each bound, and longer than the bound before it; last, longer than all.
    pub counts: [u64; LATENCY_BOUNDS.len() + 1],
    /// How long all took together.
    pub sum: Duration,
}

impl Latencies {
    /// Counts one.
    pub fn note(&self, took: Duration) {
        let at = LATENCY_BOUNDS.partition_point(|bound| *bound < took);
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Relaxed);
        }
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The counts so far. While some are added, they need not agree with their sum.
    pub fn counts(&self) -> LatencyCounts {
        LatencyCounts {
            counts: std::array::from_fn(|at| self.counts.get(at).map_or(0, |count| count.load(Relaxed))),
            sum: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_as_long_as_a_bound_is_counted_with_it_and_the_rest_beside_them() {
        let latencies = Latencies::default();
        for micros in [0, 100, 101, 1_000, 5_000_000, 5_000_001] {
            latencies.note(Duration::from_micros(micros));
        }
        let counts = latencies.counts();
        let expected = [2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        assert_eq!((counts.counts, counts.sum), (expected, Duration::from_micros(10_001_202)));
    }

    #[test]
    fn bounds_ascend() {
        assert!(LATENCY_BOUNDS.is_sorted());
    }
}
