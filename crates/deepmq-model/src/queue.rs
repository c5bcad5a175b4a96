//! The queue state machine: which positions are ready, which consumer gets the next one, what an acknowledgement or a
//! return changes.
//!
//! Owns order, credit and counts. A message is a [`Position`] here: its bytes, the consumers' connections and the
//! locks around all this are the engine's. Generic over `C`, whatever the engine needs to reach a consumer.

mod consumers;
mod level_of;
mod levels;
mod line;
mod marks;
mod position;
mod ready;
mod settings;
#[cfg(test)]
mod tests;

pub use consumers::{Activity, Consumer, ConsumerId, ConsumerSpec, Consumers, Pause};
pub use position::{Position, PositionSet, Run};
pub use ready::{Priorities, Purged};
pub use settings::{DeadLetterTo, Settings};

use crate::topology::{QueueArguments, QueueKind};
use ready::Ready;

/// How many messages one consumer is handed in one turn of [`Queue::dispatch`] at most, so that a long backlog goes
/// out in pieces and the room in the consumer's connection is asked for again.
pub const GRANT_MAX: u32 = 1024;

/// Why a consumer cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConsumeError {
    /// There is an exclusive consumer, or one was asked for while there are others.
    #[error("the queue is in exclusive use")]
    ExclusiveUse,
}

/// What a queue is from the start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// The priorities that messages can have.
    pub priorities: Priorities,
    /// They were asked for: after a restart they are learned again of all messages, however long that takes.
    pub lasting_priorities: bool,
    /// Only one of its consumers gets messages, until it goes.
    pub single_active: bool,
    /// What it was declared as.
    pub kind: QueueKind,
}

impl Profile {
    /// That of a queue declared with these arguments: `x-max-priority` says what priorities there are; without it a classic
    /// queue has one, a quorum queue the 32 that RabbitMQ 4.3 gives it.
    pub fn of(arguments: &QueueArguments) -> Self {
        let priorities = match (arguments.max_priority, arguments.kind) {
            (Some(max), _) => Priorities { default: 0, max },
            (None, QueueKind::Classic) => Priorities::default(),
            (None, QueueKind::Quorum) => Priorities { default: 4, max: 31 },
        };
        Self {
            priorities,
            lasting_priorities: arguments.max_priority.is_some_and(|max| max > 0),
            single_active: arguments.single_active_consumer,
            kind: arguments.kind,
        }
    }
}

/// A message handed out: where it is, and whether it was handed out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handed {
    /// The message.
    pub position: Position,
    /// It was delivered, or fetched, and came back.
    pub redelivered: bool,
}

/// One queue.
#[derive(Debug)]
pub struct Queue<C> {
    profile: Profile,
    ready: Ready,
    unacked: u64,
    consumers: Consumers<C>,
}

impl<C> Default for Queue<C> {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

impl<C> Queue<C> {
    /// An empty queue.
    pub fn new(profile: Profile) -> Self {
        let consumers = Consumers::new(profile.single_active);
        Self { profile, ready: Ready::default(), unacked: 0, consumers }
    }

    /// Whether messages can differ in priority: then [`Queue::publish_each`] takes them.
    pub fn has_priorities(&self) -> bool {
        self.profile.priorities.max > 0
    }

    /// Messages that wait for a consumer.
    pub fn ready(&self) -> u64 {
        self.ready.len()
    }

    /// Messages handed out and not yet settled.
    pub fn unacked(&self) -> u64 {
        self.unacked
    }

    /// The consumers.
    pub fn consumers(&self) -> &Consumers<C> {
        &self.consumers
    }

    /// Notes the priority of a message that [`Queue::restore`] will take over; of those not noted it is the default.
    pub fn note_priority(&mut self, position: Position, priority: Option<u8>) {
        let Priorities { default, .. } = self.profile.priorities;
        self.ready.note(position, self.profile.priorities.level(priority), default);
    }

    /// Takes over messages from an earlier life of the queue, which ended before `next`: those that were handed out then,
    /// and those that were not. Only for a queue without messages.
    pub fn restore(&mut self, next: Position, returned: PositionSet, kept: PositionSet) {
        self.ready.restore(next, returned, kept);
    }

    /// Ready messages that were handed out before.
    pub fn returned(&self) -> PositionSet {
        self.ready.returned()
    }

    /// The position of the next new message.
    pub fn next(&self) -> Position {
        self.ready.tail()
    }

    /// Takes `count` new messages at the tail; returns the position of the first.
    pub fn publish(&mut self, count: u64) -> Position {
        self.ready.push(count)
    }

    /// Takes new messages at the tail, of these properties `priority`; returns the position of the first.
    pub fn publish_each(&mut self, priorities: impl Iterator<Item = Option<u8>>) -> Position {
        let (first, known) = (self.ready.tail(), self.profile.priorities);
        self.ready.push_each(priorities.map(|priority| known.level(priority)), known.default);
        first
    }

    /// Adds a consumer, who gets messages once it was resumed.
    pub fn subscribe(&mut self, spec: ConsumerSpec, handle: C) -> Result<ConsumerId, ConsumeError> {
        self.consumers.add(spec, handle)
    }

    /// Removes a consumer; what it holds stays unacked until settled. If it was the single active one, nobody is before
    /// [`Queue::hand_over`].
    pub fn unsubscribe(&mut self, id: ConsumerId) -> Option<Consumer<C>> {
        self.consumers.remove(id)
    }

    /// What consumers that are gone held has come back, as far as it comes back at once.
    pub fn hand_over(&mut self) {
        self.consumers.hand_over();
    }

    /// Fetches the first ready message; unless `no_ack`, it is unacked from now on.
    pub fn get(&mut self, no_ack: bool) -> Option<Handed> {
        let handed = self.ready.pop()?;
        self.unacked += u64::from(!no_ack);
        if no_ack {
            self.ready.forget(Run { first: handed.position, count: 1 });
        }
        Some(handed)
    }

    /// Settles one message for good: it was acknowledged or is to be dropped.
    pub fn complete(&mut self, position: Position, consumer: Option<ConsumerId>) {
        self.unacked = self.unacked.saturating_sub(1);
        self.ready.forget(Run { first: position, count: 1 });
        self.credit(consumer);
    }

    /// Puts an unacked message back to where it was.
    pub fn requeue(&mut self, position: Position, consumer: Option<ConsumerId>) {
        self.unacked = self.unacked.saturating_sub(1);
        self.ready.put_back(position);
        self.credit(consumer);
    }

    fn credit(&mut self, consumer: Option<ConsumerId>) {
        if let Some(id) = consumer {
            self.consumers.settled(id);
        }
    }

    /// The consumer's connection has room again, or its channel's flow is on again.
    pub fn resume(&mut self, id: ConsumerId) {
        self.consumers.resume(id);
    }

    /// Removes all ready messages.
    pub fn purge(&mut self) -> Purged {
        self.ready.clear()
    }

    /// The first ready message.
    pub fn first_ready(&self) -> Option<Position> {
        self.ready.first()
    }

    /// Whether a message is ready.
    pub fn is_ready(&self, position: Position) -> bool {
        self.ready.contains(position)
    }

    /// What is ready, as ranges in no order, with exclusive ends.
    pub fn ready_ranges(&self) -> impl Iterator<Item = (Position, Position)> {
        self.ready.ranges()
    }

    /// Takes up to `max` ready messages from the front that are consecutive, to be settled without being handed out.
    pub fn skip(&mut self, max: u32) -> Option<Run> {
        let (run, _) = self.ready.pop_run(max)?;
        self.ready.forget(run);
        Some(run)
    }

    /// Takes a ready message from wherever it is, to be settled without being handed out; false: it is not ready.
    pub fn take(&mut self, position: Position) -> bool {
        self.ready.take(position)
    }

    /// Hands ready messages out, in turn to the consumers of the highest priority that can take one.
    ///
    /// `at_hand(position)` says how many messages from the first ready one on can be handed out now; with 0 it ends.
    /// `reserve(consumer, want)` says how many messages a consumer's connection takes now; with 0 the consumer is
    /// paused until [`Queue::resume`]. What was assigned stands in each touched consumer, for
    /// [`Queue::drain_assigned`]. Returns whether anything was assigned.
    pub fn dispatch(
        &mut self,
        mut at_hand: impl FnMut(Position) -> u32,
        mut reserve: impl FnMut(&C, u32) -> u32,
    ) -> bool {
        let mut any = false;
        while let Some(next) = self.ready.first() {
            let at_hand = at_hand(next);
            if at_hand == 0 {
                break;
            }
            let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
            let Some((consumer, alone)) = self.consumers.next_able(ready, &mut reserve) else { break };
            let want = if alone { consumer.grant() } else { 1 };
            let Some((run, redelivered)) = self.ready.pop_run(want.min(at_hand)) else { break };
            if consumer.no_ack() {
                self.ready.forget(run);
            } else {
                self.unacked += u64::from(run.count);
            }
            consumer.assign(run, redelivered);
            any = true;
        }
        any
    }

    /// The consumers that [`Queue::dispatch`] assigned messages to, each once: `each(consumer, no_ack, runs, unused)`,
    /// where a run carries whether it was handed out before, and `unused` is what of the reservation is left.
    pub fn drain_assigned(&mut self, mut each: impl FnMut(&C, bool, &[(Run, bool)], u32)) {
        self.consumers.drain_assigned(&mut each);
    }
}
