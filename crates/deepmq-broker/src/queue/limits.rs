//! A queue with a bound on what it holds.
//!
//! Owns what is done when it is reached: the oldest go, or the new are refused. Must not know when it is: that is for the model's
//! settings to say. Ready messages count, and their bodies, and so do dead letters
//! that stay until they are placed; RabbitMQ counts so too (reference 2.7).

use super::{Published, Queue, State};
use crate::backlog::BatchSize;
use crate::message::{MessageRef, OwnedMessage};
use crate::subscriber::Wakes;
use deepmq_model::message::death::Reason;
use deepmq_model::queue::{Position, Run};
use deepmq_model::topology::Overflow;
use std::sync::Arc;

impl State {
    /// Messages are ready from now on.
    #[inline]
    pub(super) fn count_ready(&mut self, run: Run) {
        if let Some(bytes) = &mut self.ready_bytes {
            *bytes += self.backlog.body_bytes(run);
        }
    }

    /// Messages are not ready any more.
    #[inline]
    pub(super) fn count_taken(&mut self, run: Run) {
        if let Some(bytes) = &mut self.ready_bytes {
            *bytes = bytes.saturating_sub(self.backlog.body_bytes(run));
        }
    }

    /// Counts anew, or no more, for other settings.
    pub(super) fn recount_ready(&mut self) {
        self.ready_bytes = self.settings.max_length_bytes.map(|_| {
            let ranges = self.model.ready_ranges();
            ranges.map(|(start, end)| self.backlog.body_bytes_between(start, end)).sum()
        });
    }

    pub(super) fn is_exceeded_with(&self, messages: u64, bytes: u64) -> bool {
        let (mut count, mut sum) = (self.model.ready(), self.ready_bytes.unwrap_or_default());
        if self.settings.dead_letter.as_ref().is_some_and(|to| to.at_least_once) {
            // They can be here for long.
            count += self.leaving.count;
            sum += self.leaving.bytes;
        }
        self.settings.is_exceeded(count + messages, sum + bytes)
    }

    /// Lets the oldest messages go until there are not too many, if that is how the queue overflows.
    pub(super) fn shorten(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        if !self.settings.is_limited() || self.settings.overflow != Overflow::DropHead {
            return;
        }
        while self.model.ready() > 0 && self.is_exceeded_with(0, 0) {
            let max = self.settings.max_length.unwrap_or(u64::MAX);
            let over = self.model.ready().saturating_sub(max).max(1);
            let Some(run) = self.model.skip(u32::try_from(over).unwrap_or(u32::MAX)) else { break };
            self.count_taken(run);
            self.flow.leave(run.count.into(), |waker| wakes.add_publisher(waker));
            self.discard(queue, run, Reason::MaxLen, wakes);
        }
    }

    /// Takes what there is room for, and refuses the rest. Consumers that can take messages make room.
    pub(super) fn admit<'a>(
        &mut self,
        queue: &Arc<Queue>,
        size: BatchSize,
        messages: impl Iterator<Item = MessageRef<'a>>,
        wakes: &mut Wakes,
    ) -> Published {
        let mut published = Published::default();
        let (mut admitted, mut bytes) = (Vec::with_capacity(size.count), 0);
        for (index, message) in (0..).zip(messages) {
            let body = message.body.len() as u64;
            if self.is_exceeded_with(admitted.len() as u64 + 1, bytes + body) && !admitted.is_empty() {
                self.take_in(queue, &mut admitted, size.expiring, &mut published, wakes);
                bytes = 0;
            }
            if self.is_exceeded_with(admitted.len() as u64 + 1, bytes + body) {
                published.refused.push(index);
                self.refuse(queue, message, wakes);
                continue;
            }
            bytes += body;
            admitted.push(message);
        }
        self.take_in(queue, &mut admitted, size.expiring, &mut published, wakes);
        published
    }

    fn take_in(
        &mut self,
        queue: &Arc<Queue>,
        admitted: &mut Vec<MessageRef<'_>>,
        expiring: bool,
        published: &mut Published,
        wakes: &mut Wakes,
    ) {
        if admitted.is_empty() {
            return;
        }
        let bytes = admitted.iter().map(MessageRef::packed_bytes).sum();
        let size = BatchSize { count: admitted.len(), bytes, expiring };
        let first: Position = self.append(queue, size, admitted.drain(..));
        published.first.get_or_insert(first);
        self.dispatch(queue, wakes);
        self.expire_fresh(queue, wakes);
    }

    fn refuse(&mut self, queue: &Arc<Queue>, message: MessageRef<'_>, wakes: &mut Wakes) {
        if self.settings.overflow != Overflow::RejectPublishDeadLetter {
            return;
        }
        if let Some(to) = &self.settings.dead_letter {
            wakes.dead_letters.refused(queue, to, OwnedMessage::from(message));
        }
    }
}
