//! A workload, and the model of what must be found after it.
//!
//! Owns the promise: what was durable is there, what was durably settled is not, order is kept, nothing else appears.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::seam::SimDisk;
use crate::*;
use proptest::prelude::*;

pub(super) const ROOT: &str = "/data";

pub(super) fn tiny() -> Options {
    Options { journal_file_bytes: 1536, segment_bytes: 700, open_files_max: 2, ..Options::default() }
}

pub(super) fn seam(disk: &SimDisk) -> Seam {
    Seam { disk: Arc::new(disk.clone()), ..Seam::simulated(7) }
}

pub(super) fn open(disk: &SimDisk) -> Result<(Store, Recovered), OpenError> {
    Store::open(&seam(disk), Path::new(ROOT), tiny())
}

/// One thing a broker does.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Publishes messages to queues, all of them to each.
    Publish {
        queues: Vec<u64>,
        messages: u8,
        size: u16,
        durability: Durability,
    },
    /// Journals a settlement of the next message before the message.
    SettleFirst {
        queue: u64,
    },
    /// Settles every `every`-th of what is live, and counts a delivery of the rest.
    Settle {
        queue: u64,
        every: u8,
    },
    /// Settles everything below the next sequence.
    Purge {
        queue: u64,
    },
    /// Moves what is live to a block.
    PageOut {
        queue: u64,
    },
    /// Makes blocks and states durable.
    Checkpoint {
        queue: u64,
    },
    Topology {
        deletes: Option<u64>,
    },
    Snapshot,
    /// Writes what is pending.
    Run,
    /// Gives up the oldest journal file; messages are paged out, or placed again.
    Reclaim {
        carry: bool,
    },
    /// Stops in order or not, and starts again.
    Reopen {
        clean: bool,
    },
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let queue = || 1_u64..4;
    let durability = prop_oneof![1 => Just(Durability::Os), 4 => Just(Durability::Fsync)];
    prop_oneof![
        8 => (prop::collection::btree_set(queue(), 1..3), 1_u8..6, 0_u16..200, durability).prop_map(
            |(queues, messages, size, durability)| Step::Publish {
                queues: queues.into_iter().collect(), messages, size, durability,
            }),
        1 => queue().prop_map(|queue| Step::SettleFirst { queue }),
        4 => (queue(), 1_u8..4).prop_map(|(queue, every)| Step::Settle { queue, every }),
        1 => queue().prop_map(|queue| Step::Purge { queue }),
        2 => queue().prop_map(|queue| Step::PageOut { queue }),
        2 => queue().prop_map(|queue| Step::Checkpoint { queue }),
        2 => prop::option::weighted(0.2, queue()).prop_map(|deletes| Step::Topology { deletes }),
        1 => Just(Step::Snapshot),
        6 => Just(Step::Run),
        4 => any::<bool>().prop_map(|carry| Step::Reclaim { carry }),
        1 => any::<bool>().prop_map(|clean| Step::Reopen { clean }),
    ]
}

#[derive(Debug, Clone)]
struct Sent {
    /// The record that placed it, the one that settled it, and the last counts.
    placed: Lsn,
    settled: Option<Lsn>,
    counts: Vec<(Lsn, u32)>,
    size: u16,
}

#[derive(Debug, Clone, Default)]
struct Queue {
    next: u64,
    sent: BTreeMap<u64, Sent>,
    in_blocks: BTreeSet<u64>,
    deleted: Option<Lsn>,
}

impl Queue {
    fn live(&self) -> impl Iterator<Item = (u64, &Sent)> {
        self.sent.iter().filter(|(_, sent)| sent.settled.is_none()).map(|(sequence, sent)| (*sequence, sent))
    }

    fn state(&self, queue: u64) -> QueueState {
        let mut settled: RangeSet = std::iter::once(0..self.next).collect();
        if let Some((first, _)) = self.live().next() {
            settled = std::iter::once(0..first).collect();
            let mut from = first;
            for (sequence, _) in self.live() {
                settled.insert(from..sequence);
                from = sequence + 1;
            }
            settled.insert(from..self.next);
        }
        let counts = self.live();
        let counts = counts
            .filter_map(|(sequence, sent)| Some((sequence..sequence + 1, sent.counts.last()?.1)))
            .collect();
        QueueState { queue, next: self.next, settled, counts }
    }
}

/// What was promised so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    queues: BTreeMap<u64, Queue>,
    /// Every change of the topology.
    topology: Vec<Lsn>,
    /// All up to here was said to be durable.
    pub(super) durable: Lsn,
}

pub(super) fn content(queue: u64, sequence: u64, size: u16) -> Vec<u8> {
    let seed = queue.wrapping_mul(31).wrapping_add(sequence.wrapping_mul(7));
    (0..u64::from(size)).map(|at| u8::try_from((seed + at) % 251).unwrap()).collect()
}

/// One body for all queues of a fan-out: it can not tell the queue.
fn body(size: u16) -> Vec<u8> {
    content(0, u64::from(size), size)
}

/// A broker's way to use the store.
pub(super) struct Broker {
    disk: SimDisk,
    pub(super) store: Store,
    pub(super) model: Model,
    batch: BatchBuilder,
    /// How often the queue of each name was deleted: numbers are not used twice.
    lives: BTreeMap<u64, u64>,
}

/// The storage failed: the broker stops, unless there was but no space.
#[derive(Debug)]
pub(super) struct Stopped {
    full: bool,
}

impl<E: std::error::Error> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self { full: error.to_string().contains("os error 28") }
    }
}

/// Runs all steps on a disk until one fails, for want of space twice; returns what was promised by then.
pub(super) fn run(disk: &SimDisk, steps: &[Step]) -> (Model, Result<(), Stopped>) {
    let Ok((store, _)) = open(disk) else { return (Model::default(), Err(Stopped { full: false })) };
    let mut broker = Broker {
        disk: disk.clone(),
        store,
        model: Model::default(),
        batch: BatchBuilder::new(),
        lives: BTreeMap::new(),
    };
    let outcome = steps.iter().try_for_each(|step| broker.step(step));
    broker.note_durable();
    (broker.model, outcome)
}

impl Broker {
    fn note_durable(&mut self) {
        self.model.durable = self.model.durable.max(self.store.journal().durable());
    }

    fn id(&self, name: u64) -> u64 {
        name + 10 * self.lives.get(&name).copied().unwrap_or(0)
    }

    fn queue(&mut self, queue: u64) -> &mut Queue {
        self.model.queues.entry(queue).or_default()
    }

    fn step(&mut self, step: &Step) -> Result<(), Stopped> {
        let mut outcome = self.try_step(step);
        if let Err(Stopped { full: true }) = outcome {
            outcome = self.try_step(step);
        }
        self.note_durable();
        outcome
    }

    fn try_step(&mut self, step: &Step) -> Result<(), Stopped> {
        match step {
            Step::Publish { queues, messages, size, durability } => {
                let ids: Vec<_> = queues.iter().map(|name| self.id(*name)).collect();
                self.publish(&ids, *messages, *size, *durability)
            }
            Step::SettleFirst { queue } => self.settle_first(self.id(*queue)),
            Step::Settle { queue, every } => self.settle(self.id(*queue), *every),
            Step::Purge { queue } => self.purge(self.id(*queue)),
            Step::PageOut { queue } => self.page_out(self.id(*queue)),
            Step::Checkpoint { queue } => {
                let id = self.id(*queue);
                let state = self.queue(id).state(id);
                self.store.checkpoint(&[state], None)?;
                Ok(())
            }
            Step::Topology { deletes } => self.topology(*deletes),
            Step::Snapshot => self.snapshot(),
            Step::Run => self.write(),
            Step::Reclaim { carry } => self.reclaim(*carry),
            Step::Reopen { clean } => self.reopen(*clean),
        }
    }

    /// Writes what was appended, and again what there was no space for.
    fn write(&self) -> Result<(), Stopped> {
        while self.store.journal().run_once()? {}
        Ok(())
    }

    fn append(
        &mut self,
        durability: Durability,
        build: impl FnOnce(&mut BatchBuilder),
    ) -> Result<Lsn, Stopped> {
        self.batch.begin();
        build(&mut self.batch);
        Ok(self.store.journal().append(self.batch.finish(), durability)?.lsn)
    }

    fn publish(
        &mut self,
        queues: &[u64],
        messages: u8,
        size: u16,
        durability: Durability,
    ) -> Result<(), Stopped> {
        let places: Vec<_> = queues.iter().map(|&queue| (queue, self.queue(queue).next)).collect();
        let placed = self.append(durability, |batch| {
            let indexes: Vec<_> =
                (0..messages).map(|at| batch.message(at.into(), 5, [b"to", b"", &body(size)])).collect();
            places.iter().for_each(|&(queue, first)| batch.place(queue, first, indexes.iter().copied()));
        })?;
        for (queue, first) in places {
            let queue = self.queue(queue);
            queue.next = first + u64::from(messages);
            let sent = Sent { placed, settled: None, counts: Vec::new(), size };
            queue.sent.extend((first..queue.next).map(|sequence| (sequence, sent.clone())));
        }
        Ok(())
    }

    fn settle_first(&mut self, id: u64) -> Result<(), Stopped> {
        let sequence = self.queue(id).next;
        let lsn = self
            .append(Durability::Fsync, |batch| batch.settle(id, std::iter::once(sequence..sequence + 1)))?;
        self.publish(&[id], 1, 9, Durability::Fsync)?;
        self.queue(id).sent.get_mut(&sequence).into_iter().for_each(|sent| sent.settled = Some(lsn));
        Ok(())
    }

    fn purge(&mut self, id: u64) -> Result<(), Stopped> {
        let next = self.queue(id).next;
        let lsn = self.append(Durability::Fsync, |batch| batch.settle(id, std::iter::once(0..next)))?;
        for sent in self.queue(id).sent.values_mut() {
            sent.settled.get_or_insert(lsn);
        }
        Ok(())
    }

    fn settle(&mut self, queue: u64, every: u8) -> Result<(), Stopped> {
        let live: Vec<u64> = self.queue(queue).live().map(|(sequence, _)| sequence).collect();
        let (gone, kept): (Vec<_>, Vec<_>) =
            live.iter().partition(|sequence| *sequence % u64::from(every) == 0);
        let count = self.model.durable.0.try_into().unwrap();
        let lsn = self.append(Durability::Fsync, |batch| {
            batch.settle(queue, gone.iter().map(|&sequence| sequence..sequence + 1));
            kept.iter().for_each(|&sequence| batch.count(queue, sequence, count));
        })?;
        for (sequence, sent) in &mut self.queue(queue).sent {
            if gone.contains(sequence) {
                sent.settled = Some(lsn);
            } else if kept.contains(sequence) {
                sent.counts.push((lsn, count));
            }
        }
        Ok(())
    }

    fn page_out(&mut self, id: u64) -> Result<(), Stopped> {
        let queue = self.queue(id).clone();
        let out: Vec<_> = queue.live().filter(|(sequence, _)| !queue.in_blocks.contains(sequence)).collect();
        for run in out.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
            let (Some((first, _)), Some((last, _))) = (run.first(), run.last()) else { continue };
            let mut bytes = Vec::new();
            for (sequence, sent) in run {
                bytes.extend(sequence.to_le_bytes());
                bytes.extend(sent.size.to_le_bytes());
                bytes.extend(body(sent.size));
            }
            let block = NewBlock {
                sequences: *first..last + 1,
                messages: u32::try_from(run.len()).unwrap(),
                times: (5, 5),
                bytes: &[&bytes[..3], &bytes[3..]],
            };
            self.store.append_block(id, &block)?;
            self.queue(id).in_blocks.extend(run.iter().map(|(sequence, _)| sequence));
        }
        Ok(())
    }

    fn topology(&mut self, deletes: Option<u64>) -> Result<(), Stopped> {
        let number = self.model.topology.len() as u64;
        let deleted: Vec<u64> = deletes.into_iter().map(|name| self.id(name)).collect();
        let lsn = self.store.append_topology(&deleted, &number.to_le_bytes())?.lsn;
        self.model.topology.push(lsn);
        for id in deleted {
            self.queue(id).deleted = Some(lsn);
            *self.lives.entry(id % 10).or_default() += 1;
            self.write()?;
            self.note_durable();
            self.store.delete_queue(id)?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<(), Stopped> {
        let Some(last) = self.model.topology.last().copied() else { return Ok(()) };
        self.write()?;
        self.store.write_snapshot(last, &(self.model.topology.len() as u64).to_le_bytes())?;
        Ok(())
    }

    fn reclaim(&mut self, carry: bool) -> Result<(), Stopped> {
        self.write()?;
        let Some(reclaim) = self.store.oldest() else { return Ok(()) };
        if reclaim.topology.is_some() {
            self.snapshot()?;
        }
        let mut states = Vec::new();
        for blocker in &reclaim.queues {
            if carry {
                self.carry(blocker.queue, blocker.placed_end)?;
            } else {
                self.page_out(blocker.queue)?;
            }
            states.push(self.queue(blocker.queue).state(blocker.queue));
        }
        self.store.checkpoint(&states, Some(reclaim.file))?;
        let at_once = self.store.recycle_oldest()?;
        self.write()?;
        self.note_durable();
        assert!(at_once || self.store.recycle_oldest()?, "nothing stands in the way any more");
        Ok(())
    }

    fn carry(&mut self, id: u64, end: u64) -> Result<(), Stopped> {
        let queue = self.queue(id).clone();
        let kept =
            queue.live().filter(|(sequence, _)| *sequence < end && !queue.in_blocks.contains(sequence));
        let kept: Vec<_> = kept.collect();
        self.append(Durability::Fsync, |batch| {
            for (sequence, sent) in kept {
                let index = batch.message(0, 5, [b"to", b"", &body(sent.size)]);
                batch.place(id, sequence, [index]);
            }
        })?;
        Ok(())
    }

    fn reopen(&mut self, clean: bool) -> Result<(), Stopped> {
        if clean {
            self.store.journal().close()?;
        } else {
            self.write()?;
        }
        self.note_durable();
        // A process that ends leaves everything to the next one; its lock goes with it.
        let other = Store::open(&seam(&SimDisk::new()), Path::new(ROOT), tiny())?.0;
        drop(std::mem::replace(&mut self.store, other));
        let (store, recovered) = open(&self.disk)?;
        assert!(recovered.clean || !clean);
        self.store = store;
        for (id, queue) in &mut self.model.queues {
            let found = recovered.queues.get(id).map(|found| found.in_segments.clone()).unwrap_or_default();
            queue.in_blocks.retain(|sequence| found.contains(*sequence));
        }
        self.model.check(&self.store, &recovered, "after a restart");
        Ok(())
    }
}

/// Every message that is there: queue and sequence, with its body.
pub(super) fn present(
    store: &Store,
    recovered: &Recovered,
    mut damaged: impl FnMut(ReadError),
) -> BTreeMap<(u64, u64), Vec<u8>> {
    let mut present = BTreeMap::new();
    let mut last = BTreeMap::new();
    recovered
        .replay(store, |queue, sequence, message| {
            assert!(last.insert(queue, sequence).is_none_or(|before| before < sequence), "order of {queue}");
            assert_eq!(message.address, b"to");
            assert!(present.insert((queue, sequence), message.body.to_vec()).is_none());
        })
        .unwrap();
    for (&queue, found) in &recovered.queues {
        let replayed: RangeSet = present
            .range((queue, 0)..(queue, u64::MAX))
            .map(|((_, sequence), _)| *sequence..sequence + 1)
            .collect();
        assert_eq!(replayed, found.in_journal, "what is said to be in the journal is handed over");
        let mut from = 0;
        while let Some(block) = store.next_block(queue, from).unwrap() {
            from = block.sequences.end;
            let bytes = store.read_block(queue, &block).unwrap_or_else(|error| {
                damaged(error);
                Vec::new()
            });
            let mut input = bytes::Input::new(&bytes);
            while let (Some(sequence), Some(size)) = (input.u64(), input.u16()) {
                let body = input.take(size.into()).unwrap();
                if !found.state.settled.contains(sequence) {
                    assert!(present.insert((queue, sequence), body.to_vec()).is_none(), "in one place only");
                }
            }
        }
    }
    present
}

impl Model {
    /// Compares what was found with what was promised.
    pub(super) fn check(&self, store: &Store, recovered: &Recovered, when: &str) {
        assert_eq!(recovered.damage, [], "{when}");
        let present = present(store, recovered, |error| panic!("{when}: {error}"));
        for (&(id, sequence), body_found) in &present {
            let sent = self.queues.get(&id).and_then(|queue| queue.sent.get(&sequence));
            let Some(sent) = sent else { panic!("{when}: {id}/{sequence} was never sent") };
            let deleted = self.queues.get(&id).and_then(|queue| queue.deleted);
            assert!(deleted.is_none_or(|lsn| lsn > self.durable), "{when}: queue {id} is back");
            assert_eq!(*body_found, body(sent.size), "{when}: {id}/{sequence}");
            let settled = sent.settled.is_some_and(|lsn| lsn <= self.durable);
            assert!(!settled, "{when}: {id}/{sequence} is back: {sent:?}, durable {:?}", self.durable);
        }
        for (&id, queue) in self.queues.iter().filter(|(_, queue)| queue.deleted.is_none()) {
            let found = recovered.queues.get(&id).cloned().unwrap_or_default();
            for (sequence, sent) in queue.live().filter(|(_, sent)| sent.placed <= self.durable) {
                let lost = format!("{when}: {id}/{sequence} is lost: {sent:?}, durable {:?}", self.durable);
                assert!(present.contains_key(&(id, sequence)), "{lost}");
                assert!(found.state.next > sequence, "{when}: {id}/{sequence} would be used twice");
                let counted =
                    sent.counts.iter().rfind(|(lsn, _)| *lsn <= self.durable).map(|(_, count)| *count);
                // A range may say that it was handed out, and an entry of it how often.
                let told = found.state.counts.iter().filter(|(at, _)| at.contains(&sequence));
                let known = told.map(|(_, count)| *count).max();
                assert!(known >= counted, "{when}: {id}/{sequence} was counted {counted:?}, not {known:?}");
            }
        }
        self.check_topology(recovered, when);
    }

    fn check_topology(&self, recovered: &Recovered, when: &str) {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let told = recovered.snapshot.as_deref().map_or(0, number);
        let changes: Vec<_> = recovered.topology.iter().map(|(_, bytes)| number(bytes)).collect();
        let all: Vec<_> = (told..told + changes.len() as u64).collect();
        assert_eq!(changes, all, "{when}: changes follow the snapshot in order");
        let durable = self.topology.iter().filter(|lsn| **lsn <= self.durable).count() as u64;
        let known = told + changes.len() as u64;
        assert!(
            (durable..=self.topology.len() as u64).contains(&known),
            "{when}: {known} changes of {durable}"
        );
    }
}
