//! The thread that syncs what nobody waits for, and gives up journal files that are needed no more.
//!
//! Owns when that is worth it: a file with few needed messages has them written again, one with many is left alone. Must not
//! know how the store does it.

use super::DiskAlarm;
use super::change::Change;
use crate::queue::Queue;
use deepmq_model::queue::Position;
use deepmq_storage::{
    AppendError, BatchBuilder, Blocker, Durability, QueueState, RangeSet, Reclaim, StorageFailure, Store,
};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long what nobody waits for, such as an acknowledgement, may stay unsynced; and how often it is looked at whether a
/// journal file can be given up.
const ROUND_INTERVAL: Duration = Duration::from_millis(200);
/// The journal may be this long before any file is given up, in bytes.
const JOURNAL_BYTES_MIN: u64 = 256 * 1024 * 1024;
/// The oldest file is left alone if more than this part of a file is needed of it. Without room in the journal for that,
/// it is given up only if nothing of it is needed.
const PLACED_AGAIN_DIVISOR: usize = 4;

/// What the housekeeper needs to know of the broker.
pub(crate) trait House: Send + 'static {
    /// The queues the store knows, by their numbers.
    fn queues(&self) -> BTreeMap<u64, Arc<Queue>>;

    /// The durable topology, as changes that lead to it.
    fn tell(&self) -> Vec<Change>;
}

/// The thread. Stops when dropped.
#[derive(Debug)]
pub(super) struct Housekeeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    pub(super) fn start(store: Arc<Store>, disk: Arc<DiskAlarm>, house: impl House) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = stop.clone();
        let run = move || {
            let (stopped, changed) = &*seen;
            let mut stopped = stopped.lock();
            while !*stopped {
                changed.wait_for(&mut stopped, ROUND_INTERVAL);
                disk.look(&store);
                if let Err(error) = round_with_reserve(&store, &disk, &house) {
                    // The broker stops for the failure itself, which all who wait for the journal are told.
                    tracing::error!(%error, "housekeeping has ended");
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("housekeeping".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        let (stopped, changed) = &*self.stop;
        *stopped.lock() = true;
        changed.notify_all();
        // The last to hold the broker may be the thread itself, which ends without being waited for then.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

/// A round; if it finds no space, again at once with the space that is kept for that. What finds none then is done in a
/// later round.
fn round_with_reserve(store: &Store, disk: &DiskAlarm, house: &impl House) -> Result<(), AppendError> {
    let Some(failure) = without_space(round(store, disk, house))? else { return Ok(()) };
    tracing::debug!(%failure, "housekeeping uses the space that is kept for it");
    store.use_reserve()?;
    without_space(round(store, disk, house)).map(drop)
}

/// The failure, if it is but for want of space.
fn without_space(outcome: Result<(), AppendError>) -> Result<Option<StorageFailure>, AppendError> {
    match outcome {
        Ok(()) => Ok(None),
        Err(AppendError::Failed(failure)) if failure.is_out_of_space() => Ok(Some(failure)),
        Err(error) => Err(error),
    }
}

fn round(store: &Store, disk: &DiskAlarm, house: &impl House) -> Result<(), AppendError> {
    let journal = store.journal();
    journal.make_room()?;
    if !disk.is_on() {
        store.keep_reserve()?;
    }
    if journal.durable() < journal.appended() {
        journal.request_sync();
    }
    let worth = if journal.is_short() { 1 } else { store.journal_file_bytes() / PLACED_AGAIN_DIVISOR };
    while (store.journal_bytes() > JOURNAL_BYTES_MIN || disk.is_on()) && reclaim(store, house, worth)? {}
    Ok(())
}

/// Gives up the oldest journal file, if what of it is needed is not more than `bytes_max`; says whether it did.
fn reclaim(store: &Store, house: &impl House, bytes_max: usize) -> Result<bool, AppendError> {
    let Some(Reclaim { file, queues: blockers, topology }) = store.oldest() else { return Ok(false) };
    let queues = house.queues();
    let needed: usize = blockers
        .iter()
        .filter_map(|blocker| Some((queues.get(&blocker.queue)?, blocker)))
        .map(|(queue, blocker)| queue.kept_bytes(Position(blocker.placed_end), bytes_max))
        .sum();
    if needed >= bytes_max {
        return Ok(false);
    }
    place_again(store, &blockers, &queues)?;
    if topology.is_some() {
        super::write_snapshot(store, || house.tell())?;
    }
    // Taken last: what was settled meanwhile is told by them, or by the journal after the file.
    let states: Vec<_> = blockers.iter().map(|blocker| state(blocker, &queues)).collect();
    store.checkpoint(&states, Some(file))?;
    Ok(store.recycle_oldest()?)
}

fn place_again(
    store: &Store,
    blockers: &[Blocker],
    queues: &BTreeMap<u64, Arc<Queue>>,
) -> Result<(), AppendError> {
    let mut batch = BatchBuilder::new();
    for blocker in blockers {
        let Some(queue) = queues.get(&blocker.queue) else { continue };
        queue.place_again(Position(blocker.placed_end), &mut batch);
        if !batch.is_empty() {
            let lsn = store.journal().append(batch.finish(), Durability::Fsync)?.lsn;
            store.journal().wait(lsn, Durability::Fsync)?;
            batch.begin();
        }
    }
    Ok(())
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
