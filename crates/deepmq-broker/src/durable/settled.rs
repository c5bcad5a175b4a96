//! Settlements of persistent messages on their way to the journal.
//!
//! Owns the gathering, so that what one read settles is one record. Nobody waits for it: a message whose settlement is
//! lost in a crash is delivered again.

use super::Durable;
use deepmq_model::queue::{Position, Run};
use deepmq_storage::{BatchBuilder, Durability};
use std::ops::Range;
use std::sync::Arc;

/// Settlements of one broker's queues.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    durable: Option<Arc<Durable>>,
    done: Vec<(u64, Range<u64>)>,
    returned: Vec<(u64, u64, u32)>,
    batch: BatchBuilder,
}

impl Settled {
    /// Messages of a queue are needed no more.
    pub(crate) fn done(&mut self, durable: &Arc<Durable>, queue: u64, run: Run) {
        self.done_range(durable, queue, run.first.0..run.end().0);
    }

    /// All of a range are needed no more.
    pub(crate) fn done_range(&mut self, durable: &Arc<Durable>, queue: u64, range: Range<u64>) {
        self.durable.get_or_insert_with(|| durable.clone());
        match self.done.last_mut() {
            Some((known, last)) if *known == queue && last.end == range.start => last.end = range.end,
            _ => self.done.push((queue, range)),
        }
    }

    /// A message was handed out and came back, so many times by now.
    pub(crate) fn returned(&mut self, durable: &Arc<Durable>, queue: u64, position: Position, times: u32) {
        self.durable.get_or_insert_with(|| durable.clone());
        self.returned.push((queue, position.0, times));
    }

    /// Moves what was gathered into a record of the caller's; false: there is nothing.
    pub(crate) fn take_into(&mut self, batch: &mut BatchBuilder) -> bool {
        if self.durable.take().is_none() {
            return false;
        }
        self.done.sort_unstable_by_key(|(queue, range)| (*queue, range.start));
        for of_queue in self.done.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((queue, _)) = of_queue.first() else { continue };
            batch.settle(*queue, of_queue.iter().map(|(_, range)| range.clone()));
        }
        for &(queue, sequence, times) in &self.returned {
            batch.count(queue, sequence, times);
        }
        self.done.clear();
        self.returned.clear();
        true
    }

    /// Appends what was gathered to the journal.
    pub(crate) fn journal(&mut self) {
        let Some(durable) = self.durable.clone() else { return };
        let mut batch = std::mem::take(&mut self.batch);
        batch.begin();
        self.take_into(&mut batch);
        self.batch = batch;
        if let Err(error) = durable.append(&mut self.batch, Durability::Os) {
            // The broker stops for the failure itself; what was settled will be delivered again.
            tracing::debug!(%error, "settlements were not journalled");
        }
    }
}
