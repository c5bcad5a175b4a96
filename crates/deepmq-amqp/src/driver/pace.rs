//! A publisher's patience with queues whose consumers fall behind, and with memory that has to be paged out.
//!
//! Owns how long it waits for its turn. Fast consumers are worth waiting for, since that takes milliseconds; slow ones
//! are not: then the queue takes the messages, which is what queues are for. Must not know messages.

use deepmq_broker::Memory;
use deepmq_broker::queue::{Queue, Ticket};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long a publisher waits for its turn.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// How long it does not wait at all after it waited in vain; doubled each time up to the maximum.
const IMPATIENCE_MIN: Duration = Duration::from_secs(1);
const IMPATIENCE_MAX: Duration = Duration::from_secs(64);

/// The waiting of one publisher.
pub(super) struct Pace {
    tickets: Vec<(Arc<Queue>, Ticket)>,
    eased: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    timeout: Option<Pin<Box<Sleep>>>,
    impatient_until: Option<Instant>,
    impatience: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            tickets: Vec::new(),
            eased: None,
            timeout: None,
            impatient_until: None,
            impatience: IMPATIENCE_MIN,
        }
    }
}

impl Pace {
    /// Waits for these turns, unless that was in vain of late.
    pub(super) fn wait_for(&mut self, tickets: impl Iterator<Item = (Arc<Queue>, Ticket)>) {
        self.tickets.extend(tickets);
        if self.tickets.is_empty() {
            return;
        }
        if self.impatient_until.is_some_and(|until| Instant::now() < until) {
            self.tickets.clear();
            return;
        }
        let deadline = Instant::now() + WAIT_MAX;
        match &mut self.timeout {
            Some(timeout) => timeout.as_mut().reset(deadline),
            None => self.timeout = Some(Box::pin(sleep(WAIT_MAX))),
        }
    }

    /// Waits until messages are paged out. A disk that is too slow for that does not stop it: then memory fills up to where
    /// publishers are blocked, and told so.
    pub(super) fn wait_for_memory(&mut self, memory: &Arc<Memory>) {
        let memory = memory.clone();
        self.eased = Some(Box::pin(async move {
            // Either way it goes on.
            let _ = timeout(WAIT_MAX, memory.until_eased()).await;
        }));
    }

    /// Whether it may publish; if not, the task is woken when it may.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(eased) = &mut self.eased {
            if eased.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.eased = None;
        }
        if self.tickets.is_empty() {
            return true;
        }
        self.tickets.retain(|(queue, ticket)| !queue.poll_turn(*ticket, cx.waker()));
        if self.tickets.is_empty() {
            self.impatience = IMPATIENCE_MIN;
            return true;
        }
        let in_vain = self.timeout.as_mut().is_none_or(|timeout| timeout.as_mut().poll(cx).is_ready());
        if in_vain {
            self.tickets.clear();
            self.impatient_until = Some(Instant::now() + self.impatience);
            self.impatience = (self.impatience * 2).min(IMPATIENCE_MAX);
        }
        in_vain
    }
}
