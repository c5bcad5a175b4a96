//! A block: consecutive messages of one queue, packed.
//!
//! Owns the packing. Must not know which of its messages are ready or unacked; it counts those still needed.

use crate::message::{Body, MessageRef};
use bytes::Bytes;

/// A block takes no further message once it holds so many bytes, shared bodies included: one message that is still
/// needed keeps the bodies of all its block.
pub(super) const BLOCK_BYTES: usize = 64 * 1024;
/// ... or so many messages.
pub(super) const BLOCK_MESSAGES: usize = 4096;
const FIRST_BYTES: usize = 512;

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    properties_len: u32,
    /// The body's length, or where it is shared its index in `shared`.
    body: u32,
    address_len: u16,
    shared: bool,
    persistent: bool,
}

#[derive(Debug, Default)]
pub(super) struct Block {
    /// The position of the first message.
    pub(super) first: u64,
    /// Messages that are still ready or unacked.
    pub(super) live: u32,
    entries: Vec<Entry>,
    data: Vec<u8>,
    shared: Vec<Bytes>,
    shared_bytes: usize,
    /// At least one of its messages is persistent.
    pub(super) persistent: bool,
    /// A bit for each message that is needed no more; kept only once one is persistent.
    done: Vec<u64>,
}

impl Block {
    /// An empty block, with room for `count` messages of `bytes` together if that is not more than a block holds.
    pub(super) fn new(first: u64, count: usize, bytes: usize) -> Self {
        Self {
            first,
            entries: Vec::with_capacity(count.min(BLOCK_MESSAGES)),
            data: Vec::with_capacity(bytes.clamp(FIRST_BYTES, BLOCK_BYTES)),
            ..Self::default()
        }
    }

    /// Makes room for `count` more messages of `bytes` together, as far as the block takes them.
    pub(super) fn reserve(&mut self, count: usize, bytes: usize) {
        self.entries.reserve(count.min(BLOCK_MESSAGES.saturating_sub(self.entries.len())));
        self.data.reserve(bytes.min(BLOCK_BYTES.saturating_sub(self.data.len())));
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.data.len() + self.shared_bytes >= BLOCK_BYTES || self.entries.len() >= BLOCK_MESSAGES
    }

    /// What the block takes of memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.data.len() + self.shared_bytes + self.entries.len() * size_of::<Entry>()
    }

    pub(super) fn capacity(&self) -> usize {
        self.data.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

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
        });
        self.persistent |= message.persistent;
        self.live += 1;
    }

    /// The message at an offset from `first`.
    pub(super) fn read(&self, offset: usize) -> Option<MessageRef<'_>> {
        let entry = self.entries.get(offset)?;
        let (address, rest) =
            self.data.get(entry.start as usize..)?.split_at_checked(entry.address_len.into())?;
        let (properties, rest) = rest.split_at_checked(entry.properties_len as usize)?;
        let body = if entry.shared {
            Body::Shared(self.shared.get(entry.body as usize)?)
        } else {
            Body::Inline(rest.get(..entry.body as usize)?)
        };
        Some(MessageRef { address, properties, body, persistent: entry.persistent })
    }

    /// Messages at `offset` and the `count` from there are needed no more.
    pub(super) fn complete(&mut self, offset: usize, count: u32) {
        self.live = self.live.saturating_sub(count);
        if !self.persistent || self.live == 0 {
            return;
        }
        let end = offset + count as usize;
        if self.done.len() * 64 < end {
            self.done.resize(end.div_ceil(64), 0);
        }
        for at in offset..end {
            if let Some(word) = self.done.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
        }
    }

    /// The persistent messages that are still needed, with their offsets.
    pub(super) fn kept(&self) -> impl Iterator<Item = (usize, MessageRef<'_>)> {
        let count = if self.live > 0 && self.persistent { self.entries.len() } else { 0 };
        let done = |at: usize| self.done.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        let needed = (0..count).filter(move |&at| !done(at));
        needed.filter_map(|at| Some((at, self.read(at)?))).filter(|(_, message)| message.persistent)
    }

    /// Gives the memory back; only the range of positions remains.
    pub(super) fn hollow(&mut self) {
        let len = self.entries.len();
        self.data = Vec::new();
        self.shared = Vec::new();
        self.shared_bytes = 0;
        self.entries = Vec::new();
        self.done = Vec::new();
        debug_assert!(len > 0 && self.live == 0, "only a block nobody needs is hollowed");
    }

    /// Empties the block for messages from `first` on, and keeps its memory.
    pub(super) fn restart(&mut self, first: u64) {
        self.first = first;
        self.persistent = false;
        self.done.clear();
        self.entries.clear();
        self.data.clear();
        self.shared.clear();
        self.shared_bytes = 0;
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a frame, a block and a message are each limited to less than 4 GiB")
}
