//! Dead letters between the queue they died in and those they go to.
//!
//! Owns what is on its way while no lock is held. Must not know why a message dies or how it is routed.

use crate::message::OwnedMessage;
use crate::queue::Queue;
use deepmq_model::message::death::Reason;
use deepmq_model::queue::{DeadLetterTo, Position, Run};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// A message that died.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    /// Where it still is in its queue; none if that never took it.
    pub(crate) position: Option<Position>,
    pub(crate) reason: Reason,
    pub(crate) message: OwnedMessage,
    /// Queues that have it already, if it was tried before.
    pub(crate) reached: Vec<Weak<Queue>>,
}

/// Letters of one queue that go together.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    pub(crate) to: DeadLetterTo,
    pub(crate) letters: Vec<DeadLetter>,
}

/// What is to be sent once the locks are released.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Queues in which messages died.
    queues: VecDeque<Arc<Queue>>,
    /// Messages that full queues refused.
    refused: VecDeque<(Arc<Queue>, DeadLetters)>,
    /// What died in a transaction that is being committed, if one is.
    committing: Option<Vec<(Arc<Queue>, Run, Reason)>>,
}

impl Outgoing {
    /// From now on what dies is kept back: the record of the commit tells of it.
    pub(crate) fn begin_commit(&mut self) {
        self.committing.get_or_insert_default();
    }

    /// The record is appended: returns what was kept back.
    pub(crate) fn end_commit(&mut self) -> Vec<(Arc<Queue>, Run, Reason)> {
        self.committing.take().unwrap_or_default()
    }

    /// Keeps messages back that died; false: there is no commit.
    pub(crate) fn keep_back(&mut self, queue: &Arc<Queue>, run: Run, reason: Reason) -> bool {
        let Some(kept_back) = &mut self.committing else { return false };
        kept_back.push((queue.clone(), run, reason));
        true
    }

    /// Messages died in a queue. Twice does no harm.
    pub(crate) fn note(&mut self, queue: &Arc<Queue>) {
        if !self.queues.iter().any(|known| Arc::ptr_eq(known, queue)) {
            self.queues.push_back(queue.clone());
        }
    }

    /// A full queue did not take a message, which goes to where its dead letters go.
    pub(crate) fn refused(&mut self, queue: &Arc<Queue>, to: &DeadLetterTo, message: OwnedMessage) {
        let letter = DeadLetter { position: None, reason: Reason::MaxLen, message, reached: Vec::new() };
        match self.refused.back_mut() {
            Some((known, letters)) if Arc::ptr_eq(known, queue) && letters.to == *to => {
                letters.letters.push(letter);
            }
            _ => {
                let letters = DeadLetters { to: to.clone(), letters: vec![letter] };
                self.refused.push_back((queue.clone(), letters));
            }
        }
    }

    pub(crate) fn next_queue(&mut self) -> Option<Arc<Queue>> {
        self.queues.pop_front()
    }

    pub(crate) fn next_refused(&mut self) -> Option<(Arc<Queue>, DeadLetters)> {
        self.refused.pop_front()
    }
}
