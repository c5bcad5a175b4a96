//! The messages of one queue that are ready or unacked, in blocks, found by position.
//!
//! Owns the bytes and their release. Must not know the order of delivery, consumers or locks.

mod block;
#[cfg(test)]
mod tests;

use crate::memory::{Account, Memory};
use crate::message::{Delivery, MessageRef};
use block::Block;
use deepmq_model::queue::{Position, Run};
use std::collections::VecDeque;
use std::sync::Arc;

/// An emptied block keeps its memory for the next message up to this size.
const KEEP_BYTES: usize = 2 * 1024;

/// How much a batch of messages will take, to make room once.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchSize {
    /// Messages.
    pub count: usize,
    /// Bytes of addresses, properties and inline bodies.
    pub bytes: usize,
}

/// The messages of one queue.
#[derive(Debug)]
pub(crate) struct Backlog {
    blocks: VecDeque<Block>,
    next: u64,
    /// Messages still needed, and what all blocks take of memory.
    live: u64,
    bytes: usize,
    account: Account,
}

impl Backlog {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self { blocks: VecDeque::new(), next: 0, live: 0, bytes: 0, account: Account::new(memory) }
    }

    /// Memory taken, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What one message takes on average, in bytes.
    pub(crate) fn average_bytes(&self) -> usize {
        self.bytes / usize::try_from(self.live).unwrap_or(usize::MAX).max(1)
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
        let mut block = self.blocks.pop_back().unwrap_or_else(|| Block::new(at, size.count, size.bytes));
        let mut before = block.bytes();
        block.reserve(size.count, size.bytes);
        for message in messages {
            if block.is_full() {
                if block.live == 0 {
                    // All were completed while it was the last, which is never hollowed.
                    block.hollow();
                }
                self.bytes = self.bytes + block.bytes() - before;
                self.blocks.push_back(block);
                block = Block::new(at, size.count, size.bytes);
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
        let block = self.blocks.get(self.find(position)?)?;
        block.read(usize::try_from(position.0 - block.first).ok()?)
    }

    /// The messages of several runs, in order.
    pub(crate) fn deliveries<'a>(&'a self, runs: &'a [(Run, bool)]) -> impl Iterator<Item = Delivery<'a>> {
        runs.iter().flat_map(|&(run, redelivered)| {
            self.run(run).map(move |(position, message)| Delivery { position, redelivered, message })
        })
    }

    fn run(&self, run: Run) -> impl Iterator<Item = (Position, MessageRef<'_>)> {
        let mut index = self.find(run.first).unwrap_or(usize::MAX);
        (run.first.0..run.end().0).filter_map(move |at| {
            let mut block = self.blocks.get(index)?;
            if at - block.first >= block.len() as u64 {
                index += 1;
                block = self.blocks.get(index)?;
            }
            Some((Position(at), block.read(usize::try_from(at - block.first).ok()?)?))
        })
    }

    fn find(&self, position: Position) -> Option<usize> {
        if self.blocks.len() == 1 {
            return self.blocks.front().filter(|block| block.first <= position.0).map(|_| 0);
        }
        self.blocks.partition_point(|block| block.first <= position.0).checked_sub(1)
    }

    /// One message is needed no more; true: it may be persistent.
    pub(crate) fn complete(&mut self, position: Position) -> bool {
        self.complete_run(Run { first: position, count: 1 })
    }

    /// Whether a message may be persistent: one of its neighbours is.
    pub(crate) fn is_persistent(&self, position: Position) -> bool {
        self.find(position).and_then(|at| self.blocks.get(at)).is_some_and(|block| block.persistent)
    }

    /// The persistent messages below `end` that are still needed, in order.
    pub(crate) fn kept(&self, end: Position) -> impl Iterator<Item = (Position, MessageRef<'_>)> {
        let blocks = self.blocks.iter().take_while(move |block| block.first < end.0);
        let messages = blocks.flat_map(|block| {
            block.kept().map(|(offset, message)| (Position(block.first + offset as u64), message))
        });
        messages.take_while(move |(position, _)| *position < end)
    }

    /// Takes over a message from an earlier life of the queue, above those taken over so far.
    pub(crate) fn restore(&mut self, position: Position, message: MessageRef<'_>) {
        if position.0 != self.next {
            // Blocks hold consecutive positions, so a gap begins another.
            self.blocks.push_back(Block::new(position.0, 1, message.packed_bytes()));
            self.next = position.0;
        }
        let size = BatchSize { count: 1, bytes: message.packed_bytes() };
        self.append(position, size, std::iter::once(message));
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
        self.live = 0;
        self.bytes = 0;
        self.account.set(0);
    }

    /// Several consecutive messages are needed no more; true: some may be persistent.
    pub(crate) fn complete_run(&mut self, run: Run) -> bool {
        let (mut at, end, mut persistent) = (run.first.0, run.end().0, false);
        let Some(mut index) = self.find(run.first) else { return false };
        while at < end {
            let next = self.blocks.get(index + 1).map_or(u64::MAX, |block| block.first);
            let Some(block) = self.blocks.get_mut(index) else { break };
            let upto = end.min(next);
            let count = u32::try_from(upto - at).unwrap_or(u32::MAX);
            debug_assert!(block.live >= count, "a message is completed once");
            block.complete(usize::try_from(at - block.first).unwrap_or(usize::MAX), count);
            self.live -= u64::from(count);
            persistent |= block.persistent;
            if block.live == 0 && next != u64::MAX {
                self.bytes -= block.bytes();
                block.hollow();
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
            if block.capacity() > KEEP_BYTES {
                self.blocks = VecDeque::new();
            } else {
                block.restart(self.next);
            }
        }
        self.account.set(self.bytes);
    }
}
