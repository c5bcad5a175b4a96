//! Messages that died in a queue, on their way to where dead letters go.
//!
//! Owns the order in which they leave, and that they stay in the backlog until they are placed elsewhere: whatever happens on
//! the way, they are in one place. Must not know where they go.

use super::{Queue, State};
use crate::backlog::RETURNS_MAX;
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::message::OwnedMessage;
use crate::subscriber::Wakes;
use crate::timers::NEVER;
use deepmq_model::message::death::Reason;
use deepmq_model::queue::{Position, Run};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// So many leave together.
const LETTERS_MAX: usize = 256;
/// ... of no more than about so many bytes.
const LETTERS_BYTES: usize = 1024 * 1024;
/// With so many that could not be placed everywhere, the others wait behind them.
const HELD_MAX: usize = 256;
/// So many are kept at hand of a queue whose messages are not all in memory.
const AT_HAND_MAX: u64 = 16 * 1024;
/// ... of no more than about so many bytes.
const AT_HAND_BYTES: u64 = 8 * 1024 * 1024;
/// What could not be placed is tried again after so long at the latest, in milliseconds.
const TRY_AGAIN: u64 = 30_000;

/// Neither ready nor in anybody's hands.
#[derive(Debug)]
pub(super) struct Leaving {
    runs: VecDeque<(Run, Reason)>,
    /// Those that some queue they are routed to has not taken, or that are routed nowhere, in order.
    held: VecDeque<Held>,
    /// Those of them that are to be tried again now.
    again: VecDeque<Held>,
    /// When the others are.
    again_at: u64,
    /// Somebody sends them, in order: whoever adds more need not.
    pub(super) sending: bool,
    /// All of them, those on their way included, and what their bodies take.
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// A letter that is to be tried again.
#[derive(Debug)]
struct Held {
    position: Position,
    reason: Reason,
    /// Queues that have it already.
    reached: Vec<Weak<Queue>>,
}

impl Default for Leaving {
    fn default() -> Self {
        Self {
            runs: VecDeque::new(),
            held: VecDeque::new(),
            again: VecDeque::new(),
            again_at: NEVER,
            sending: false,
            count: 0,
            bytes: 0,
        }
    }
}

impl Leaving {
    /// Whether somebody should send them.
    pub(super) fn is_waiting(&self) -> bool {
        let none = self.runs.is_empty() && self.again.is_empty();
        !none && !self.sending
    }

    pub(super) fn push(&mut self, run: Run, reason: Reason) {
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

    /// The next ones, all in a row; none but those that are tried again without `room` for what can not be placed.
    fn front(&self, room: usize) -> Option<(Run, Reason)> {
        let again = self.again.front().map(|held| (Run { first: held.position, count: 1 }, held.reason));
        again.or_else(|| self.runs.front().copied().filter(|_| room > 0))
    }

    /// Takes so many off the front; returns the queues that have the first already.
    fn advance(&mut self, count: u32) -> Vec<Weak<Queue>> {
        if let Some(held) = self.again.pop_front() {
            return held.reached;
        }
        let Some((run, _)) = self.runs.front_mut() else { return Vec::new() };
        if run.count <= count {
            self.runs.pop_front();
        } else {
            *run = Run { first: run.first.plus(count.into()), count: run.count - count };
        }
        Vec::new()
    }

    /// So many are gone for good.
    pub(super) fn left(&mut self, count: u64, bytes: u64) {
        self.count = self.count.saturating_sub(count);
        // Of what is not in memory the bytes are estimated.
        self.bytes = if self.count == 0 { 0 } else { self.bytes.saturating_sub(bytes) };
    }

    /// When something is to be tried again; [`NEVER`] if nothing is.
    pub(super) fn again_at(&self) -> u64 {
        self.again_at
    }

    /// Tries those again that could not be placed, if it is time or something has changed.
    pub(super) fn try_again(&mut self, now: u64, changed: bool) {
        if self.again_at <= now || (changed && !self.held.is_empty()) {
            self.again_at = NEVER;
            self.again.append(&mut self.held);
        }
    }
}

/// A count of returns above all others says that a message died, and why. The journal and checkpoints keep it as they keep
/// counts, of which the largest is true: so a message is dead for good.
const DEAD: u32 = RETURNS_MAX + 1;

/// As a count.
fn as_count(reason: Reason) -> u32 {
    DEAD + match reason {
        Reason::Rejected => 0,
        Reason::Expired => 1,
        Reason::MaxLen => 2,
        Reason::DeliveryLimit => 3,
    }
}

/// Back from a count.
fn from_count(count: u32) -> Option<Reason> {
    let reasons = [Reason::Rejected, Reason::Expired, Reason::MaxLen, Reason::DeliveryLimit];
    reasons.into_iter().find(|reason| as_count(*reason) == count)
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
        self.count_dead(run);
        if wakes.dead_letters.keep_back(queue, run, reason) {
            let positions = run.first.0..run.end().0;
            positions.for_each(|at| self.mark_dead(queue, Position(at), reason, wakes));
            return;
        }
        self.leaving.push(run, reason);
        let few = self.leaving.count < AT_HAND_MAX && self.leaving.bytes < AT_HAND_BYTES;
        if few && self.backlog.live_out() > 0 && !queue.memory_is_short() {
            // It may have been read for this, and the page be given up before it leaves.
            self.backlog.copy(run);
        }
        wakes.dead_letters.note(queue);
    }

    fn count_dead(&mut self, run: Run) {
        self.leaving.count += u64::from(run.count);
        self.leaving.bytes += self.backlog.body_bytes(run);
    }

    /// Messages that died in an earlier life go on leaving.
    pub(super) fn leave_again(&mut self, returns: &[(Position, u32)]) {
        for &(first, count) in returns {
            if let Some(reason) = from_count(count)
                && self.model.take(first)
            {
                let run = Run { first, count: 1 };
                self.count_dead(run);
                self.leaving.push(run, reason);
            }
        }
    }

    /// That a message died is to be known after a restart.
    fn mark_dead(&mut self, queue: &Queue, position: Position, reason: Reason, wakes: &mut Wakes) {
        let count = as_count(reason);
        self.backlog.restore_returns(position, count);
        if let Some(kept) = queue.kept().filter(|_| self.backlog.is_persistent(position)) {
            wakes.settled.returned(&kept.durable, kept.number, position, count);
        }
    }

    /// The next letters that are in memory; those that are lost, or have nowhere to go any more, end here.
    pub(super) fn next_letters(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) -> Option<DeadLetters> {
        let (mut letters, mut bytes) = (Vec::new(), 0);
        while letters.len() < LETTERS_MAX && bytes < LETTERS_BYTES {
            let room = HELD_MAX.saturating_sub(self.leaving.held.len() + letters.len());
            let Some((run, reason)) = self.leaving.front(room) else { break };
            let lost = self.backlog.lost_at(run.first).map(|lost| lost.end.min(run.end().0) - run.first.0);
            let gone = if self.settings.dead_letter.is_none() { Some(u64::from(run.count)) } else { lost };
            if let Some(count) = gone.and_then(|count| u32::try_from(count).ok()) {
                self.leaving.advance(count);
                self.end_letters(queue, Run { count, ..run }, wakes);
                continue;
            }
            let Some(message) = self.backlog.read(run.first) else {
                self.ask(queue, run.first);
                break;
            };
            bytes += message.packed_bytes();
            let message = OwnedMessage::from(message);
            let reached = self.leaving.advance(1);
            letters.push(DeadLetter { position: Some(run.first), reason, message, reached });
        }
        let to = self.settings.dead_letter.clone()?;
        (!letters.is_empty()).then_some(DeadLetters { to, letters })
    }

    /// These are needed here no more, wherever else they are.
    pub(super) fn end_letters(&mut self, queue: &Queue, run: Run, wakes: &mut Wakes) {
        self.leaving.left(run.count.into(), self.backlog.body_bytes(run));
        let persistent = self.backlog.complete_run(run);
        queue.note_done(persistent, run, wakes);
    }

    /// These could not be placed everywhere: they stay, and are tried again.
    pub(super) fn hold(&mut self, queue: &Arc<Queue>, letters: Vec<DeadLetter>, now: u64, wakes: &mut Wakes) {
        for DeadLetter { position, reason, reached, .. } in letters {
            let Some(position) = position else { continue };
            if from_count(self.backlog.returns(position)).is_none() {
                self.mark_dead(queue, position, reason, wakes);
            }
            self.leaving.held.push_back(Held { position, reason, reached });
        }
        self.leaving.again_at = self.leaving.again_at.min(now.saturating_add(TRY_AGAIN));
        self.set_alarm(queue, now);
    }

    /// Drops those that wait; returns how many.
    pub(super) fn purge_letters(&mut self, queue: &Queue, wakes: &mut Wakes) -> u64 {
        self.leaving.try_again(NEVER, true);
        let mut purged = 0;
        while let Some((run, _)) = self.leaving.front(HELD_MAX) {
            self.leaving.advance(run.count);
            self.end_letters(queue, run, wakes);
            purged += u64::from(run.count);
        }
        purged
    }
}
