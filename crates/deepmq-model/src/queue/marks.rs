//! A set of positions that may lie far apart: a bit each, in pieces that exist only where something is in the set.
//!
//! Owns nothing but the arithmetic. Where most messages of a queue are not neighbours, as in one level of several, this takes
//! less than [`PositionSet`](super::PositionSet)'s ranges: two bytes a message with ten levels.

use super::{Position, Run};
use std::collections::BTreeMap;

const WORDS: usize = 8;
/// Positions a piece stands for.
const PIECE: u64 = WORDS as u64 * 64;

/// The set.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// By the number of the piece; none is empty.
    pieces: BTreeMap<u64, [u64; WORDS]>,
}

/// The piece, word and bit of a position.
fn place(position: Position) -> (u64, usize, u32) {
    let within = position.0 % PIECE;
    let word = usize::try_from(within / 64).expect("less than the words of a piece");
    (position.0 / PIECE, word, u32::try_from(within % 64).expect("less than 64"))
}

/// The first number in a piece.
fn lowest(piece: &[u64; WORDS]) -> Option<u64> {
    let (at, word) = (0..).zip(piece).find(|(_, word)| **word != 0)?;
    Some(at * 64 + u64::from(word.trailing_zeros()))
}

impl Marks {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds a position; false if it was there.
    pub(super) fn insert(&mut self, position: Position) -> bool {
        let (number, word, bit) = place(position);
        let piece = match self.pieces.last_entry() {
            // What is published is above all that is there.
            Some(last) if *last.key() == number => last.into_mut(),
            _ => self.pieces.entry(number).or_default(),
        };
        let Some(word) = piece.get_mut(word) else { return false };
        let new = *word >> bit & 1 == 0;
        *word |= 1 << bit;
        new
    }

    pub(super) fn contains(&self, position: Position) -> bool {
        let (number, word, bit) = place(position);
        let piece = self.pieces.get(&number);
        piece.and_then(|piece| piece.get(word)).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// The first position.
    pub(super) fn first(&self) -> Option<Position> {
        let (number, piece) = self.pieces.first_key_value()?;
        Some(Position(number * PIECE + lowest(piece)?))
    }

    /// Removes and returns up to `max` consecutive positions from the front, no more than are in one piece.
    pub(super) fn pop_run(&mut self, max: u32) -> Option<Run> {
        let mut entry = self.pieces.first_entry()?;
        let first = Position(entry.key() * PIECE + lowest(entry.get())?);
        let (_, mut word, mut bit) = place(first);
        let mut count = 0;
        while count < max
            && let Some(bits) = entry.get_mut().get_mut(word)
        {
            let ones = (*bits >> bit).trailing_ones().min(max - count);
            *bits &= !(u64::MAX.checked_shr(64 - ones).unwrap_or(0) << bit);
            count += ones;
            if bit + ones < 64 {
                break;
            }
            (word, bit) = (word + 1, 0);
        }
        if entry.get().iter().all(|word| *word == 0) {
            entry.remove();
        }
        Some(Run { first, count })
    }

    /// Removes a position; false if it was not there.
    pub(super) fn remove(&mut self, position: Position) -> bool {
        let (number, word, bit) = place(position);
        let Some(piece) = self.pieces.get_mut(&number) else { return false };
        let Some(word) = piece.get_mut(word) else { return false };
        let known = *word >> bit & 1 == 1;
        *word &= !(1 << bit);
        if piece.iter().all(|word| *word == 0) {
            self.pieces.remove(&number);
        }
        known
    }

    /// All positions in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Position> {
        self.pieces.iter().flat_map(|(number, piece)| {
            (0..).zip(piece).flat_map(move |(word, bits)| {
                let set = (0..64).filter(move |bit| bits >> bit & 1 == 1);
                set.map(move |bit| Position(number * PIECE + word * 64 + bit))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_bits_acts_as_a_plain_set(
            steps in prop::collection::vec((0u64..2000, 1u32..700, any::<bool>(), 1u64..200), 0..60)
        ) {
            let (mut set, mut plain) = (Marks::default(), BTreeSet::new());
            for (at, max, insert, count) in steps {
                if insert {
                    for at in at..at + count {
                        prop_assert_eq!(set.insert(Position(at)), plain.insert(at));
                    }
                } else if let Some(run) = set.pop_run(max) {
                    prop_assert_eq!(plain.first().copied(), Some(run.first.0));
                    prop_assert!((1..=max).contains(&run.count));
                    for at in run.first.0..run.end().0 {
                        prop_assert!(plain.remove(&at));
                    }
                    let whole = run.count == max || run.end().0 % PIECE == 0 || !plain.contains(&run.end().0);
                    prop_assert!(whole, "a run is as long as it can be");
                } else {
                    prop_assert!(plain.is_empty());
                }
                prop_assert_eq!(set.remove(Position(at + 7)), plain.remove(&(at + 7)));
                prop_assert_eq!(set.first().map(|at| at.0), plain.first().copied());
                prop_assert_eq!(set.is_empty(), plain.is_empty());
                prop_assert_eq!(set.contains(Position(at)), plain.contains(&at));
            }
            prop_assert!(set.iter().map(|at| at.0).eq(plain));
        }
    }
}
