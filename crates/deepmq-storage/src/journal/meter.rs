//! What the journal measures of itself: once per sync and per group of records, never per record.
//!
//! Owns the counts and the clock they are taken with. Must not know what is done with them.

use std::sync::Arc;

use crate::latency::{Latencies, LatencyCounts};
use crate::seam::{Clock, Monotonic};

#[derive(Debug, Clone)]
pub(super) struct Meter {
    clock: Arc<dyn Clock>,
    measured: Arc<Measured>,
}

#[derive(Debug, Default)]
struct Measured {
    syncs: Latencies,
    commits: Latencies,
}

/// How long the journal took for what it did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalLatencies {
    /// Each sync of a file.
    pub syncs: LatencyCounts,
    /// Of each group of records that was written and synced at once: from when the first of them was appended until all
    /// were durable. It is the longest that a confirm of the group waited for the journal.
    pub commits: LatencyCounts,
}

impl Meter {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, measured: Arc::default() }
    }

    pub(super) fn now(&self) -> Monotonic {
        self.clock.now()
    }

    /// A sync that began at `since` is done.
    pub(super) fn synced(&self, since: Monotonic) {
        self.measured.syncs.note(self.now().since(since));
    }

    /// A group whose first record was appended at `since` is durable.
    pub(super) fn committed(&self, since: Monotonic) {
        self.measured.commits.note(self.now().since(since));
    }

    pub(super) fn read(&self) -> JournalLatencies {
        JournalLatencies { syncs: self.measured.syncs.counts(), commits: self.measured.commits.counts() }
    }
}
