//! When the messages of one block expire, and which of them is next.
//!
//! Owns the order of deadlines: each is looked at once when it has come, not whenever another has. Must not know which messages are
//! still needed.

use crate::timers::NEVER;
use std::cmp::Reverse;
use std::ops::Range;

/// Deadlines by their messages' offsets.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// Up to the last message that has one; [`NEVER`] for those that have none.
    times: Vec<u64>,
    /// Offsets of those that have one that did not come yet, the last to come first. A block has fewer messages than that.
    order: Vec<u16>,
    /// The order is of so many of the times.
    ordered: usize,
    /// They were looked through once. The order is made at the second look, for a page that was read for one message is seldom
    /// there for the next.
    looked_at: bool,
}

impl Deadlines {
    pub(super) fn new(times: Vec<u64>) -> Self {
        Self { times, ..Self::default() }
    }

    /// The messages at `offsets`, behind all others, have this deadline.
    pub(super) fn push(&mut self, offsets: Range<usize>, deadline: u64) {
        self.times.resize(offsets.start, NEVER);
        self.times.resize(offsets.end, deadline);
    }

    /// Offsets and deadlines, in the order of offsets.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, u64)> {
        self.times.iter().copied().enumerate()
    }

    /// Takes out the messages whose deadlines have come; returns when the next one does. Those whose deadline came before may be
    /// told again.
    pub(super) fn due(&mut self, now: u64, mut each: impl FnMut(usize)) -> u64 {
        if !std::mem::replace(&mut self.looked_at, true) {
            self.each().filter(|&(_, deadline)| deadline <= now).for_each(|(offset, _)| each(offset));
            return self.times.iter().copied().filter(|&deadline| deadline > now).min().unwrap_or(NEVER);
        }
        self.put_in_order();
        while let Some(&offset) = self.order.last() {
            let deadline = self.time(offset);
            if deadline > now {
                return deadline;
            }
            self.order.pop();
            each(offset.into());
        }
        NEVER
    }

    /// A message that was taken out counts again; returns its deadline.
    pub(super) fn put_back(&mut self, offset: usize) -> Option<u64> {
        let deadline = *self.times.get(offset)?;
        let offset = u16::try_from(offset).ok()?;
        if deadline != NEVER && self.ordered == self.times.len() {
            let key = |offset: u16| Reverse((self.time(offset), offset));
            if let Err(place) = self.order.binary_search_by_key(&key(offset), |&known| key(known)) {
                self.order.insert(place, offset);
            }
        }
        Some(deadline)
    }

    fn put_in_order(&mut self) {
        if self.ordered == self.times.len() {
            return;
        }
        let Self { times, order, ordered, .. } = self;
        let offsets = (0..=u16::MAX).zip(times.iter()).filter(|(_, deadline)| **deadline != NEVER);
        order.clear();
        order.extend(offsets.map(|(offset, _)| offset));
        order
            .sort_unstable_by_key(|&offset: &u16| Reverse((times.get(usize::from(offset)).copied(), offset)));
        *ordered = times.len();
    }

    fn time(&self, offset: u16) -> u64 {
        self.times.get(usize::from(offset)).copied().unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(deadlines: &mut Deadlines, now: u64) -> (Vec<usize>, u64) {
        let mut due = Vec::new();
        let next = deadlines.due(now, |offset| due.push(offset));
        (due, next)
    }

    #[test]
    fn each_comes_in_its_time_and_after_the_second_look_once() {
        let mut deadlines = Deadlines::new(vec![30, NEVER, 10, 20, 10]);
        assert_eq!(due(&mut deadlines, 9), (vec![], 10));
        assert_eq!(due(&mut deadlines, 10), (vec![2, 4], 20));
        assert_eq!(due(&mut deadlines, 10), (vec![], 20));
        assert_eq!(due(&mut deadlines, 40), (vec![3, 0], NEVER));
        assert_eq!(due(&mut deadlines, NEVER - 1), (vec![], NEVER));
    }

    #[test]
    fn one_that_is_put_back_comes_again_and_one_that_was_not_out_comes_once() {
        let mut deadlines = Deadlines::new(vec![10, 20, NEVER]);
        assert_eq!(deadlines.put_back(0), Some(10));
        assert_eq!(due(&mut deadlines, 5), (vec![], 10));
        assert_eq!(due(&mut deadlines, 10), (vec![0], 20));
        assert_eq!((deadlines.put_back(0), deadlines.put_back(1)), (Some(10), Some(20)));
        assert_eq!((deadlines.put_back(2), deadlines.put_back(3)), (Some(NEVER), None));
        assert_eq!(due(&mut deadlines, 30), (vec![0, 1], NEVER));
    }

    #[test]
    fn those_that_are_added_later_find_their_place() {
        let mut deadlines = Deadlines::default();
        deadlines.push(1..2, 50);
        assert_eq!(due(&mut deadlines, 30), (vec![], 50));
        assert_eq!(due(&mut deadlines, 35), (vec![], 50));
        deadlines.push(3..5, 40);
        assert_eq!(due(&mut deadlines, 45), (vec![3, 4], 50));
        assert_eq!(due(&mut deadlines, 50), (vec![1], NEVER));
    }
}
