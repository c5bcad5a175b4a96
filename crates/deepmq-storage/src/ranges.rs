//! Sets of sequence numbers that are mostly one piece.
//!
//! Owns the set of what is settled in a queue: a floor below which everything is, and ranges above it. Must not know why.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of `u64`, kept as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Start -> end (exclusive).
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// An empty set.
    pub const fn new() -> Self {
        Self { ranges: BTreeMap::new() }
    }

    /// Adds all of a range; what is in the set already stays.
    pub fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        if let Some((&before, &before_end)) = self.ranges.range(..=start).next_back()
            && before_end >= start
        {
            if before_end >= end {
                return;
            }
            start = before;
        }
        while let Some((&next, &next_end)) = self.ranges.range(start..).next()
            && next <= end
        {
            end = end.max(next_end);
            self.ranges.remove(&next);
        }
        self.ranges.insert(start, end);
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.covers(number..number.saturating_add(1))
    }

    /// Whether all of a range is; an empty range always is.
    pub fn covers(&self, range: Range<u64>) -> bool {
        range.is_empty()
            || self.ranges.range(..=range.start).next_back().is_some_and(|(_, &end)| end >= range.end)
    }

    /// The pieces of `range` that are not in the set, in order.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = self
            .ranges
            .range(..=range.start)
            .next_back()
            .map_or(range.start, |(_, &end)| end.max(range.start));
        let mut inside = self.ranges.range(at.min(range.end)..range.end);
        let end = range.end;
        std::iter::from_fn(move || {
            while at < end {
                let (next, after) = inside.next().map_or((end, end), |(&start, &stop)| (start, stop));
                let gap = at..next;
                at = after;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Everything below this is in the set; zero if zero is not.
    pub fn floor(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    /// The first number above all in the set.
    pub fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<u64>> {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: &Self) {
        other.iter().for_each(|range| self.insert(range));
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        ranges.into_iter().for_each(|range| set.insert(range));
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
        fn a_set_of_ranges_is_the_set_of_their_numbers(
            ranges in prop::collection::vec((0_u64..60, 0_u64..12), 0..20),
            asked in (0_u64..70, 0_u64..20),
        ) {
            let set: RangeSet = ranges.iter().map(|&(start, len)| start..start + len).collect();
            let plain: BTreeSet<u64> = ranges.iter().flat_map(|&(start, len)| start..start + len).collect();
            prop_assert_eq!(set.iter().flatten().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
            prop_assert!(set.iter().zip(set.iter().skip(1)).all(|(one, next)| one.end < next.start));
            let asked = asked.0..asked.0 + asked.1;
            prop_assert_eq!(set.covers(asked.clone()), asked.clone().all(|number| plain.contains(&number)));
            let missing: Vec<_> = asked.clone().filter(|number| !plain.contains(number)).collect();
            prop_assert_eq!(set.gaps(asked).flatten().collect::<Vec<_>>(), missing);
            prop_assert_eq!(set.floor(), (0..100).find(|number| !plain.contains(number)).unwrap());
            prop_assert_eq!(set.end(), plain.last().map_or(0, |last| last + 1));
        }
    }

    #[test]
    fn a_range_at_the_end_of_all_numbers_is_fine() {
        let set: RangeSet = [0..u64::MAX, 5..6].into_iter().collect();
        assert_eq!(set.floor(), u64::MAX);
        assert!(set.contains(u64::MAX - 1));
        assert!(!set.contains(u64::MAX) || set.end() == u64::MAX);
    }
}
