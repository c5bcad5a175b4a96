//! The messages of one queue that are ready or unacked, in blocks, found by position.
//!
//! Owns the bytes and their release. Must not know the order of delivery, consumers or locks.

mod bits;
mod block;
mod deadlines;
mod deliveries;
mod packed;
mod paging;
#[cfg(test)]
mod tests;
mod timing;

use crate::memory::{Account, Memory};
use crate::message::{Delivery, MessageRef, OwnedMessage};
use block::Block;
pub(crate) use block::Page;
use deepmq_model::queue::{Position, Run};
use deliveries::Deliveries;
pub(crate) use packed::Packed;
pub use packed::decode_page;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use timing::Timetable;

/// An emptied block keeps its memory for the next message up to this size.
const KEEP_BYTES: usize = 2 * 1024;
/// Returns are counted up to here; numbers above mean other things.
pub(crate) const RETURNS_MAX: u32 = u32::MAX - 0x100;

/// How much a batch of messages will take, to make room once.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchSize {
    /// Messages.
    pub count: usize,
    /// Bytes of addresses, properties and inline bodies.
    pub bytes: usize,
    /// Some of them may have an expiration of their own.
    pub expiring: bool,
}

/// The messages of one queue.
#[derive(Debug)]
pub(crate) struct Backlog {
    blocks: VecDeque<Block>,
    next: u64,
    /// Messages still needed, and what all blocks take of memory.
    live: u64,
    bytes: usize,
    /// Blocks with needed messages that are not in memory, lost ones too, and how many of these messages there are.
    out: usize,
    live_out: u64,
    /// How often messages came back, of those that did.
    returns: BTreeMap<u64, u32>,
    /// Copies of messages that are about to go elsewhere: their blocks may leave memory before.
    copies: BTreeMap<u64, OwnedMessage>,
    timetable: Timetable,
    account: Account,
}

impl Backlog {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            blocks: VecDeque::new(),
            next: 0,
            live: 0,
            bytes: 0,
            out: 0,
            live_out: 0,
            returns: BTreeMap::new(),
            copies: BTreeMap::new(),
            timetable: Timetable::default(),
            account: Account::new(memory),
        }
    }

    /// Whether no message is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Memory taken, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What one message in memory takes on average, in bytes.
    pub(crate) fn average_bytes(&self) -> usize {
        self.bytes / usize::try_from(self.live - self.live_out).unwrap_or(usize::MAX).max(1)
    }

    /// Appends messages; `first` must be where the last append ended.
    pub(crate) fn append<'a>(
        &mut self,
        first: Position,
        size: BatchSize,
        messages: impl Iterator<Item = MessageRef<'a>>,
    ) {
        debug_assert_eq!(first.0, self.next, "the model and the backlog count alike");
        let (mut at, mut size) = (self.next, size);
        let last = self.blocks.pop_back_if(|last| last.is_in_memory());
        let mut block = last.unwrap_or_else(|| Block::new(at, size.count, size.bytes));
        let mut before = block.bytes();
        block.reserve(size.count, size.bytes);
        for message in messages {
            if !block.has_room(&message) {
                if block.live == 0 {
                    // All were completed while it was the last, which is never hollowed.
                    block.hollow();
                }
                self.bytes = self.bytes + block.bytes() - before;
                let next = block.next(at, size);
                self.blocks.push_back(std::mem::replace(&mut block, next));
                before = 0;
            }
            block.push(&message);
            size.count = size.count.saturating_sub(1);
            size.bytes = size.bytes.saturating_sub(message.packed_bytes());
            at += 1;
        }
        self.bytes = self.bytes + block.bytes() - before;
        self.blocks.push_back(block);
        self.live += at - self.next;
        self.next = at;
        self.account.set(self.bytes);
    }

    /// The message at a position, if it is still needed.
    pub(crate) fn read(&self, position: Position) -> Option<MessageRef<'_>> {
        if let Some(copy) = self.copies.get(&position.0) {
            return Some(copy.borrow());
        }
        let block = self.blocks.get(self.find(position)?)?;
        block.read(block.offset(position.0))
    }

    /// Keeps those messages of a run that are in memory at hand until they are completed, whatever becomes of their blocks.
    pub(crate) fn copy(&mut self, run: Run) {
        let copies: Vec<_> = self.run(run).map(|(at, message)| (at.0, OwnedMessage::from(message))).collect();
        for (at, message) in copies {
            self.bytes += message.borrow().bytes();
            self.copies.insert(at, message);
        }
        self.account.set(self.bytes);
    }

    /// The messages of several runs, in order.
    pub(crate) fn deliveries<'a>(
        &'a self,
        runs: &'a [(Run, bool)],
        tells_returns: bool,
    ) -> impl Iterator<Item = Delivery<'a>> {
        Deliveries::new(self, runs, tells_returns)
    }

    /// The messages of a run that are in memory.
    pub(crate) fn run(&self, run: Run) -> impl Iterator<Item = (Position, MessageRef<'_>)> {
        let mut index = self.find(run.first).unwrap_or(usize::MAX);
        (run.first.0..run.end().0).filter_map(move |at| {
            let mut block = self.blocks.get(index)?;
            if at >= block.end() {
                index += 1;
                block = self.blocks.get(index)?;
            }
            Some((Position(at), block.read(block.offset(at))?))
        })
    }

    /// What the bodies of several messages take, in bytes; of those not in memory, about.
    pub(crate) fn body_bytes(&self, run: Run) -> u64 {
        self.body_bytes_between(run.first, run.end())
    }

    /// As [`Backlog::body_bytes`], from `start` to `end` (exclusive).
    pub(crate) fn body_bytes_between(&self, start: Position, end: Position) -> u64 {
        let Some(index) = self.find(start) else { return 0 };
        let blocks = self.blocks.range(index..).take_while(|block| block.first < end.0);
        blocks.map(|block| block.body_bytes(start.0.max(block.first)..end.0.min(block.end()))).sum()
    }

    fn find(&self, position: Position) -> Option<usize> {
        if self.blocks.len() == 1 {
            return self.blocks.front().filter(|block| block.first <= position.0).map(|_| 0);
        }
        self.blocks.partition_point(|block| block.first <= position.0).checked_sub(1)
    }

    /// How often a message came back.
    pub(crate) fn returns(&self, position: Position) -> u32 {
        self.returns.get(&position.0).copied().unwrap_or_default()
    }

    /// A message came back; how often is said.
    pub(crate) fn returned(&mut self, position: Position) -> u32 {
        let times = self.returns.entry(position.0).or_default();
        *times = times.saturating_add(1).min(RETURNS_MAX);
        *times
    }

    /// How often messages came back, of those that did.
    pub(crate) fn all_returns(&self) -> impl Iterator<Item = (u64, u32)> {
        self.returns.iter().map(|(&position, &times)| (position, times))
    }

    /// Takes over how often a message came back in earlier lives.
    pub(crate) fn restore_returns(&mut self, position: Position, times: u32) {
        self.returns.insert(position.0, times);
    }

    /// One message is needed no more; true: it may be persistent.
    pub(crate) fn complete(&mut self, position: Position) -> bool {
        self.complete_run(Run { first: position, count: 1 })
    }

    /// Whether a message may be persistent: one of its neighbours is.
    pub(crate) fn is_persistent(&self, position: Position) -> bool {
        self.find(position).and_then(|at| self.blocks.get(at)).is_some_and(Block::has_persistent)
    }

    /// The positions of persistent messages that are still needed, as ranges in order.
    pub(crate) fn kept_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.blocks.iter().flat_map(Block::kept_ranges)
    }

    /// The blocks of which something is still needed.
    pub(crate) fn live_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.blocks.iter().filter(|block| block.live > 0).map(|block| block.first..block.end())
    }

    /// The persistent messages below `end` that are still needed and in no segment, in order.
    pub(crate) fn unstored(&self, end: Position) -> impl Iterator<Item = (Position, MessageRef<'_>)> {
        let blocks = self.blocks.iter().take_while(move |block| block.first < end.0);
        let messages = blocks.filter(|block| !block.stored).flat_map(|block| {
            let positions = block.kept_ranges().into_iter().flatten();
            positions.filter_map(|at| Some((Position(at), block.read(block.offset(at))?)))
        });
        messages.take_while(move |(position, _)| *position < end)
    }

    /// Takes over a message from an earlier life of the queue, above those taken over so far.
    /// `arrived` is in milliseconds since 1970, 0 if that is not known.
    pub(crate) fn restore(&mut self, position: Position, message: MessageRef<'_>, arrived: u64) {
        if position.0 != self.next {
            // Blocks hold consecutive positions, so a gap begins another.
            self.blocks.push_back(Block::new(position.0, 1, message.packed_bytes()));
            self.next = position.0;
        }
        let size = BatchSize { count: 1, bytes: message.packed_bytes(), expiring: false };
        self.append(position, size, std::iter::once(message));
        self.arrive(position, arrived, true);
    }

    /// Goes on at `next` after what was restored.
    pub(crate) fn restored(&mut self, next: Position) {
        if next.0 != self.next {
            self.blocks.push_back(Block::new(next.0, 0, 0));
            self.next = next.0;
        }
        self.trim();
    }

    /// All from `start` to `end` (exclusive) are needed no more.
    pub(crate) fn complete_range(&mut self, start: Position, end: Position) -> bool {
        let (mut first, mut persistent) = (start, false);
        while first < end {
            let count = u32::try_from(end.0 - first.0).unwrap_or(u32::MAX);
            let run = Run { first, count };
            persistent |= self.complete_run(run);
            first = run.end();
        }
        persistent
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.blocks = VecDeque::new();
        self.returns = BTreeMap::new();
        self.copies = BTreeMap::new();
        self.timetable = Timetable::default();
        (self.live, self.bytes, self.out, self.live_out) = (0, 0, 0, 0);
        self.account.set(0);
    }

    /// Several consecutive messages are needed no more; true: some may be persistent.
    pub(crate) fn complete_run(&mut self, run: Run) -> bool {
        let (mut at, end, mut persistent) = (run.first.0, run.end().0, false);
        if self.out > 0 {
            self.cut_for(&(at..end));
        }
        if !self.returns.is_empty() {
            self.returns.extract_if(at..end, |_, _| true).for_each(drop);
        }
        if !self.copies.is_empty() {
            let copies = self.copies.extract_if(at..end, |_, _| true);
            self.bytes -= copies.map(|(_, message)| message.borrow().bytes()).sum::<usize>();
        }
        let Some(mut index) = self.find(run.first) else { return false };
        while at < end {
            let next = self.blocks.get(index + 1).map_or(u64::MAX, |block| block.first);
            let Some(block) = self.blocks.get_mut(index) else { break };
            let upto = end.min(next);
            persistent |= block.has_persistent();
            block.complete(block.offset(at), upto - at);
            self.live -= upto - at;
            let absent = !block.is_in_memory();
            if absent {
                self.live_out -= upto - at;
            }
            if block.live == 0 {
                self.out -= usize::from(absent);
                if next != u64::MAX || absent {
                    self.bytes -= block.bytes();
                    block.hollow();
                }
            }
            at = upto;
            index += 1;
        }
        self.trim();
        persistent
    }

    /// Lets go of blocks at the front that nobody needs.
    fn trim(&mut self) {
        while self.blocks.len() > 1 && self.blocks.front().is_some_and(|block| block.live == 0) {
            self.blocks.pop_front();
        }
        if self.blocks.len() == 1
            && let Some(block) = self.blocks.front_mut()
            && block.live == 0
        {
            self.bytes = 0;
            if block.capacity() > KEEP_BYTES || !block.is_in_memory() {
                self.blocks = VecDeque::new();
            } else {
                block.restart(self.next);
            }
        }
        self.account.set(self.bytes);
    }
}
