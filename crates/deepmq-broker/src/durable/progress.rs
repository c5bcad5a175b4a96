//! How far a long recovery has come, for whoever waits for it in front of a log.
//!
//! Owns how often that is told. Must not know what is recovered.

use deepmq_storage::Seam;
use std::time::Duration;

/// Between two lines, and before the first: a short recovery is not commented on.
const TELL_INTERVAL: Duration = Duration::from_secs(1);
/// Messages between two looks at the clock.
const LOOK_MESSAGES: u64 = 16 * 1024;

/// The progress of one recovery.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    seam: &'a Seam,
    total: u64,
    done: u64,
    told: Duration,
}

impl<'a> Progress<'a> {
    /// Of so many messages.
    pub(super) fn new(seam: &'a Seam, total: u64) -> Self {
        Self { seam, total, done: 0, told: seam.clock.now().since_start() }
    }

    /// One more is done; returns how many, where that is told.
    pub(super) fn step(&mut self) -> Option<u64> {
        self.done += 1;
        if !self.done.is_multiple_of(LOOK_MESSAGES) {
            return None;
        }
        let now = self.seam.clock.now().since_start();
        if now.saturating_sub(self.told) < TELL_INTERVAL {
            return None;
        }
        self.told = now;
        tracing::info!(messages = self.done, of = self.total, "recovering");
        Some(self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepmq_storage::seam::SimClock;
    use std::sync::Arc;

    #[test]
    fn a_recovery_is_told_of_each_second_and_a_short_one_never() {
        let clock = Arc::new(SimClock::new());
        let seam = Seam { clock: clock.clone(), ..Seam::simulated(1) };
        let mut progress = Progress::new(&seam, 10 * LOOK_MESSAGES);
        assert!((0..2 * LOOK_MESSAGES).all(|_| progress.step().is_none()));
        clock.advance(TELL_INTERVAL);
        let told: Vec<_> = (0..2 * LOOK_MESSAGES).filter_map(|_| progress.step()).collect();
        assert_eq!(told, [3 * LOOK_MESSAGES]);
    }
}
