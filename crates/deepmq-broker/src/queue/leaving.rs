//! Messages that died in a queue, on their way to where dead letters go.
//!
//! Owns the order in which they leave, and that they stay in the backlog until they are placed elsewhere: whatever happens on
//! the way, they are in one place. Must not know where they go.

use super::{Queue, State};
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::message::OwnedMessage;
use crate::subscriber::Wakes;
use deepmq_model::message::death::Reason;
use deepmq_model::queue::{Position, Run};
use std::collections::VecDeque;
use std::sync::Arc;

/// So many leave together.
const LETTERS_MAX: usize = 256;
/// ... of no more than about so many bytes.
const LETTERS_BYTES: usize = 1024 * 1024;
/// Who has something else to do sends so often; the rest is left to the timers' thread.
const ROUNDS_MAX: usize = 64;

/// Neither ready nor in anybody's hands.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    runs: VecDeque<(Run, Reason)>,
    /// Somebody sends them, in order: whoever adds more need not.
    sending: bool,
}

impl Leaving {
    /// Whether somebody should send them.
    pub(super) fn is_waiting(&self) -> bool {
        !self.runs.is_empty() && !self.sending
    }

    fn push(&mut self, run: Run, reason: Reason) {
        match self.runs.back_mut() {
            Some((last, known)) if *known == reason && last.end() == run.first => {
                match last.count.checked_add(run.count) {
                    Some(count) => last.count = count,
                    None => self.runs.push_back((run, reason)),
                }
            }
            _ => self.runs.push_back((run, reason)),
        }
    }

    /// Takes so many off the front.
    fn advance(&mut self, count: u32) {
        let Some((run, _)) = self.runs.front_mut() else { return };
        if run.count <= count {
            self.runs.pop_front();
        } else {
            *run = Run { first: run.first.plus(count.into()), count: run.count - count };
        }
    }
}

impl State {
    /// Messages that were neither ready nor unacked any more die.
    pub(super) fn discard(&mut self, queue: &Arc<Queue>, run: Run, reason: Reason, wakes: &mut Wakes) {
        self.counters.discarded += u64::from(run.count);
        if self.settings.dead_letter.is_none() {
            let persistent = self.backlog.complete_run(run);
            queue.note_done(persistent, run, wakes);
            return;
        }
        self.leaving.push(run, reason);
        wakes.dead_letters.note(queue);
    }

    /// The next letters that are in memory; those that are lost, or have nowhere to go any more, end here.
    fn next_letters(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) -> Option<DeadLetters> {
        let (mut letters, mut bytes) = (Vec::new(), 0);
        while letters.len() < LETTERS_MAX && bytes < LETTERS_BYTES {
            let Some(&(run, reason)) = self.leaving.runs.front() else { break };
            let lost = self.backlog.lost_at(run.first).map(|lost| lost.end.min(run.end().0) - run.first.0);
            let gone = if self.settings.dead_letter.is_none() { Some(u64::from(run.count)) } else { lost };
            if let Some(count) = gone.and_then(|count| u32::try_from(count).ok()) {
                let run = Run { count, ..run };
                self.leaving.advance(count);
                let persistent = self.backlog.complete_run(run);
                queue.note_done(persistent, run, wakes);
                continue;
            }
            let Some(message) = self.backlog.read(run.first) else {
                self.ask(queue, run.first);
                break;
            };
            bytes += message.packed_bytes();
            let message = OwnedMessage::from(message);
            letters.push(DeadLetter { position: Some(run.first), reason, message });
            self.leaving.advance(1);
        }
        let to = self.settings.dead_letter.clone()?;
        (!letters.is_empty()).then_some(DeadLetters { to, letters })
    }
}

impl Queue {
    /// Sends what died in it. To be called with no lock held.
    pub(crate) fn send_dead_letters(self: &Arc<Self>, wakes: &mut Wakes) {
        let Some(vhost) = self.home.running.upgrade() else { return };
        {
            let leaving = &mut self.state.lock().leaving;
            if std::mem::replace(&mut leaving.sending, true) {
                return;
            }
        }
        for _ in 0..ROUNDS_MAX {
            let letters = {
                let mut state = self.state.lock();
                let letters = state.next_letters(self, wakes);
                state.leaving.sending = letters.is_some();
                letters
            };
            let Some(letters) = letters else { return };
            vhost.send_dead_letters(self, letters, wakes);
        }
        self.state.lock().leaving.sending = false;
        self.home.timers.at(0, self);
    }

    /// Sends messages on that it did not take.
    pub(crate) fn send_refused(self: &Arc<Self>, letters: DeadLetters, wakes: &mut Wakes) {
        if let Some(vhost) = self.home.running.upgrade() {
            vhost.send_dead_letters(self, letters, wakes);
        }
    }

    /// These letters are placed elsewhere, or nowhere: they are needed here no more.
    pub(crate) fn dead_letters_left(&self, letters: &[DeadLetter], wakes: &mut Wakes) {
        let mut state = self.state.lock();
        if state.deleted {
            return;
        }
        let mut positions = letters.iter().filter_map(|letter| letter.position).peekable();
        while let Some(first) = positions.next() {
            let mut run = Run { first, count: 1 };
            while positions.next_if(|next: &Position| *next == run.end()).is_some() {
                run.count += 1;
            }
            let persistent = state.backlog.complete_run(run);
            self.note_done(persistent, run, wakes);
        }
    }
}
