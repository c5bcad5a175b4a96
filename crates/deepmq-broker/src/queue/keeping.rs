//! A durable queue and the store: what of it must be kept, and what comes back at the start.
//!
//! Owns which of its messages the journal and checkpoints must tell. Must not know when that is asked.

use super::{Queue, StoredAs};
use crate::message::MessageRef;
use deepmq_model::queue::{Position, PositionSet, Profile};
use deepmq_storage::{BatchBuilder, Durability, QueueState, RangeSet};
use std::ops::Range;
use std::sync::Arc;

impl Queue {
    /// The number by which the journal knows it, if it is durable in a durable broker.
    pub fn number(&self) -> Option<u64> {
        self.kept().map(|kept| kept.number)
    }

    pub(super) fn kept(&self) -> Option<&StoredAs> {
        self.stored.as_ref().filter(|stored| stored.survives)
    }

    /// How far its persistent messages must have come before they are confirmed; nothing of it is kept if none.
    pub fn durability(&self) -> Option<Durability> {
        self.kept().map(|kept| kept.durability)
    }

    /// What the persistent messages below `end` that are still needed and in no segment take, in bytes; stops counting at
    /// `max`.
    pub(crate) fn unstored_bytes(&self, end: Position, max: usize) -> usize {
        let state = self.state.lock();
        let mut bytes = 0;
        for (_, message) in state.backlog.unstored(end) {
            bytes += message.address.len() + message.properties.len() + message.body.len();
            if bytes >= max {
                break;
            }
        }
        bytes
    }

    /// Places the persistent messages below `end` that are still needed and in no segment into `batch`, at the positions they
    /// have.
    pub(crate) fn place_again(&self, end: Position, batch: &mut BatchBuilder) {
        let Some(number) = self.number() else { return };
        let state = self.state.lock();
        for (position, message) in state.backlog.unstored(end) {
            let index = message.journal(state.backlog.arrived(position), batch);
            batch.place(number, position.0, [index]);
        }
    }

    /// Where the queue stands, but for its messages.
    pub(crate) fn kept_state(&self) -> QueueState {
        let state = self.state.lock();
        let next = state.model.next();
        let (mut settled, mut from) = (RangeSet::default(), 0);
        for kept in state.backlog.kept_ranges() {
            settled.insert(from..kept.start);
            from = kept.end;
        }
        settled.insert(from..next.0);
        let returned = state.model.returned();
        let returned = returned.ranges().map(|(start, end)| (start.0..end.0, 0));
        let known = state.backlog.all_returns().map(|(at, times)| (at..at + 1, times));
        let counts = returned.chain(known).collect();
        QueueState { queue: self.number().unwrap_or_default(), next: next.0, settled, counts }
    }

    /// What is needed no more, persistent or not.
    pub(crate) fn settled_positions(&self) -> RangeSet {
        let state = self.state.lock();
        let (mut settled, mut from) = (RangeSet::default(), 0);
        for live in state.backlog.live_ranges() {
            settled.insert(from..live.start);
            from = live.end;
        }
        settled.insert(from..state.model.next().0);
        settled
    }

    /// Takes over messages in segments from an earlier life, in the order of positions.
    pub(crate) fn restore_stored(self: &Arc<Self>, positions: Range<u64>) {
        let mut state = self.state.lock();
        state.note_paged(self);
        state.backlog.restore_stored(positions);
    }

    /// Takes over a message from an earlier life, in the order of positions, and when it arrived.
    pub(crate) fn restore(&self, position: Position, message: MessageRef<'_>, arrived: u64) {
        let mut state = self.state.lock();
        state.backlog.restore(position, message, arrived);
        state.note_priority(position, message);
    }

    /// What it is from the start to its end.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Learns the priority of a message in a segment that will be taken over.
    pub(crate) fn note_stored(&self, position: Position, message: MessageRef<'_>) {
        self.state.lock().note_priority(position, message);
    }

    /// All messages were taken over; `returned` of them had been handed out.
    pub(crate) fn restored(
        self: &Arc<Self>,
        next: Position,
        returned: PositionSet,
        kept: PositionSet,
        returns: &[(Position, u32)],
    ) {
        let mut state = self.state.lock();
        returns.iter().for_each(|&(position, times)| state.backlog.restore_returns(position, times));
        state.backlog.restored(next);
        state.model.restore(next, returned, kept);
        state.leave_again(returns);
        state.recount_ready();
        state.note_timed();
        self.home.timers.at(0, self);
    }
}
