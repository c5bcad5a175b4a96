//! Frames: the envelope of everything on the wire after the protocol header (specification, 4.2.3).
//!
//! Owns the envelope and its limits. Must not know what a payload means.
//!
//! ```text
//! frame = type:u8 channel:u16 size:u32 payload 0xCE
//! ```

mod error;

pub use error::{FrameError, Snippet};

/// The protocol header of AMQP 0-9-1, which a client sends first.
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\0\0\x09\x01";

/// Bytes before a payload.
pub const HEADER_BYTES: usize = 7;
/// Bytes after a payload.
pub const TRAILER_BYTES: usize = 1;
/// Bytes of a frame without payload.
pub const EMPTY_FRAME_BYTES: usize = HEADER_BYTES + TRAILER_BYTES;
/// The octet after every payload.
pub const END: u8 = 0xCE;

/// The payload limit in bytes where the peers agreed on none (`frame_max` = 0).
pub const UNLIMITED_PAYLOAD_BYTES_MAX: u32 = 16 << 20;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A method.
    Method = 1,
    /// The header of a content.
    Header = 2,
    /// A piece of the body of a content.
    Body = 3,
    /// Nothing: a sign of life.
    Heartbeat = 8,
}

impl Kind {
    #[inline]
    const fn from_octet(octet: u8) -> Option<Self> {
        Some(match octet {
            1 => Self::Method,
            2 => Self::Header,
            3 => Self::Body,
            8 => Self::Heartbeat,
            _ => return None,
        })
    }
}

/// A whole frame, borrowed from the bytes read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the payload is.
    pub kind: Kind,
    /// The channel; 0 is the connection itself.
    pub channel: u16,
    /// What is between header and end octet.
    pub payload: &'a [u8],
}

/// The frame at the start of `buf` and how many bytes it takes, or `None` if it is not all there yet.
///
/// A payload may have up to `frame_max` bytes, which is eight more than the specification allows: RabbitMQ is as tolerant.
/// The size is judged as soon as the header is there, so nobody waits or makes room for a frame that will be refused.
///
/// # Errors
/// [`FrameError`]: the stream cannot be followed any further.
#[inline]
pub fn parse(buf: &[u8], frame_max: u32) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((&[kind, channel_high, channel_low, s0, s1, s2, s3], after)) =
        buf.split_first_chunk::<HEADER_BYTES>()
    else {
        return Ok(None);
    };
    let size = u32::from_be_bytes([s0, s1, s2, s3]);
    if size > payload_tolerated(frame_max) {
        return Err(error::too_large(kind, size, frame_max, after));
    }
    let Some((payload, [marker, ..])) = after.split_at_checked(size as usize) else {
        return Ok(None);
    };
    if *marker != END {
        return Err(error::bad_end(kind, *marker, payload));
    }
    let Some(kind) = Kind::from_octet(kind) else {
        return Err(error::unknown_kind(kind, payload));
    };
    let channel = u16::from_be_bytes([channel_high, channel_low]);
    Ok(Some((Frame { kind, channel, payload }, payload.len() + EMPTY_FRAME_BYTES)))
}

const fn payload_tolerated(frame_max: u32) -> u32 {
    if frame_max == 0 { UNLIMITED_PAYLOAD_BYTES_MAX } else { frame_max }
}

/// The longest payload to send under `frame_max`, in bytes; at least 1.
pub const fn payload_bytes_max(frame_max: u32) -> usize {
    let frame = if frame_max == 0 { UNLIMITED_PAYLOAD_BYTES_MAX } else { frame_max } as usize;
    match frame.saturating_sub(EMPTY_FRAME_BYTES) {
        0 => 1,
        payload => payload,
    }
}

/// The bytes before a payload of `size` bytes. [`END`] goes after it.
#[inline]
pub const fn header(kind: Kind, channel: u16, size: u32) -> [u8; HEADER_BYTES] {
    let [channel_high, channel_low] = channel.to_be_bytes();
    let [s0, s1, s2, s3] = size.to_be_bytes();
    [kind as u8, channel_high, channel_low, s0, s1, s2, s3]
}

/// Appends a frame whose payload is whatever `write` appends.
#[inline]
pub fn write(kind: Kind, channel: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut super::Writer<'_>)) {
    let [kind, channel_high, channel_low, ..] = header(kind, channel, 0);
    out.extend_from_slice(&[kind, channel_high, channel_low]);
    super::Writer::new(out).sized(write);
    out.push(END);
}

/// Appends `body` as body frames of at most `frame_max` bytes each; none if it is empty.
#[inline]
pub fn write_body(channel: u16, body: &[u8], frame_max: u32, out: &mut Vec<u8>) {
    for part in body.chunks(payload_bytes_max(frame_max)) {
        out.extend_from_slice(&body_header(channel, part));
        out.extend_from_slice(part);
        out.push(END);
    }
}

/// The bytes before a body frame of `part`: for bodies sent by reference, as `body.chunks(payload_bytes_max(frame_max))`.
#[inline]
pub fn body_header(channel: u16, part: &[u8]) -> [u8; HEADER_BYTES] {
    header(Kind::Body, channel, u32::try_from(part.len()).expect("a part is no longer than frame_max"))
}

/// How many bytes [`write_body`] appends.
#[inline]
pub const fn body_frames_bytes(body_bytes: usize, frame_max: u32) -> usize {
    body_bytes + body_bytes.div_ceil(payload_bytes_max(frame_max)) * EMPTY_FRAME_BYTES
}

/// Appends a heartbeat.
pub fn write_heartbeat(out: &mut Vec<u8>) {
    write(Kind::Heartbeat, 0, out, |_| {});
}

#[cfg(test)]
mod tests;
