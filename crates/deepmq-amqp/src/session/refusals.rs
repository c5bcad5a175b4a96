//! Messages of a read that a full queue refused: their publishers are told so instead of a confirm.
//!
//! Owns which numbers these are. Must not know why a queue refuses. One queue's refusal counts, whatever others said.

use super::confirming::Confirm;

/// The refused messages of a read.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Their places in the read.
    places: Vec<u32>,
    /// Their channels and numbers, of those that are to be confirmed.
    numbers: Vec<(u16, u64)>,
}

impl Refusals {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.numbers.clear();
    }

    /// A queue refused those at these places.
    pub(super) fn note<'a>(&mut self, places: impl Iterator<Item = &'a u32>) {
        self.places.extend(places);
    }

    /// Finds the numbers of what was refused. `channels` are those of all messages of the read, in order, and `confirms` says of
    /// each channel that wants confirms which number its first message has.
    pub(super) fn number(&mut self, channels: impl Iterator<Item = u16>, confirms: &[(u16, u64, u64)]) {
        if self.places.is_empty() {
            return;
        }
        self.places.sort_unstable();
        let mut next: Vec<(u16, u64)> =
            confirms.iter().map(|&(channel, first, _)| (channel, first)).collect();
        for (place, channel) in (0..).zip(channels) {
            let Some((_, number)) = next.iter_mut().find(|(known, _)| *known == channel) else { continue };
            if self.places.binary_search(&place).is_ok() {
                self.numbers.push((channel, *number));
            }
            *number += 1;
        }
    }

    /// Divides confirms into what was taken and what was refused, in order.
    pub(super) fn divide(
        &self,
        confirms: impl Iterator<Item = (u16, u64, u64)>,
    ) -> impl Iterator<Item = Confirm> {
        confirms.flat_map(|(channel, first, last)| {
            let mut parts = Vec::new();
            let mut from = first;
            for &(_, number) in self.numbers.iter().filter(|(known, _)| *known == channel) {
                if from < number {
                    parts.push(Confirm { channel, first: from, last: number - 1, taken: true });
                }
                match parts.last_mut().filter(|part| !part.taken && part.last + 1 == number) {
                    Some(part) => part.last = number,
                    None => parts.push(Confirm { channel, first: number, last: number, taken: false }),
                }
                from = number + 1;
            }
            if from <= last {
                parts.push(Confirm { channel, first: from, last, taken: true });
            }
            parts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_messages_are_numbered_by_channel_and_divide_its_confirms() {
        let mut refusals = Refusals::default();
        // Two queues refused the third one.
        refusals.note([2, 5].iter());
        refusals.note([2, 3, 6].iter());
        let confirms = [(1, 11, 14), (2, 1, 2)];
        refusals.number([1, 2, 1, 1, 3, 2, 3, 1].into_iter(), &confirms);
        let divided: Vec<_> = refusals.divide(confirms.into_iter()).collect();
        let part = |channel, first, last, taken| Confirm { channel, first, last, taken };
        let expected = [
            part(1, 11, 11, true),
            part(1, 12, 13, false),
            part(1, 14, 14, true),
            part(2, 1, 1, true),
            part(2, 2, 2, false),
        ];
        assert_eq!(divided, expected);
    }
}
