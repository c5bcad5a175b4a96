//! Changes of the topology: which queue numbers begin and end, and the caller's own bytes.
//!
//! Owns the payload of that record. Must not know what the bytes say.

use super::Draft;
use super::header;
use crate::bytes::{Input, length};

pub(super) const KIND: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topology<'a> {
    /// Queues whose messages are all gone from here on.
    pub(crate) deleted: Vec<u64>,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Topology<'a> {
    pub(super) fn decode(payload: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(payload);
        let (count, bytes) = (input.count(8)?, input.count(1)?);
        let deleted = (0..count).map_while(|_| input.u64()).collect();
        Some(Self { deleted, bytes: input.take(bytes)? })
    }
}

/// Drafts the record into `buffer`.
pub(crate) fn draft_topology<'b>(buffer: &'b mut Vec<u8>, deleted: &[u64], bytes: &[u8]) -> Draft<'b> {
    header::begin(buffer);
    buffer.extend(length(deleted.len()).to_le_bytes());
    buffer.extend(length(bytes.len()).to_le_bytes());
    deleted.iter().for_each(|queue| buffer.extend(queue.to_le_bytes()));
    buffer.extend_from_slice(bytes);
    header::finish(buffer, KIND)
}
