//! How often things came and went since the broker started.
//!
//! Owns the counting of events as they are published, whether or not anybody listens. Must not count what is about a message.

use super::Event;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Churn([AtomicU64; 6]);

/// How often each happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the count of what its own name says")]
pub struct ChurnCounts {
    pub connections_opened: u64,
    pub connections_closed: u64,
    pub channels_opened: u64,
    pub channels_closed: u64,
    pub queues_created: u64,
    pub queues_deleted: u64,
}

impl Churn {
    pub(super) fn count(&self, event: &Event) {
        let [connections_opened, connections_closed, channels_opened, channels_closed, created, deleted] =
            &self.0;
        let counter = match event {
            Event::ConnectionOpened { .. } => connections_opened,
            Event::ConnectionClosed { .. } => connections_closed,
            Event::ChannelOpened { .. } => channels_opened,
            Event::ChannelClosed { .. } => channels_closed,
            Event::QueueCreated { .. } => created,
            Event::QueueDeleted { .. } => deleted,
            _ => return,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(super) fn counts(&self) -> ChurnCounts {
        let [opened, closed, channels_opened, channels_closed, created, deleted] =
            self.0.each_ref().map(|counter| counter.load(Relaxed));
        ChurnCounts {
            connections_opened: opened,
            connections_closed: closed,
            channels_opened,
            channels_closed,
            queues_created: created,
            queues_deleted: deleted,
        }
    }
}
