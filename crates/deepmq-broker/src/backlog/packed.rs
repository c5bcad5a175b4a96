//! Messages packed one after the other: what a block holds in memory, and its form in a segment.
//!
//! Owns the packing and that form, drawn in `docs/format/page.md`. Must not know positions, or which of the messages are
//! still needed.

use super::bits::Bits;
use super::timing::{Times, own_time};
use crate::message::{Body, MessageRef, SHARED_BODY_BYTES_MIN};
use crate::timers::NEVER;
use bytes::Bytes;
use deepmq_model::message::Malformed;
use deepmq_model::message::bytes::Reader;
use std::ops::Range;

const VERSION: u8 = 1;
const GONE: u8 = 0;
const TRANSIENT: u8 = 1;
const PERSISTENT: u8 = 2;
/// Added to the flag of a dead letter.
const DEAD_LETTER: u8 = 4;
/// Added to the flag of a message whose arrival follows.
const ARRIVED: u8 = 8;
/// What the times of a message take in memory, in bytes: when it arrived, and when it expires.
const TIMES_BYTES: usize = 16;
/// The flag, and the lengths of address, properties and body.
const ENTRY_BYTES: usize = 1 + 2 + 4 + 4;

const UNKNOWN_VERSION: Malformed = Malformed::new("the version of a page is unknown");
const UNKNOWN_FLAG: Malformed = Malformed::new("the flag of a message is unknown");

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    properties_len: u32,
    /// The body's length, or where it is shared its index in `shared`.
    body: u32,
    address_len: u16,
    shared: bool,
    persistent: bool,
    dead_letter: bool,
}

/// Messages, found by their index.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    entries: Vec<Entry>,
    data: Vec<u8>,
    shared: Vec<Bytes>,
    shared_bytes: usize,
    /// When messages arrived, up to the last of which that matters; 0: it does not.
    arrivals: Vec<u64>,
}

impl Packed {
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { entries: Vec::with_capacity(count), data: Vec::with_capacity(bytes), ..Self::default() }
    }

    pub(super) fn reserve(&mut self, count: usize, bytes: usize) {
        self.entries.reserve(count);
        self.data.reserve(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the messages, shared bodies included.
    pub(super) fn content_bytes(&self) -> usize {
        self.data.len() + self.shared_bytes
    }

    /// What it takes of memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.content_bytes() + self.entries.len() * size_of::<Entry>() + self.arrivals.len() * TIMES_BYTES
    }

    pub(super) fn capacity(&self) -> usize {
        self.data.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    #[inline]
    pub(super) fn push(&mut self, message: &MessageRef<'_>) {
        let start = index(self.data.len());
        self.data.extend_from_slice(message.address);
        self.data.extend_from_slice(message.properties);
        let body = match message.body {
            Body::Inline(bytes) => {
                self.data.extend_from_slice(bytes);
                index(bytes.len())
            }
            Body::Shared(bytes) => {
                self.shared_bytes += bytes.len();
                self.shared.push(bytes.clone());
                index(self.shared.len() - 1)
            }
        };
        self.entries.push(Entry {
            start,
            properties_len: index(message.properties.len()),
            body,
            address_len: u16::try_from(message.address.len()).expect("two strings of at most 255 bytes"),
            shared: matches!(message.body, Body::Shared(_)),
            persistent: message.persistent,
            dead_letter: message.dead_letter,
        });
    }

    /// The message at an index.
    #[inline]
    pub(super) fn read(&self, at: usize) -> Option<MessageRef<'_>> {
        let entry = self.entries.get(at)?;
        let (address, rest) =
            self.data.get(entry.start as usize..)?.split_at_checked(entry.address_len.into())?;
        let (properties, rest) = rest.split_at_checked(entry.properties_len as usize)?;
        let body = if entry.shared {
            Body::Shared(self.shared.get(entry.body as usize)?)
        } else {
            Body::Inline(rest.get(..entry.body as usize)?)
        };
        let Entry { persistent, dead_letter, .. } = *entry;
        Some(MessageRef { address, properties, body, persistent, dead_letter })
    }

    pub(super) fn is_persistent(&self, at: usize) -> bool {
        self.entries.get(at).is_some_and(|entry| entry.persistent)
    }

    /// Messages behind all others of which the time matters arrived at this time, which does too.
    pub(super) fn arrive(&mut self, range: Range<usize>, time: u64) {
        self.arrivals.resize(range.start, 0);
        self.arrivals.resize(range.end, time);
    }

    /// When a message arrived, if that matters; 0 otherwise.
    pub(super) fn arrived(&self, at: usize) -> u64 {
        self.arrivals.get(at).copied().unwrap_or_default()
    }

    /// How long a message is good by its own word.
    pub(super) fn own_time(&self, at: usize) -> Option<u64> {
        own_time(self.read(at)?.properties)
    }

    /// Whether the time matters of no message in it.
    pub(super) fn is_timeless(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// What is to be known of the times of those that are `needed` once they are not in memory.
    pub(super) fn times(&self, needed: impl Fn(usize) -> bool) -> Times {
        let mut times = Times::default();
        if self.arrivals.is_empty() {
            return times;
        }
        let mut oldest = NEVER;
        for at in (0..self.len()).filter(|at| needed(*at)) {
            let arrived = self.arrived(at);
            oldest = oldest.min(arrived);
            if let Some(own) = self.own_time(at).filter(|_| arrived > 0) {
                times.expires = times.expires.min(arrived.saturating_add(own));
            }
        }
        times.oldest = if oldest == NEVER { 0 } else { oldest };
        times
    }

    /// Empties it, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.data.clear();
        self.shared.clear();
        self.shared_bytes = 0;
        self.arrivals.clear();
    }

    /// The form in a segment. Of messages in `done` only the fact that there was one is kept.
    pub(super) fn encode(&self, done: &Bits) -> Vec<u8> {
        let mut page = Vec::with_capacity(8 + self.content_bytes() + self.entries.len() * ENTRY_BYTES);
        page.push(VERSION);
        page.extend([0; 3]);
        page.extend(index(self.entries.len()).to_be_bytes());
        for at in 0..self.entries.len() {
            let Some(message) = self.read(at).filter(|_| !done.contains(at)) else {
                page.push(GONE);
                continue;
            };
            let kind = if message.persistent { PERSISTENT } else { TRANSIENT };
            let arrived = self.arrived(at);
            let dead_letter = if message.dead_letter { DEAD_LETTER } else { 0 };
            page.push(kind | dead_letter | if arrived > 0 { ARRIVED } else { 0 });
            page.extend(u16::try_from(message.address.len()).unwrap_or(u16::MAX).to_be_bytes());
            page.extend(index(message.properties.len()).to_be_bytes());
            page.extend(index(message.body.len()).to_be_bytes());
            if arrived > 0 {
                page.extend(arrived.to_be_bytes());
            }
            page.extend_from_slice(message.address);
            page.extend_from_slice(message.properties);
            page.extend_from_slice(message.body.bytes());
        }
        page
    }

    /// Reads that form back.
    pub(crate) fn decode(page: &[u8]) -> Result<Self, Malformed> {
        // Its size is known but for the entries' heads; what is taken bit by bit is taken twice.
        let count = page.get(4..8).and_then(|count| count.try_into().ok()).map_or(0, u32::from_be_bytes);
        let count = usize::try_from(count).unwrap_or(0).min(page.len());
        let mut packed = Self::with_capacity(count, page.len().saturating_sub(count * ENTRY_BYTES));
        decode_timed(page, |at, message, arrived| {
            if arrived > 0 {
                packed.arrive(at..at + 1, arrived);
            }
            match message {
                None => packed.push(&MessageRef {
                    address: &[],
                    properties: &[],
                    body: Body::Inline(&[]),
                    persistent: false,
                    dead_letter: false,
                }),
                Some(message) if message.body.len() < SHARED_BODY_BYTES_MIN => packed.push(&message),
                Some(message) => {
                    let body = Bytes::copy_from_slice(message.body.bytes());
                    packed.push(&MessageRef { body: Body::Shared(&body), ..message });
                }
            }
        })?;
        Ok(packed)
    }
}

/// Hands over every message of a page with its index, in order; nothing where it was needed no more when the page was
/// written. Bodies are inline, however long.
///
/// # Errors
/// The page is not one; messages before that were handed over.
pub fn decode_page(
    page: &[u8],
    mut each: impl FnMut(usize, Option<MessageRef<'_>>),
) -> Result<(), Malformed> {
    decode_timed(page, |at, message, _| each(at, message))
}

/// As [`decode_page`], with when each message arrived, or 0.
fn decode_timed(
    page: &[u8],
    mut each: impl FnMut(usize, Option<MessageRef<'_>>, u64),
) -> Result<(), Malformed> {
    let mut reader = Reader::new(page);
    if reader.u8()? != VERSION {
        return Err(UNKNOWN_VERSION);
    }
    reader.take(3)?;
    let count = reader.u32()?;
    for at in 0..count as usize {
        let flag = reader.u8()?;
        let persistent = match flag & !(DEAD_LETTER | ARRIVED) {
            _ if flag == GONE => {
                each(at, None, 0);
                continue;
            }
            TRANSIENT => false,
            PERSISTENT => true,
            _ => return Err(UNKNOWN_FLAG),
        };
        let dead_letter = flag & DEAD_LETTER != 0;
        let (address, properties, body) = (reader.u16()?, reader.u32()?, reader.u32()?);
        let arrived = if flag & ARRIVED == 0 { 0 } else { reader.u64()? };
        let address = reader.take(address.into())?;
        let properties = reader.take(properties as usize)?;
        let body = Body::Inline(reader.take(body as usize)?);
        each(at, Some(MessageRef { address, properties, body, persistent, dead_letter }), arrived);
    }
    Ok(())
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a frame, a block and a message are each limited to less than 4 GiB")
}
