//! The ready messages of a queue without priorities, in order: those that came back, those kept from an earlier life, then
//! the fresh ones.
//!
//! Owns order and the redelivered mark. So a message that is ready costs no memory, and one that came back or was kept
//! costs a share of a range.

use super::{Position, PositionSet, Purged, Run};

/// What is ready.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Handed out before.
    returned: PositionSet,
    /// Restored, and not handed out before as far as is known.
    kept: PositionSet,
    fresh: Position,
    tail: Position,
}

impl Line {
    /// A line in which nothing is ready, and all that was handed out was so from below `tail`.
    pub(super) fn emptied(tail: Position) -> Self {
        Self { fresh: tail, tail, ..Self::default() }
    }

    /// Those that were handed out before.
    pub(super) fn returned(&self) -> &PositionSet {
        &self.returned
    }

    /// The position of the next fresh message.
    pub(super) fn tail(&self) -> Position {
        self.tail
    }

    /// How many are ready.
    pub(super) fn len(&self) -> u64 {
        self.returned.len() + self.kept.len() + (self.tail.0 - self.fresh.0)
    }

    /// Whether none is.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `count` fresh messages; returns the position of the first.
    pub(super) fn push(&mut self, count: u64) -> Position {
        let first = self.tail;
        self.tail = self.tail.plus(count);
        first
    }

    /// The first.
    #[inline]
    pub(super) fn first(&self) -> Option<Position> {
        let fresh = (self.fresh < self.tail).then_some(self.fresh);
        let older = [self.returned.first(), self.kept.first()];
        older.into_iter().flatten().min().or(fresh)
    }

    /// All of them, as ranges in no order, with exclusive ends.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (Position, Position)> {
        let fresh = (self.fresh < self.tail).then_some((self.fresh, self.tail));
        self.returned.ranges().chain(self.kept.ranges()).chain(fresh)
    }

    /// Takes one from wherever it is; false: it is not ready.
    pub(super) fn take(&mut self, position: Position) -> bool {
        if position < self.fresh || position >= self.tail {
            return self.returned.remove(position) || self.kept.remove(position);
        }
        // What is passed over was never handed out, and is no longer the end of the line.
        self.kept.insert_range(self.fresh, position);
        self.fresh = position.plus(1);
        true
    }

    /// Whether a message is.
    pub(super) fn contains(&self, position: Position) -> bool {
        position >= self.fresh && position < self.tail
            || self.returned.contains(position)
            || self.kept.contains(position)
    }

    /// Takes up to `max` from the front that are consecutive and alike; true: they were handed out before.
    pub(super) fn pop_run(&mut self, max: u32) -> (Run, bool) {
        let (returned, kept) = (self.returned.first(), self.kept.first());
        // Positions decide, so each of the two is taken from only up to where the other begins.
        let upto = |from: Option<Position>, other: Option<Position>| match (from, other) {
            (Some(from), Some(other)) if other < from => 0,
            (Some(from), Some(other)) => u32::try_from(other.0 - from.0).map_or(max, |count| count.min(max)),
            (Some(_), None) => max,
            (None, _) => 0,
        };
        for (set, upto, again) in
            [(&mut self.returned, upto(returned, kept), true), (&mut self.kept, upto(kept, returned), false)]
        {
            if upto > 0
                && let Some(run) = set.pop_run(upto)
            {
                return (run, again);
            }
        }
        let count = u32::try_from(self.tail.0 - self.fresh.0).map_or(max, |fresh| fresh.min(max));
        let run = Run { first: self.fresh, count };
        self.fresh = run.end();
        (run, false)
    }

    /// Puts a message that was taken back where it was.
    pub(super) fn put_back(&mut self, position: Position) {
        debug_assert!(position < self.fresh, "only what was taken can come back");
        self.returned.insert(position);
    }

    /// Takes over messages from an earlier life of the queue, which ended before `next`: those that were handed out then,
    /// and those that were not. Only for a queue without messages.
    pub(super) fn restore(&mut self, next: Position, returned: PositionSet, kept: PositionSet) {
        debug_assert!(self.tail == Position(0) && self.is_empty(), "a queue is restored before it is used");
        *self = Self { returned, kept, fresh: next, tail: next };
    }

    /// The parts: what was handed out before, and what was not, up to the tail.
    pub(super) fn into_parts(self) -> (PositionSet, PositionSet, Position) {
        let Self { returned, mut kept, fresh, tail } = self;
        kept.insert_range(fresh, tail);
        (returned, kept, tail)
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) -> Purged {
        let first = std::mem::replace(&mut self.fresh, self.tail);
        let mut older = std::mem::take(&mut self.returned);
        for (start, end) in std::mem::take(&mut self.kept).ranges() {
            older.insert_range(start, end);
        }
        Purged { older, first, end: self.tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> PositionSet {
        let mut set = PositionSet::default();
        for &(start, end) in ranges {
            set.insert_range(Position(start), Position(end));
        }
        set
    }

    #[test]
    fn restored_messages_come_in_their_order_and_only_those_handed_out_are_marked() {
        let mut ready = Line::default();
        ready.restore(Position(10), set(&[(1, 3), (6, 7)]), set(&[(0, 1), (3, 5), (8, 9)]));
        ready.push(2);
        assert_eq!(ready.len(), 9);
        let mut seen = Vec::new();
        while !ready.is_empty() {
            let (run, again) = ready.pop_run(10);
            seen.extend((run.first.0..run.end().0).map(|at| (at, again)));
        }
        let marked = |at| [1, 2, 6].contains(&at);
        assert_eq!(seen, [0, 1, 2, 3, 4, 6, 8, 10, 11].map(|at| (at, marked(at))));
    }

    #[test]
    fn a_kept_message_that_comes_back_is_marked() {
        let mut ready = Line::default();
        ready.restore(Position(5), PositionSet::default(), set(&[(2, 4)]));
        let (first, _) = ready.pop_run(1);
        ready.put_back(first.first);
        assert_eq!(ready.pop_run(1), (Run { first: Position(2), count: 1 }, true));
        assert_eq!(ready.pop_run(1), (Run { first: Position(3), count: 1 }, false));
    }

    #[test]
    fn one_is_taken_from_wherever_it_is_and_the_others_keep_their_order_and_mark() {
        let mut ready = Line::default();
        ready.restore(Position(5), set(&[(0, 2)]), set(&[(3, 5)]));
        ready.push(4);
        for (position, taken) in
            [(0, true), (0, false), (2, false), (3, true), (7, true), (7, false), (9, false)]
        {
            assert_eq!(ready.take(Position(position)), taken, "{position}");
        }
        let mut seen = Vec::new();
        while !ready.is_empty() {
            let (run, again) = ready.pop_run(1);
            seen.push((run.first.0, again));
        }
        assert_eq!(seen, [(1, true), (4, false), (5, false), (6, false), (8, false)]);
    }

    #[test]
    fn clearing_takes_the_old_and_the_fresh() {
        let mut ready = Line::default();
        ready.restore(Position(5), set(&[(0, 1)]), set(&[(2, 4)]));
        ready.push(3);
        assert_eq!(ready.clear().count(), 6);
        assert!(ready.is_empty());
    }
}
