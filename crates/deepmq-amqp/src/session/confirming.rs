//! Confirms that wait for the journal.
//!
//! Owns their order: a confirm of several must not overtake one that waits on the same channel. Must not know what was
//! published.

use crate::codec::method::basic;
use crate::goal::{Goal, Reached};
use crate::outbox::Outbox;
use std::collections::VecDeque;

/// A confirm of several messages, or the word that they were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Confirm {
    pub(super) channel: u16,
    /// The number of the first message, and of the last.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) taken: bool,
}

/// The waiting confirms of a connection.
#[derive(Debug, Default)]
pub(super) struct Confirming {
    waiting: VecDeque<(Goal, Confirm)>,
}

impl Confirming {
    /// Sends confirms once `goal` is met and those before them are sent; without either, at once.
    pub(super) fn add(
        &mut self,
        goal: Option<Goal>,
        confirms: impl Iterator<Item = Confirm>,
        outbox: &Outbox,
    ) {
        let Some(goal) = goal.or(self.waiting.back().map(|&(goal, _)| goal)) else {
            confirms.for_each(|confirm| send(confirm, outbox));
            return;
        };
        self.waiting.extend(confirms.map(|confirm| (goal, confirm)));
    }

    /// What the first of them waits for.
    pub(super) fn waits_for(&self) -> Option<Goal> {
        self.waiting.front().map(|&(goal, _)| goal)
    }

    /// Sends those that waited for what is reached now.
    pub(super) fn release(&mut self, reached: Reached, outbox: &Outbox) {
        let mut next: Option<Confirm> = None;
        while let Some(&(_, confirm)) = self.waiting.front().filter(|(goal, _)| reached.meets(*goal)) {
            self.waiting.pop_front();
            match &mut next {
                Some(known) if (known.channel, known.taken) == (confirm.channel, confirm.taken) => {
                    known.last = confirm.last;
                }
                _ => next.replace(confirm).into_iter().for_each(|before| send(before, outbox)),
            }
        }
        next.into_iter().for_each(|last| send(last, outbox));
    }

    /// The channel is gone: nothing is confirmed on it any more.
    pub(super) fn forget(&mut self, channel: u16) {
        self.waiting.retain(|(_, confirm)| confirm.channel != channel);
    }
}

/// Sends a confirm, and counts it, unless its channel is gone.
fn send(confirm: Confirm, outbox: &Outbox) {
    let Confirm { channel: number, first, last, taken } = confirm;
    outbox.channel(number, |channel, frames| {
        channel.count_confirmed(last - first + 1);
        // All before the first were answered, so those up to the last are the messages meant.
        let (delivery_tag, multiple) = (last, first < last);
        if taken {
            basic::Ack { delivery_tag, multiple }.encode(number, &mut frames.buf);
        } else {
            basic::Nack { delivery_tag, multiple, requeue: false }.encode(number, &mut frames.buf);
        }
    });
}
