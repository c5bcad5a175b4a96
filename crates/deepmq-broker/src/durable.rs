//! What makes a broker durable: its data directory, and the journal that everything durable goes through.
//!
//! Owns the store and the threads that write and sync it. Must not know what is published or declared, beyond its
//! encoding.
//!
//! In: [`Durable::record`] for changes of the topology, [`Durable::append`] for messages. Out: the journal, to wait for.

pub(crate) mod change;
mod commits;
mod disk_alarm;
mod housekeeping;
mod names;
mod progress;
mod reading;
mod recovery;
mod settled;

pub use commits::{Commit, Commits};
pub use disk_alarm::DiskAlarm;
pub use names::{QueueName, QueueNames};
pub(crate) use recovery::Recovery;
pub(crate) use settled::Settled;

use crate::config::BrokerConfig;
use crate::memory::Memory;
use crate::message::MessageRef;
use crate::queue::Queue;
use change::Change;
use deepmq_model::Name;
use deepmq_model::queue::Position;
use deepmq_model::topology::{DurabilityMode, QueueArguments, TopologyError};
use deepmq_storage::{
    AppendError, Appended, BatchBuilder, BlockRef, Durability, Journal, JournalThread, Lsn, OpenError,
    Options, ReadError, Seam, SegmentStats, StorageFailure, Store,
};
pub(crate) use housekeeping::House;
use housekeeping::Housekeeper;
use parking_lot::Mutex;
use reading::PageReader;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};

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
    /// A queue it holds cannot be declared again. Nothing was changed.
    #[error("queue '{queue}' in vhost '{vhost}' cannot be declared again: {error}")]
    Queue {
        /// Its vhost.
        vhost: Name,
        /// Its name.
        queue: Name,
        /// Why not.
        error: Box<TopologyError>,
    },
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
    housekeeper: Mutex<Option<Housekeeper>>,
    reader: Mutex<Option<PageReader>>,
    memory: Arc<Memory>,
    /// Queues that have something in segments.
    paged: Mutex<Vec<Weak<Queue>>>,
    commits: Commits,
    /// Deleted queues with files, and the record that must be durable before these can go.
    forgotten: Mutex<Vec<(Lsn, u64)>>,
    numbers: Seam,
    /// That of queues that do not say it themselves.
    durability: Durability,
    disk: Arc<DiskAlarm>,
    damage: Vec<String>,
}

impl Durable {
    /// Opens a data directory, and tells what was in it.
    pub(crate) fn open(
        seam: &Seam,
        dir: &Path,
        config: &BrokerConfig,
        memory: Arc<Memory>,
    ) -> Result<(Arc<Self>, Recovery), DurableError> {
        let journal_cached = config.durability == Durability::Os;
        let options = Options { journal_cached, ..config.storage.clone() };
        let (store, found) = Store::open(seam, dir, options)?;
        let store = Arc::new(store);
        let recovery = Recovery::read(seam, &store, found)?;
        let disk = DiskAlarm::new(config.limits.disk_free_bytes_min, &store);
        let journal = store.journal().clone();
        let writer = JournalThread::start(journal.clone()).map_err(DurableError::Thread)?;
        let reader = PageReader::start(store.clone()).map_err(DurableError::Thread)?;
        let durable = Self {
            store,
            journal,
            writer: Mutex::new(Some(writer)),
            housekeeper: Mutex::new(None),
            reader: Mutex::new(Some(reader)),
            memory,
            paged: Mutex::default(),
            commits: Commits::default(),
            forgotten: Mutex::default(),
            numbers: seam.clone(),
            durability: config.durability,
            disk,
            damage: recovery.damage.clone(),
        };
        Ok((Arc::new(durable), recovery))
    }

    /// The journal, to wait for.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// What was found damaged in the data directory at the start, in words.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The memory that messages take.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Reads messages of a queue from its segments, from `position` on, and hands them to it.
    pub(crate) fn page_in(&self, queue: &Arc<Queue>, number: u64, position: Position) {
        if let Some(reader) = &*self.reader.lock() {
            reader.ask(queue, number, position);
        }
    }

    /// Tells a queue of its messages in segments that it will take over.
    ///
    /// # Errors
    /// They can not be read.
    pub(crate) fn note_stored(&self, queue: &Queue, positions: Range<u64>) -> Result<(), StorageFailure> {
        let Some(number) = queue.number() else { return Ok(()) };
        let note = |position, message: MessageRef<'_>| queue.note_stored(position, message);
        reading::each_of(&self.store, number, positions, note).map_err(|error| self.store.fail(&error))
    }

    /// The first page of a queue in segments at or after a position, as the index has it.
    pub(crate) fn next_page(&self, number: u64, position: Position) -> Result<Option<BlockRef>, ReadError> {
        self.store.next_block(number, position.0)
    }

    /// What a queue has in segments.
    pub(crate) fn segment_stats(&self, number: u64) -> SegmentStats {
        self.store.segment_stats(number)
    }

    /// Transactions that are being committed.
    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    /// A queue has something in segments from here on.
    pub(crate) fn note_paged(&self, queue: &Arc<Queue>) {
        self.paged.lock().push(Arc::downgrade(queue));
    }

    /// A queue is deleted, the record of which was appended: its files are removed.
    pub(crate) fn forget(&self, number: u64) {
        self.forgotten.lock().push((self.journal.appended(), number));
        self.memory.pager().ring();
    }

    /// Removes the files of queues that are deleted, or have nothing in them.
    fn remove_forgotten(&self) -> Result<(), StorageFailure> {
        self.store.remove_retired()?;
        let durable = self.journal.durable();
        let ready: Vec<_> = self.forgotten.lock().extract_if(.., |(lsn, _)| *lsn <= durable).collect();
        ready.into_iter().try_for_each(|(_, queue)| self.store.delete_queue(queue))
    }

    /// The alarm for a disk that fills up.
    pub fn disk(&self) -> &Arc<DiskAlarm> {
        &self.disk
    }

    /// How far messages must have come before they are confirmed, in queues that do not say it themselves.
    pub fn default_durability(&self) -> Durability {
        self.durability
    }

    /// How far messages of a queue must have come before they are confirmed, if it was declared with these arguments.
    pub(crate) fn durability(&self, arguments: &QueueArguments) -> Durability {
        match arguments.durability {
            Some(DurabilityMode::Fsync) => Durability::Fsync,
            Some(DurabilityMode::Os) => Durability::Os,
            None => self.durability,
        }
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

    /// Keeps the whole topology as told by `tell`, so that the changes that led to it need not be kept. Without space for
    /// that they are.
    pub(crate) fn snapshot(&self, tell: impl FnOnce() -> Vec<Change>) -> Result<(), StorageFailure> {
        match write_snapshot(&self.store, tell) {
            Err(failure) if failure.is_out_of_space() => {
                tracing::warn!(%failure, "no snapshot of the topology is made, the journal has it all");
                Ok(())
            }
            written => written,
        }
    }

    /// Begins a new life after everything was taken back: forgets queues that nobody knows, and starts from a snapshot. On a
    /// full disk both are left for a later start, for consumers are what makes room.
    pub(crate) fn begin(
        &self,
        unknown: &[u64],
        tell: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), DurableError> {
        if !unknown.is_empty() && !self.disk.is_on() {
            let lsn = self.record(&[], unknown)?;
            self.journal.wait(lsn, Durability::Fsync)?;
            unknown.iter().try_for_each(|&queue| self.store.delete_queue(queue))?;
        }
        Ok(self.snapshot(tell)?)
    }

    /// Starts to sync now and then, to page out, and to give up journal files that are needed no more.
    pub(crate) fn keep_house(self: &Arc<Self>, house: impl House) -> Result<(), DurableError> {
        let housekeeper = Housekeeper::start(Arc::downgrade(self), self.memory.clone(), house)
            .map_err(DurableError::Thread)?;
        *self.housekeeper.lock() = Some(housekeeper);
        Ok(())
    }

    /// Pages out what is too much for the pool.
    pub(crate) fn page_out(&self, queues: &[Arc<Queue>]) -> Result<(), StorageFailure> {
        housekeeping::page_out(self, queues)
    }

    /// Writes all that is left and closes the directory in order. What is to be read at the next start is made short.
    pub(crate) fn close(&self, house: &impl House) -> Result<(), AppendError> {
        // Not dropped, and so waited for, with the lock held that the reader may want.
        let (housekeeper, reader) = (self.housekeeper.lock().take(), self.reader.lock().take());
        drop((housekeeper, reader));
        match housekeeping::put_in_order(self, house) {
            // The next start reads more, which is all.
            Err(AppendError::Failed(failure)) if failure.is_out_of_space() => {
                tracing::warn!(%failure, "the journal stays as long as it is");
            }
            ordered => ordered?,
        }
        // They would be read through at the next start.
        self.store.remove_spares()?;
        Ok(self.writer.lock().take().map_or(Ok(()), JournalThread::stop)?)
    }
}

fn write_snapshot(store: &Store, tell: impl FnOnce() -> Vec<Change>) -> Result<(), StorageFailure> {
    // Changes made meanwhile are told by both, which does no harm: the journal's word comes later.
    let covers = store.journal().appended();
    let mut encoded = Vec::new();
    tell().iter().for_each(|change| change.encode(&mut encoded));
    store.write_snapshot(covers, &encoded)
}
