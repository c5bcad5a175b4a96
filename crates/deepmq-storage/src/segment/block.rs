//! Blocks and footers as bytes, drawn in `docs/format/segment.md`.
//!
//! Owns their encoding. Must not know files.

use super::BlockRef;
use crate::bytes::{Input, length, size};

pub(crate) const BLOCK_HEADER_BYTES: usize = 64;
const VERSION: u8 = 1;
const ALIGNMENT: u64 = 8;
const ENTRY_BYTES: usize = 48;

/// What a header stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Block = 1,
    Footer = 2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) crc: u32,
    pub(crate) bytes: u32,
    pub(crate) tag: u64,
    pub(crate) queue: u64,
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) messages: u32,
    pub(crate) kind: u8,
    pub(crate) times: (u64, u64),
}

impl BlockHeader {
    /// A header for a block's content, its checksum included.
    pub(crate) fn new(tag: u64, queue: u64, kind: Kind, block: &BlockRef, content: &[&[u8]]) -> Self {
        let mut header = Self {
            crc: 0,
            bytes: block.bytes,
            tag,
            queue,
            first: block.sequences.start,
            end: block.sequences.end,
            messages: block.messages,
            kind: kind as u8,
            times: block.times,
        };
        header.crc = header.sum(content);
        header
    }

    pub(crate) fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.crc.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.tag.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.queue.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.end.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.messages.to_le_bytes());
        bytes[44] = self.kind;
        bytes[45] = VERSION;
        bytes[48..56].copy_from_slice(&self.times.0.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.times.1.to_le_bytes());
        bytes
    }

    /// Reads the fields without a check but for the version.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let (crc, bytes, tag, queue) = (input.u32()?, input.u32()?, input.u64()?, input.u64()?);
        let (first, end, messages) = (input.u64()?, input.u64()?, input.u32()?);
        let [kind, version, 0, 0] = input.array()? else { return None };
        let times = (input.u64()?, input.u64()?);
        (version == VERSION).then_some(Self { crc, bytes, tag, queue, first, end, messages, kind, times })
    }

    fn sum(&self, content: &[&[u8]]) -> u32 {
        let [_, _, _, _, summed @ ..] = self.encode();
        content.iter().fold(crc32c::crc32c(&summed), |crc, part| crc32c::crc32c_append(crc, part))
    }

    pub(crate) fn verify(&self, content: &[u8]) -> bool {
        content.len() == size(self.bytes) && self.first < self.end && self.sum(&[content]) == self.crc
    }

    pub(crate) fn as_ref(&self, segment: u64, offset: u64) -> BlockRef {
        BlockRef {
            segment,
            offset,
            bytes: self.bytes,
            sequences: self.first..self.end,
            messages: self.messages,
            times: self.times,
        }
    }
}

impl BlockRef {
    /// Where the next block begins.
    pub(crate) fn end(&self) -> u64 {
        (self.offset + BLOCK_HEADER_BYTES as u64 + u64::from(self.bytes)).next_multiple_of(ALIGNMENT)
    }
}

/// The index in a footer, and of an open segment in a checkpoint.
pub(crate) fn encode_index<'a>(blocks: impl ExactSizeIterator<Item = &'a BlockRef>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + blocks.len() * ENTRY_BYTES);
    bytes.extend(length(blocks.len()).to_le_bytes());
    bytes.extend([0; 4]);
    for block in blocks {
        bytes.extend(block.offset.to_le_bytes());
        bytes.extend(block.bytes.to_le_bytes());
        bytes.extend(block.messages.to_le_bytes());
        for number in [block.sequences.start, block.sequences.end, block.times.0, block.times.1] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

/// The blocks of an index.
pub(crate) fn decode_index(input: &mut Input<'_>, segment: u64) -> Option<Vec<BlockRef>> {
    let count = input.count(ENTRY_BYTES)?;
    input.u32()?;
    let entry = |_| {
        let (offset, bytes, messages) = (input.u64()?, input.u32()?, input.u32()?);
        let (first, end, times) = (input.u64()?, input.u64()?, (input.u64()?, input.u64()?));
        Some(BlockRef { segment, offset, bytes, sequences: first..end, messages, times })
    };
    (0..count).map(entry).collect()
}
