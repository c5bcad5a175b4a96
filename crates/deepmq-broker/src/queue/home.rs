//! What the queues of a vhost share.
//!
//! Owns nothing: it is the way from a queue to its surroundings. Must not be used to call upwards with a queue's lock held.

use crate::events::Events;
use crate::memory::Memory;
use crate::timers::Timers;
use crate::vhost::Vhost;
use deepmq_model::Name;
use std::sync::{Arc, Weak};

/// The surroundings of a queue.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) vhost: Name,
    pub(crate) events: Arc<Events>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) timers: Arc<Timers>,
    /// Where dead letters are routed, and the queue is deleted.
    pub(crate) running: Weak<Vhost>,
}

#[cfg(test)]
impl Home {
    /// For a queue in no vhost.
    pub(crate) fn alone(memory: Arc<Memory>, events: Arc<Events>) -> Arc<Self> {
        let clock = deepmq_storage::seam::Seam::simulated(0).clock;
        Arc::new(Self { vhost: "/".into(), events, memory, timers: Timers::new(clock), running: Weak::new() })
    }
}
