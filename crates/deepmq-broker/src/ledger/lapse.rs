//! Deliveries that were open for too long.
//!
//! Owns how old a delivery is, known without a time for each: now and then it is noted how far the tags have come.

use super::{Entry, LAPSED, Ledger};
use crate::queue::{Outcome, Queue, Settlements};
use deepmq_model::queue::ConsumerId;
use deepmq_storage::seam::Monotonic;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Notes lie no closer than this part of their age, so that they are few: a delivery may count as younger by so much.
const SPACING: u32 = 8;

/// How far the tags had come when.
#[derive(Debug, Default)]
pub(super) struct Marks(VecDeque<(u64, Monotonic)>);

impl Marks {
    /// Notes `next_tag`, and forgets what is not needed to find those that are `oldest` or younger.
    fn note(&mut self, next_tag: u64, now: Monotonic, oldest: Duration) {
        if self.0.back().is_none_or(|(tag, _)| *tag != next_tag) {
            self.0.push_back((next_tag, now));
        }
        while self.0.get(1).is_some_and(|(_, at)| now.since(*at) >= oldest) {
            self.0.pop_front();
        }
        let all = std::mem::take(&mut self.0);
        let after = all.iter().map(|(_, at)| Some(*at)).skip(1).chain([None]);
        for (&mark, after) in all.iter().zip(after) {
            let close = |(_, before): &(u64, Monotonic)| {
                after.is_some_and(|after| after.since(*before) <= now.since(after) / SPACING)
            };
            if !self.0.back().is_some_and(close) {
                self.0.push_back(mark);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The tag below which all deliveries are at least so old.
    fn older_than(&self, age: Duration, now: Monotonic) -> u64 {
        let young = self.0.partition_point(|(_, at)| now.since(*at) >= age);
        young.checked_sub(1).and_then(|at| self.0.get(at)).map_or(0, |(tag, _)| *tag)
    }
}

impl Ledger {
    /// The queues that open deliveries came from, each once.
    pub fn open_queues(&self) -> Vec<Arc<Queue>> {
        let mut queues: Vec<Arc<Queue>> = Vec::new();
        for source in self.sources.iter().flatten().filter(|source| source.open > 0) {
            if !queues.iter().any(|known| Arc::ptr_eq(known, &source.queue)) {
                queues.push(source.queue.clone());
            }
        }
        queues
    }

    /// Gives back, into `out`, what has been open for longer than is allowed for its queue; what is of a queue that is not in
    /// `allowed` may stay for ever. Returns the consumers that held any of it, each once. To be called again and again: a delivery is
    /// noticed at the second time after it, at the earliest.
    pub fn lapse(
        &mut self,
        now: Monotonic,
        allowed: &[(Arc<Queue>, Duration)],
        out: &mut Settlements,
    ) -> Vec<(Arc<Queue>, ConsumerId)> {
        if self.open == 0 {
            self.marks = Marks::default();
            return Vec::new();
        }
        let Some(oldest) = allowed.iter().map(|(_, age)| *age).max() else { return Vec::new() };
        self.marks.note(self.next_tag(), now, oldest);
        let limits: Vec<u64> = self.limits(now, allowed);
        let end = limits.iter().copied().max().unwrap_or_default();
        let old = |entry: &Entry, tag: u64| {
            entry.is_open() && limits.get(entry.source as usize).is_some_and(|&limit| tag < limit)
        };
        let mut lapsed = Vec::new();
        for (entry, tag) in self.ring.iter_mut().zip(self.base..end) {
            if old(entry, tag) {
                lapsed.push(std::mem::replace(entry, Entry { source: LAPSED, ..*entry }));
            }
        }
        for (&tag, entry) in self.stragglers.range_mut(..end) {
            if old(entry, tag) {
                lapsed.push(std::mem::replace(entry, Entry { source: LAPSED, ..*entry }));
            }
        }
        let mut consumers: Vec<(Arc<Queue>, ConsumerId)> = Vec::new();
        for entry in lapsed {
            if let Some(Some(source)) = self.sources.get(entry.source as usize)
                && let Some(consumer) = source.consumer
                && !consumers
                    .iter()
                    .any(|(queue, known)| *known == consumer && Arc::ptr_eq(queue, &source.queue))
            {
                consumers.push((source.queue.clone(), consumer));
            }
            self.close(entry, Outcome::Recover, out);
        }
        consumers
    }

    /// For each source, the tag below which its deliveries are too old.
    fn limits(&self, now: Monotonic, allowed: &[(Arc<Queue>, Duration)]) -> Vec<u64> {
        let limit = |queue: &Arc<Queue>| {
            let allowed = allowed.iter().find(|(known, _)| Arc::ptr_eq(known, queue));
            allowed.map_or(0, |(_, age)| self.marks.older_than(*age, now))
        };
        self.sources.iter().map(|source| source.as_ref().map_or(0, |source| limit(&source.queue))).collect()
    }
}
