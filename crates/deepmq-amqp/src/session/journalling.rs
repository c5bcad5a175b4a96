//! The persistent messages of a read on their way to the journal: each once, however many queues it went to.
//!
//! Owns the record. Must not know when it is written.

use crate::goal::Goal;
use deepmq_broker::durable::Durable;
use deepmq_broker::message::MessageRef;
use deepmq_broker::subscriber::Wakes;
use deepmq_model::queue::Position;
use deepmq_storage::{BatchBuilder, Durability, Lsn};

const ABSENT: u32 = u32::MAX;
/// With so much waiting to be written, publishers wait for the disk.
const PENDING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One record in the making.
#[derive(Debug, Default)]
pub(super) struct Journalling {
    batch: BatchBuilder,
    begun: bool,
    /// Where in the record a message of the read is, by its place in the read.
    indexes: Vec<u32>,
    /// The messages of one run.
    run: Vec<u32>,
    /// The strictest of the queues'.
    durability: Option<Durability>,
}

impl Journalling {
    /// Places the persistent ones of a queue's messages, of which the first is at `first`. Each message comes with its
    /// place in the read; without itself, it is not persistent. They arrived at `arrived`, in milliseconds since 1970.
    pub(super) fn place<'a>(
        &mut self,
        (queue, durability): (u64, Durability),
        first: Position,
        arrived: u64,
        messages: impl Iterator<Item = (u32, Option<MessageRef<'a>>)>,
    ) {
        let mut position = first.0;
        for (place, message) in messages {
            match message {
                Some(message) => {
                    self.durability = self.durability.max(Some(durability));
                    let index = self.index(place, arrived, &message);
                    self.run.push(index);
                }
                None => self.end_run(queue, position),
            }
            position += 1;
        }
        self.end_run(queue, position);
    }

    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.batch.begin();
        }
    }

    /// Takes the settlements too, so that all of it is durable or nothing.
    pub(super) fn take_settlements(&mut self, wakes: &mut Wakes, durable: &Durable) {
        let begun = self.begun;
        self.begin();
        if wakes.take_settlements(&mut self.batch) {
            self.durability = self.durability.max(Some(durable.default_durability()));
        } else {
            self.begun = begun;
        }
    }

    /// The run ends before `end`.
    fn end_run(&mut self, queue: u64, end: u64) {
        if !self.run.is_empty() {
            self.batch.place(queue, end - self.run.len() as u64, self.run.drain(..));
        }
    }

    /// Where a message is in the record, once it is there.
    fn index(&mut self, place: u32, arrived: u64, message: &MessageRef<'_>) -> u32 {
        self.begin();
        let place = place as usize;
        if self.indexes.len() <= place {
            self.indexes.resize(place + 1, ABSENT);
        }
        match self.indexes.get_mut(place) {
            Some(index) if *index == ABSENT => {
                *index = message.journal(arrived, &mut self.batch);
                *index
            }
            Some(index) => *index,
            None => ABSENT,
        }
    }

    /// Appends the record, if there is anything in it; returns what to wait for, and whether to wait before going on. A
    /// failed journal is waited for in vain, and says so then.
    pub(super) fn append(&mut self, durable: &Durable) -> Option<(Goal, bool)> {
        if !std::mem::take(&mut self.begun) {
            return None;
        }
        self.indexes.clear();
        let durability = self.durability.take().unwrap_or(Durability::Fsync);
        let appended = durable.append(&mut self.batch, durability);
        let (lsn, behind) = appended.map_or((Lsn(u64::MAX), true), |appended| {
            (appended.lsn, appended.pending_bytes > PENDING_BYTES_MAX)
        });
        Some((Goal { lsn, durability }, behind))
    }
}
