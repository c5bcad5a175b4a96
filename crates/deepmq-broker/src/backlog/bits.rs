//! Sets of small numbers, a bit each; an empty set takes no memory.
//!
//! Owns the arithmetic. Must not know what the numbers stand for.

/// A set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Whether a number is in the set.
    #[inline]
    pub(super) fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Adds `count` numbers from `start` on.
    #[inline]
    pub(super) fn insert_run(&mut self, start: usize, count: usize) {
        let end = start + count;
        if self.0.len() * 64 < end {
            self.0.resize(end.div_ceil(64), 0);
        }
        let mut at = start;
        while at < end {
            let upto = end.min((at / 64 + 1) * 64);
            if let Some(word) = self.0.get_mut(at / 64) {
                *word |= (u64::MAX >> (64 - (upto - at))) << (at % 64);
            }
            at = upto;
        }
    }

    /// The numbers below `end` that are in neither set, as ranges.
    pub(super) fn gaps<'a>(
        &'a self,
        other: &'a Self,
        end: usize,
    ) -> impl Iterator<Item = std::ops::Range<usize>> {
        let taken = |at: usize| self.contains(at) || other.contains(at);
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < end && taken(at) {
                at += 1;
            }
            let start = at;
            while at < end && !taken(at) {
                at += 1;
            }
            (start < at).then_some(start..at)
        })
    }

    /// Those within `range`, counted from its start.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Self {
        let mut part = Self::default();
        let end = range.end.min(self.0.len() * 64);
        let within = (range.start..end).filter(|&at| self.contains(at));
        within.for_each(|at| part.insert_run(at - range.start, 1));
        part
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bits_act_as_a_plain_set(runs in prop::collection::vec((0usize..300, 0usize..200), 0..20)) {
            let (mut bits, mut plain) = (Bits::default(), BTreeSet::new());
            for (start, count) in runs {
                bits.insert_run(start, count);
                plain.extend(start..start + count);
            }
            prop_assert!((0..520).all(|at| bits.contains(at) == plain.contains(&at)));
            let gaps: Vec<usize> = bits.gaps(&Bits::default(), 400).flatten().collect();
            prop_assert_eq!(bits.len(), plain.len() as u64);
            let part = bits.part(70..200);
            prop_assert!((0..200).all(|at| part.contains(at) == (at < 130 && plain.contains(&(at + 70)))));
            prop_assert_eq!(gaps, (0..400).filter(|at| !plain.contains(at)).collect::<Vec<_>>());
        }
    }
}
