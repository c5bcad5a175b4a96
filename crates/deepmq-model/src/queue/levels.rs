//! The ready messages of a queue by priority: the highest level first, and within a level as they were published.
//!
//! Owns the levels, and which message belongs to which until it is settled: what comes back goes to its place in its level.
//! Only levels that hold something, and messages of another level than the default, take memory.

use super::level_of::LevelOf;
use super::marks::Marks;
use super::{Position, PositionSet, Purged, Run};

/// One level.
#[derive(Debug, Default)]
struct Level {
    /// Handed out before.
    returned: Marks,
    fresh: Marks,
}

impl Level {
    fn is_empty(&self) -> bool {
        self.returned.is_empty() && self.fresh.is_empty()
    }
}

/// What is ready.
#[derive(Debug)]
pub(super) struct Levels {
    /// By their number, up to the highest that was ever needed.
    rows: Vec<Level>,
    /// Which of them hold something, a bit each.
    filled: [u64; 4],
    of: LevelOf,
    len: u64,
    tail: Position,
}

impl Levels {
    /// With what a line held, which all is of the default level.
    pub(super) fn new(default: u8, (returned, fresh, tail): (PositionSet, PositionSet, Position)) -> Self {
        let mut levels = Self { rows: Vec::new(), filled: [0; 4], of: LevelOf::new(default), len: 0, tail };
        levels.take_over(&returned, &fresh);
        levels
    }

    fn take_over(&mut self, returned: &PositionSet, fresh: &PositionSet) {
        let all = |set: &PositionSet| set.ranges().collect::<Vec<_>>().into_iter();
        for (start, end) in all(returned) {
            (start.0..end.0).for_each(|at| self.put_back(Position(at)));
        }
        for (start, end) in all(fresh) {
            (start.0..end.0).for_each(|at| self.add_fresh(Position(at)));
        }
    }

    /// Takes over messages from an earlier life, whose levels were noted.
    pub(super) fn restore(&mut self, next: Position, returned: &PositionSet, kept: &PositionSet) {
        self.tail = next;
        self.take_over(returned, kept);
    }

    /// Notes the level of a message that is not ready yet.
    pub(super) fn note(&mut self, position: Position, level: u8) {
        self.of.set(position, level);
    }

    /// Nothing is ready, and nothing that was handed out is of another level than the default.
    pub(super) fn is_idle(&self) -> bool {
        self.len == 0 && self.of.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn tail(&self) -> Position {
        self.tail
    }

    /// Those that were handed out before.
    pub(super) fn returned(&self) -> PositionSet {
        self.rows.iter().flat_map(|level| level.returned.iter()).collect()
    }

    /// Appends a message to a level.
    pub(super) fn push(&mut self, level: u8) {
        let position = self.tail;
        self.tail = position.plus(1);
        self.of.set(position, level);
        self.level(level).fresh.insert(position);
        self.len += 1;
    }

    fn add_fresh(&mut self, position: Position) {
        let level = self.of.get(position);
        self.level(level).fresh.insert(position);
        self.len += 1;
    }

    /// Puts a message that was taken back where it was.
    pub(super) fn put_back(&mut self, position: Position) {
        debug_assert!(position < self.tail, "only what was taken can come back");
        let level = self.of.get(position);
        self.level(level).returned.insert(position);
        self.len += 1;
    }

    /// A level that is about to hold something.
    fn level(&mut self, number: u8) -> &mut Level {
        let at = usize::from(number);
        if let Some(word) = self.filled.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, Level::default);
        }
        self.rows.get_mut(at).expect("it was there or has just been made")
    }

    /// The highest level that holds something.
    #[inline]
    fn highest(&self) -> Option<usize> {
        let (at, word) = (0..4).zip(&self.filled).rev().find(|(_, word)| **word != 0)?;
        Some(at * 64 + word.ilog2() as usize)
    }

    /// The first.
    #[inline]
    pub(super) fn first(&self) -> Option<Position> {
        let level = self.rows.get(self.highest()?)?;
        [level.returned.first(), level.fresh.first()].into_iter().flatten().min()
    }

    /// Whether a message is ready.
    pub(super) fn contains(&self, position: Position) -> bool {
        let level = self.rows.get(usize::from(self.of.get(position)));
        level.is_some_and(|level| level.returned.contains(position) || level.fresh.contains(position))
    }

    /// Takes up to `max` from the front of the highest level that are consecutive and alike; true: they were handed out before.
    pub(super) fn pop_run(&mut self, max: u32) -> Option<(Run, bool)> {
        let at = self.highest()?;
        let level = self.rows.get_mut(at)?;
        let (returned, fresh) = (level.returned.first(), level.fresh.first());
        let again = returned.is_some_and(|returned| fresh.is_none_or(|fresh| returned < fresh));
        let (set, other) = if again { (&mut level.returned, fresh) } else { (&mut level.fresh, returned) };
        let first = set.first()?;
        let upto = other.and_then(|other| u32::try_from(other.0 - first.0).ok()).unwrap_or(max);
        let run = set.pop_run(max.min(upto))?;
        self.note_emptied(at);
        self.len -= u64::from(run.count);
        Some((run, again))
    }

    /// Something was taken from a level, which may have been the last.
    fn note_emptied(&mut self, at: usize) {
        if self.rows.get(at).is_some_and(Level::is_empty)
            && let Some(word) = self.filled.get_mut(at / 64)
        {
            *word &= !(1 << (at % 64));
        }
    }

    /// Takes one from wherever it is, for good; false: it is not ready.
    pub(super) fn take(&mut self, position: Position) -> bool {
        let at = usize::from(self.of.get(position));
        let Some(level) = self.rows.get_mut(at) else { return false };
        if !level.returned.remove(position) && !level.fresh.remove(position) {
            return false;
        }
        self.note_emptied(at);
        self.len -= 1;
        self.forget(Run { first: position, count: 1 });
        true
    }

    /// All of them, as ranges in no order, with exclusive ends.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (Position, Position)> + use<> {
        let all: PositionSet = self.all().collect();
        all.ranges().collect::<Vec<_>>().into_iter()
    }

    fn all(&self) -> impl Iterator<Item = Position> {
        self.rows.iter().flat_map(|level| level.returned.iter().chain(level.fresh.iter()))
    }

    /// Messages that were taken never come back.
    #[inline]
    pub(super) fn forget(&mut self, run: Run) {
        self.of.forget(run);
    }

    /// Removes everything that is ready.
    pub(super) fn clear(&mut self) -> Purged {
        let older: PositionSet = self.all().collect();
        self.rows.clear();
        for (start, end) in older.ranges() {
            (start.0..end.0).for_each(|at| self.of.forget(Run { first: Position(at), count: 1 }));
        }
        (self.filled, self.len) = ([0; 4], 0);
        Purged { older, first: self.tail, end: self.tail }
    }

    /// The level of messages about which nothing was said.
    pub(super) fn default_level(&self) -> u8 {
        self.of.default()
    }
}
