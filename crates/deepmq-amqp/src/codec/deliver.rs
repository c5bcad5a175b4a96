//! Writing deliveries, what a broker writes most.
//!
//! Owns the layout of basic.deliver with its content as one run of bytes. Must not know where the parts come from.

use super::content::BASIC;
use super::frame::{self, EMPTY_FRAME_BYTES, END, Kind};

/// A delivery, its parts as they were stored or prepared.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The channel of the consumer.
    pub channel: u16,
    /// The consumer tag with its length octet, prepared once per consumer.
    pub consumer_tag: &'a [u8],
    /// The delivery tag.
    pub delivery_tag: u64,
    /// Whether the message may have been delivered before.
    pub redelivered: bool,
    /// Exchange and routing key, each with its length octet: see [`super::publish::PublishArgs::address`].
    pub address: &'a [u8],
    /// The encoded properties with their flags.
    pub properties: &'a [u8],
}

/// Class, method, delivery tag and the octet of bits.
const METHOD_FIXED_BYTES: usize = 4 + 8 + 1;
/// Class, weight and body size.
const HEADER_FIXED_BYTES: usize = 2 + 2 + 8;

impl Delivery<'_> {
    /// How many bytes the method and header frames take.
    #[inline]
    pub const fn head_bytes(&self) -> usize {
        2 * EMPTY_FRAME_BYTES + self.method_bytes() + self.header_bytes()
    }

    const fn method_bytes(&self) -> usize {
        METHOD_FIXED_BYTES + self.consumer_tag.len() + self.address.len()
    }

    const fn header_bytes(&self) -> usize {
        HEADER_FIXED_BYTES + self.properties.len()
    }

    /// Appends the method and header frames; the body, of `body_bytes` bytes, is sent otherwise.
    #[inline]
    pub fn write_head(&self, body_bytes: u64, out: &mut Vec<u8>) {
        out.reserve(self.head_bytes());
        out.extend_from_slice(&frame::header(Kind::Method, self.channel, size(self.method_bytes())));
        out.extend_from_slice(&[0, 60, 0, 60]);
        out.extend_from_slice(self.consumer_tag);
        out.extend_from_slice(&self.delivery_tag.to_be_bytes());
        out.push(self.redelivered.into());
        out.extend_from_slice(self.address);
        out.push(END);
        out.extend_from_slice(&frame::header(Kind::Header, self.channel, size(self.header_bytes())));
        out.extend_from_slice(&BASIC.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&body_bytes.to_be_bytes());
        out.extend_from_slice(self.properties);
        out.push(END);
    }

    /// Appends all frames, the body in parts that respect `frame_max`.
    #[inline]
    pub fn write(&self, body: &[u8], frame_max: u32, out: &mut Vec<u8>) {
        out.reserve(self.head_bytes() + frame::body_frames_bytes(body.len(), frame_max));
        self.write_head(body.len() as u64, out);
        frame::write_body(self.channel, body, frame_max, out);
    }
}

#[inline]
fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("names are short and properties came in one frame")
}

#[cfg(test)]
mod tests;
