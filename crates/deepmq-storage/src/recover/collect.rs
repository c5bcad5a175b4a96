//! The sum of journal and checkpoints.
//!
//! Owns which messages of the journal are still needed, as ranges of sequences per queue. Must not keep a message.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use super::queues::Queues;
use super::{Damage, Found, LostMessages, Recovered, RecoveredQueue, read_queues};
use crate::RangeSet;
use crate::data_dir::DataDir;
use crate::journal::{Location, Lost, outline, replay};
use crate::record::{Batch, Content, Lsn, QueueState};
use crate::snapshot::{self, Snapshot};

/// A placement in the journal that still counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) sequences: Range<u64>,
    pub(crate) at: Location,
    /// Which placement of its record.
    pub(crate) index: u32,
}

#[derive(Debug, Default)]
struct Sum {
    queues: BTreeMap<u64, QueueSum>,
    deleted: BTreeSet<u64>,
    topology: Vec<(Lsn, Vec<u8>)>,
    /// Changes up to here are in the snapshot.
    covered: Lsn,
}

#[derive(Debug, Default)]
struct QueueSum {
    next: u64,
    settled: RangeSet,
    counts: BTreeMap<u64, u32>,
    /// Handed out, it is not known how often.
    handed_out: RangeSet,
    placed: Vec<Placed>,
}

/// Reads all there is to know. Segments are not opened, so it takes no longer for more of them.
pub(crate) fn find(dir: &DataDir) -> io::Result<Found> {
    let snapshot = snapshot::read(dir)?;
    let mut queues = read_queues(dir)?;
    let mut outline = outline(dir)?;
    let mut sum = Sum::default();
    let mut damage = std::mem::take(&mut queues.damage);
    let snapshot = match snapshot {
        Snapshot::Known { covers, bytes } => {
            sum.covered = covers;
            // Numbers are not used twice, whatever became of the journal.
            outline.next_lsn = outline.next_lsn.max(covers.0 + 1);
            Some(bytes)
        }
        Snapshot::Damaged => {
            damage.push(Damage::Snapshot { file: dir.layout.snapshot() });
            None
        }
        Snapshot::Missing => None,
    };
    queues.states.drain(..).for_each(|state| sum.state(state));
    let files = replay(dir, &outline, |at, lsn, content| sum.see(at, lsn, content))?;
    damage.extend(outline.lost.iter().map(|lost| Damage::Journal {
        file: dir.layout.journal(lost.file),
        bytes: lost.bytes.clone(),
        records: lost.lsns.clone(),
        lost: sum.lost_messages(lost, &queues),
    }));
    damage.extend(sum.missing(dir, &queues));
    let mut recovered = Recovered {
        snapshot,
        topology: std::mem::take(&mut sum.topology),
        queues: BTreeMap::new(),
        damage,
        torn_bytes: outline.torn_bytes,
        clean: outline.closed || (outline.tail.is_none() && !outline.is_cut()),
        placed: BTreeMap::new(),
        outline,
    };
    for queue in &sum.deleted {
        sum.queues.remove(queue);
        if queues.segments.remove(queue).is_some() {
            queues.orphans.retain(|(owner, _)| owner != queue);
            queues.orphans.insert((*queue, None));
        }
    }
    for (queue, sum) in sum.queues {
        let mut in_segments = RangeSet::new();
        queues.segments.get(&queue).into_iter().flatten().for_each(|s| in_segments.extend(&s.sequences));
        let (found, placed) = sum.conclude(queue, in_segments);
        recovered.queues.insert(queue, found);
        if !placed.is_empty() {
            recovered.placed.insert(queue, placed);
        }
    }
    Ok(Found { recovered, files, segments: queues.segments, orphans: queues.orphans })
}

impl Sum {
    fn see(&mut self, at: Location, lsn: Lsn, content: &Content<'_>) {
        match content {
            Content::Mark(_) => {}
            Content::Batch(batch) => self.batch(at, batch),
            Content::State(state) => state.queues.iter().for_each(|state| self.state(state.clone())),
            Content::Topology(topology) => {
                self.deleted.extend(&topology.deleted);
                if lsn > self.covered {
                    self.topology.push((lsn, topology.bytes.to_vec()));
                }
            }
        }
    }

    fn queue(&mut self, queue: u64) -> &mut QueueSum {
        self.queues.entry(queue).or_default()
    }

    fn batch(&mut self, at: Location, batch: &Batch<'_>) {
        for (index, placement) in (0..).zip(batch.placements()) {
            let queue = self.queue(placement.queue);
            let sequences = placement.sequences();
            queue.next = queue.next.max(sequences.end);
            queue.placed.push(Placed { sequences, at, index });
        }
        for settlement in batch.settlements() {
            let queue = self.queue(settlement.queue);
            for range in settlement.ranges() {
                queue.next = queue.next.max(range.end);
                queue.settled.insert(range);
            }
        }
        for (queue, sequence, count) in batch.counts() {
            self.queue(queue).counted(sequence, count);
        }
    }

    fn state(&mut self, state: QueueState) {
        let queue = self.queue(state.queue);
        queue.next = queue.next.max(state.next).max(state.settled.end());
        queue.settled.extend(&state.settled);
        for (sequences, count) in state.counts {
            match count {
                0 => queue.handed_out.insert(sequences),
                _ => sequences.for_each(|sequence| queue.counted(sequence, count)),
            }
        }
    }

    /// The messages that lost records may have told.
    fn lost_messages(&self, lost: &Lost, queues: &Queues) -> Vec<LostMessages> {
        if lost.lsns.is_empty() {
            return Vec::new();
        }
        let living = self.queues.iter().filter(|(queue, _)| !self.deleted.contains(queue));
        let of_queue = |(&queue, sum): (&u64, &QueueSum)| {
            let segments = queues.segments.get(&queue).into_iter().flatten();
            let sequences = sum.unknown_around((lost.file, lost.bytes.start), segments.map(|s| &s.sequences));
            (!sequences.is_empty()).then_some(LostMessages { queue, sequences })
        };
        living.filter_map(of_queue).collect()
    }

    /// Segments that are missing although something in them is needed.
    fn missing(&self, dir: &DataDir, queues: &Queues) -> Vec<Damage> {
        let missing = queues.missing.iter().filter_map(|(queue, segment)| {
            let settled = self.queues.get(queue).map(|sum| &sum.settled)?;
            let needed = segment.sequences.iter().flat_map(|range| settled.gaps(range).collect::<Vec<_>>());
            let sequences: Vec<_> = needed.collect();
            let file = dir.layout.segment(*queue, segment.number);
            let lost = !sequences.is_empty() && !self.deleted.contains(queue);
            lost.then_some(Damage::MissingSegment { file, queue: *queue, sequences })
        });
        missing.collect()
    }
}

impl QueueSum {
    /// A count only grows, so the largest is the last.
    fn counted(&mut self, sequence: u64, count: u32) {
        let known = self.counts.entry(sequence).or_default();
        *known = count.max(*known);
    }

    /// The sequences of which nothing is known between those placed last before a place of the journal and first after it.
    fn unknown_around<'s>(
        &self,
        (file, offset): (u64, u64),
        segments: impl Iterator<Item = &'s RangeSet>,
    ) -> Vec<Range<u64>> {
        let before = |placed: &&Placed| (placed.at.file, placed.at.offset) < (file, offset);
        let ends = self.placed.iter().filter(before).map(|placed| placed.sequences.end);
        let starts = self.placed.iter().filter(|placed| !before(placed)).map(|placed| placed.sequences.start);
        let window = ends.max().unwrap_or(0)..starts.min().unwrap_or(self.next);
        let mut known = self.settled.clone();
        segments.for_each(|sequences| known.extend(sequences));
        self.placed.iter().for_each(|placed| known.insert(placed.sequences.clone()));
        known.gaps(window).collect()
    }

    fn conclude(mut self, queue: u64, in_segments: RangeSet) -> (RecoveredQueue, Vec<Placed>) {
        let mut gone = self.settled.clone();
        gone.extend(&in_segments);
        // A message that was placed again is the same message: each sequence is taken from one place.
        self.placed.sort_unstable_by_key(|placed| (placed.sequences.start, placed.at, placed.index));
        let (mut taken, mut in_journal) = (0, RangeSet::new());
        self.placed.retain_mut(|placed| {
            placed.sequences.start = placed.sequences.start.max(taken);
            taken = taken.max(placed.sequences.end);
            let needed: Vec<_> = gone.gaps(placed.sequences.clone()).collect();
            let any = !needed.is_empty();
            needed.into_iter().for_each(|range| in_journal.insert(range));
            any
        });
        let settled = self.settled;
        let known = self.counts.into_iter().filter(|(sequence, _)| !settled.contains(*sequence));
        let known = known.map(|(sequence, count)| (sequence..sequence + 1, count));
        let counts = self.handed_out.iter().map(|sequences| (sequences, 0)).chain(known).collect();
        let state = QueueState { queue, next: self.next.max(in_segments.end()), settled, counts };
        (RecoveredQueue { state, in_journal, in_segments }, self.placed)
    }
}
