//! Which queues a journal file still speaks for.
//!
//! Owns the table of files, oldest first, and the conditions on which the oldest may be given up. Must not touch a disk.

use std::collections::{HashMap, VecDeque};

use crate::record::{Content, Lsn};

/// What must be done before the oldest journal file can be given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaim {
    /// The file's number, for [`crate::Store::checkpoint`].
    pub file: u64,
    /// The queues it speaks for.
    pub queues: Vec<Blocker>,
    /// It holds a change of the topology of this number that no snapshot tells.
    pub topology: Option<Lsn>,
}

/// A queue a journal file speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blocker {
    /// The queue.
    pub queue: u64,
    /// Messages below this sequence were placed in the file: those still needed must be in segments, or be placed
    /// again. Zero if it only settles.
    pub placed_end: u64,
}

/// A journal file that holds records.
#[derive(Debug)]
pub(crate) struct JournalFile {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    queues: HashMap<u64, Touch>,
    topology: Option<Lsn>,
}

#[derive(Debug, Default)]
struct Touch {
    placed_end: u64,
    /// From this record on the queue's state is kept elsewhere.
    released: Option<Lsn>,
}

impl JournalFile {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, bytes: 0, queues: HashMap::new(), topology: None }
    }

    /// Takes note of a record in the file; returns the queues it deletes.
    pub(crate) fn note(&mut self, lsn: Lsn, content: &Content<'_>) -> Vec<u64> {
        match content {
            Content::Mark(_) => {}
            Content::Batch(batch) => {
                for placement in batch.placements() {
                    let touch = self.touch(placement.queue);
                    touch.placed_end = touch.placed_end.max(placement.sequences().end);
                }
                for settlement in batch.settlements() {
                    self.touch(settlement.queue);
                }
                for (queue, ..) in batch.counts() {
                    self.touch(queue);
                }
            }
            Content::State(state) => {
                for state in &state.queues {
                    self.touch(state.queue);
                }
            }
            Content::Topology(topology) => {
                self.topology = Some(lsn);
                return topology.deleted.clone();
            }
        }
        Vec::new()
    }

    fn touch(&mut self, queue: u64) -> &mut Touch {
        let touch = self.queues.entry(queue).or_default();
        touch.released = None;
        touch
    }

    /// The queue is deleted, durably: the file need not speak for it.
    pub(super) fn forget(&mut self, queue: u64) {
        self.queues.remove(&queue);
    }

    fn release(&mut self, queue: u64, lsn: Lsn) {
        if let Some(touch) = self.queues.get_mut(&queue)
            && touch.released.is_none()
        {
            touch.released = Some(lsn);
        }
    }
}

/// The files that hold records.
#[derive(Debug, Default)]
pub(super) struct Files {
    list: VecDeque<JournalFile>,
}

impl Files {
    pub(super) fn new(files: Vec<JournalFile>) -> Self {
        Self { list: files.into() }
    }

    pub(super) fn add(&mut self, number: u64) {
        self.list.push_back(JournalFile::new(number));
    }

    pub(super) fn last(&mut self) -> Option<&mut JournalFile> {
        self.list.back_mut()
    }

    /// Takes note of a record in the last file.
    pub(super) fn note(&mut self, lsn: Lsn, content: &Content<'_>) {
        let deleted = self.last().map(|file| file.note(lsn, content)).unwrap_or_default();
        self.release(deleted.into_iter(), u64::MAX, lsn);
    }

    pub(super) fn oldest(&self) -> Option<Reclaim> {
        let file = self.list.front().filter(|_| self.list.len() > 1)?;
        let blocks = |(&queue, touch): (&u64, &Touch)| {
            touch.released.is_none().then_some(Blocker { queue, placed_end: touch.placed_end })
        };
        let mut queues: Vec<_> = file.queues.iter().filter_map(blocks).collect();
        queues.sort_unstable();
        Some(Reclaim { file: file.number, queues, topology: file.topology })
    }

    pub(super) fn release(&mut self, queues: impl Iterator<Item = u64>, file: u64, lsn: Lsn) {
        for queue in queues {
            self.list.iter_mut().filter(|held| held.number <= file).for_each(|held| held.release(queue, lsn));
        }
    }

    pub(super) fn release_topology(&mut self, lsn: Lsn) {
        self.list.iter_mut().for_each(|file| file.topology = file.topology.filter(|last| *last > lsn));
    }

    /// The record that must be durable before the oldest file can be given up; `None` while something else stands in
    /// the way.
    pub(super) fn oldest_waits_for(&self) -> Option<Lsn> {
        let oldest = self.list.front().filter(|file| self.list.len() > 1 && file.topology.is_none())?;
        oldest.queues.values().try_fold(Lsn(0), |last, touch| Some(last.max(touch.released?)))
    }

    pub(super) fn remove_oldest(&mut self) -> Option<JournalFile> {
        self.list.pop_front()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.list.iter().map(|file| file.bytes).sum()
    }
}
