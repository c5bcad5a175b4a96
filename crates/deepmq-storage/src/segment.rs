//! Segments: the part of a queue that is not in memory.
//!
//! Owns the files a queue's blocks are appended to, which block lies where, and when a file may go. A block is durable
//! once a checkpoint lists it, so nobody scans segments at the start. Must not know what is in a block, or which of its
//! messages are still needed but for what a checkpoint says.

mod block;
mod cache;
mod queue;
mod rebuild;

#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use crate::recover::Damage;

pub(crate) use block::{decode_index, encode_index};
pub(crate) use cache::FileCache;
pub(crate) use queue::{QueueSegments, Segment};
pub(crate) use rebuild::rebuild;

/// Consecutive messages of a queue, to be appended to a segment.
#[derive(Debug, Clone)]
pub struct NewBlock<'a> {
    /// The sequences the block stands for: whatever of them is still needed is in it.
    pub sequences: Range<u64>,
    /// How many messages are in it.
    pub messages: u32,
    /// The oldest and the newest message's time, in milliseconds since 1970.
    pub times: (u64, u64),
    /// The content, in pieces; together less than 1 GiB.
    pub bytes: &'a [&'a [u8]],
}

/// Where a block lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// The segment: the number in its file's name.
    pub segment: u64,
    /// Where in the file.
    pub offset: u64,
    /// Bytes of the content.
    pub bytes: u32,
    /// The sequences it stands for.
    pub sequences: Range<u64>,
    /// How many messages are in it.
    pub messages: u32,
    /// The oldest and the newest message's time, in milliseconds since 1970.
    pub times: (u64, u64),
}

/// One of several blocks that were read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBlock {
    /// Which.
    pub block: BlockRef,
    /// Its content, unless it is damaged.
    pub content: Result<Vec<u8>, Damage>,
}

/// Why a block was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes are not those that were written.
    #[error("damaged: {0}")]
    Damaged(Damage),
    /// The file system refused.
    #[error("can not read {}: {source}", path.display())]
    Io {
        /// The segment's file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

/// What a queue has on disk outside the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentStats {
    /// Files.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were appended to them, needed or not.
    pub messages: u64,
    /// The lowest sequence in them.
    pub first: Option<u64>,
}
