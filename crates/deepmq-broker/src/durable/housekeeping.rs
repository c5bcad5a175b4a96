//! The thread that syncs what nobody waits for, pages out what memory does not hold, and gives up files that are needed no
//! more.
//!
//! Owns when each is worth it. Must not know how the store or a queue does it.

mod reclaim;

use super::Durable;
use super::change::Change;
use crate::memory::Memory;
use crate::queue::Queue;
use deepmq_storage::{AppendError, StorageFailure};
use reclaim::Segments;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(super) use reclaim::put_in_order;

/// How long what nobody waits for, such as an acknowledgement, may stay unsynced; and how often it is looked at whether a
/// file can be given up.
const ROUND_INTERVAL: Duration = Duration::from_millis(200);
/// The next messages of a queue that stay in memory as long as there is other memory to give up, in bytes.
const KEEP_BYTES: usize = 2 * 1024 * 1024;
/// How much of a queue is written at once, in bytes.
const PAGE_OUT_BYTES: usize = 8 * 1024 * 1024;

/// What the housekeeper needs to know of the broker.
pub(crate) trait House: Send + 'static {
    /// All queues.
    fn queues(&self) -> Vec<Arc<Queue>>;

    /// The durable topology, as changes that lead to it.
    fn tell(&self) -> Vec<Change>;
}

/// The thread. Stops when dropped.
#[derive(Debug)]
pub(super) struct Housekeeper {
    stop: Arc<AtomicBool>,
    memory: Arc<Memory>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    pub(super) fn start(durable: Weak<Durable>, memory: Arc<Memory>, house: impl House) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, bell) = (stop.clone(), memory.clone());
        let run = move || {
            let mut segments = Segments::default();
            while !stopped.load(Relaxed) {
                bell.pager().wait(ROUND_INTERVAL);
                let Some(durable) = durable.upgrade() else { return };
                durable.disk.look(&durable.store);
                if let Err(error) = round(&durable, &house, &mut segments) {
                    // The broker stops for the failure itself, which all who wait for the journal are told.
                    tracing::error!(%error, "housekeeping has ended");
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("housekeeping".to_owned()).spawn(run)?;
        Ok(Self { stop, memory, thread: Some(thread) })
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.memory.pager().ring();
        // The last to hold the broker may be the thread itself, which ends without being waited for then.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

fn round(durable: &Durable, house: &impl House, segments: &mut Segments) -> Result<(), AppendError> {
    let journal = durable.journal();
    journal.make_room()?;
    if !durable.disk.is_on() {
        durable.store.keep_reserve()?;
    }
    if journal.durable() < journal.appended() {
        journal.request_sync();
    }
    let mut full = false;
    if durable.memory().surplus() > 0 {
        full |= finds_no_space(page_out(durable, &house.queues()).map_err(AppendError::from))?;
    }
    if finds_no_space(give_up(durable, house, segments))? {
        // At once, before anybody else takes it.
        durable.store.use_reserve()?;
        full |= finds_no_space(give_up(durable, house, segments))?;
    }
    durable.disk.note_full(full);
    Ok(())
}

/// Gives up files that are needed no more.
fn give_up(durable: &Durable, house: &impl House, segments: &mut Segments) -> Result<(), AppendError> {
    durable.remove_forgotten()?;
    segments.reclaim(durable)?;
    reclaim::journal(durable, house)
}

/// Whether something was not done for want of space; it is done in a later round.
fn finds_no_space(outcome: Result<(), AppendError>) -> Result<bool, AppendError> {
    match outcome {
        Ok(()) => Ok(false),
        Err(AppendError::Failed(failure)) if failure.is_out_of_space() => {
            tracing::debug!(%failure, "housekeeping waits for space");
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// Pages out until the pool is used as it should: the queues with most in memory first.
pub(super) fn page_out(durable: &Durable, queues: &[Arc<Queue>]) -> Result<(), StorageFailure> {
    let memory = durable.memory();
    for keep in [KEEP_BYTES, 0] {
        if keep == 0 && !memory.is_short() {
            break;
        }
        let mut large: Vec<_> = queues.iter().map(|queue| (queue.memory_bytes(), queue)).collect();
        large.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (_, queue) in large.iter().take_while(|(bytes, _)| *bytes > keep) {
            while let surplus @ 1.. = memory.surplus()
                && queue.page_out(&durable.store, keep, surplus.min(PAGE_OUT_BYTES))? > 0
            {}
        }
    }
    Ok(())
}

/// The durable queues, by the numbers the store knows them by.
fn kept(queues: Vec<Arc<Queue>>) -> BTreeMap<u64, Arc<Queue>> {
    queues.into_iter().filter_map(|queue| Some((queue.number()?, queue))).collect()
}
