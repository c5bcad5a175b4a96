//! Checkpoints: queues' states on disk, so that older records and files can go.
//!
//! Owns the choice of the place: beside the segments of a queue that has some, in the journal for all others. Must not
//! know why a checkpoint is due.

use std::sync::atomic::Ordering;

use super::{Store, lock};
use crate::checkpoint::encode;
use crate::failure::StorageFailure;
use crate::journal::{AppendError, Durability};
use crate::record::{Lsn, QueueState, draft_state};
use crate::segment::QueueSegments;

/// States go into one record until they take so much.
const RECORD_BYTES: usize = 256 * 1024;

impl Store {
    /// Makes the states of queues durable, with all blocks that were appended for them. Segments of which everything is
    /// settled are removed.
    ///
    /// `frees` is [`crate::Reclaim::file`]: the caller says that these states, taken after that file was asked for, know
    /// all that it and the files before it say of these queues, and that of the messages placed there those still needed
    /// are in blocks or were placed again.
    ///
    /// The record that must be durable before files can go, if any, is returned; waiting for it is not needed.
    ///
    /// # Errors
    /// The journal did not take the states, or a write failed.
    pub fn checkpoint(&self, states: &[QueueState], frees: Option<u64>) -> Result<Option<Lsn>, AppendError> {
        self.remove_retired()?;
        let (mut journalled, mut lsn) = (Vec::new(), None);
        let mut bytes = 0;
        for state in states {
            if self.checkpoint_segments(state)? {
                // What was placed again must be durable before its first place is given up.
                self.release(std::slice::from_ref(state), frees, self.journal.appended());
                continue;
            }
            bytes += 24 + state.settled.iter().len() * 16 + state.counts.len() * 20;
            journalled.push(state.clone());
            if bytes >= RECORD_BYTES {
                lsn = Some(self.append_states(&journalled, frees)?);
                (journalled, bytes) = (Vec::new(), 0);
            }
        }
        if !journalled.is_empty() {
            lsn = Some(self.append_states(&journalled, frees)?);
        }
        Ok(lsn)
    }

    fn append_states(&self, states: &[QueueState], frees: Option<u64>) -> Result<Lsn, AppendError> {
        let mut buffer = Vec::new();
        let lsn = self.journal.append(draft_state(&mut buffer, states), Durability::Fsync)?.lsn;
        self.release(states, frees, lsn);
        let has_files =
            |state: &&QueueState| self.known(state.queue).is_some_and(|queue| lock(&queue).has_dir);
        let retired = states.iter().filter(has_files).map(|state| (lsn, state.queue));
        lock(&self.retired).extend(retired);
        Ok(lsn)
    }

    fn release(&self, states: &[QueueState], frees: Option<u64>, lsn: Lsn) {
        if let Some(file) = frees {
            self.journal.release(states.iter().map(|state| state.queue), file, lsn);
        }
    }

    /// Writes a checkpoint if the queue has segments that are still needed.
    fn checkpoint_segments(&self, state: &QueueState) -> Result<bool, StorageFailure> {
        let Some(queue) = self.known(state.queue) else { return Ok(false) };
        let mut queue = lock(&queue);
        let dead = queue.drop_settled(&state.settled);
        queue.keep_dead(dead);
        if queue.segments.is_empty() {
            return Ok(false);
        }
        queue.sync()?;
        let bytes = encode(self.dir.tag, state, queue.segments.values());
        self.dir.replace(&self.dir.layout.checkpoint(state.queue), &[&bytes])?;
        queue.remove_dead()?;
        queue.punch_holes(&state.settled).map_err(|error| self.fail(&error))?;
        Ok(true)
    }

    /// Removes the files of queues that have nothing in segments any more, as far as that is durable. Any checkpoint does it
    /// too.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn remove_retired(&self) -> Result<(), StorageFailure> {
        let durable = self.journal.durable();
        let ready: Vec<_> = lock(&self.retired).extract_if(.., |(lsn, _)| *lsn <= durable).collect();
        for (_, queue) in ready {
            if let Some(queue) = self.known(queue) {
                let mut queue = lock(&queue);
                if queue.segments.is_empty() {
                    self.remove_queue_files(&mut queue)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a queue's directory.
    pub(super) fn remove_queue_files(&self, queue: &mut QueueSegments) -> Result<(), StorageFailure> {
        if !queue.has_dir {
            return Ok(());
        }
        queue.drop_all();
        self.dir.remove_queue(queue.queue())?;
        queue.has_dir = false;
        self.removed.store(true, Ordering::Release);
        Ok(())
    }
}
