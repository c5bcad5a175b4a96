//! A block: consecutive messages of one queue, in memory, in a segment or in both.
//!
//! Owns which of them are still needed, and where they are. Must not know which are ready or unacked, nor read a file.

use super::BatchSize;
use super::bits::Bits;
use super::deadlines::Deadlines;
use super::packed::Packed;
use super::timing::{Rule, Times};
use crate::message::MessageRef;
use crate::timers::NEVER;
use deepmq_model::queue::Position;
use std::ops::Range;
use std::sync::Arc;

/// A block takes no more than so many bytes, shared bodies included, but for a message that is longer: one message that is
/// still needed keeps the bodies of all its block.
pub(super) const BLOCK_BYTES: usize = 64 * 1024;
/// ... or so many messages.
pub(super) const BLOCK_MESSAGES: usize = 4096;
const FIRST_BYTES: usize = 512;

/// Where the messages are.
#[derive(Debug)]
enum Content {
    /// In memory, and more can be added.
    Open(Packed),
    /// In memory, and maybe in another block's or a writer's hands too. The first of the block is not always the first here.
    Full { packed: Arc<Packed>, skip: usize },
    /// Nowhere in memory.
    Out,
    /// Nowhere: the segment is damaged.
    Lost,
}

#[derive(Debug)]
pub(super) struct Block {
    /// The position of the first message.
    pub(super) first: u64,
    /// Messages that are still ready or unacked.
    pub(super) live: u64,
    /// How many positions it stands for.
    count: u64,
    content: Content,
    /// It is in a segment.
    pub(super) stored: bool,
    /// What its messages take of memory.
    bytes: usize,
    /// Messages that are needed no more, by their offset from `first`.
    done: Bits,
    /// Messages that are not persistent, while the content is out and some are and some are not.
    transient: Bits,
    persistent: u64,
    /// What the bodies take, in bytes, while the content is out.
    body_bytes: u64,
    /// When each message expires, up to the last that does, while they are in memory.
    deadlines: Deadlines,
    /// The first of them that can come; none where that can only be told from the times.
    soonest: Option<u64>,
    /// When the first may expire, while they are not in memory; none if that is not known.
    times: Option<Times>,
    /// When it is to be looked at.
    pub(super) scheduled: u64,
}

/// A block on its way to a segment.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) positions: Range<u64>,
    packed: Arc<Packed>,
    done: Bits,
}

impl Page {
    /// The form in a segment.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.packed.encode(&self.done)
    }

    /// What is known of their times, as a segment has it.
    pub(crate) fn times(&self) -> (u64, u64) {
        self.packed.times(|at| !self.done.contains(at)).stored()
    }

    /// How many messages it holds.
    pub(crate) fn messages(&self) -> usize {
        self.packed.len()
    }
}

impl Block {
    /// An empty block, with room for `count` messages of `bytes` together if that is not more than a block holds.
    pub(super) fn new(first: u64, count: usize, bytes: usize) -> Self {
        let packed = Packed::with_capacity(count.min(BLOCK_MESSAGES), bytes.clamp(FIRST_BYTES, BLOCK_BYTES));
        Self::of(first..first, Content::Open(packed))
    }

    /// An empty block after this one. What filled one block is likely to fill the next, and memory that grows bit by bit is
    /// taken twice: so it has room for as much.
    pub(super) fn next(&self, first: u64, size: BatchSize) -> Self {
        if self.bytes() < BLOCK_BYTES / 2 {
            return Self::new(first, size.count, size.bytes);
        }
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        Self::new(first, size.count.max(count + count / 8), size.bytes.max(BLOCK_BYTES))
    }

    /// Messages that are in a segment, all of them needed and persistent.
    pub(super) fn stored(positions: Range<u64>) -> Self {
        let count = positions.end - positions.start;
        Self {
            stored: true,
            live: count,
            persistent: count,
            times: None,
            soonest: None,
            ..Self::of(positions, Content::Out)
        }
    }

    fn of(positions: Range<u64>, content: Content) -> Self {
        Self {
            first: positions.start,
            count: positions.end - positions.start,
            live: 0,
            content,
            stored: false,
            bytes: 0,
            done: Bits::default(),
            transient: Bits::default(),
            persistent: 0,
            body_bytes: 0,
            deadlines: Deadlines::default(),
            soonest: Some(NEVER),
            times: Some(Times::default()),
            scheduled: NEVER,
        }
    }

    /// Makes room for `count` more messages of `bytes` together, as far as the block takes them.
    pub(super) fn reserve(&mut self, count: usize, bytes: usize) {
        if let Content::Open(packed) = &mut self.content {
            packed.reserve(
                count.min(BLOCK_MESSAGES.saturating_sub(packed.len())),
                bytes.min(BLOCK_BYTES.saturating_sub(packed.content_bytes())),
            );
        }
    }

    /// One past its last position.
    pub(super) fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Whether a message can be added without more memory than a block is to take. An empty block takes any.
    #[inline]
    pub(super) fn has_room(&self, message: &MessageRef<'_>) -> bool {
        let Content::Open(packed) = &self.content else { return false };
        let bytes = packed.content_bytes() + message.packed_bytes() + message.shared_bytes();
        packed.len() == 0 || (bytes <= BLOCK_BYTES && packed.len() < BLOCK_MESSAGES)
    }

    /// What its messages take of memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.content {
            Content::Open(packed) => packed.bytes(),
            _ => self.bytes,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        match &self.content {
            Content::Open(packed) => packed.capacity(),
            Content::Full { packed, .. } => packed.capacity(),
            Content::Out | Content::Lost => 0,
        }
    }

    /// Adds a message; one that is full must not be asked to.
    #[inline]
    pub(super) fn push(&mut self, message: &MessageRef<'_>) {
        let Content::Open(packed) = &mut self.content else { return };
        packed.push(message);
        self.persistent += u64::from(message.persistent);
        self.count += 1;
        self.live += 1;
    }

    /// The message at an offset from `first`, if it is in memory.
    #[inline]
    pub(super) fn read(&self, offset: usize) -> Option<MessageRef<'_>> {
        match &self.content {
            Content::Open(packed) => packed.read(offset),
            Content::Full { packed, skip } => packed.read(offset + skip),
            Content::Out | Content::Lost => None,
        }
    }

    /// What the bodies of messages take, in bytes; while they are not in memory, their share of all.
    pub(super) fn body_bytes(&self, positions: Range<u64>) -> u64 {
        if self.is_in_memory() {
            let bodies = positions.filter_map(|at| Some(self.read(self.offset(at))?.body.len() as u64));
            return bodies.sum();
        }
        (self.body_bytes * positions.end.saturating_sub(positions.start)).checked_div(self.count).unwrap_or(0)
    }

    /// Whether some of its messages are persistent.
    pub(super) fn has_persistent(&self) -> bool {
        self.persistent > 0
    }

    pub(super) fn is_out(&self) -> bool {
        matches!(self.content, Content::Out)
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost)
    }

    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.content, Content::Open(_) | Content::Full { .. })
    }

    /// Messages at `offset` and the `count` from there are needed no more.
    #[inline]
    pub(super) fn complete(&mut self, offset: usize, count: u64) {
        debug_assert!(self.live >= count, "a message is completed once");
        self.live = self.live.saturating_sub(count);
        if self.live > 0 || self.is_in_memory() {
            self.done.insert_run(offset, usize::try_from(count).unwrap_or(usize::MAX));
        }
    }

    /// Cuts a block with nothing in memory in two; the later part begins at `at`.
    pub(super) fn split_off(&mut self, at: u64) -> Self {
        debug_assert!(self.is_out() && self.first < at && at < self.end());
        let (earlier, later) = (self.part(self.first..at), self.part(at..self.end()));
        *self = earlier;
        later
    }

    fn part(&self, positions: Range<u64>) -> Self {
        let range = self.offset(positions.start)..self.offset(positions.end);
        let (done, transient) = (self.done.part(range.clone()), self.transient.part(range));
        let whole = Self::stored(positions.clone());
        let persistent = if self.persistent == 0 { 0 } else { whole.count - transient.len() };
        let body_bytes = self.body_bytes(positions);
        let times = self.times;
        Self { live: whole.count - done.len(), persistent, done, transient, body_bytes, times, ..whole }
    }

    /// The positions of persistent messages that are still needed, as ranges.
    pub(super) fn kept_ranges(&self) -> Vec<Range<u64>> {
        if self.live == 0 || self.persistent == 0 {
            return Vec::new();
        }
        if self.live == self.count && self.persistent == self.count {
            return std::iter::once(self.first..self.end()).collect();
        }
        let mixed = self.transient();
        let gaps = self.done.gaps(&mixed, usize::try_from(self.count).unwrap_or(usize::MAX));
        gaps.map(|range| self.first + range.start as u64..self.first + range.end as u64).collect()
    }

    /// The positions of messages that are still needed.
    pub(super) fn live_positions(&self) -> impl Iterator<Item = u64> {
        (self.first..self.end()).filter(|&at| !self.done.contains(self.offset(at)))
    }

    /// Which messages are not persistent.
    fn transient(&self) -> Bits {
        let (packed, skip) = match &self.content {
            Content::Open(packed) => (packed, 0),
            Content::Full { packed, skip } => (&**packed, *skip),
            Content::Out | Content::Lost => return self.transient.clone(),
        };
        let mut transient = Bits::default();
        if self.persistent < self.count {
            let count = usize::try_from(self.count).unwrap_or(usize::MAX);
            (0..count)
                .filter(|at| !packed.is_persistent(at + skip))
                .for_each(|at| transient.insert_run(at, 1));
        }
        transient
    }

    /// Closes the block for further messages and returns what is to be written to a segment; none if it is there already or
    /// not in memory.
    pub(super) fn page(&mut self) -> Option<Page> {
        if self.stored || self.live == 0 {
            return None;
        }
        if let Content::Open(packed) = &mut self.content {
            let packed = std::mem::take(packed);
            self.bytes = packed.bytes();
            self.content = Content::Full { packed: Arc::new(packed), skip: 0 };
        }
        let Content::Full { packed, .. } = &self.content else { return None };
        Some(Page { positions: self.first..self.end(), packed: packed.clone(), done: self.done.clone() })
    }

    /// Gives up what is in memory of a block that is in a segment.
    pub(super) fn drop_content(&mut self) {
        debug_assert!(self.stored);
        self.drop_deadlines();
        self.transient = if self.persistent == 0 { Bits::default() } else { self.transient() };
        self.body_bytes = self.body_bytes(self.first..self.end());
        self.content = Content::Out;
        self.bytes = 0;
    }

    /// Takes back the content of `positions`, which the block is a part of.
    pub(super) fn take_in(&mut self, packed: &Arc<Packed>, first: u64) {
        let skip = usize::try_from(self.first - first).unwrap_or(usize::MAX);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        self.bytes = packed.bytes().saturating_mul(count) / packed.len().max(1);
        self.content = Content::Full { packed: packed.clone(), skip };
        self.transient = Bits::default();
    }

    /// The segment is damaged: nothing will be read of it any more.
    pub(super) fn lose(&mut self) {
        self.content = Content::Lost;
    }

    /// Gives the memory back of a block nobody needs; only the range of positions remains.
    pub(super) fn hollow(&mut self) {
        debug_assert!(self.live == 0, "only a block nobody needs is hollowed");
        let (positions, persistent) = (self.first..self.end(), self.persistent);
        *self = Self { persistent, stored: self.stored, ..Self::of(positions, Content::Lost) };
    }

    /// Empties the block for messages from `first` on, and keeps its memory.
    pub(super) fn restart(&mut self, first: u64) {
        let content = std::mem::replace(&mut self.content, Content::Lost);
        let mut done = std::mem::take(&mut self.done);
        done.clear();
        let packed = match content {
            Content::Open(mut packed) => {
                packed.clear();
                packed
            }
            _ => Packed::default(),
        };
        *self = Self { done, ..Self::of(first..first, Content::Open(packed)) };
    }
}

/// Times: see [`super::timing`].
impl Block {
    /// The messages, and where the first of the block is among them.
    fn packed(&self) -> Option<(&Packed, usize)> {
        match &self.content {
            Content::Open(packed) => Some((packed, 0)),
            Content::Full { packed, skip } => Some((packed, *skip)),
            Content::Out | Content::Lost => None,
        }
    }

    fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Messages from position `first` on arrived now; some of them may be `expiring` by their own word.
    pub(super) fn arrive(&mut self, first: u64, now: u64, rule: Rule, expiring: bool) {
        let (from, len) = (self.offset(first).min(self.len()), self.len());
        let Content::Open(packed) = &mut self.content else { return };
        let Self { deadlines, soonest, .. } = self;
        let mut note = |packed: &mut Packed, range: Range<usize>, deadline: u64| {
            if deadline != NEVER {
                packed.arrive(range.clone(), now);
                deadlines.push(range, deadline);
                *soonest = Some(soonest.map_or(deadline, |soonest| soonest.min(deadline)));
            }
        };
        if !expiring {
            note(packed, from..len, rule.deadline(now, None));
            return;
        }
        for at in from..len {
            let deadline = rule.deadline(now, packed.own_time(at));
            note(packed, at..at + 1, deadline);
        }
    }

    pub(super) fn arrived(&self, offset: usize) -> u64 {
        self.packed().map_or(0, |(packed, skip)| packed.arrived(offset + skip))
    }

    /// Finds all deadlines anew.
    pub(super) fn time(&mut self, rule: Rule) {
        self.soonest = None;
        let Some((packed, skip)) = self.packed() else { return };
        if packed.is_timeless() && rule.deadline(0, None) == NEVER {
            (self.deadlines, self.soonest) = (Deadlines::default(), Some(NEVER));
            return;
        }
        let deadline = |at: usize| rule.deadline(packed.arrived(at + skip), packed.own_time(at + skip));
        let deadlines: Vec<u64> = (0..self.len()).map(deadline).collect();
        self.soonest = Some(deadlines.iter().copied().min().unwrap_or(NEVER));
        self.deadlines = Deadlines::new(deadlines);
    }

    /// When the first of it may expire.
    pub(super) fn earliest(&self, rule: Rule) -> u64 {
        if self.live == 0 {
            return NEVER;
        }
        if self.is_lost() {
            return NEVER;
        }
        self.soonest.or(self.times.map(|times| rule.earliest(times))).unwrap_or(NEVER)
    }

    /// Finds the messages that have expired and that `take` takes.
    pub(super) fn expire(
        &mut self,
        now: u64,
        mut take: impl FnMut(u64) -> bool,
        expired: &mut Vec<Position>,
    ) {
        let Self { deadlines, done, first, .. } = self;
        let before = expired.len();
        let next = deadlines.due(now, |offset| {
            let position = *first + offset as u64;
            if !done.contains(offset) && take(position) {
                expired.push(Position(position));
            }
        });
        if let Some(expired) = expired.get_mut(before..) {
            expired.sort_unstable();
        }
        self.soonest = Some(next);
    }

    /// A message that came back can expire.
    pub(super) fn expire_again(&mut self, position: u64) {
        if self.is_in_memory() {
            let deadline = self.deadlines.put_back(self.offset(position));
            self.soonest = self.soonest.into_iter().chain(deadline).min();
        } else {
            self.soonest = None;
        }
    }

    /// Its messages are about to leave memory: keeps what their times come to. A message that has expired in somebody's hands
    /// does not count before it comes back.
    fn drop_deadlines(&mut self) {
        let needed = |at: usize| !self.done.contains(at);
        self.times = Some(self.packed().map_or_else(Times::default, |(packed, skip)| {
            packed.times(|at| (skip..skip + self.len()).contains(&at) && needed(at - skip))
        }));
        let past = self.soonest.unwrap_or_default();
        let left = self.deadlines.each().filter(|&(at, deadline)| deadline >= past && needed(at));
        self.soonest = Some(left.map(|(_, deadline)| deadline).min().unwrap_or(NEVER));
        self.deadlines = Deadlines::default();
    }

    /// Whether nothing is known of its times.
    pub(super) fn is_unknown(&self) -> bool {
        self.times.is_none() && self.is_out()
    }

    /// What was found out of a block that is out: its times, and about how many bytes each message has.
    pub(super) fn learn(&mut self, times: Times, message_bytes: u64) {
        self.times = Some(times);
        self.body_bytes = message_bytes * self.count;
    }

    /// The offset of a position from `first`.
    pub(super) fn offset(&self, position: u64) -> usize {
        usize::try_from(position.saturating_sub(self.first)).unwrap_or(usize::MAX)
    }
}
