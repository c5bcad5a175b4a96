//! The journal: one sequence of records that makes everything durable.
//!
//! Owns the way of a record: appended to memory by any thread, written and synced by one, its mark moved, its waiters
//! woken. While one sync runs the next records gather, and that is the whole of group commit. Must not know queues'
//! semantics or what is in a message.

mod active;
mod files;
mod marks;
mod meter;
mod pages;
mod recover;
mod scan;
mod thread;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::data_dir::DataDir;
use crate::failure::StorageFailure;
use crate::record::{Draft, Lsn, RECORD_BYTES_MAX};
use crate::seam::Clock;
use crate::store::Options;
use active::Active;
use marks::Marks;
use meter::Meter;
use writer::Writer;

pub(crate) use files::JournalFile;
pub use files::{Blocker, Reclaim};
pub use meter::JournalLatencies;
pub(crate) use recover::{Location, Lost, Outline, Resume, outline, replay};
pub(crate) use scan::FileReader;
pub use thread::JournalThread;

/// How far a record must have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Handed to the operating system: survives the process, not the machine.
    Os,
    /// Synced: survives the machine.
    Fsync,
}

/// An append that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The record's number, to wait for.
    pub lsn: Lsn,
    /// Bytes in memory that wait to be written. Appending never blocks; a caller that goes on beyond its bound, goes on
    /// to take memory.
    pub pending_bytes: usize,
}

/// Why a record was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// A write or a sync failed before: nothing is written any more.
    #[error(transparent)]
    Failed(#[from] StorageFailure),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// The record is longer than a reader would accept.
    #[error("a record of {bytes} bytes is longer than {RECORD_BYTES_MAX}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
}

/// The journal of a data directory.
#[derive(Debug)]
pub struct Journal {
    dir: DataDir,
    active: Mutex<Active>,
    work: Condvar,
    marks: Marks,
    writer: Mutex<Writer>,
    meter: Meter,
    /// There is no space for what is to be written next, as of the last attempt.
    short: AtomicBool,
    /// Something waits in memory for that.
    stalled: AtomicBool,
}

impl Journal {
    pub(crate) fn new(
        dir: DataDir,
        clock: Arc<dyn Clock>,
        options: &Options,
        resume: Resume,
        files: Vec<JournalFile>,
    ) -> Self {
        let last = Lsn(resume.next_lsn - 1);
        let meter = Meter::new(clock);
        Self {
            active: Mutex::new(Active::new(dir.tag, options.journal_file_bytes, &resume, meter.clone())),
            work: Condvar::new(),
            marks: Marks::new(last),
            writer: Mutex::new(Writer::new(dir.clone(), meter.clone(), options.clone(), resume, files)),
            meter,
            short: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            dir,
        }
    }

    /// Takes a record to be written. Costs a copy and a short lock; [`Journal::poll`] tells when it is durable.
    ///
    /// # Errors
    /// See [`AppendError`]; the record is then not taken.
    pub fn append(&self, draft: Draft<'_>, durability: Durability) -> Result<Appended, AppendError> {
        if draft.size() > RECORD_BYTES_MAX {
            return Err(AppendError::TooLarge { bytes: draft.size() });
        }
        let mut active = self.active();
        self.dir.latch.check()?;
        if active.closed {
            return Err(AppendError::Closed);
        }
        let appended = active.push(draft, durability);
        let wake = std::mem::take(&mut active.writer_waits);
        drop(active);
        if wake {
            self.work.notify_all();
        }
        Ok(appended)
    }

    /// Asks for a sync of all that was appended so far, also of what did not ask for one.
    pub fn request_sync(&self) {
        self.active().sync = true;
        self.work.notify_all();
    }

    /// Bytes in memory that wait to be written.
    pub fn pending_bytes(&self) -> usize {
        self.active().pending_bytes()
    }

    /// The last record that has come so far.
    pub fn mark(&self, durability: Durability) -> Lsn {
        self.marks.mark(durability)
    }

    /// The last record that is synced.
    pub fn durable(&self) -> Lsn {
        self.mark(Durability::Fsync)
    }

    /// The last record that was appended.
    pub fn appended(&self) -> Lsn {
        Lsn(self.active().next_lsn - 1)
    }

    /// How long syncs and groups of records took so far.
    pub fn latencies(&self) -> JournalLatencies {
        self.meter.read()
    }

    /// The failure after which nothing is written any more.
    pub fn failure(&self) -> Option<&StorageFailure> {
        self.dir.latch.failure()
    }

    /// Whether a record has come so far. If not, `waker` is woken once it has, or once it never will. A record that was
    /// appended with less than is asked here comes so far only with a later one or by [`Journal::request_sync`].
    pub fn poll(&self, lsn: Lsn, durability: Durability, waker: &Waker) -> Poll<Result<(), StorageFailure>> {
        self.marks.poll(lsn, durability, waker, &self.dir.latch)
    }

    /// Blocks until a record has come so far. Something must be writing meanwhile, such as a [`JournalThread`].
    ///
    /// # Errors
    /// The failure because of which it never will.
    pub fn wait(&self, lsn: Lsn, durability: Durability) -> Result<(), StorageFailure> {
        self.marks.wait(lsn, durability, &self.dir.latch)
    }

    /// Writes all that was appended so far, syncs it if any of it asked for that, moves the marks and wakes who waits.
    /// Says whether there was anything to do. Without space for it, it is kept in memory and tried first by the next call:
    /// see [`Journal::is_short`].
    ///
    /// # Errors
    /// The failure after which nothing is written any more; who waits is told too.
    pub fn run_once(&self) -> Result<bool, StorageFailure> {
        let mut writer = self.writer();
        let rest = writer.take_rest();
        let Some(group) = rest.or_else(|| self.active().take(writer.spare())) else { return Ok(false) };
        let written = self.dir.latch.check().and_then(|()| writer.write(group, &self.marks));
        self.note_space(&writer);
        match written {
            Err(failure) if !failure.is_out_of_space() => {
                self.marks.wake_all();
                Err(failure)
            }
            Ok(()) | Err(_) => Ok(true),
        }
    }

    /// Whether there was no space when it was last needed: for what waits to be written, or for the file after this one. The
    /// thread that writes tries again by itself; appending goes on, and takes memory.
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Tries again to have the next file ready, if there was no space for it.
    ///
    /// # Errors
    /// The failure after which nothing is written any more. That there still is no space is none.
    pub fn make_room(&self) -> Result<(), StorageFailure> {
        if !self.is_short() {
            return Ok(());
        }
        let mut writer = self.writer();
        let prepared = writer.prepare_next();
        self.note_space(&writer);
        if prepared.is_err() {
            self.marks.wake_all();
        }
        prepared
    }

    fn note_space(&self, writer: &Writer) {
        self.short.store(writer.is_short(), Ordering::Relaxed);
        self.stalled.store(writer.stalled().is_some(), Ordering::Relaxed);
    }

    /// Writes all that is left and a mark that the journal was closed. Nothing can be appended after.
    ///
    /// # Errors
    /// The failure after which nothing is written any more; or that there is no space, and what was not durable before is
    /// lost unless closing is tried again.
    pub fn close(&self) -> Result<(), StorageFailure> {
        {
            let mut active = self.active();
            if active.ended {
                return self.dir.latch.check();
            }
            active.closed = true;
            active.sync = true;
        }
        self.work.notify_all();
        while self.run_once()? {
            if let Some(full) = self.writer().stalled() {
                return Err(full.clone());
            }
        }
        let (file, offset, lsn) = self.active().end();
        self.writer().write_closing_mark(file, offset, lsn)?;
        self.active().ended = true;
        Ok(())
    }

    /// Lets all who wait see that something has failed.
    pub(crate) fn wake_all(&self) {
        self.marks.wake_all();
    }

    /// What stands in the way of giving up the oldest file; `None` while there is but the one in use.
    pub(crate) fn oldest(&self) -> Option<Reclaim> {
        self.writer().files().oldest()
    }

    /// Notes that queues' states are kept elsewhere from `lsn` on, so that files up to `file` need not tell them.
    pub(crate) fn release(&self, queues: impl Iterator<Item = u64>, file: u64, lsn: Lsn) {
        self.writer().files().release(queues, file, lsn);
    }

    /// Notes that a snapshot tells all changes of the topology up to `lsn`.
    pub(crate) fn release_topology(&self, lsn: Lsn) {
        self.writer().files().release_topology(lsn);
    }

    /// Gives up the oldest file if nothing stands in the way any more.
    pub(crate) fn recycle_oldest(&self) -> Result<bool, StorageFailure> {
        let durable = self.durable();
        let mut writer = self.writer();
        let recycled = match writer.files().oldest_waits_for() {
            Some(lsn) if lsn <= durable => writer.recycle_oldest(),
            Some(_) => {
                drop(writer);
                self.request_sync();
                return Ok(false);
            }
            None => Ok(false),
        };
        self.note_space(&writer);
        drop(writer);
        if recycled.is_err() {
            self.marks.wake_all();
        }
        recycled
    }

    /// Removes the files that are kept for their next use, but for the one that comes next.
    pub(crate) fn remove_spares(&self) -> Result<(), StorageFailure> {
        let removed = self.writer().remove_spares();
        if removed.is_err() {
            self.marks.wake_all();
        }
        removed
    }

    /// The files in use and their bytes.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.writer().files().bytes()
    }

    fn active(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
