//! The messages in the journal, handed over one by one.
//!
//! Owns their order: that of sequences within each queue, whatever order the records are in. Memory holds one record, and
//! copies of what came too early. Must not know who takes them.

use std::collections::BTreeMap;
use std::io;

use super::{Placed, Recovered};
use crate::Store;
use crate::data_dir::DataDir;
use crate::journal::{Location, replay};
use crate::record::{Batch, Content, Message, Placement};

/// Why the replay did not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("can not read the journal: {source}")]
pub struct ReplayError {
    /// What the file system said.
    #[from]
    pub(crate) source: io::Error,
}

impl Recovered {
    /// Hands over every message that is in [`super::RecoveredQueue::in_journal`] of some queue, with queue and
    /// sequence; those of one queue in the order of sequences. To be called before anything is appended to the journal
    /// or given up.
    ///
    /// # Errors
    /// The journal can not be read any more.
    pub fn replay(&self, store: &Store, take: impl FnMut(u64, u64, Message<'_>)) -> Result<(), ReplayError> {
        self.replay_from(store.dir(), take)
    }

    pub(crate) fn replay_from(
        &self,
        dir: &DataDir,
        mut take: impl FnMut(u64, u64, Message<'_>),
    ) -> Result<(), ReplayError> {
        let queue = |(&queue, placed): (&u64, &Vec<Placed>)| {
            (queue, Queue { placed: placed.clone(), done: 0, early: BTreeMap::new() })
        };
        let mut state = Replay { recovered: self, queues: self.placed.iter().map(queue).collect() };
        replay(dir, &self.outline, |at, _, content| {
            if let Content::Batch(batch) = content {
                state.batch(at, batch, &mut take);
            }
        })?;
        Ok(())
    }
}

struct Replay<'r> {
    recovered: &'r Recovered,
    queues: BTreeMap<u64, Queue>,
}

struct Queue {
    placed: Vec<Placed>,
    /// How many of `placed` were handed over.
    done: usize,
    /// What came before its turn, by its index in `placed`.
    early: BTreeMap<usize, Vec<Copied>>,
}

struct Copied {
    sequence: u64,
    flags: u16,
    timestamp: u64,
    parts: [Vec<u8>; 3],
}

impl Replay<'_> {
    fn batch(&mut self, at: Location, batch: &Batch<'_>, take: &mut impl FnMut(u64, u64, Message<'_>)) {
        let mut messages: Option<Vec<Message<'_>>> = None;
        for (index, placement) in (0..).zip(batch.placements()) {
            let Some(queue) = self.queues.get_mut(&placement.queue) else { continue };
            let Some(turn) = queue.turn(&placement, at, index) else { continue };
            let messages = messages.get_or_insert_with(|| batch.messages().collect());
            let Some(found) = self.recovered.queues.get(&placement.queue) else { continue };
            let placed = queue.placed.get(turn).map(|placed| placed.sequences.clone()).unwrap_or_default();
            let needed = (placement.first..).zip(placement.indexes()).filter_map(|(sequence, index)| {
                let needed = placed.contains(&sequence) && found.in_journal.contains(sequence);
                messages.get(index as usize).filter(|_| needed).map(|message| (sequence, *message))
            });
            if turn == queue.done {
                needed.for_each(|(sequence, message)| take(placement.queue, sequence, message));
                queue.done += 1;
                queue.hand_over_early(placement.queue, take);
            } else {
                queue.early.insert(turn, needed.map(Copied::new).collect());
            }
        }
    }
}

impl Queue {
    /// Which of the placements that count this is.
    fn turn(&self, placement: &Placement<'_>, at: Location, index: u32) -> Option<usize> {
        let sequences = placement.sequences();
        let from = self.placed.partition_point(|placed| placed.sequences.start < sequences.start);
        let near = self.placed.iter().enumerate().skip(from);
        near.take_while(|(_, placed)| placed.sequences.start < sequences.end)
            .find(|(_, placed)| placed.at == at && placed.index == index)
            .map(|(turn, _)| turn)
    }

    fn hand_over_early(&mut self, queue: u64, take: &mut impl FnMut(u64, u64, Message<'_>)) {
        while let Some(messages) = self.early.remove(&self.done) {
            messages.iter().for_each(|copied| take(queue, copied.sequence, copied.message()));
            self.done += 1;
        }
    }
}

impl Copied {
    fn new((sequence, message): (u64, Message<'_>)) -> Self {
        let parts = [message.address, message.properties, message.body].map(<[u8]>::to_vec);
        Self { sequence, flags: message.flags, timestamp: message.timestamp, parts }
    }

    fn message(&self) -> Message<'_> {
        let [address, properties, body] = &self.parts;
        Message { flags: self.flags, timestamp: self.timestamp, address, properties, body }
    }
}
