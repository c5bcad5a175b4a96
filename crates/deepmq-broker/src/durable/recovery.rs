//! What a data directory held: the topology, and the messages of each queue.
//!
//! Owns the way from the store's numbers back to messages. Must not know queues at run time.

use super::change::Change;
use super::progress::Progress;
use super::{DurableError, QueueNames};
use crate::message::{Body, MessageRef, SHARED_BODY_BYTES_MIN};
use bytes::Bytes;
use deepmq_model::queue::{Position, PositionSet};
use deepmq_storage::{RangeSet, Recovered, RecoveredQueue, Seam, Store};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// What was found.
#[derive(Debug)]
pub(crate) struct Recovery {
    seam: Seam,
    store: Arc<Store>,
    found: Recovered,
    /// Changes that lead to the topology.
    pub(crate) changes: Vec<Change>,
    /// What was damaged, in words.
    pub(super) damage: Vec<String>,
}

/// What a queue goes on with.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The position of the next message.
    pub(crate) next: Position,
    /// Positions of the messages that are still needed.
    pub(crate) messages: PositionSet,
    /// Those of them that are known to have been handed out.
    pub(crate) handed_out: PositionSet,
    /// How often some of them came back.
    pub(crate) returns: Vec<(Position, u32)>,
    /// Those of them that are in segments.
    pub(crate) stored: StoredRanges,
}

/// Ranges of positions, to be taken in order.
#[derive(Debug, Default)]
pub(crate) struct StoredRanges(VecDeque<Range<u64>>);

impl StoredRanges {
    /// Takes those that begin before a position.
    pub(crate) fn before(&mut self, position: Position) -> impl Iterator<Item = Range<u64>> {
        let count = self.0.partition_point(|range| range.start < position.0);
        self.0.drain(..count)
    }
}

impl Recovery {
    pub(super) fn read(seam: &Seam, store: &Arc<Store>, found: Recovered) -> Result<Self, DurableError> {
        let mut changes = Change::decode_all(found.snapshot.as_deref().unwrap_or_default())
            .map_err(DurableError::Topology)?;
        for (_, bytes) in &found.topology {
            changes.extend(Change::decode_all(bytes).map_err(DurableError::Topology)?);
        }
        if found.torn_bytes > 0 {
            tracing::info!(bytes = found.torn_bytes, "cut off what a crash left unfinished in the journal");
        }
        let names = names(&found);
        let damage = found.damage.iter().map(|damage| damage.describe(|queue| names.describe(queue)));
        let damage: Vec<String> = damage.collect();
        for damage in &damage {
            tracing::error!(damage, "the data directory is damaged, the rest is served");
        }
        Ok(Self { seam: seam.clone(), store: store.clone(), found, changes, damage })
    }

    /// Whether the broker was stopped in order.
    pub(crate) fn is_clean(&self) -> bool {
        self.found.clean
    }

    /// What each queue goes on with, by number.
    pub(crate) fn queues(&self) -> BTreeMap<u64, Kept> {
        let kept = |(&number, queue): (&u64, &RecoveredQueue)| {
            let settled = &queue.state.settled;
            let stored: VecDeque<_> =
                queue.in_segments.iter().flat_map(|range| settled.gaps(range).collect::<Vec<_>>()).collect();
            let needed: RangeSet = queue.in_journal.iter().chain(stored.iter().cloned()).collect();
            let handed_out = queue.state.counts.iter().flat_map(|(at, _)| needed_of(&needed, at.clone()));
            let known =
                queue.state.counts.iter().filter(|(at, times)| *times > 0 && needed.contains(at.start));
            let kept = Kept {
                next: Position(queue.state.next),
                messages: positions(needed.iter()),
                handed_out: positions(handed_out.collect::<RangeSet>().iter()),
                returns: known.map(|(at, times)| (Position(at.start), *times)).collect(),
                stored: StoredRanges(stored),
            };
            (number, kept)
        };
        self.found.queues.iter().map(kept).collect()
    }

    /// Hands over every message with its queue's number, its position and when it arrived, in order within each queue.
    pub(crate) fn replay(
        &self,
        mut take: impl FnMut(u64, Position, MessageRef<'_>, u64),
    ) -> Result<(), DurableError> {
        let in_journal = self.found.queues.values().flat_map(|queue| queue.in_journal.iter());
        let total = in_journal.map(|range| range.end - range.start).sum();
        let mut progress = Progress::new(&self.seam, total);
        self.found.replay(&self.store, |number, sequence, message| {
            progress.step();
            let shared = Bytes::copy_from_slice(if message.body.len() < SHARED_BODY_BYTES_MIN {
                &[]
            } else {
                message.body
            });
            let body = if shared.is_empty() { Body::Inline(message.body) } else { Body::Shared(&shared) };
            let arrived = message.timestamp;
            let message = MessageRef {
                address: message.address,
                properties: message.properties,
                body,
                persistent: true,
                dead_letter: MessageRef::is_dead_letter(message.flags),
            };
            take(number, Position(sequence), message, arrived);
        })?;
        Ok(())
    }
}

/// What of a range is needed.
fn needed_of(needed: &RangeSet, range: Range<u64>) -> Vec<Range<u64>> {
    let gaps: RangeSet = needed.gaps(range.clone()).collect();
    gaps.gaps(range).collect()
}

fn positions(ranges: impl Iterator<Item = Range<u64>>) -> PositionSet {
    let mut set = PositionSet::default();
    ranges.for_each(|range| set.insert_range(Position(range.start), Position(range.end)));
    set
}

/// The names of queues, as far as they are known.
fn names(found: &Recovered) -> QueueNames {
    let mut names = QueueNames::default();
    let changes = found.topology.iter().map(|(_, bytes)| bytes);
    for bytes in found.snapshot.iter().chain(changes) {
        // Whoever needs the topology itself says what is wrong with it.
        let _ = names.learn(bytes);
    }
    names
}
