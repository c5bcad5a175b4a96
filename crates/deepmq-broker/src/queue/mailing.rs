//! Sending what died in a queue, and trying again what could not be placed.
//!
//! Owns when that is done: never by asking over and over. A letter that is held is tried again when a queue that refused it has
//! room, when the topology or the queue's settings have changed, or after a while. Must not know how letters are routed.

use super::{Queue, State};
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::subscriber::Wakes;
use deepmq_model::message::death::Reason;
use deepmq_model::queue::{Position, Run};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// Who has something else to do sends so often; the rest is left to the timers' thread.
const ROUNDS_MAX: usize = 64;
/// A change is answered after so long, in milliseconds: many come together.
const SOON: u64 = 10;

/// Queues whose letters this one refused, with the bytes of body there must be room for.
pub(super) type Refused = Vec<(Weak<Queue>, u64)>;

impl State {
    /// Tells those who were refused that there is room, if there is. The timers' thread does the rest, for no two queues are
    /// locked at once.
    #[inline]
    pub(super) fn tell_room(&mut self) {
        if !self.refused.is_empty() {
            self.tell_refused();
        }
    }

    #[cold]
    fn tell_refused(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        let (wait, told) = refused.into_iter().partition(|&(_, bytes)| self.is_exceeded_with(1, bytes));
        self.refused = wait;
        told.iter()
            .filter_map(|(source, _): &(Weak<Queue>, u64)| source.upgrade())
            .for_each(|source| source.stir());
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
        // Now, not earlier: other queues have their turn in between.
        self.home.timers.at(self.home.timers.now(), self);
    }

    /// These died in a transaction, whose record tells that: they can be sent.
    pub(crate) fn let_go(&self, run: Run, reason: Reason) {
        let mut state = self.state.lock();
        if !state.deleted {
            state.leaving.push(run, reason);
        }
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
            state.end_letters(self, run, wakes);
        }
        state.tell_room();
    }

    /// These letters stay until they can be placed.
    pub(crate) fn dead_letters_stay(self: &Arc<Self>, letters: Vec<DeadLetter>, now: u64, wakes: &mut Wakes) {
        let mut state = self.state.lock();
        if !state.deleted {
            state.hold(self, letters, now, wakes);
        }
    }

    /// This queue refused letters of `source`, the shortest with a body of so many bytes: it tells `source` when there is room.
    pub(crate) fn tell_of_room(&self, source: &Arc<Self>, bytes: u64) {
        let mut state = self.state.lock();
        let known = state.refused.iter_mut().find(|(known, _)| known.as_ptr() == Arc::as_ptr(source));
        match known {
            Some((_, least)) => *least = bytes.min(*least),
            None => state.refused.push((Arc::downgrade(source), bytes)),
        }
        // There may be room by now.
        state.tell_room();
    }

    /// Something has changed for the letters it holds: they are tried again soon.
    pub(crate) fn stir(self: &Arc<Self>) {
        if !self.stirred.swap(true, Relaxed) {
            self.home.timers.at(self.home.timers.now() + SOON, self);
        }
    }

    /// Whether something has changed since this was asked.
    pub(super) fn was_stirred(&self) -> bool {
        self.stirred.swap(false, Relaxed)
    }
}
