//! What was on disk when the directory was opened.
//!
//! Owns bringing journal, checkpoints and snapshot together: everything in them only ever adds (settled, placed, next), so
//! the order in which they are read does not matter, and a record found twice is one. Must not change anything.

mod collect;
mod damage;
mod queues;
mod replay;

pub use damage::{Damage, LostMessages};
pub use replay::ReplayError;

use std::collections::{BTreeMap, BTreeSet};

use crate::RangeSet;
use crate::journal::{JournalFile, Outline};
use crate::record::{Lsn, QueueState};
use crate::segment::Segment;

pub(crate) use collect::Placed;
pub(crate) use queues::read_queues;

/// All that was found. Hand it to [`Recovered::replay`] for the messages in the journal, then drop it.
#[derive(Debug)]
pub struct Recovered {
    /// The last snapshot of the topology.
    pub snapshot: Option<Vec<u8>>,
    /// The changes after it, in order.
    pub topology: Vec<(Lsn, Vec<u8>)>,
    /// Every queue anything is known of, by number. Those the topology does not know are to be deleted by the caller.
    pub queues: BTreeMap<u64, RecoveredQueue>,
    /// What is not as it was written. The rest is served.
    pub damage: Vec<Damage>,
    /// Bytes at the end of the journal that a crash has torn: never confirmed, now cut off.
    pub torn_bytes: u64,
    /// The journal was closed in order.
    pub clean: bool,
    pub(crate) placed: BTreeMap<u64, Vec<Placed>>,
    pub(crate) outline: Outline,
}

/// A queue as it was found.
#[derive(Debug, Clone, Default)]
pub struct RecoveredQueue {
    /// Next sequence, what is settled, delivery counts of the rest.
    pub state: QueueState,
    /// Sequences of messages in the journal that are still needed and in no segment.
    pub in_journal: RangeSet,
    /// Sequences that blocks in segments stand for, settled ones included.
    pub in_segments: RangeSet,
}

/// All that was found, with what the store goes on with.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) recovered: Recovered,
    pub(crate) files: Vec<JournalFile>,
    pub(crate) segments: BTreeMap<u64, Vec<Segment>>,
    /// Files and directories nothing refers to.
    pub(crate) orphans: BTreeSet<(u64, Option<u64>)>,
}

pub(crate) use collect::find;
