//! The way of blocks to segments and back.
//!
//! Owns which blocks go and which are to come back. Must not write or read a file.

use super::block::{BLOCK_MESSAGES, Block};
use super::{Backlog, Packed, Page};
use deepmq_model::queue::Position;
use std::ops::Range;
use std::sync::Arc;

/// So far ahead blocks are looked at at most.
const LOOK_AHEAD_BLOCKS: usize = 64;

impl Backlog {
    /// How many messages from `position` on can be read at once; zero: the first of them must be paged in.
    pub(crate) fn at_hand(&self, position: Position) -> u32 {
        if self.out == 0 {
            return u32::MAX;
        }
        let Some(index) = self.find(position) else { return 0 };
        let mut end = position.0;
        for block in self.blocks.iter().skip(index).take(LOOK_AHEAD_BLOCKS) {
            if !block.is_in_memory() && block.live > 0 {
                break;
            }
            end = block.end();
        }
        u32::try_from(end.saturating_sub(position.0)).unwrap_or(u32::MAX)
    }

    /// The first message at or after `position` that is not in memory, if those in between take less than `bytes`.
    pub(crate) fn out_within(&self, position: Position, bytes: usize) -> Option<Position> {
        if self.out == 0 {
            return None;
        }
        let mut between = 0;
        for block in self.blocks.iter().skip(self.find(position)?).take(LOOK_AHEAD_BLOCKS) {
            if block.is_out() && block.live > 0 {
                return Some(Position(block.first.max(position.0)));
            }
            between += block.bytes();
            if between >= bytes {
                break;
            }
        }
        None
    }

    /// The messages around `position` that are lost, if it is.
    pub(crate) fn lost_at(&self, position: Position) -> Option<Range<u64>> {
        if self.out == 0 {
            return None;
        }
        let block = self.blocks.get(self.find(position)?)?;
        (block.is_lost() && block.live > 0 && position.0 < block.end()).then(|| block.first..block.end())
    }

    /// Needed messages in segments, in memory or not.
    pub(crate) fn live_stored(&self) -> u64 {
        self.blocks.iter().filter(|block| block.stored).map(|block| block.live).sum()
    }

    /// Needed messages that are not in memory.
    pub(crate) fn live_out(&self) -> u64 {
        self.live_out
    }

    /// Whether a message is in a segment.
    pub(crate) fn is_stored(&self, position: Position) -> bool {
        self.find(position).and_then(|at| self.blocks.get(at)).is_some_and(|block| block.stored)
    }

    /// The first needed message that is not one of `others`.
    pub(crate) fn first_live_but(&self, others: impl Fn(Position) -> bool) -> Option<Position> {
        let blocks = self.blocks.iter().filter(|block| block.live > 0);
        blocks.flat_map(Block::live_positions).map(Position).find(|position| !others(*position))
    }

    /// Gives up memory of about `bytes`: what is in a segment already is dropped, what is not is returned to be written. The
    /// messages that are next, of `keep` bytes from `next` on, stay; of the others those that are needed last go first. Without
    /// anything to keep, what is being filled goes too. Returns what was dropped and what can be, in bytes.
    pub(crate) fn page_out(&mut self, next: Position, keep: usize, bytes: usize) -> (usize, Vec<Page>) {
        let near = self.near(next, keep);
        let last = self.blocks.len().saturating_sub(usize::from(keep > 0));
        let (mut freed, mut dropped, mut pages) = (0, 0, Vec::new());
        let after = (near.end..last).rev();
        for index in after.chain(0..near.start) {
            if freed >= bytes {
                break;
            }
            let Some(block) = self.blocks.get_mut(index).filter(|block| block.live > 0) else { continue };
            let size = block.bytes();
            if size == 0 {
                continue;
            }
            freed += size;
            if block.stored {
                block.drop_content();
                self.out += 1;
                self.live_out += block.live;
                dropped += size;
            } else {
                pages.extend(block.page());
            }
        }
        pages.reverse();
        self.bytes -= dropped;
        self.account.set(self.bytes);
        (freed, pages)
    }

    /// The blocks of the next messages, of about `keep` bytes.
    fn near(&self, next: Position, keep: usize) -> Range<usize> {
        let start = self.find(next).unwrap_or(0);
        let (mut end, mut bytes) = (start, 0);
        while bytes < keep
            && let Some(block) = self.blocks.get(end)
        {
            bytes += block.bytes();
            end += 1;
        }
        start..end
    }

    /// What of the persistent messages below `end` is in no segment yet, to be written.
    pub(crate) fn pages_below(&mut self, end: Position) -> Vec<Page> {
        let blocks = self.blocks.iter_mut().take_while(|block| block.first < end.0);
        blocks.filter(|block| block.has_persistent()).filter_map(Block::page).collect()
    }

    /// A page was written; its messages are given up in memory if `drop`.
    pub(crate) fn paged_out(&mut self, positions: &Range<u64>, drop: bool) {
        let Some(index) = self.find(Position(positions.start)) else { return };
        let Some(block) = self.blocks.get_mut(index) else { return };
        if block.first != positions.start || block.end() != positions.end || block.live == 0 {
            return;
        }
        block.stored = true;
        if drop {
            self.bytes -= block.bytes();
            block.drop_content();
            self.out += 1;
            self.live_out += block.live;
            self.account.set(self.bytes);
        }
    }

    /// What `positions` hold was read; `None`: it is damaged. Returns how many needed messages are lost.
    pub(crate) fn page_in(&mut self, positions: &Range<u64>, packed: Option<&Arc<Packed>>) -> u64 {
        let mut lost = 0;
        let from = self.blocks.partition_point(|block| block.end() <= positions.start);
        let mut index = from;
        while self.blocks.get(index).is_some_and(|block| block.first < positions.end) {
            index += self.cut(index, positions);
            let Some(block) = self.blocks.get_mut(index).filter(|block| block.is_out() && block.live > 0)
            else {
                index += 1;
                continue;
            };
            if let Some(packed) = packed {
                block.take_in(packed, positions.start);
                self.bytes += block.bytes();
                self.out -= 1;
                self.live_out -= block.live;
                self.timed(index);
            } else {
                block.lose();
                lost += block.live;
            }
            index += 1;
        }
        self.account.set(self.bytes);
        lost
    }

    /// Cuts the block at `index` where `positions` begin and end, if it is one of several pages; returns how many blocks are
    /// before the part within.
    fn cut(&mut self, index: usize, positions: &Range<u64>) -> usize {
        self.split(index, positions.end);
        usize::from(self.split(index, positions.start))
    }

    /// Cuts blocks of many pages where a range begins and ends, so that it can be completed block by block.
    pub(super) fn cut_for(&mut self, positions: &Range<u64>) {
        for at in [positions.start, positions.end] {
            let Some(index) = self.find(Position(at)) else { continue };
            let many = |block: &Block| block.end() - block.first > BLOCK_MESSAGES as u64;
            if self.blocks.get(index).is_some_and(many) {
                self.split(index, at);
            }
        }
    }

    /// Cuts a block that is not in memory in two, if `at` is within it; says whether it is.
    pub(super) fn split(&mut self, index: usize, at: u64) -> bool {
        let within = |block: &&mut Block| block.is_out() && block.first < at && at < block.end();
        let Some(block) = self.blocks.get_mut(index).filter(within) else { return false };
        self.out -= usize::from(block.live > 0);
        let later = block.split_off(at);
        self.out += usize::from(block.live > 0) + usize::from(later.live > 0);
        self.blocks.insert(index + 1, later);
        self.timed(index);
        self.timed(index + 1);
        true
    }

    /// Takes over messages in segments from an earlier life of the queue, above those taken over so far.
    pub(crate) fn restore_stored(&mut self, positions: Range<u64>) {
        self.next = positions.end;
        self.live += positions.end - positions.start;
        self.live_out += positions.end - positions.start;
        self.out += 1;
        self.forget_times_below(positions.end);
        self.blocks.push_back(Block::stored(positions));
    }
}
