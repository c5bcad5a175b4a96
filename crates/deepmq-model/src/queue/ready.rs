//! The ready messages of a queue, in order: those that came back, then the fresh ones.
//!
//! Owns order and the redelivered mark. A position below `fresh` was handed out before; so a message that is ready
//! costs no memory, and one that came back costs a share of a range.

use super::{Handed, Position, PositionSet, Run};

/// What is ready.
#[derive(Debug, Default)]
pub struct Ready {
    returned: PositionSet,
    fresh: Position,
    tail: Position,
}

/// What a purge removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Purged {
    /// Messages that had been handed out before.
    pub returned: PositionSet,
    /// Messages that had not: from the first position on.
    pub first: Position,
    /// Up to this, exclusive.
    pub end: Position,
}

impl Purged {
    /// How many messages that is.
    pub fn count(&self) -> u64 {
        self.returned.len() + (self.end.0 - self.first.0)
    }
}

impl Ready {
    /// How many are ready.
    pub fn len(&self) -> u64 {
        self.returned.len() + (self.tail.0 - self.fresh.0)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `count` fresh messages; returns the position of the first.
    pub fn push(&mut self, count: u64) -> Position {
        let first = self.tail;
        self.tail = self.tail.plus(count);
        first
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Handed> {
        (!self.is_empty()).then(|| {
            let (run, redelivered) = self.pop_run(1);
            Handed { position: run.first, redelivered }
        })
    }

    /// Takes up to `max` from the front that are consecutive and alike; true: they were handed out before.
    pub fn pop_run(&mut self, max: u32) -> (Run, bool) {
        if let Some(run) = self.returned.pop_run(max) {
            return (run, true);
        }
        let count = u32::try_from(self.tail.0 - self.fresh.0).map_or(max, |fresh| fresh.min(max));
        let run = Run { first: self.fresh, count };
        self.fresh = run.end();
        (run, false)
    }

    /// Puts a message that was taken back where it was.
    pub fn put_back(&mut self, position: Position) {
        debug_assert!(position < self.fresh, "only what was taken can come back");
        self.returned.insert(position);
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Purged {
        let first = std::mem::replace(&mut self.fresh, self.tail);
        Purged { returned: std::mem::take(&mut self.returned), first, end: self.tail }
    }
}
