//! The thread that writes the journal.
//!
//! Owns its start and its end. Must not know what it writes.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Journal;
use super::active::Active;
use crate::failure::StorageFailure;

/// How often what there was no space for is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Writes a journal in a thread of its own until the journal is closed or fails. Dropping it closes the journal.
#[derive(Debug)]
pub struct JournalThread {
    journal: Arc<Journal>,
    thread: Option<JoinHandle<()>>,
}

impl JournalThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// What the operating system says if it can not have another thread.
    pub fn start(journal: Arc<Journal>) -> io::Result<Self> {
        let run = {
            let journal = Arc::clone(&journal);
            move || while journal.has_work() && journal.run_once().is_ok() {}
        };
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(run)?;
        Ok(Self { journal, thread: Some(thread) })
    }

    /// Closes the journal and waits for the thread to end.
    ///
    /// # Errors
    /// The failure because of which not all was written.
    pub fn stop(mut self) -> Result<(), StorageFailure> {
        self.end()
    }

    fn end(&mut self) -> Result<(), StorageFailure> {
        let closed = self.journal.close();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread runs nothing that panics");
        }
        closed
    }
}

impl Drop for JournalThread {
    fn drop(&mut self) {
        // The failure stays for all to see in the journal.
        let _ = self.end();
    }
}

impl Journal {
    /// Waits a while; `false` if it was closed meanwhile, for who closes it writes what is left.
    fn wait_for_space(&self, active: MutexGuard<'_, Active>) -> bool {
        let (active, _) =
            self.work.wait_timeout(active, RETRY_INTERVAL).unwrap_or_else(PoisonError::into_inner);
        !active.closed
    }

    /// Blocks until there is something to write; `false` once nothing will be any more.
    fn has_work(&self) -> bool {
        let mut active = self.active();
        loop {
            if active.closed || self.failure().is_some() {
                self.marks.wake_all();
                return false;
            }
            if self.stalled.load(Ordering::Relaxed) {
                return self.wait_for_space(active);
            }
            if !active.is_idle() {
                return true;
            }
            active.writer_waits = true;
            active = self.work.wait(active).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
