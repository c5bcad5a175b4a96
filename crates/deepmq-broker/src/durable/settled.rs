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
    returned: Vec<(u64, u64)>,
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

    /// A message was handed out and came back.
    pub(crate) fn returned(&mut self, durable: &Arc<Durable>, queue: u64, position: Position) {
        self.durable.get_or_insert_with(|| durable.clone());
        self.returned.push((queue, position.0));
    }

    /// Appends what was gathered to the journal.
    pub(crate) fn journal(&mut self) {
        let Some(durable) = self.durable.take() else { return };
        self.batch.begin();
        self.done.sort_unstable_by_key(|(queue, range)| (*queue, range.start));
        for of_queue in self.done.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((queue, _)) = of_queue.first() else { continue };
            self.batch.settle(*queue, of_queue.iter().map(|(_, range)| range.clone()));
        }
        for &(queue, sequence) in &self.returned {
            self.batch.count(queue, sequence, 1);
        }
        self.done.clear();
        self.returned.clear();
        if let Err(error) = durable.append(&mut self.batch, Durability::Os) {
            // The broker stops for the failure itself; what was settled will be delivered again.
            tracing::debug!(%error, "settlements were not journalled");
        }
    }
}
