//! The header of a content: what comes between a publish, deliver, get-ok or return and its body (specification, 2.3.5.2).
//!
//! Owns that frame's payload. Must not know whether a content is expected.
//!
//! ```text
//! header = class:u16 weight:u16 body-size:u64 properties
//! ```

use super::frame::{self, Kind};
use super::{Malformed, Reader};

/// The class that has contents.
pub const BASIC: u16 = 60;

/// A content header, its properties still encoded and unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The class of the method before; only [`BASIC`] makes sense.
    pub class: u16,
    /// How many bytes of body follow.
    pub body_size: u64,
    /// The properties with their flags: see `deepmq_model::message::properties`.
    pub properties: &'a [u8],
}

impl<'a> Header<'a> {
    /// Decodes the payload of a header frame. Whether the properties are well formed is not looked at.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short or the weight is not 0.
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let class = reader.u16()?;
        if reader.u16()? != 0 {
            return Err(Malformed::new("the weight of a content header is not 0"));
        }
        Ok(Self { class, body_size: reader.u64()?, properties: reader.rest() })
    }

    /// Appends the whole frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        frame::write(Kind::Header, channel, out, |writer| {
            writer.u16(self.class);
            writer.u16(0);
            writer.u64(self.body_size);
            writer.raw(self.properties);
        });
    }
}

/// Appends the header and body frames of a message, as they follow its method.
pub fn write(channel: u16, properties: &[u8], body: &[u8], frame_max: u32, out: &mut Vec<u8>) {
    out.reserve(
        2 * frame::EMPTY_FRAME_BYTES + properties.len() + frame::body_frames_bytes(body.len(), frame_max),
    );
    Header { class: BASIC, body_size: body.len() as u64, properties }.encode(channel, out);
    frame::write_body(channel, body, frame_max, out);
}

#[cfg(test)]
mod tests;
