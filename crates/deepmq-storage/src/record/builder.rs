//! Drafts of batches, built without an allocation once their buffers have grown.
//!
//! Owns the encoding of batches. Must not know where they go.

use std::ops::Range;

use super::Draft;
use super::batch::{BATCH_HEADER_BYTES, KIND, MESSAGE_HEADER_BYTES};
use super::header::{self, HEADER_BYTES};
use crate::bytes::length;

/// Builds one record of messages, where they are placed, what is settled and how often what was delivered. All of it
/// becomes durable together or not at all. Reused: [`BatchBuilder::begin`] starts the next.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    record: Vec<u8>,
    placements: Section,
    settlements: Section,
    counts: Section,
    messages: u32,
}

#[derive(Debug, Default)]
struct Section {
    bytes: Vec<u8>,
    entries: u32,
}

impl Section {
    fn clear(&mut self) {
        self.bytes.clear();
        self.entries = 0;
    }

    /// Leaves room for a number that is known later, and says where.
    fn hole(&mut self) -> usize {
        self.bytes.extend([0; 4]);
        self.bytes.len() - 4
    }

    fn fill(&mut self, hole: usize, number: u32) {
        if let Some(bytes) = self.bytes.get_mut(hole..).and_then(|rest| rest.first_chunk_mut()) {
            *bytes = number.to_le_bytes();
        }
    }
}

impl BatchBuilder {
    /// A builder that has begun.
    pub fn new() -> Self {
        let mut builder = Self::default();
        builder.begin();
        builder
    }

    /// Forgets what was built and starts anew, with the memory it has.
    pub fn begin(&mut self) {
        header::begin(&mut self.record);
        self.record.resize(HEADER_BYTES + BATCH_HEADER_BYTES, 0);
        self.placements.clear();
        self.settlements.clear();
        self.counts.clear();
        self.messages = 0;
    }

    /// Adds a message once, however many queues it goes to, and returns its index for [`BatchBuilder::place`].
    /// `flags` are the caller's; `timestamp` is in milliseconds since 1970; the parts are address, properties and body,
    /// each less than 4 GiB.
    pub fn message(&mut self, flags: u16, timestamp: u64, parts: [&[u8]; 3]) -> u32 {
        let [address, properties, body] = parts;
        let mut head = [0; MESSAGE_HEADER_BYTES];
        head[0..4].copy_from_slice(&length(address.len()).to_le_bytes());
        head[4..8].copy_from_slice(&length(properties.len()).to_le_bytes());
        head[8..12].copy_from_slice(&length(body.len()).to_le_bytes());
        head[12..20].copy_from_slice(&timestamp.to_le_bytes());
        head[20..22].copy_from_slice(&flags.to_le_bytes());
        self.record.reserve(MESSAGE_HEADER_BYTES + address.len() + properties.len() + body.len());
        self.record.extend_from_slice(&head);
        self.record.extend_from_slice(address);
        self.record.extend_from_slice(properties);
        self.record.extend_from_slice(body);
        self.messages += 1;
        self.messages - 1
    }

    /// Puts messages of this batch into a queue, the first at sequence `first`, the others right after it.
    pub fn place(&mut self, queue: u64, first: u64, indexes: impl IntoIterator<Item = u32>) {
        let section = &mut self.placements;
        section.bytes.extend(queue.to_le_bytes());
        section.bytes.extend(first.to_le_bytes());
        let runs = section.hole();
        let (mut count, mut run): (u32, Option<Range<u32>>) = (0, None);
        for index in indexes {
            match &mut run {
                Some(run) if run.end == index => run.end += 1,
                _ => {
                    let before = run.replace(index..index + 1);
                    count += before.map_or(0, |before| put_run(&mut section.bytes, before));
                }
            }
        }
        count += run.map_or(0, |last| put_run(&mut section.bytes, last));
        section.fill(runs, count);
        section.entries += 1;
    }

    /// Says that messages of a queue are needed no more. They may have been placed earlier, in this batch, or later.
    pub fn settle(&mut self, queue: u64, ranges: impl IntoIterator<Item = Range<u64>>) {
        let section = &mut self.settlements;
        section.bytes.extend(queue.to_le_bytes());
        let hole = section.hole();
        let mut count = 0;
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            section.bytes.extend(range.start.to_le_bytes());
            section.bytes.extend(range.end.to_le_bytes());
            count += 1;
        }
        section.fill(hole, count);
        section.entries += 1;
    }

    /// Says how often a message has been delivered; the last word counts.
    pub fn count(&mut self, queue: u64, sequence: u64, count: u32) {
        self.counts.bytes.extend(queue.to_le_bytes());
        self.counts.bytes.extend(sequence.to_le_bytes());
        self.counts.bytes.extend(count.to_le_bytes());
        self.counts.entries += 1;
    }

    /// Whether nothing was added since the beginning.
    pub fn is_empty(&self) -> bool {
        self.messages == 0
            && self.placements.entries == 0
            && self.settlements.entries == 0
            && self.counts.entries == 0
    }

    /// What the record takes so far, in bytes.
    pub fn size(&self) -> usize {
        self.record.len()
            + self.placements.bytes.len()
            + self.settlements.bytes.len()
            + self.counts.bytes.len()
    }

    /// Completes the record. Only [`BatchBuilder::begin`] may follow.
    pub fn finish(&mut self) -> Draft<'_> {
        let messages_end = u32::try_from(self.record.len() - HEADER_BYTES).unwrap_or(u32::MAX);
        let mut head = [0; BATCH_HEADER_BYTES];
        head[0..4].copy_from_slice(&self.messages.to_le_bytes());
        head[4..8].copy_from_slice(&self.placements.entries.to_le_bytes());
        head[8..12].copy_from_slice(&self.settlements.entries.to_le_bytes());
        head[12..16].copy_from_slice(&self.counts.entries.to_le_bytes());
        head[16..20].copy_from_slice(&messages_end.to_le_bytes());
        if let Some(start) = self.record.get_mut(HEADER_BYTES..).and_then(|rest| rest.first_chunk_mut()) {
            *start = head;
        }
        for section in [&self.placements, &self.settlements, &self.counts] {
            self.record.extend_from_slice(&section.bytes);
        }
        header::finish(&mut self.record, KIND)
    }
}

fn put_run(bytes: &mut Vec<u8>, run: Range<u32>) -> u32 {
    bytes.extend(run.start.to_le_bytes());
    bytes.extend((run.end - run.start).to_le_bytes());
    1
}
