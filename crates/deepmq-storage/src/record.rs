//! Journal records: what is appended atomically.
//!
//! Owns their bytes, drawn in `docs/format/journal.md`. A record is drafted by its writer, payload and checksum; the
//! journal stamps it with where it stands. Knows queues as numbers and messages as three strings of bytes. Must not know
//! files.

mod batch;
mod builder;
mod header;
mod mark;
mod state;
mod topology;

#[cfg(test)]
mod tests;

pub use batch::{Batch, Message, Placement, Settlement};
pub use builder::BatchBuilder;
pub use state::QueueState;

pub(crate) use header::{HEADER_BYTES, Header, RECORD_BYTES_MAX, Stamp, stamp, verify};
pub(crate) use mark::{MARK_BYTES, Mark};
pub(crate) use state::{State, draft_state, read_state, write_state};
pub(crate) use topology::{Topology, draft_topology};

/// The number of a record: the first is 1, the next one more, through all files and restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

/// A record complete but for its place. Made by [`BatchBuilder::finish`].
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    bytes: &'a [u8],
}

impl<'a> Draft<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// What the record takes in the journal, in bytes.
    pub fn size(self) -> usize {
        self.bytes.len()
    }
}

/// What a record says.
#[derive(Debug, Clone)]
pub(crate) enum Content<'a> {
    Mark(Mark),
    Batch(Batch<'a>),
    Topology(Topology<'a>),
    State(State),
}

impl<'a> Content<'a> {
    /// `None` if the payload is none of its kind, or the kind is unknown.
    pub(crate) fn decode(header: &Header, payload: &'a [u8]) -> Option<Self> {
        match header.kind {
            mark::KIND => Mark::decode(payload).map(Self::Mark),
            batch::KIND => Batch::decode(payload).map(Self::Batch),
            topology::KIND => Topology::decode(payload).map(Self::Topology),
            state::KIND => State::decode(payload).map(Self::State),
            _ => None,
        }
    }
}
