//! Marks: the record each write to a journal file begins with, and the last one of a clean stop.
//!
//! Owns their payload. A mark tells what was durable when it was written, so that the reader can tell what a crash may
//! have torn from what must have been there. Marks are not counted: theirs is the number of the record that follows.

use super::header::{self, HEADER_BYTES, Stamp};
use super::stamp;
use crate::bytes::Input;

pub(super) const KIND: u8 = 1;
/// Bytes of the whole record.
pub(crate) const MARK_BYTES: usize = HEADER_BYTES + 16;
const CLOSED: u32 = 1;
const RECYCLED: u32 = 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Records up to this number were durable.
    pub(crate) durable: u64,
    /// The journal was closed after this.
    pub(crate) closed: bool,
    /// The file had another life before.
    pub(crate) recycled: bool,
}

impl Mark {
    /// The record, stamped.
    pub(crate) fn record(self, at: Stamp) -> Vec<u8> {
        let flags = if self.closed { CLOSED } else { 0 } | if self.recycled { RECYCLED } else { 0 };
        let mut bytes = Vec::with_capacity(MARK_BYTES);
        header::begin(&mut bytes);
        bytes.extend(self.durable.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend([0; 4]);
        header::finish(&mut bytes, KIND);
        stamp(&mut bytes, at);
        bytes
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut input = Input::new(payload);
        let (durable, flags) = (input.u64()?, input.u32()?);
        Some(Self { durable, closed: flags & CLOSED != 0, recycled: flags & RECYCLED != 0 })
    }
}
