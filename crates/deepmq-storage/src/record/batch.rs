//! Batches as they are read.
//!
//! Owns the decoding, without a copy: a batch is checked as a whole once, then walked. Must not know how it is built.

use std::ops::Range;

use crate::bytes::{Input, size};

pub(super) const KIND: u8 = 2;
pub(super) const BATCH_HEADER_BYTES: usize = 24;
pub(super) const MESSAGE_HEADER_BYTES: usize = 22;
const RUN_BYTES: usize = 8;
const RANGE_BYTES: usize = 16;
const COUNT_BYTES: usize = 20;

/// A batch of messages, placements, settlements and delivery counts.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    message_count: u32,
    messages: &'a [u8],
    placements: Input<'a>,
    settlements: Input<'a>,
    counts: &'a [u8],
    entries: [u32; 2],
}

/// A message as it was given to the builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The caller's flags.
    pub flags: u16,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// The first part.
    pub address: &'a [u8],
    /// The second part.
    pub properties: &'a [u8],
    /// The third part.
    pub body: &'a [u8],
}

/// Messages put into one queue at consecutive sequences.
#[derive(Debug, Clone)]
pub struct Placement<'a> {
    /// The queue.
    pub queue: u64,
    /// The sequence of the first.
    pub first: u64,
    /// How many.
    pub count: u32,
    runs: &'a [u8],
}

/// Messages of one queue that are needed no more.
#[derive(Debug, Clone)]
pub struct Settlement<'a> {
    /// The queue.
    pub queue: u64,
    ranges: &'a [u8],
}

impl<'a> Batch<'a> {
    pub(super) fn decode(payload: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(payload);
        let (message_count, placed, settled, counted) =
            (input.u32()?, input.u32()?, input.u32()?, input.u32()?);
        let messages_end = size(input.u32()?);
        input.u32()?;
        let messages = input.take(messages_end.checked_sub(BATCH_HEADER_BYTES)?)?;
        let mut walk = Input::new(messages);
        for _ in 0..message_count {
            Message::read(&mut walk)?;
        }
        let placements = input;
        for _ in 0..placed {
            Placement::read(&mut input, message_count)?;
        }
        let settlements = input;
        for _ in 0..settled {
            Settlement::read(&mut input)?;
        }
        let counts = input.take(size(counted).checked_mul(COUNT_BYTES)?)?;
        walk.rest().is_empty().then_some(Self {
            message_count,
            messages,
            placements,
            settlements,
            counts,
            entries: [placed, settled],
        })
    }

    /// The messages, in the order of their indexes.
    pub fn messages(&self) -> impl Iterator<Item = Message<'a>> {
        let mut input = Input::new(self.messages);
        std::iter::from_fn(move || Message::read(&mut input))
    }

    /// The placements, in order.
    pub fn placements(&self) -> impl Iterator<Item = Placement<'a>> {
        let (mut input, messages) = (self.placements, self.message_count);
        let [placed, _] = self.entries;
        (0..placed).map_while(move |_| Placement::read(&mut input, messages))
    }

    /// The settlements, in order.
    pub fn settlements(&self) -> impl Iterator<Item = Settlement<'a>> {
        let mut input = self.settlements;
        let [_, settled] = self.entries;
        (0..settled).map_while(move |_| Settlement::read(&mut input))
    }

    /// Queue, sequence and how often it was delivered.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64, u32)> {
        let mut input = Input::new(self.counts);
        std::iter::from_fn(move || Some((input.u64()?, input.u64()?, input.u32()?)))
    }
}

impl<'a> Message<'a> {
    fn read(input: &mut Input<'a>) -> Option<Self> {
        let (address, properties, body) = (size(input.u32()?), size(input.u32()?), size(input.u32()?));
        let (timestamp, flags) = (input.u64()?, input.u16()?);
        Some(Self {
            flags,
            timestamp,
            address: input.take(address)?,
            properties: input.take(properties)?,
            body: input.take(body)?,
        })
    }
}

impl<'a> Placement<'a> {
    fn read(input: &mut Input<'a>, messages: u32) -> Option<Self> {
        let (queue, first) = (input.u64()?, input.u64()?);
        let runs = input.count(RUN_BYTES)?;
        let mut placement = Self { queue, first, count: 0, runs: input.take(runs * RUN_BYTES)? };
        for run in placement.runs() {
            (run.end <= messages).then_some(())?;
            placement.count = placement.count.checked_add(run.end - run.start)?;
        }
        first.checked_add(placement.count.into())?;
        Some(placement)
    }

    fn runs(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        let mut input = Input::new(self.runs);
        std::iter::from_fn(move || {
            let (start, count) = (input.u32()?, input.u32()?);
            Some(start..start.saturating_add(count))
        })
    }

    /// The sequences it takes in its queue.
    pub fn sequences(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count.into())
    }

    /// The messages' indexes in the batch, in the order of sequences.
    pub fn indexes(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.runs().flatten()
    }
}

impl<'a> Settlement<'a> {
    fn read(input: &mut Input<'a>) -> Option<Self> {
        let queue = input.u64()?;
        let ranges = input.count(RANGE_BYTES)?;
        let settlement = Self { queue, ranges: input.take(ranges * RANGE_BYTES)? };
        settlement.ranges().all(|range| range.start < range.end).then_some(settlement)
    }

    /// The settled sequences.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let mut input = Input::new(self.ranges);
        std::iter::from_fn(move || Some(input.u64()?..input.u64()?))
    }
}
