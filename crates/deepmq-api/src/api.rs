//! What all requests share.
//!
//! Owns the state of the front-end, which is little: what was sampled, and who failed to log in. Must not know HTTP.

use crate::ages::{Ages, Span};
use crate::auth::LoginGuard;
use crate::config::ApiConfig;
use crate::rates::Rates;
use deepmq_broker::Broker;
use deepmq_broker::queue::Queue;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The HTTP front-end of a broker. Clones are the same.
#[derive(Debug, Clone)]
pub struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    broker: Broker,
    config: ApiConfig,
    guard: LoginGuard,
    slow_logins: Semaphore,
    rates: Rates,
    ages: Ages,
}

impl Api {
    /// For a broker.
    pub fn new(broker: Broker, config: ApiConfig) -> Self {
        let guard = LoginGuard::new(config.failed_logins_max);
        let slow_logins = Semaphore::new(broker.limits().slow_logins_max);
        let (rates, ages) = (Rates::default(), Ages::default());
        Self(Arc::new(Inner { broker, config, guard, slow_logins, rates, ages }))
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.0.broker
    }

    pub(crate) fn config(&self) -> &ApiConfig {
        &self.0.config
    }

    pub(crate) fn guard(&self) -> &LoginGuard {
        &self.0.guard
    }

    /// Slow password verifications at once.
    pub(crate) fn slow_logins(&self) -> &Semaphore {
        &self.0.slow_logins
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    /// The least age of a queue's oldest message; none if it has none.
    pub(crate) fn oldest_age(&self, queue: &Arc<Queue>) -> Option<Duration> {
        let span = queue.span().map(|(oldest, next)| Span { oldest: oldest.0, next: next.0 });
        self.0.ages.look(queue.into(), span, self.now())
    }

    /// The name of this node.
    pub(crate) fn node(&self) -> &str {
        &self.0.broker.config().node_name
    }

    /// The time since the broker's clock started.
    pub(crate) fn now(&self) -> Duration {
        self.0.broker.seam().clock.now().since_start()
    }

    /// Where AMQP is listened for, if it is.
    pub(crate) fn amqp_address(&self) -> Option<SocketAddr> {
        self.0.config.listeners.iter().find(|listener| listener.protocol == "amqp").map(|on| on.address)
    }
}
