//! Damage: bytes that are not those that were written.
//!
//! Owns how it is named. Must not know what is done about it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// Something that was durable and is not what it was. What it says is lost is not served; nothing else is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// A range of a journal file is not readable.
    Journal {
        /// The file.
        file: PathBuf,
        /// The range in it.
        bytes: Range<u64>,
        /// Numbers of the records that are missing; empty if nothing but a mark is.
        records: Range<u64>,
        /// What they may have told: messages of which nothing is known, by queue, placed between those of the records
        /// before and after. Messages that were never to be kept look the same.
        lost: Vec<LostMessages>,
    },
    /// A block of a segment is not readable.
    Block {
        /// The segment's file.
        file: PathBuf,
        /// The range in it.
        bytes: Range<u64>,
        /// The queue.
        queue: u64,
        /// The sequences the block stands for.
        sequences: Range<u64>,
    },
    /// A range of a segment without a readable index is not readable itself.
    Segment {
        /// The segment's file.
        file: PathBuf,
        /// The range in it.
        bytes: Range<u64>,
        /// The queue.
        queue: u64,
    },
    /// A segment that should exist does not.
    MissingSegment {
        /// The segment's file.
        file: PathBuf,
        /// The queue.
        queue: u64,
        /// The sequences it stood for that are not known to be settled.
        sequences: Vec<Range<u64>>,
    },
    /// A checkpoint is not readable: the queue's segments were searched instead, and messages of it that were settled
    /// may come back.
    Checkpoint {
        /// The file.
        file: PathBuf,
        /// The queue.
        queue: u64,
    },
    /// A sealed segment's footer is not readable; its blocks are found by a search.
    Footer {
        /// The segment's file.
        file: PathBuf,
        /// The queue.
        queue: u64,
    },
    /// The snapshot of the topology is not readable.
    Snapshot {
        /// The file.
        file: PathBuf,
    },
    /// One of the two lines of the format file is not readable; the other serves.
    Format {
        /// The file.
        file: PathBuf,
    },
}

/// Messages of one queue that may have been in records that are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostMessages {
    /// The queue.
    pub queue: u64,
    /// Their sequences.
    pub sequences: Vec<Range<u64>>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f, &|queue| format!("queue {queue:016x}"))
    }
}

impl Damage {
    /// The damage in words, with queues called as `name` calls them: `name(5)` is to be like "queue 5".
    pub fn describe(&self, name: impl Fn(u64) -> String) -> String {
        fmt::from_fn(|f| self.tell(f, &name)).to_string()
    }

    fn tell(&self, f: &mut fmt::Formatter<'_>, name: &dyn Fn(u64) -> String) -> fmt::Result {
        match self {
            Self::Journal { file, bytes, records, .. } if records.is_empty() => {
                write!(f, "{}, bytes {bytes:?}: not readable, no record is missing", file.display())
            }
            Self::Journal { file, bytes, records, lost } => {
                write!(f, "{}, bytes {bytes:?}: not readable, records {records:?} are lost", file.display())?;
                lost.iter().try_for_each(|LostMessages { queue, sequences }| {
                    write!(f, ", {} may have lost {}", name(*queue), Sequences(sequences))
                })
            }
            Self::Block { file, bytes, queue, sequences } => {
                write!(f, "{}, bytes {bytes:?}: {} has lost {sequences:?}", file.display(), name(*queue))
            }
            Self::Segment { file, bytes, queue } => {
                write!(f, "{}, bytes {bytes:?}: not readable, of {}", file.display(), name(*queue))
            }
            Self::MissingSegment { file, queue, sequences } => {
                write!(f, "{}: missing, {} has lost {}", file.display(), name(*queue), Sequences(sequences))
            }
            Self::Checkpoint { file, queue } => {
                write!(
                    f,
                    "{}: not readable, settled messages of {} may be back",
                    file.display(),
                    name(*queue)
                )
            }
            Self::Footer { file, queue } => {
                write!(f, "{}: footer not readable, of {}, nothing is lost", file.display(), name(*queue))
            }
            Self::Snapshot { file } => write!(f, "{}: not readable", file.display()),
            Self::Format { file } => write!(f, "{}: one line of two is not readable", file.display()),
        }
    }
}

/// Ranges as `1..2, 5..9`.
struct Sequences<'a>(&'a [Range<u64>]);

impl fmt::Display for Sequences<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, range)| {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{range:?}")
        })
    }
}
