//! When messages expire, without looking at all of them: each block knows when the first of its messages does.
//!
//! Owns deadlines. A message's is its arrival and the shorter of its own time and the queue's. Must not know which messages are
//! ready, or what becomes of expired ones. Times are in milliseconds since 1970.
//!
//! A block in memory has a deadline for each message; one that is out knows when the oldest arrived and when the first expires by
//! its own word, which is as much as its page's place in the segment's index tells.

use super::Backlog;
use super::block::Block;
use crate::timers::NEVER;
use deepmq_model::message::properties;
use deepmq_model::queue::Position;
use deepmq_storage::BlockRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// So many expired messages are taken at a time, about.
const DUE_MAX: usize = 16 * 1024;
/// A block that is out is asked for again after so long.
const ASK_AGAIN: u64 = 20;
/// A block that is out is asked for so long after its first deadline, for others are likely to follow.
const GATHER: u64 = 40;

/// The queue's own time, and which block is next.
#[derive(Debug, Default)]
pub(super) struct Timetable {
    rule: Rule,
    /// The time of each block's first deadline, and its first position. Only what the block agrees with counts.
    blocks: BinaryHeap<Reverse<(u64, u64)>>,
    /// Blocks of an earlier life of which nothing is known, up to this position.
    unknown_below: u64,
}

/// How long messages of a queue may be ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rule {
    ttl: Option<u64>,
    /// Messages of which it is not known when they arrived count from here.
    since: u64,
}

/// What is known of the times of messages that are not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// When the oldest arrived; 0: not known of all.
    pub(super) oldest: u64,
    /// When the first expires by its own word.
    pub(super) expires: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self { oldest: 0, expires: NEVER }
    }
}

impl Times {
    /// As a block of a segment has them: 0 for what there is not.
    pub(super) fn stored(self) -> (u64, u64) {
        (self.oldest, if self.expires == NEVER { 0 } else { self.expires })
    }

    fn of_stored((oldest, expires): (u64, u64)) -> Self {
        Self { oldest, expires: if expires == 0 { NEVER } else { expires } }
    }
}

impl Rule {
    /// When a message expires that arrived at `arrived` (0: not known).
    pub(super) fn deadline(self, arrived: u64, own: Option<u64>) -> u64 {
        let arrived = if arrived == 0 { self.since } else { arrived };
        own.into_iter().chain(self.ttl).min().map_or(NEVER, |time| arrived.saturating_add(time))
    }

    /// No message of these expires before.
    pub(super) fn earliest(self, times: Times) -> u64 {
        times.expires.min(self.deadline(times.oldest, None))
    }
}

/// The time a message gives itself, if it does.
pub(super) fn own_time(encoded: &[u8]) -> Option<u64> {
    let text = properties::expiration(encoded)?;
    // It was checked when the message was published, where a sign is allowed.
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    Some(digits.fold(0u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

impl Timetable {
    fn schedule(&mut self, block: &mut Block) {
        let at = self.due_at(block);
        if at < block.scheduled {
            self.schedule_at(block, at);
        }
    }

    /// When a block is to be looked at.
    fn due_at(&self, block: &Block) -> u64 {
        block.earliest(self.rule).saturating_add(if block.is_out() { GATHER } else { 0 })
    }

    fn schedule_at(&mut self, block: &mut Block, at: u64) {
        block.scheduled = at;
        self.blocks.push(Reverse((at, block.first)));
    }
}

impl Backlog {
    /// The queue's own time, or that it has none, from now on.
    pub(crate) fn set_ttl(&mut self, ttl: Option<u64>, now: u64) {
        if self.timetable.rule.ttl == ttl {
            return;
        }
        self.timetable.rule = Rule { ttl, since: now };
        self.timetable.blocks.clear();
        for block in &mut self.blocks {
            block.scheduled = NEVER;
            block.time(self.timetable.rule);
            self.timetable.schedule(block);
        }
    }

    /// The messages from `first` on have just arrived, some maybe `expiring` by their own word. Such as have no time of any sort cost nothing.
    pub(crate) fn arrive(&mut self, first: Position, now: u64, expiring: bool) {
        let Some(index) = self.find(first) else { return };
        for block in self.blocks.range_mut(index..) {
            let before = block.bytes();
            block.arrive(first.0, now, self.timetable.rule, expiring);
            self.bytes = self.bytes + block.bytes() - before;
            self.timetable.schedule(block);
        }
        self.account.set(self.bytes);
    }

    /// When a message arrived, if that matters; 0 otherwise.
    pub(crate) fn arrived(&self, position: Position) -> u64 {
        let block = self.find(position).and_then(|index| self.blocks.get(index));
        block.map_or(0, |block| block.arrived(block.offset(position.0)))
    }

    /// When something is to be done next.
    pub(crate) fn next_deadline(&self) -> u64 {
        self.timetable.blocks.peek().map_or(NEVER, |&Reverse((at, _))| at)
    }

    /// A message that could not expire for a while can again.
    pub(crate) fn expire_again(&mut self, position: Position) {
        let Some(index) = self.find(position) else { return };
        if let Some(block) = self.blocks.get_mut(index) {
            block.expire_again(position.0);
            self.timetable.schedule(block);
        }
    }

    /// The positions of messages that have expired, in order within their block; many are taken in several goes. `take` says
    /// whether one can expire now. A block of which some may have expired and that is not in memory is returned, by a position in it.
    pub(crate) fn due(
        &mut self,
        now: u64,
        mut take: impl FnMut(Position) -> bool,
        expired: &mut Vec<Position>,
    ) -> Option<Position> {
        // One is asked for at a time. The others keep their turn until it has come.
        let (mut wanted, mut waiting) = (None, Vec::new());
        while expired.len() < DUE_MAX
            && let Some(&Reverse((at, first))) = self.timetable.blocks.peek()
            && at <= now
        {
            self.timetable.blocks.pop();
            let Some(index) = self.find(Position(first)) else { continue };
            let Some(block) = self.blocks.get_mut(index).filter(|block| block.scheduled == at) else {
                continue;
            };
            block.scheduled = NEVER;
            if self.timetable.due_at(block) > now {
                // It was asked for, and has been looked at meanwhile.
                self.timetable.schedule(block);
                continue;
            }
            if block.is_out() {
                if wanted.is_none() {
                    wanted = block.live_positions().next().map(Position);
                    self.timetable.schedule_at(block, now + ASK_AGAIN);
                } else {
                    block.scheduled = at;
                    waiting.push(Reverse((at, first)));
                }
                continue;
            }
            block.expire(now, |position| take(Position(position)), expired);
            self.timetable.schedule(block);
        }
        self.timetable.blocks.extend(waiting);
        wanted
    }

    /// A block has come back to memory, or its times are known now.
    pub(super) fn timed(&mut self, index: usize) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.time(self.timetable.rule);
            self.timetable.schedule(block);
        }
    }

    /// There are messages of an earlier life up to here of whose times nothing is known.
    pub(super) fn forget_times_below(&mut self, end: u64) {
        self.timetable.unknown_below = end;
    }

    /// From where on nothing is known of the times of messages in segments, if there are such.
    pub(crate) fn unknown_times(&mut self) -> Option<Position> {
        let below = self.timetable.unknown_below;
        let blocks = self.blocks.iter().take_while(|block| block.first < below);
        let first = blocks.into_iter().find(|block| block.is_unknown() && block.live > 0);
        if first.is_none() {
            self.timetable.unknown_below = 0;
        }
        first.map(|block| Position(block.first))
    }

    /// What the segments' index says of the next page from `from` on, if there is one. What is before it is in no segment.
    pub(crate) fn learn(&mut self, from: Position, found: Option<&BlockRef>) {
        let page = found.map_or(u64::MAX..u64::MAX, |found| found.sequences.clone());
        let (times, bytes) = found.map_or(((0, 0), 0), |found| (found.times, u64::from(found.bytes)));
        for at in [page.start.max(from.0), page.end] {
            if let Some(index) = self.find(Position(at)) {
                self.split(index, at);
            }
        }
        let Some(first) = self.find(from) else { return };
        for index in first..self.blocks.len() {
            let Some(block) = self.blocks.get_mut(index).filter(|block| block.first < page.end) else {
                break;
            };
            if block.is_unknown() {
                let times = if block.first < page.start { Times::default() } else { Times::of_stored(times) };
                block.learn(times, bytes / (page.end - page.start).max(1));
                self.timed(index);
            }
        }
    }
}
