//! A message as it passes through the engine: borrowed parts, ready for a wire.
//!
//! Owns the shape only. Must not know where the parts lie (a read buffer, a queue's block) or what they mean.

use bytes::Bytes;
use deepmq_storage::BatchBuilder;

/// Bodies of this many bytes and more are shared by reference instead of being copied.
pub const SHARED_BODY_BYTES_MIN: usize = 8 * 1024;

/// The body of a message.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// A short one, to be copied.
    Inline(&'a [u8]),
    /// A long one ([`SHARED_BODY_BYTES_MIN`]), shared.
    Shared(&'a Bytes),
}

impl Body<'_> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub struct MessageRef<'a> {
    /// Exchange and routing key, each with a length byte before it.
    pub address: &'a [u8],
    /// The properties in their encoded form (`deepmq_model::message::properties`).
    pub properties: &'a [u8],
    /// The body.
    pub body: Body<'a>,
    /// It is to survive a restart where its queue does (delivery mode 2).
    pub persistent: bool,
    /// It died in another queue, and its headers tell of that: see `deepmq_model::message::death`.
    pub dead_letter: bool,
}

/// The flag of a dead letter in the journal.
const DEAD_LETTER: u16 = 1;

impl MessageRef<'_> {
    /// What it takes packed in a block, in bytes, without a shared body.
    pub fn packed_bytes(&self) -> usize {
        let body = match self.body {
            Body::Inline(bytes) => bytes.len(),
            Body::Shared(_) => 0,
        };
        self.address.len() + self.properties.len() + body
    }

    /// What of it is shared, in bytes.
    pub fn shared_bytes(&self) -> usize {
        match self.body {
            Body::Inline(_) => 0,
            Body::Shared(bytes) => bytes.len(),
        }
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.packed_bytes() + self.shared_bytes()
    }

    /// Adds it to a record of the journal; returns its index there. `arrived` is in milliseconds since 1970.
    pub fn journal(&self, arrived: u64, batch: &mut BatchBuilder) -> u32 {
        let flags = if self.dead_letter { DEAD_LETTER } else { 0 };
        batch.message(flags, arrived, [self.address, self.properties, self.body.bytes()])
    }

    /// Whether the flags that the journal has of a message say that it is a dead letter.
    pub(crate) fn is_dead_letter(flags: u16) -> bool {
        flags & DEAD_LETTER != 0
    }

    /// The exchange it was published to.
    pub fn exchange(&self) -> &[u8] {
        short(self.address).0
    }

    /// The routing key it was published with.
    pub fn routing_key(&self) -> &[u8] {
        short(short(self.address).1).0
    }
}

/// Splits off what a length byte announces; nothing where the bytes are fewer.
fn short(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((&len, rest)) = bytes.split_first() else { return (&[], &[]) };
    rest.split_at_checked(len.into()).unwrap_or((rest, &[]))
}

/// A message with memory of its own.
#[derive(Debug, Clone)]
pub(crate) struct OwnedMessage {
    pub(crate) address: Vec<u8>,
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Bytes,
    pub(crate) persistent: bool,
    pub(crate) dead_letter: bool,
}

impl From<MessageRef<'_>> for OwnedMessage {
    fn from(message: MessageRef<'_>) -> Self {
        Self {
            address: message.address.to_vec(),
            properties: message.properties.to_vec(),
            body: match message.body {
                Body::Inline(bytes) => Bytes::copy_from_slice(bytes),
                Body::Shared(bytes) => bytes.clone(),
            },
            persistent: message.persistent,
            dead_letter: message.dead_letter,
        }
    }
}

impl OwnedMessage {
    pub(crate) fn borrow(&self) -> MessageRef<'_> {
        MessageRef {
            address: &self.address,
            properties: &self.properties,
            body: if self.body.len() < SHARED_BODY_BYTES_MIN {
                Body::Inline(&self.body)
            } else {
                Body::Shared(&self.body)
            },
            persistent: self.persistent,
            dead_letter: self.dead_letter,
        }
    }
}

/// A message on its way to a consumer.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Its place in the queue, by which it is settled.
    pub position: deepmq_model::queue::Position,
    /// It was delivered before, or may have been.
    pub redelivered: bool,
    /// How often it came back, as far as is known.
    pub returns: u32,
    /// The consumer is to be told that.
    pub tells_returns: bool,
    /// The message.
    pub message: MessageRef<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_and_a_short_one_reads_as_empty() {
        let message = |address| MessageRef {
            address,
            properties: &[0, 0],
            body: Body::Inline(b""),
            persistent: false,
            dead_letter: false,
        };
        let whole = message(b"\x03exc\x02rk");
        assert_eq!((whole.exchange(), whole.routing_key()), (&b"exc"[..], &b"rk"[..]));
        assert_eq!(message(b"\0\0").routing_key(), b"");
        assert_eq!(message(b"").exchange(), b"");
    }
}
