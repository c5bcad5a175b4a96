//! The deliveries of one channel that wait to be settled, by delivery tag.
//!
//! Owns the tags: dense from 1, shared by consumers and fetches. Settling one is O(1), settling all up to a tag a
//! range. Must not know the protocol that carries the tags.

mod lapse;
#[cfg(test)]
mod tests;

use crate::queue::{Outcome, Queue, Settlement, Settlements};
use deepmq_model::queue::{ConsumerId, Position};
use lapse::Marks;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// When the ring holds more than this and few of them are open, the open ones move out of it.
const RING_SPARSE_MIN: usize = 16 * 1024;
const SETTLED: u32 = u32::MAX;
/// It was given back for the client, who may still settle it, to no effect.
const LAPSED: u32 = u32::MAX - 1;

/// A queue, and one of its consumers or none, that deliveries came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceId(u32);

/// No delivery with this tag is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownTag(pub u64);

#[derive(Debug, Clone, Copy)]
struct Entry {
    position: Position,
    source: u32,
}

impl Entry {
    fn is_open(&self) -> bool {
        self.source < LAPSED
    }
}

#[derive(Debug)]
struct Source {
    queue: Arc<Queue>,
    consumer: Option<ConsumerId>,
    open: u32,
    closed: bool,
}

/// The open deliveries of a channel.
#[derive(Debug)]
pub struct Ledger {
    /// The tag of the ring's first entry.
    base: u64,
    ring: VecDeque<Entry>,
    /// Open deliveries far older than the rest, which would otherwise keep the ring long.
    stragglers: BTreeMap<u64, Entry>,
    sources: Vec<Option<Source>>,
    /// Sources forgotten, to be used again.
    vacant: Vec<u32>,
    open: usize,
    marks: Marks,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            base: 1,
            ring: VecDeque::new(),
            stragglers: BTreeMap::new(),
            sources: Vec::new(),
            vacant: Vec::new(),
            open: 0,
            marks: Marks::default(),
        }
    }
}

impl Ledger {
    /// How many deliveries are open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The tag of the next delivery.
    pub fn next_tag(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// Registers where deliveries will come from.
    pub fn add_source(&mut self, queue: Arc<Queue>, consumer: Option<ConsumerId>) -> SourceId {
        let source = Some(Source { queue, consumer, open: 0, closed: false });
        let at = self.vacant.pop().unwrap_or_else(|| {
            self.sources.push(None);
            u32::try_from(self.sources.len() - 1).expect("each has a consumer or an open delivery, in memory")
        });
        if let Some(slot) = self.sources.get_mut(at as usize) {
            *slot = source;
        }
        SourceId(at)
    }

    /// Nothing more comes from there; it is forgotten once its deliveries are settled.
    pub fn close_source(&mut self, id: SourceId) {
        if let Some(slot) = self.sources.get_mut(id.0 as usize)
            && let Some(source) = slot
        {
            source.closed = true;
            if source.open == 0 {
                *slot = None;
                self.vacant.push(id.0);
            }
        }
    }

    /// Opens a delivery; returns its tag.
    pub fn open_delivery(&mut self, source: SourceId, position: Position) -> u64 {
        if let Some(Some(source)) = self.sources.get_mut(source.0 as usize) {
            source.open += 1;
        }
        self.open += 1;
        self.ring.push_back(Entry { position, source: source.0 });
        self.next_tag() - 1
    }

    /// Takes a tag for a delivery that needs no settling.
    pub fn settled_delivery(&mut self) -> u64 {
        if self.ring.is_empty() {
            self.base += 1;
        } else {
            self.ring.push_back(Entry { position: Position(0), source: SETTLED });
            self.trim();
        }
        self.next_tag() - 1
    }

    /// Settles one delivery, into `out`.
    pub fn settle(&mut self, tag: u64, outcome: Outcome, out: &mut Settlements) -> Result<(), UnknownTag> {
        let entry = match tag.checked_sub(self.base) {
            Some(offset) => usize::try_from(offset)
                .ok()
                .and_then(|offset| self.ring.get_mut(offset))
                .filter(|entry| entry.source != SETTLED)
                .map(|entry| std::mem::replace(entry, Entry { source: SETTLED, ..*entry })),
            None => self.stragglers.remove(&tag),
        };
        let entry = entry.ok_or(UnknownTag(tag))?;
        self.close(entry, outcome, out);
        self.trim();
        Ok(())
    }

    /// Settles all open deliveries up to `tag`, which must itself be open, as RabbitMQ has it; 0 means all there are.
    pub fn settle_up_to(
        &mut self,
        tag: u64,
        outcome: Outcome,
        out: &mut Settlements,
    ) -> Result<(), UnknownTag> {
        if tag != 0 && !self.is_open(tag) {
            return Err(UnknownTag(tag));
        }
        let last = if tag == 0 { self.next_tag() - 1 } else { tag };
        while let Some(first) = self.stragglers.first_entry().filter(|first| *first.key() <= last) {
            let entry = first.remove();
            self.close(entry, outcome, out);
        }
        while self.base <= last {
            let Some(entry) = self.ring.pop_front() else { break };
            self.base += 1;
            if entry.source != SETTLED {
                self.close(entry, outcome, out);
            }
        }
        Ok(())
    }

    /// Whether a delivery with this tag waits to be settled, by the client's knowledge.
    pub fn is_open(&self, tag: u64) -> bool {
        match tag.checked_sub(self.base).map(usize::try_from) {
            Some(Ok(offset)) => self.ring.get(offset).is_some_and(|entry| entry.source != SETTLED),
            Some(Err(_)) => false,
            None => self.stragglers.contains_key(&tag),
        }
    }

    /// The latest open delivery among those `wanted`, by its tag.
    pub fn last_open(&self, wanted: impl Fn(u64) -> bool) -> Option<u64> {
        let tags = (self.base..self.next_tag()).rev();
        let mut recent = self.ring.iter().rev().zip(tags).filter(|(entry, _)| entry.source != SETTLED);
        let recent = recent.find(|&(_, tag)| wanted(tag)).map(|(_, tag)| tag);
        recent.or_else(|| self.stragglers.keys().rev().copied().find(|&tag| wanted(tag)))
    }

    fn close(&mut self, entry: Entry, outcome: Outcome, out: &mut Settlements) {
        let Some(slot) = self.sources.get_mut(entry.source as usize) else { return };
        let Some(source) = slot else { return };
        self.open -= 1;
        source.open -= 1;
        out.add(&source.queue, Settlement { position: entry.position, consumer: source.consumer, outcome });
        if source.closed && source.open == 0 {
            *slot = None;
            self.vacant.push(entry.source);
        }
    }

    fn trim(&mut self) {
        while self.ring.front().is_some_and(|entry| entry.source == SETTLED) {
            self.ring.pop_front();
            self.base += 1;
        }
        if self.ring.len() > RING_SPARSE_MIN && self.open * 16 < self.ring.len() {
            let base = self.base;
            self.base += self.ring.len() as u64;
            let open = self.ring.drain(..).zip(base..).filter(|(entry, _)| entry.source != SETTLED);
            self.stragglers.extend(open.map(|(entry, tag)| (tag, entry)));
        }
    }
}
