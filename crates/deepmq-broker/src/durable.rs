//! What makes a broker durable: its data directory, and the journal that everything durable goes through.
//!
//! Owns the store and the threads that write and sync it. Must not know what is published or declared, beyond its
//! encoding.
//!
//! In: [`Durable::record`] for changes of the topology, [`Durable::append`] for messages. Out: the journal, to wait for.

pub(crate) mod change;
mod recovery;
mod settled;

pub(crate) use recovery::{Kept, Recovery};
pub(crate) use settled::Settled;

use change::Change;
use deepmq_storage::{
    AppendError, Appended, BatchBuilder, Durability, Journal, JournalThread, Lsn, OpenError, Options, Seam,
    StorageFailure, Store,
};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long what nobody waits for, such as an acknowledgement, may stay unsynced.
const LAZY_SYNC_INTERVAL: Duration = Duration::from_millis(200);

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// It is refused, or cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was read, but not to the end.
    #[error(transparent)]
    Replay(#[from] deepmq_storage::ReplayError),
    /// What it says of exchanges and queues makes no sense. Nothing was changed.
    #[error("the topology in the data directory cannot be read: {0}")]
    Topology(deepmq_model::message::Malformed),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// It cannot be written.
    #[error(transparent)]
    Failed(#[from] StorageFailure),
    /// It takes nothing more.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// The durable side of a broker.
#[derive(Debug)]
pub struct Durable {
    store: Arc<Store>,
    journal: Arc<Journal>,
    writer: Mutex<Option<JournalThread>>,
    syncer: Mutex<Option<Syncer>>,
    numbers: Seam,
}

impl Durable {
    /// Opens a data directory, and tells what was in it.
    pub(crate) fn open(seam: &Seam, dir: &Path) -> Result<(Arc<Self>, Recovery), DurableError> {
        let (store, found) = Store::open(seam, dir, Options::default())?;
        let store = Arc::new(store);
        let recovery = Recovery::read(&store, found)?;
        let journal = store.journal().clone();
        let writer = JournalThread::start(journal.clone()).map_err(DurableError::Thread)?;
        let syncer = Syncer::start(journal.clone()).map_err(DurableError::Thread)?;
        let durable = Self {
            store,
            journal,
            writer: Mutex::new(Some(writer)),
            syncer: Mutex::new(Some(syncer)),
            numbers: seam.clone(),
        };
        Ok((Arc::new(durable), recovery))
    }

    /// The journal, to wait for.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// A number for a queue that no queue ever had.
    pub(crate) fn new_number(&self) -> u64 {
        let mut bytes = [0; 8];
        self.numbers.random.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Appends changes of the topology; `deleted` are numbers of queues that go with them.
    pub(crate) fn record(&self, changes: &[Change], deleted: &[u64]) -> Result<Lsn, AppendError> {
        let mut encoded = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut encoded));
        self.store.append_topology(deleted, &encoded).map(|appended| appended.lsn)
    }

    /// Appends a batch of messages and settlements.
    pub fn append(&self, batch: &mut BatchBuilder, durability: Durability) -> Result<Appended, AppendError> {
        self.journal.append(batch.finish(), durability)
    }

    /// Keeps the whole topology as told by `tell`, so that the changes that led to it need not be kept.
    pub(crate) fn snapshot(&self, tell: impl FnOnce() -> Vec<Change>) -> Result<(), StorageFailure> {
        // Changes made meanwhile are told by both, which does no harm: the journal's word comes later.
        let covers = self.journal.appended();
        let mut encoded = Vec::new();
        tell().iter().for_each(|change| change.encode(&mut encoded));
        self.store.write_snapshot(covers, &encoded)
    }

    /// Begins a new life after everything was taken back: forgets queues that nobody knows, and starts from a snapshot.
    pub(crate) fn begin(
        &self,
        unknown: &[u64],
        tell: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), DurableError> {
        if !unknown.is_empty() {
            let lsn = self.record(&[], unknown)?;
            self.journal.wait(lsn, Durability::Fsync)?;
            unknown.iter().try_for_each(|&queue| self.store.delete_queue(queue))?;
        }
        Ok(self.snapshot(tell)?)
    }

    /// Writes all that is left and closes the directory in order.
    pub(crate) fn close(&self) -> Result<(), StorageFailure> {
        self.syncer.lock().take();
        self.writer.lock().take().map_or(Ok(()), JournalThread::stop)
    }
}

/// A thread that syncs now and then what nobody waits for, and gives up old journal files.
#[derive(Debug)]
struct Syncer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    fn start(journal: Arc<Journal>) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = stop.clone();
        let run = move || {
            let (stopped, changed) = &*seen;
            let mut stopped = stopped.lock();
            while !*stopped {
                changed.wait_for(&mut stopped, LAZY_SYNC_INTERVAL);
                if journal.durable() < journal.appended() {
                    journal.request_sync();
                }
            }
        };
        let thread = thread::Builder::new().name("lazy-sync".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let (stopped, changed) = &*self.stop;
        *stopped.lock() = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It runs nothing that panics.
            let _ = thread.join();
        }
    }
}
