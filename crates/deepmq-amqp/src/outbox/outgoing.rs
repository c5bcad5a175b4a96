//! What is being written to the socket: bytes with long bodies spliced in by reference.
//!
//! Owns how far it got. Must not know frames.

use super::Frames;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;

/// A long body, or a part of one, to be sent after the first `at` bytes of the buffer.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) at: usize,
    pub(crate) bytes: Bytes,
}

/// Bytes per write at most.
const WRITE_BYTES_MAX: usize = 256 * 1024;
/// Pieces per vectored write at most.
const SLICES_MAX: usize = 64;

/// Bytes on their way.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    buf: Vec<u8>,
    parts: VecDeque<Part>,
    sent: usize,
}

impl Outgoing {
    /// Whether all is sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.buf.len() && self.parts.is_empty()
    }

    /// Takes the frames, and leaves its own emptied memory for the next.
    pub(super) fn swap(&mut self, frames: &mut Frames) {
        debug_assert!(self.is_empty(), "what is on its way goes first");
        self.buf.clear();
        self.sent = 0;
        std::mem::swap(&mut self.buf, &mut frames.buf);
        self.parts.extend(frames.parts.drain(..));
    }

    /// The next bytes if they are one piece, which they mostly are.
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        if !self.parts.is_empty() {
            return None;
        }
        let end = self.buf.len().min(self.sent + WRITE_BYTES_MAX);
        self.buf.get(self.sent..end)
    }

    /// The next bytes in pieces.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(SLICES_MAX.min(2 * self.parts.len() + 1));
        let mut at = self.sent;
        for part in &self.parts {
            if slices.len() + 2 > SLICES_MAX {
                return slices;
            }
            slices.extend(self.buf.get(at..part.at).filter(|piece| !piece.is_empty()).map(IoSlice::new));
            slices.push(IoSlice::new(&part.bytes));
            at = part.at;
        }
        slices.extend(self.buf.get(at..).filter(|piece| !piece.is_empty()).map(IoSlice::new));
        slices
    }

    /// So many bytes were written.
    pub(crate) fn advance(&mut self, mut written: usize) {
        while written > 0 {
            let Some(part) = self.parts.front_mut() else {
                self.sent += written;
                return;
            };
            let before = (part.at - self.sent).min(written);
            self.sent += before;
            written -= before;
            let of_part = part.bytes.len().min(written);
            part.bytes.advance(of_part);
            written -= of_part;
            if part.bytes.is_empty() {
                self.parts.pop_front();
            }
        }
    }

    /// Gives memory back.
    pub(crate) fn trim(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sequence_of_partial_writes_sends_buffer_and_parts_in_order() {
        for step in 1..12 {
            let mut frames = Frames::default();
            frames.buf.extend_from_slice(b"ab|cd|ef");
            frames.parts.push(Part { at: 2, bytes: Bytes::from_static(b"LONG") });
            frames.parts.push(Part { at: 5, bytes: Bytes::from_static(b"BODY") });
            let (mut outgoing, mut wire) = (Outgoing::default(), Vec::new());
            outgoing.swap(&mut frames);
            while !outgoing.is_empty() {
                let flat: Vec<u8> = match outgoing.plain() {
                    Some(bytes) => bytes.to_vec(),
                    None => outgoing.slices().iter().flat_map(|slice| slice.to_vec()).collect(),
                };
                let written = flat.len().min(step);
                wire.extend_from_slice(&flat[..written]);
                outgoing.advance(written);
            }
            assert_eq!(wire, b"abLONG|cdBODY|ef", "in steps of {step}");
        }
    }
}
