//! What passes each exchange.
//!
//! Owns the counters of a vhost's exchanges. Front-ends gather counts of a batch and add them at once. Must not know routes.

use deepmq_model::Name;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of one exchange, since it was declared.
#[derive(Debug, Default)]
pub struct ExchangeCounters {
    published_in: AtomicU64,
    published_out: AtomicU64,
}

/// What passed an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExchangeTraffic {
    /// Messages that clients published to it.
    pub published_in: u64,
    /// Copies of them that went to queues.
    pub published_out: u64,
}

impl AddAssign for ExchangeTraffic {
    fn add_assign(&mut self, other: Self) {
        self.published_in += other.published_in;
        self.published_out += other.published_out;
    }
}

impl ExchangeCounters {
    /// Adds a batch.
    pub fn add(&self, traffic: ExchangeTraffic) {
        self.published_in.fetch_add(traffic.published_in, Relaxed);
        self.published_out.fetch_add(traffic.published_out, Relaxed);
    }

    fn read(&self) -> ExchangeTraffic {
        ExchangeTraffic {
            published_in: self.published_in.load(Relaxed),
            published_out: self.published_out.load(Relaxed),
        }
    }
}

/// The counters of those exchanges that were published to.
#[derive(Debug, Default)]
pub(super) struct Traffics(Mutex<HashMap<Name, Arc<ExchangeCounters>>>);

impl Traffics {
    /// The counters of an exchange that exists.
    pub(super) fn counters(&self, exchange: &str) -> Arc<ExchangeCounters> {
        let mut known = self.0.lock();
        if let Some(counters) = known.get(exchange) {
            return counters.clone();
        }
        known.entry(exchange.into()).or_default().clone()
    }

    pub(super) fn read(&self, exchange: &str) -> ExchangeTraffic {
        self.0.lock().get(exchange).map(|counters| counters.read()).unwrap_or_default()
    }

    /// An exchange is gone; one of the same name later starts anew.
    pub(super) fn forget(&self, exchange: &str) {
        self.0.lock().remove(exchange);
    }
}
