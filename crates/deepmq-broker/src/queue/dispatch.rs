//! Handing ready messages to consumers.
//!
//! Owns the order: what is in memory goes out, what is lost is passed over, what is needed soon is asked for. Must not know whose
//! turn it is: that is the model's.

use super::flow::Flow;
use super::{Queue, State};
use crate::subscriber::Wakes;
use deepmq_model::queue::Position;
use std::sync::Arc;

impl State {
    pub(super) fn dispatch(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        if self.model.ready() == 0 || self.model.consumers().is_empty() {
            return;
        }
        loop {
            self.hand_out(queue, wakes);
            if !self.skip_lost(queue, wakes) {
                break;
            }
        }
        self.read_ahead(queue);
        if !Flow::is_long(self.model.ready(), self.backlog.bytes()) {
            self.flow.open(|waker| wakes.add_publisher(waker));
        }
        self.tell_room();
    }

    /// Hands out what is in memory.
    fn hand_out(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        let bytes = self.backlog.average_bytes();
        let (backlog, mut near) = (&self.backlog, Position(0)..Position(0));
        let at_hand = |next: Position| {
            if !near.contains(&next) {
                near = next..next.plus(backlog.at_hand(next).into());
            }
            u32::try_from(near.end.0 - next.0).unwrap_or(u32::MAX)
        };
        self.model.dispatch(at_hand, |to, want| to.subscriber.reserve(to.key, want, bytes, queue));
        let Self { model, backlog, counters, flow, settings, ready_bytes, .. } = self;
        let (mut left, tells_returns) = (0, settings.tells_returns);
        model.drain_assigned(|to, no_ack, runs, unused| {
            if !runs.is_empty() {
                to.subscriber.deliver(to.key, &mut backlog.deliveries(runs, tells_returns));
                wakes.add(&to.subscriber);
                left += counters.count_delivered(runs, no_ack);
                if let Some(bytes) = ready_bytes {
                    let taken: u64 = runs.iter().map(|&(run, _)| backlog.body_bytes(run)).sum();
                    *bytes = bytes.saturating_sub(taken);
                }
                if queue.home.events.messages_wanted() {
                    for delivery in backlog.deliveries(runs, tells_returns) {
                        queue.home.events.publish(&queue.delivered(delivery.message, delivery.redelivered));
                    }
                }
            }
            if unused > 0 {
                to.subscriber.release(to.key, unused);
            }
            if no_ack {
                for &(run, _) in runs {
                    queue.note_done(backlog.complete_run(run), run, wakes);
                }
            }
        });
        flow.leave(left, |waker| wakes.add_publisher(waker));
    }
}
