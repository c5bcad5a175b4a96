//! Positions in a queue, runs of them, and sets of them kept as ranges.
//!
//! Owns nothing but the arithmetic. Must not know what lies at a position.

use std::collections::BTreeMap;

/// The place of a message in its queue: 0 for the first ever, then one more each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

impl Position {
    /// The position `count` further.
    #[must_use]
    pub fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

/// Consecutive positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: Position,
    /// How many.
    pub count: u32,
}

impl Run {
    /// One past the last position.
    pub fn end(self) -> Position {
        self.first.plus(self.count.into())
    }
}

/// A set of positions as disjoint, non-adjacent ranges: a million neighbours cost one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PositionSet {
    /// Start -> end (exclusive).
    ranges: BTreeMap<u64, u64>,
    len: u64,
}

impl PositionSet {
    /// How many positions are in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges in order, as start and exclusive end.
    pub fn ranges(&self) -> impl Iterator<Item = (Position, Position)> {
        self.ranges.iter().map(|(&start, &end)| (Position(start), Position(end)))
    }

    /// Whether a position is in the set.
    pub fn contains(&self, position: Position) -> bool {
        self.ranges.range(..=position.0).next_back().is_some_and(|(_, &end)| position.0 < end)
    }

    /// Adds a position; false if it was there.
    pub fn insert(&mut self, position: Position) -> bool {
        let at = position.0;
        let before = self.ranges.range(..=at).next_back().map(|(&start, &end)| (start, end));
        if before.is_some_and(|(_, end)| at < end) {
            return false;
        }
        let start = before.filter(|&(_, end)| end == at).map_or(at, |(start, _)| start);
        let end = self.ranges.remove(&(at + 1)).unwrap_or(at + 1);
        self.ranges.insert(start, end);
        self.len += 1;
        true
    }

    /// Adds all from `start` to `end` (exclusive), none of which may be in the set.
    pub fn insert_range(&mut self, start: Position, end: Position) {
        if start >= end {
            return;
        }
        debug_assert!(self.ranges.range(start.0..end.0).next().is_none(), "ranges are disjoint");
        self.len += end.0 - start.0;
        let before = self.ranges.range(..start.0).next_back().map(|(&first, &last)| (first, last));
        let first = before.filter(|&(_, last)| last == start.0).map_or(start.0, |(first, _)| first);
        let last = self.ranges.remove(&end.0).unwrap_or(end.0);
        self.ranges.insert(first, last);
    }

    /// Removes a position; false if it was not there.
    pub fn remove(&mut self, position: Position) -> bool {
        let at = position.0;
        let Some((&start, end)) = self.ranges.range_mut(..=at).next_back().filter(|(_, end)| at < **end)
        else {
            return false;
        };
        let after = std::mem::replace(end, at);
        if start == at {
            self.ranges.remove(&start);
        }
        if at + 1 < after {
            self.ranges.insert(at + 1, after);
        }
        self.len -= 1;
        true
    }

    /// The first position.
    pub fn first(&self) -> Option<Position> {
        self.ranges.first_key_value().map(|(&start, _)| Position(start))
    }

    /// Removes and returns up to `max` consecutive positions from the front.
    pub fn pop_run(&mut self, max: u32) -> Option<Run> {
        let mut entry = self.ranges.first_entry()?;
        let (start, end) = (*entry.key(), *entry.get());
        let count = (end - start).min(u64::from(max));
        if count == end - start {
            entry.remove();
        } else {
            *entry.get_mut() = end;
            entry.remove();
            self.ranges.insert(start + count, end);
        }
        self.len -= count;
        let count = u32::try_from(count).expect("at most max, a u32");
        Some(Run { first: Position(start), count })
    }
}

impl FromIterator<Position> for PositionSet {
    fn from_iter<I: IntoIterator<Item = Position>>(positions: I) -> Self {
        let mut set = Self::default();
        positions.into_iter().for_each(|position| {
            set.insert(position);
        });
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_ranges_acts_as_a_plain_set(steps in prop::collection::vec((0u64..40, 1u32..5, 0..4), 0..200)) {
            let (mut set, mut plain) = (PositionSet::default(), BTreeSet::new());
            for (at, max, step) in steps {
                match step {
                    0 | 1 => prop_assert_eq!(set.insert(Position(at)), plain.insert(at)),
                    2 => prop_assert_eq!(set.remove(Position(at)), plain.remove(&at)),
                    _ => {
                        let run = set.pop_run(max);
                        prop_assert_eq!(run.map(|r| r.first.0), plain.first().copied());
                        for at in run.into_iter().flat_map(|r| r.first.0..r.end().0) {
                            prop_assert!(plain.remove(&at));
                        }
                    }
                }
                prop_assert_eq!(set.len(), plain.len() as u64);
            }
            let flat: Vec<u64> = set.ranges().flat_map(|(a, b)| a.0..b.0).collect();
            prop_assert_eq!(flat, plain.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn ranges_are_added_whole_and_merge_with_their_neighbours() {
        let mut set = PositionSet::default();
        for (start, end) in [(10, 20), (0, 5), (5, 10), (7, 7), (30, 31)] {
            set.insert_range(Position(start), Position(end));
        }
        let ranges: Vec<_> = set.ranges().map(|(start, end)| (start.0, end.0)).collect();
        assert_eq!((ranges, set.len()), (vec![(0, 20), (30, 31)], 21));
        assert_eq!(set.first(), Some(Position(0)));
    }

    #[test]
    fn neighbours_merge_into_one_range() {
        let mut set = PositionSet::default();
        for at in [5, 7, 6, 4] {
            set.insert(Position(at));
        }
        assert_eq!(set.ranges().collect::<Vec<_>>(), [(Position(4), Position(8))]);
    }
}
