//! States of queues: what is left to know of records that are given up.
//!
//! Owns their bytes, in the journal and in checkpoints alike. Must not know when one is written.

use super::Draft;
use super::header;
use crate::RangeSet;
use crate::bytes::{Input, length};
use std::ops::Range;

pub(super) const KIND: u8 = 4;

/// Where a queue stands, but for its messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueState {
    /// The queue.
    pub queue: u64,
    /// The sequence of the next message.
    pub next: u64,
    /// What is needed no more.
    pub settled: RangeSet,
    /// Messages that are still needed and were handed out before: how often each came back. Zero where only that is known, and
    /// then of settled ones too.
    pub counts: Vec<(Range<u64>, u32)>,
}

/// The states of several queues.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) queues: Vec<QueueState>,
}

impl State {
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut input = Input::new(payload);
        let count = input.count(24)?;
        input.u32()?;
        let queues = (0..count).map(|_| read_state(&mut input)).collect::<Option<_>>()?;
        Some(Self { queues })
    }
}

pub(crate) fn write_state(buffer: &mut Vec<u8>, state: &QueueState) {
    buffer.extend(state.queue.to_le_bytes());
    buffer.extend(state.next.to_le_bytes());
    buffer.extend(length(state.settled.iter().len()).to_le_bytes());
    buffer.extend(length(state.counts.len()).to_le_bytes());
    for range in state.settled.iter() {
        buffer.extend(range.start.to_le_bytes());
        buffer.extend(range.end.to_le_bytes());
    }
    for (sequences, count) in &state.counts {
        buffer.extend(sequences.start.to_le_bytes());
        buffer.extend(sequences.end.to_le_bytes());
        buffer.extend(count.to_le_bytes());
    }
}

pub(crate) fn read_state(input: &mut Input<'_>) -> Option<QueueState> {
    let (queue, next) = (input.u64()?, input.u64()?);
    let (ranges, counts) = (input.count(16)?, input.count(20)?);
    let settled = (0..ranges).map(|_| Some(input.u64()?..input.u64()?)).collect::<Option<_>>()?;
    let counts =
        (0..counts).map(|_| Some((input.u64()?..input.u64()?, input.u32()?))).collect::<Option<_>>()?;
    Some(QueueState { queue, next, settled, counts })
}

/// Drafts the record into `buffer`.
pub(crate) fn draft_state<'b>(buffer: &'b mut Vec<u8>, queues: &[QueueState]) -> Draft<'b> {
    header::begin(buffer);
    buffer.extend(length(queues.len()).to_le_bytes());
    buffer.extend([0; 4]);
    queues.iter().for_each(|state| write_state(buffer, state));
    header::finish(buffer, KIND)
}
