//! Settlements: what becomes of deliveries, gathered per queue so that each queue is locked once.
//!
//! Owns the grouping. Must not know delivery tags or protocols.

use super::Queue;
use crate::subscriber::Wakes;
use deepmq_model::queue::{ConsumerId, Position};
use std::sync::Arc;

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was handled.
    Ack,
    /// It was not; back to the queue or dropped.
    Nack {
        /// Back to where it was.
        requeue: bool,
    },
    /// As `Nack`, said by basic.reject, which some rules tell apart.
    Reject {
        /// Back to where it was.
        requeue: bool,
    },
    /// The consumer went away or asked for everything again: back to where it was.
    Recover,
}

impl Outcome {
    /// Whether the message goes back to its queue.
    pub fn requeues(self) -> bool {
        match self {
            Self::Ack => false,
            Self::Nack { requeue } | Self::Reject { requeue } => requeue,
            Self::Recover => true,
        }
    }
}

/// One delivery settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// Which message.
    pub position: Position,
    /// The consumer that held it; none for a fetched one.
    pub consumer: Option<ConsumerId>,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// Settlements by queue. Keeps its memory between uses.
#[derive(Debug, Default)]
pub struct Settlements {
    groups: Vec<(Arc<Queue>, Vec<Settlement>)>,
    spare: Vec<Vec<Settlement>>,
}

impl Settlements {
    /// Whether there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(crate) fn add(&mut self, queue: &Arc<Queue>, settlement: Settlement) {
        let known = self.groups.iter_mut().rev().find(|(known, _)| Arc::ptr_eq(known, queue));
        if let Some((_, settlements)) = known {
            settlements.push(settlement);
            return;
        }
        let mut settlements = self.spare.pop().unwrap_or_default();
        settlements.push(settlement);
        self.groups.push((queue.clone(), settlements));
    }

    /// Those of one queue.
    #[cfg(test)]
    pub(crate) fn of(&self, queue: &Arc<Queue>) -> &[Settlement] {
        self.groups.iter().find(|(known, _)| Arc::ptr_eq(known, queue)).map_or(&[], |(_, all)| all)
    }

    /// Tells each queue.
    pub fn apply(&mut self, wakes: &mut Wakes) {
        for (queue, mut settlements) in self.groups.drain(..) {
            queue.settle(&settlements, wakes);
            settlements.clear();
            self.spare.push(settlements);
        }
        self.spare.truncate(4);
    }
}
