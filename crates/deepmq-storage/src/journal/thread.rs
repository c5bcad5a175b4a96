//! The thread that writes the journal.
//!
//! Owns its start and its end. Must not know what it writes.

use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use super::Journal;
use crate::failure::StorageFailure;

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
    /// Blocks until there is something to write; `false` once nothing will be any more.
    fn has_work(&self) -> bool {
        let mut active = self.active();
        loop {
            if active.closed || self.failure().is_some() {
                self.marks.wake_all();
                return false;
            }
            if !active.is_idle() {
                return true;
            }
            active.writer_waits = true;
            active = self.work.wait(active).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
