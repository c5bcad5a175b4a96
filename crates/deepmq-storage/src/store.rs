//! A data directory in use.
//!
//! Owns the parts that write below it and the rules between them: a block counts once a checkpoint lists it, a journal
//! file is given up once nothing depends on it, what is not needed is removed after all that referred to it. Must not
//! know queues' semantics or threads.

mod checkpoint;
mod open;
mod reserve;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::RangeSet;
use crate::data_dir::DataDir;
use crate::failure::StorageFailure;
use crate::journal::{AppendError, Appended, Durability, Journal, Reclaim};
use crate::record::{Lsn, draft_topology};
use crate::seam::LockGuard;
use crate::segment::{BlockRef, FileCache, NewBlock, QueueSegments, ReadBlock, ReadError, SegmentStats};

pub use open::{OpenError, Options};

/// A data directory in use. Shared between threads; every method may be called from any, and those that touch the disk
/// block.
#[derive(Debug)]
pub struct Store {
    dir: DataDir,
    options: Options,
    journal: Arc<Journal>,
    cache: Arc<FileCache>,
    queues: Mutex<HashMap<u64, SharedQueue>>,
    /// Queues whose segments can be removed once the journal is durable up to the number.
    retired: Mutex<Vec<(Lsn, u64)>>,
    /// A queue's directory was removed since the last sync of where it was.
    removed: AtomicBool,
    _lock: LockGuard,
}

type SharedQueue = Arc<Mutex<QueueSegments>>;

impl Store {
    /// The journal, to append to, to wait for and to run.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Appends a change of the topology: the caller's bytes, and the queues that are gone with all their messages from
    /// here on. Queue numbers are never used again.
    ///
    /// # Errors
    /// Those of [`Journal::append`].
    pub fn append_topology(&self, deleted: &[u64], bytes: &[u8]) -> Result<Appended, AppendError> {
        self.journal.append(draft_topology(&mut Vec::new(), deleted, bytes), Durability::Fsync)
    }

    /// Replaces the snapshot of the topology. It must tell all changes up to `covers`; they are not handed out again.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn write_snapshot(&self, covers: Lsn, bytes: &[u8]) -> Result<(), StorageFailure> {
        crate::snapshot::write(&self.dir, covers, bytes)?;
        self.journal.release_topology(covers);
        Ok(())
    }

    /// Appends a block to a queue's segments. Until a checkpoint lists it, it is gone after a restart, and its messages
    /// are those of the journal. Sequences of different blocks of a queue must not overlap.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn append_block(&self, queue: u64, block: &NewBlock<'_>) -> Result<BlockRef, StorageFailure> {
        lock(&self.queue(queue)).append(block)
    }

    /// The content of a block.
    ///
    /// # Errors
    /// It is damaged, gone, or can not be read.
    pub fn read_block(&self, queue: u64, block: &BlockRef) -> Result<Vec<u8>, ReadError> {
        lock(&self.queue(queue)).read(block)
    }

    /// The content of a block and of those that follow it, both by their sequences and in its segment, in one read: as many as
    /// fit in `bytes_max`, and the first in any case.
    ///
    /// # Errors
    /// The file can not be read. A damaged block does not keep the others from being read.
    pub fn read_ahead(
        &self,
        queue: u64,
        block: &BlockRef,
        bytes_max: usize,
    ) -> Result<Vec<ReadBlock>, ReadError> {
        lock(&self.queue(queue)).read_ahead(block, bytes_max)
    }

    /// The block that stands for a sequence, if there is one.
    ///
    /// # Errors
    /// The index of a segment can not be read.
    pub fn find_block(&self, queue: u64, sequence: u64) -> Result<Option<BlockRef>, ReadError> {
        self.known(queue).map_or(Ok(None), |segments| lock(&segments).find(sequence))
    }

    /// Notes that the disk can not be read: nothing is written any more, and who waits for the journal is told.
    pub fn fail(&self, error: &ReadError) -> StorageFailure {
        let (path, source) = match error {
            ReadError::Io { path, source } => {
                (path.as_path(), io::Error::new(source.kind(), source.to_string()))
            }
            ReadError::Damaged(damage) => (self.path(), io::Error::other(damage.to_string())),
        };
        let failure = StorageFailure::new("read", path, &source);
        let failed = self.dir.latch.run("read", path, || Err::<(), _>(source));
        self.journal.wake_all();
        failed.err().unwrap_or(failure)
    }

    /// The first block that stands for a sequence at or above `sequence`, if there is one.
    ///
    /// # Errors
    /// The index of a segment can not be read.
    pub fn next_block(&self, queue: u64, sequence: u64) -> Result<Option<BlockRef>, ReadError> {
        self.known(queue).map_or(Ok(None), |segments| lock(&segments).find_next(sequence))
    }

    /// Removes segments of a queue of which everything is settled, without a checkpoint: for a queue that is not to survive, and
    /// so never had one.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn discard(&self, queue: u64, settled: &RangeSet) -> Result<(), StorageFailure> {
        let Some(segments) = self.known(queue) else { return Ok(()) };
        let mut segments = lock(&segments);
        let dead = segments.drop_settled(settled);
        segments.keep_dead(dead);
        segments.remove_dead()
    }

    /// What a queue has in segments.
    pub fn segment_stats(&self, queue: u64) -> SegmentStats {
        self.known(queue).map(|segments| lock(&segments).stats()).unwrap_or_default()
    }

    /// Removes all files of a queue, whose deletion must be durable in the journal.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn delete_queue(&self, queue: u64) -> Result<(), StorageFailure> {
        let Some(segments) = self.known(queue) else { return Ok(()) };
        let deleted = self.remove_queue_files(&mut lock(&segments));
        lock(&self.queues).remove(&queue);
        deleted
    }

    /// What must be done before the oldest journal file can be given up; `None` while only one is in use.
    pub fn oldest(&self) -> Option<Reclaim> {
        self.journal.oldest()
    }

    /// Gives up the oldest journal file if nothing depends on it any more, and says whether it did.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn recycle_oldest(&self) -> Result<bool, StorageFailure> {
        self.remove_retired()?;
        if self.removed.swap(false, Ordering::AcqRel) {
            // A queue whose deletion is no longer told must not come back.
            self.dir.sync_dir(&self.dir.layout.queues_dir())?;
        }
        self.journal.recycle_oldest()
    }

    /// Removes the journal's files that are kept for their next use, but for the one that comes next: for when space is short.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn remove_spares(&self) -> Result<(), StorageFailure> {
        self.journal.remove_spares()
    }

    /// The sizes it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Bytes in journal files.
    pub fn journal_bytes(&self) -> u64 {
        self.journal.bytes_on_disk()
    }

    /// Bytes that can still be written to the file system.
    ///
    /// # Errors
    /// What the file system says.
    pub fn free_bytes(&self) -> io::Result<u64> {
        self.dir.disk.free_bytes(self.dir.layout.root())
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.layout.root()
    }

    pub(crate) fn dir(&self) -> &DataDir {
        &self.dir
    }

    fn known(&self, queue: u64) -> Option<SharedQueue> {
        lock(&self.queues).get(&queue).cloned()
    }

    fn queue(&self, queue: u64) -> SharedQueue {
        let new = || {
            let (dir, cache) = (self.dir.clone(), Arc::clone(&self.cache));
            Arc::new(Mutex::new(QueueSegments::new(dir, cache, self.options.segment_bytes, queue)))
        };
        Arc::clone(lock(&self.queues).entry(queue).or_insert_with(new))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
