//! Giving up files: the oldest of the journal, and segments of which nothing is needed.
//!
//! Owns what is done for the messages that are still needed of a journal file: few of a queue are written to the journal
//! again, many go to a segment. Must not know how either is done.

use super::{House, kept};
use crate::durable::{Durable, write_snapshot};
use crate::queue::{Queue, StoredAs};
use deepmq_model::queue::Position;
use deepmq_storage::{AppendError, BatchBuilder, Blocker, Durability, QueueState, RangeSet, Reclaim};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The journal may be this long before any file is given up, in files.
const JOURNAL_FILES_MIN: u64 = 4;
/// With less than this needed of a queue it is written to the journal again, in bytes: a queue of few messages has no file.
const PLACED_AGAIN_BYTES_MAX: usize = 64 * 1024;
/// At most this part of a file is written to the journal again to give it up.
const PLACED_AGAIN_PART: u64 = 4;
/// Segments are looked at once this part of a queue's messages in them is settled.
const SETTLED_PART: u64 = 8;

/// Gives up what the journal has too much.
pub(super) fn journal(durable: &Durable, house: &impl House) -> Result<(), AppendError> {
    let long = JOURNAL_FILES_MIN * durable.store.options().journal_file_bytes;
    while (durable.store.journal_bytes() > long || durable.disk.is_on()) && reclaim_oldest(durable, house)? {}
    if durable.disk.is_on() {
        durable.store.remove_spares()?;
    }
    Ok(())
}

/// Before a stop: gives up all of the journal that can be, so that there is little to be read at the next start.
pub(in crate::durable) fn put_in_order(durable: &Durable, house: &impl House) -> Result<(), AppendError> {
    let journal = durable.journal();
    // On a full disk there is no room to put anything elsewhere.
    while durable.store.oldest().is_some() && !durable.disk.is_on() {
        journal.request_sync();
        journal.wait(journal.appended(), Durability::Fsync)?;
        let before = durable.store.journal_bytes();
        // What the checkpoint waits for becomes durable in the next round.
        reclaim_oldest(durable, house)?;
        journal.wait(journal.appended(), Durability::Fsync)?;
        if !durable.store.recycle_oldest()? && durable.store.journal_bytes() >= before {
            break;
        }
    }
    Ok(())
}

/// Gives up the oldest journal file, if that is not too much to do; says whether it did.
fn reclaim_oldest(durable: &Durable, house: &impl House) -> Result<bool, AppendError> {
    let store = &durable.store;
    let Some(Reclaim { file, queues: blockers, topology }) = store.oldest() else { return Ok(false) };
    let queues = kept(house.queues());
    let cramped = durable.disk.is_cramped(store);
    let (mut few, mut sum) = (Vec::new(), 0);
    for blocker in &blockers {
        let Some(queue) = queues.get(&blocker.queue) else { continue };
        let end = Position(blocker.placed_end);
        let bytes = queue.unstored_bytes(end, PLACED_AGAIN_BYTES_MAX);
        if bytes > 0 && cramped {
            // There is no room to write it anywhere else.
            return Ok(false);
        }
        if bytes >= PLACED_AGAIN_BYTES_MAX {
            queue.store_below(store, end)?;
        } else if bytes > 0 {
            few.push((queue, end));
            sum += bytes;
        }
    }
    if sum as u64 >= store.options().journal_file_bytes / PLACED_AGAIN_PART {
        return Ok(false);
    }
    place_again(durable, &few)?;
    if topology.is_some() {
        write_snapshot(store, || house.tell())?;
    }
    // Taken last: what was settled meanwhile is told by them, or by the journal after the file.
    let look = || blockers.iter().map(|blocker| state(blocker, &queues)).collect();
    let Some(states) = states(durable, look)? else { return Ok(false) };
    store.checkpoint(&states, Some(file))?;
    Ok(store.recycle_oldest()?)
}

fn place_again(durable: &Durable, few: &[(&Arc<Queue>, Position)]) -> Result<(), AppendError> {
    let mut batch = BatchBuilder::new();
    let mut last = None;
    for (queue, end) in few {
        queue.place_again(*end, &mut batch);
        if !batch.is_empty() {
            last = Some(durable.journal().append(batch.finish(), Durability::Fsync)?.lsn);
            batch.begin();
        }
    }
    Ok(last.map_or(Ok(()), |lsn| durable.journal().wait(lsn, Durability::Fsync))?)
}

/// Where a queue stands; of one that is gone, everything is settled.
fn state(blocker: &Blocker, queues: &BTreeMap<u64, Arc<Queue>>) -> QueueState {
    if let Some(queue) = queues.get(&blocker.queue) {
        return queue.kept_state();
    }
    let mut settled = RangeSet::default();
    settled.insert(0..blocker.placed_end);
    QueueState { queue: blocker.queue, next: blocker.placed_end, settled, counts: Vec::new() }
}

/// How many settled messages queues had in segments when these were last looked at, by the queues' numbers.
#[derive(Debug, Default)]
pub(super) struct Segments(BTreeMap<u64, u64>);

impl Segments {
    /// Removes segments of which nothing is needed, once enough was settled.
    pub(super) fn reclaim(&mut self, durable: &Durable) -> Result<(), AppendError> {
        let seen_before = std::mem::take(&mut self.0);
        let mut paged: Vec<_> = std::mem::take(&mut *durable.paged.lock());
        let mut outcome = Ok(());
        paged.retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            let Some(stored) = queue.stored_as() else { return false };
            let stats = durable.store.segment_stats(stored.number);
            if stats.segments == 0 {
                queue.note_unpaged();
                return false;
            }
            let live = queue.live_stored();
            let settled = stats.messages.saturating_sub(live);
            let before = seen_before.get(&stored.number).copied().unwrap_or_default();
            let seen = self.0.entry(stored.number).or_insert(settled.min(before));
            if outcome.is_ok()
                && settled > *seen
                && (live == 0 || settled - *seen >= stats.messages / SETTLED_PART)
            {
                outcome = drop_settled(durable, &queue, stored);
                *seen = durable.store.segment_stats(stored.number).messages.saturating_sub(live);
            }
            true
        });
        durable.paged.lock().append(&mut paged);
        outcome
    }
}

fn drop_settled(durable: &Durable, queue: &Queue, stored: &StoredAs) -> Result<(), AppendError> {
    if !stored.survives {
        return Ok(durable.store.discard(stored.number, &queue.settled_positions())?);
    }
    match states(durable, || vec![queue.kept_state()])? {
        Some(states) => durable.store.checkpoint(&states, None).map(drop),
        None => Ok(()),
    }
}

/// States of queues that a checkpoint may tell: of each transaction all or nothing. None while that cannot be had, for want of
/// space.
fn states(
    durable: &Durable,
    look: impl FnOnce() -> Vec<QueueState>,
) -> Result<Option<Vec<QueueState>>, AppendError> {
    let (states, committed) = durable.commits.between(look);
    let journal = durable.journal();
    if journal.durable() < committed {
        journal.request_sync();
        if durable.disk.is_cramped(&durable.store) {
            return Ok(None);
        }
        journal.wait(committed, Durability::Fsync)?;
    }
    Ok(Some(states))
}
