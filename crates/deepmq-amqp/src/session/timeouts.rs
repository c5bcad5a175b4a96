//! Deliveries that are not settled for too long: they go back to their queue, and the consumer is cancelled.
//!
//! Owns what is allowed and how often that is looked at. Unlike RabbitMQ, no channel is closed for it: who settles such a
//! delivery later is not heard, but not punished.

use super::Session;
use deepmq_broker::queue::Queue;
use deepmq_broker::subscriber::{ConsumerKey, Subscriber};
use std::sync::Arc;
use std::time::Duration;

/// One looks so many times within the time allowed, ...
const LOOKS: u32 = 16;
/// ... but not more often and not less often than this.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);
const LOOK_EVERY_MAX: Duration = Duration::from_mins(1);

impl Session {
    /// How often [`Session::handle_timeouts`] is to be called; none: there is nothing that could take too long.
    pub(crate) fn look_every(&self) -> Option<Duration> {
        self.look_every
    }

    /// How long deliveries of a queue may be unsettled; none: for ever.
    fn allowed(&self, queue: &Queue) -> Option<Duration> {
        let allowed = queue.consumer_timeout().unwrap_or(self.broker.config().consumer_timeout);
        (!allowed.is_zero()).then_some(allowed)
    }

    /// From now on deliveries of a queue may come that are to be settled.
    pub(super) fn expect_settling(&mut self, queue: &Queue) {
        let every = self.allowed(queue).map(look_every);
        self.look_every = [self.look_every, every].into_iter().flatten().min();
    }

    /// Gives back what was unsettled for too long.
    pub(crate) fn handle_timeouts(&mut self) {
        let mut shortest = None;
        for number in self.channels.keys().copied().collect::<Vec<_>>() {
            let queues = self.outbox.channel(number, |channel, _| channel.timed_queues());
            let allowed: Vec<(Arc<Queue>, Duration)> = (queues.into_iter().flatten())
                .filter_map(|queue| {
                    let allowed = self.allowed(&queue)?;
                    Some((queue, allowed))
                })
                .collect();
            shortest = allowed.iter().map(|(_, allowed)| *allowed).chain(shortest).min();
            if !allowed.is_empty() {
                self.lapse(number, &allowed);
            }
        }
        self.look_every = shortest.map(look_every);
        self.wakes.wake();
    }

    fn lapse(&mut self, number: u16, allowed: &[(Arc<Queue>, Duration)]) {
        let (now, settlements) = (self.broker.seam().clock.now(), &mut self.settlements);
        let looked = self.outbox.channel(number, |channel, _| {
            let late = channel.lapse(now, allowed, settlements).into_iter();
            let late: Vec<_> =
                late.filter_map(|index| Some((index, channel.consumer(index)?.clone()))).collect();
            (late, channel.unpaused())
        });
        let Some((late, unpaused)) = looked else { return };
        let mut abandoned = Vec::new();
        for (index, consumer) in &late {
            tracing::warn!(
                connection = self.id.0,
                channel = number,
                tag = &*consumer.tag,
                queue = &**consumer.queue.name(),
                "a delivery was not settled in time: it goes back, and the consumer is cancelled"
            );
            // Off the queue first, so that nothing is handed to it again.
            if self.take_off(consumer) {
                abandoned.push(consumer.queue.clone());
            }
            self.outbox.cancelled(ConsumerKey { channel: number, index: *index });
        }
        self.settlements.apply(&mut self.wakes);
        for (queue, consumer) in unpaused {
            queue.resume(consumer, &mut self.wakes);
        }
        late.iter().for_each(|(_, consumer)| consumer.queue.hand_over(&mut self.wakes));
        if let Some(vhost) = &self.vhost {
            abandoned.iter().for_each(|queue| vhost.delete_if_abandoned(queue));
        }
    }
}

fn look_every(allowed: Duration) -> Duration {
    (allowed / LOOKS).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX)
}
