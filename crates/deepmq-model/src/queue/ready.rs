//! The ready messages of a queue: in a line, or once there is one of another priority in levels.
//!
//! Owns which of the two it is. A queue whose messages are all of one priority is a line, whatever it was declared as, and pays
//! nothing for the levels it could have.

use super::levels::Levels;
use super::line::Line;
use super::{Handed, Position, PositionSet, Run};

/// Which priorities there are. The default is one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Priorities {
    /// That of a message that does not say it.
    pub default: u8,
    /// The highest; what is above counts as this.
    pub max: u8,
}

impl Priorities {
    /// The level of a message with this property `priority`.
    #[inline]
    pub fn level(self, priority: Option<u8>) -> u8 {
        priority.unwrap_or(self.default).min(self.max)
    }
}

/// What a purge removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Purged {
    /// Messages from before those.
    pub older: PositionSet,
    /// Fresh messages: from the first position on.
    pub first: Position,
    /// Up to this, exclusive.
    pub end: Position,
}

impl Purged {
    /// How many messages that is.
    pub fn count(&self) -> u64 {
        self.older.len() + (self.end.0 - self.first.0)
    }
}

/// What is ready.
#[derive(Debug)]
pub(super) enum Ready {
    Line(Line),
    Levels(Box<Levels>),
}

impl Default for Ready {
    fn default() -> Self {
        Self::Line(Line::default())
    }
}

impl Ready {
    /// Those that were handed out before.
    pub(super) fn returned(&self) -> PositionSet {
        match self {
            Self::Line(line) => line.returned().clone(),
            Self::Levels(levels) => levels.returned(),
        }
    }

    /// The position of the next fresh message.
    pub(super) fn tail(&self) -> Position {
        match self {
            Self::Line(line) => line.tail(),
            Self::Levels(levels) => levels.tail(),
        }
    }

    /// How many are ready.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Line(line) => line.len(),
            Self::Levels(levels) => levels.len(),
        }
    }

    /// Appends `count` fresh messages of the default priority; returns the position of the first.
    pub(super) fn push(&mut self, count: u64) -> Position {
        let first = self.tail();
        match self {
            Self::Line(line) => {
                line.push(count);
            }
            Self::Levels(levels) => (0..count).for_each(|_| levels.push(levels.default_level())),
        }
        first
    }

    /// Appends messages, each of its level.
    pub(super) fn push_each(&mut self, levels: impl Iterator<Item = u8>, default: u8) {
        if let Self::Levels(idle) = self
            && idle.is_idle()
        {
            *self = Self::Line(Line::emptied(idle.tail()));
        }
        for level in levels {
            match self {
                Self::Line(line) if level == default => {
                    line.push(1);
                }
                _ => self.levels(default).push(level),
            }
        }
    }

    /// The levels, made of a line if there are none yet.
    fn levels(&mut self, default: u8) -> &mut Levels {
        if let Self::Line(line) = self {
            *self = Self::Levels(Box::new(Levels::new(default, std::mem::take(line).into_parts())));
        }
        match self {
            Self::Levels(levels) => levels,
            Self::Line(_) => unreachable!("it has just become levels"),
        }
    }

    /// Notes the level of a message that [`Ready::restore`] will take over.
    pub(super) fn note(&mut self, position: Position, level: u8, default: u8) {
        if level != default {
            self.levels(default).note(position, level);
        }
    }

    /// The first.
    #[inline]
    pub(super) fn first(&self) -> Option<Position> {
        match self {
            Self::Line(line) => line.first(),
            Self::Levels(levels) => levels.first(),
        }
    }

    /// All of them, as ranges in no order, with exclusive ends.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (Position, Position)> {
        let (line, levels) = match self {
            Self::Line(line) => (Some(line.ranges()), None),
            Self::Levels(levels) => (None, Some(levels.ranges())),
        };
        line.into_iter().flatten().chain(levels.into_iter().flatten())
    }

    /// Whether a message is.
    pub(super) fn contains(&self, position: Position) -> bool {
        match self {
            Self::Line(line) => line.contains(position),
            Self::Levels(levels) => levels.contains(position),
        }
    }

    /// Takes the first.
    pub(super) fn pop(&mut self) -> Option<Handed> {
        let (run, redelivered) = self.pop_run(1)?;
        Some(Handed { position: run.first, redelivered })
    }

    /// Takes up to `max` from the front that are consecutive and alike; true: they were handed out before.
    #[inline]
    pub(super) fn pop_run(&mut self, max: u32) -> Option<(Run, bool)> {
        match self {
            Self::Line(line) => (!line.is_empty()).then(|| line.pop_run(max)),
            Self::Levels(levels) => levels.pop_run(max),
        }
    }

    /// Takes one from wherever it is, for good; false: it is not ready.
    pub(super) fn take(&mut self, position: Position) -> bool {
        match self {
            Self::Line(line) => line.take(position),
            Self::Levels(levels) => levels.take(position),
        }
    }

    /// Puts a message that was taken back where it was.
    pub(super) fn put_back(&mut self, position: Position) {
        match self {
            Self::Line(line) => line.put_back(position),
            Self::Levels(levels) => levels.put_back(position),
        }
    }

    /// Messages that were taken never come back.
    #[inline]
    pub(super) fn forget(&mut self, run: Run) {
        if let Self::Levels(levels) = self {
            levels.forget(run);
        }
    }

    /// Takes over messages from an earlier life of the queue, which ended before `next`: those that were handed out then,
    /// and those that were not. Only for a queue without messages.
    pub(super) fn restore(&mut self, next: Position, returned: PositionSet, kept: PositionSet) {
        match self {
            Self::Line(line) => line.restore(next, returned, kept),
            Self::Levels(levels) => levels.restore(next, &returned, &kept),
        }
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) -> Purged {
        match self {
            Self::Line(line) => line.clear(),
            Self::Levels(levels) => levels.clear(),
        }
    }
}
