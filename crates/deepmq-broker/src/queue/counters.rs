//! What a queue counted since it was made.
//!
//! Owns the numbers. Must not know when something is counted, but for deliveries, which are counted by the run.

use deepmq_model::queue::Run;

/// How many messages a queue counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Taken from publishers.
    pub published: u64,
    /// Delivered to consumers, again ones included.
    pub delivered: u64,
    /// Of those, to consumers that need not acknowledge.
    pub delivered_no_ack: u64,
    /// Fetched by basic.get and its like.
    pub fetched: u64,
    /// Of those, without need to acknowledge.
    pub fetched_no_ack: u64,
    /// Delivered or fetched again.
    pub redelivered: u64,
    /// Acknowledged, by a consumer or by being delivered without need of it.
    pub acked: u64,
    /// Put back.
    pub requeued: u64,
    /// Dropped or dead-lettered: rejected, purged, or too many.
    pub discarded: u64,
    /// Lost to damage on disk.
    pub lost: u64,
}

impl Counters {
    /// Counts deliveries; returns how many.
    pub(super) fn count_delivered(&mut self, runs: &[(Run, bool)], no_ack: bool) -> u64 {
        let before = self.delivered;
        for &(run, redelivered) in runs {
            let count = u64::from(run.count);
            self.delivered += count;
            self.delivered_no_ack += if no_ack { count } else { 0 };
            self.acked += if no_ack { count } else { 0 };
            self.redelivered += if redelivered { count } else { 0 };
        }
        self.delivered - before
    }
}
