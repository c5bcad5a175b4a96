//! What makes a stream of frames impossible to follow.
//!
//! Owns the words, which are RabbitMQ's (after `FRAME_ERROR - `). Must not know how a connection ends.

use std::fmt;

use super::EMPTY_FRAME_BYTES;

/// A frame that is refused; the connection ends with 501 and this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header announces more than the peers agreed on.
    #[error("type {kind}, {head} octets = {head:#}: {{frame_too_large,{size},{max}}}")]
    FrameTooLarge {
        /// The type octet.
        kind: u8,
        /// The announced payload, in bytes.
        size: u32,
        /// The longest payload the specification allows, in bytes.
        max: u32,
        /// The start of the payload, as far as it is there.
        head: Snippet,
    },
    /// The payload is not followed by the end octet.
    #[error("type {kind}, {head} octets = {head:#}: {{invalid_frame_end_marker,{marker}}}")]
    BadEnd {
        /// The type octet.
        kind: u8,
        /// What was found in place of the end octet.
        marker: u8,
        /// The start of the payload.
        head: Snippet,
    },
    /// The type octet means nothing.
    #[error("type {kind}, {head} octets = {head:#}: unknown_frame")]
    UnknownKind {
        /// The type octet.
        kind: u8,
        /// The start of the payload.
        head: Snippet,
    },
}

#[cold]
pub(super) fn too_large(kind: u8, size: u32, frame_max: u32, arrived: &[u8]) -> FrameError {
    let empty = u32::try_from(EMPTY_FRAME_BYTES).expect("a small constant");
    let max = super::payload_tolerated(frame_max).saturating_sub(empty);
    FrameError::FrameTooLarge { kind, size, max, head: Snippet::new(arrived) }
}

#[cold]
pub(super) fn bad_end(kind: u8, marker: u8, payload: &[u8]) -> FrameError {
    FrameError::BadEnd { kind, marker, head: Snippet::new(payload) }
}

#[cold]
pub(super) fn unknown_kind(kind: u8, payload: &[u8]) -> FrameError {
    FrameError::UnknownKind { kind, head: Snippet::new(payload) }
}

/// At most 16 octets from the start of a payload. Shows as `first 16` or `all`, and in its alternate form as the octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    octets: Box<[u8]>,
    cut: bool,
}

const SNIPPET_BYTES_MAX: usize = 16;

impl Snippet {
    /// The start of `payload`.
    pub fn new(payload: &[u8]) -> Self {
        let head = payload.get(..SNIPPET_BYTES_MAX).unwrap_or(payload);
        Self { octets: head.into(), cut: payload.len() > SNIPPET_BYTES_MAX }
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(if self.cut { "first 16" } else { "all" });
        }
        f.write_str("<<")?;
        for (place, octet) in self.octets.iter().enumerate() {
            write!(f, "{}{octet}", if place == 0 { "" } else { "," })?;
        }
        f.write_str(">>")
    }
}
