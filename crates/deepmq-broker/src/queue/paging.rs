//! A queue whose messages are not all in memory: what it gives up, what it asks for, and who waits for that.
//!
//! Owns when a queue reads ahead. Must not read or write files under its lock.

use super::{Queue, State};
use crate::backlog::{Packed, Page};
use crate::subscriber::Wakes;
use deepmq_model::queue::Position;
use deepmq_storage::{NewBlock, StorageFailure, Store};
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

/// With less than this of the next messages in memory, a queue with consumers asks for more, in bytes.
const AHEAD_BYTES: usize = 1024 * 1024;

/// Reading back, of one queue.
#[derive(Debug, Default)]
pub(super) struct Paging {
    /// Something was asked for and has not come.
    asked: bool,
    /// Who waits for the first ready message.
    waiting: Vec<Waker>,
    /// It may have something in segments, which the store's keeper knows.
    paged: bool,
}

/// Messages that were read; none where the segment is damaged.
pub(crate) type PageRead = (Range<u64>, Option<Arc<Packed>>);

/// What a queue has on disk beside the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Storage {
    /// Segment files.
    pub segments: usize,
    /// Their bytes.
    pub segment_bytes: u64,
    /// About how many of these are of messages that are still needed.
    pub live_segment_bytes: u64,
    /// Messages in segments that are still needed.
    pub stored_messages: u64,
    /// Those of them that are not in memory too.
    pub paged_out_messages: u64,
    /// The oldest message that was handed out and not settled.
    pub oldest_unacked: Option<Position>,
    /// It is in a segment, which stays for it.
    pub oldest_unacked_is_stored: bool,
}

impl Paging {
    /// The queue is deleted: nobody waits.
    pub(super) fn end(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl State {
    /// Whether the first ready message, if there is one, can be read now. If not, it is asked for.
    pub(super) fn first_at_hand(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) -> bool {
        self.skip_lost(queue, wakes);
        let Some(first) = self.model.first_ready() else { return true };
        let at_hand = self.backlog.at_hand(first) > 0;
        if !at_hand {
            self.ask(queue, first);
        }
        at_hand
    }

    /// Drops ready messages from the front that are lost; says whether there were any.
    pub(super) fn skip_lost(&mut self, queue: &Queue, wakes: &mut Wakes) -> bool {
        let mut any = false;
        while let Some(first) = self.model.first_ready()
            && let Some(lost) = self.backlog.lost_at(first)
        {
            let max = u32::try_from(lost.end - first.0).unwrap_or(u32::MAX);
            let Some(run) = self.model.skip(max) else { break };
            self.counters.discarded += u64::from(run.count);
            self.count_taken(run);
            let persistent = self.backlog.complete_run(run);
            queue.note_done(persistent, run, wakes);
            any = true;
        }
        any
    }

    /// Asks for messages that consumers will need soon.
    pub(super) fn read_ahead(&mut self, queue: &Arc<Queue>) {
        if self.paging.asked || self.backlog.live_out() == 0 {
            return;
        }
        let Some(first) = self.model.first_ready() else { return };
        // With no memory left, only what is needed now.
        let ahead = if queue.memory_is_short() { 1 } else { AHEAD_BYTES };
        if let Some(position) = self.backlog.out_within(first, ahead) {
            self.ask(queue, position);
        }
    }

    /// The queue has something in segments, or is about to.
    pub(super) fn note_paged(&mut self, queue: &Arc<Queue>) {
        if let Some(stored) = queue.stored.as_ref().filter(|_| !self.paging.paged) {
            self.paging.paged = true;
            stored.durable.note_paged(queue);
        }
    }

    pub(super) fn ask(&mut self, queue: &Arc<Queue>, position: Position) {
        if let Some(stored) = queue.stored.as_ref().filter(|_| !self.paging.asked) {
            self.paging.asked = true;
            stored.durable.page_in(queue, stored.number, position);
        }
    }
}

impl Queue {
    /// It is deleted, and that is journalled: its files are to go.
    pub(crate) fn forget_files(&self) {
        let paged = self.state.lock().paging.paged;
        if let Some(stored) = self.stored.as_ref().filter(|_| paged) {
            stored.durable.forget(stored.number);
        }
    }

    pub(super) fn memory_is_short(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.durable.memory().is_short())
    }

    /// Whether the first ready message is in memory, or there is none; if not, `waker` is woken when it is.
    pub fn poll_paged_in(self: &Arc<Self>, waker: &Waker) -> bool {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        let at_hand = state.deleted || state.first_at_hand(self, &mut wakes);
        if !at_hand && !state.paging.waiting.iter().any(|known| known.will_wake(waker)) {
            state.paging.waiting.push(waker.clone());
        }
        drop(state);
        wakes.wake();
        at_hand
    }

    /// Takes messages that were read, and hands out what that makes possible. Returns how many are lost.
    pub(crate) fn paged_in(self: &Arc<Self>, read: &[PageRead]) -> u64 {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        state.paging.asked = false;
        let mut lost = 0;
        if !state.deleted {
            for (positions, packed) in read {
                lost += state.backlog.page_in(positions, packed.as_ref());
            }
            state.counters.lost += lost;
            state.expire_overdue(self, &mut wakes);
            state.dispatch(self, &mut wakes);
            if state.leaving.is_waiting() {
                wakes.dead_letters.note(self);
            }
        }
        let waiting = std::mem::take(&mut state.paging.waiting);
        drop(state);
        // Whoever reads has more to read.
        while let Some(queue) = wakes.dead_letters.next_queue() {
            queue.home.timers.at(0, &queue);
        }
        wakes.wake();
        waiting.into_iter().for_each(Waker::wake);
        lost
    }

    /// Gives up memory of about `bytes`, but for `keep` bytes of the next messages: writes them to segments. Returns how much it
    /// gave up. Only one thread may write a queue's messages at a time.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub(crate) fn page_out(
        self: &Arc<Self>,
        store: &Store,
        keep: usize,
        bytes: usize,
    ) -> Result<usize, StorageFailure> {
        let Some(stored) = &self.stored else { return Ok(0) };
        let (freed, pages) = {
            let mut state = self.state.lock();
            let next = state.model.first_ready().unwrap_or(state.model.next());
            let keep = if state.model.ready() == 0 { 0 } else { keep };
            state.note_paged(self);
            state.backlog.page_out(next, keep, bytes)
        };
        self.write(store, stored.number, &pages, true)?;
        Ok(freed)
    }

    /// Writes what of the persistent messages below `end` is in no segment, and keeps it in memory.
    ///
    /// # Errors
    /// As [`Queue::page_out`].
    pub(crate) fn store_below(self: &Arc<Self>, store: &Store, end: Position) -> Result<(), StorageFailure> {
        let Some(stored) = &self.stored else { return Ok(()) };
        let pages = {
            let mut state = self.state.lock();
            state.note_paged(self);
            state.backlog.pages_below(end)
        };
        self.write(store, stored.number, &pages, false)
    }

    fn write(&self, store: &Store, number: u64, pages: &[Page], drop: bool) -> Result<(), StorageFailure> {
        for page in pages {
            let content = page.encode();
            let block = NewBlock {
                sequences: page.positions.clone(),
                messages: u32::try_from(page.messages()).unwrap_or(u32::MAX),
                times: page.times(),
                bytes: &[&content],
            };
            store.append_block(number, &block)?;
            self.state.lock().backlog.paged_out(&page.positions, drop);
        }
        Ok(())
    }

    /// Messages in segments that are still needed.
    pub(crate) fn live_stored(&self) -> u64 {
        self.state.lock().backlog.live_stored()
    }

    /// Nothing of it is in segments any more.
    pub(crate) fn note_unpaged(&self) {
        self.state.lock().paging.paged = false;
    }

    /// What it has on disk beside the journal, and what holds that there.
    pub fn storage(&self) -> Storage {
        let stats = self
            .stored
            .as_ref()
            .map(|stored| stored.durable.segment_stats(stored.number))
            .unwrap_or_default();
        let state = self.state.lock();
        let ready = |position| state.model.is_ready(position);
        let unacked = (state.model.unacked() > 0).then(|| state.backlog.first_live_but(ready)).flatten();
        let stored = state.backlog.live_stored();
        Storage {
            segments: stats.segments,
            segment_bytes: stats.bytes,
            live_segment_bytes: stats.bytes.checked_div(stats.messages).unwrap_or_default() * stored,
            stored_messages: stored,
            paged_out_messages: state.backlog.live_out(),
            oldest_unacked: unacked,
            oldest_unacked_is_stored: unacked.is_some_and(|position| state.backlog.is_stored(position)),
        }
    }

    /// How the store knows it.
    pub(crate) fn stored_as(&self) -> Option<&super::StoredAs> {
        self.stored.as_ref()
    }

    /// Memory of its messages, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.state.lock().backlog.bytes()
    }
}
