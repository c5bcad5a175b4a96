//! What time does to a queue: messages expire, and the queue itself if nobody uses it.
//!
//! Owns when the queue is to be looked at, and what is done then. Must not wait: the timers' thread does. Unacked messages do not
//! expire; one that comes back keeps its deadline (reference 2.6).

use super::{Queue, State};
use crate::subscriber::Wakes;
use crate::timers::NEVER;
use deepmq_model::message::death::Reason;
use deepmq_model::queue::{Position, Run};
use std::sync::Arc;

/// A queue is not looked at more often than so, in milliseconds, for many deadlines come close together.
const ROUND: u64 = 10;
/// So many pages of an earlier life are looked up in one go.
const LOOK_UPS_MAX: usize = 256;

/// When the queue is to be looked at.
#[derive(Debug)]
pub(super) struct Alarm {
    /// Asked for; [`NEVER`] if it is not.
    at: u64,
    /// Messages arrived of which time matters, at this time, and were not looked at since.
    fresh: Option<u64>,
    /// Time matters, or did.
    timed: bool,
    /// When somebody used the queue last.
    used: u64,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { at: NEVER, fresh: None, timed: false, used: 0 }
    }
}

impl Alarm {
    /// Whether messages may expire: reading the clock is worth it.
    pub(super) fn is_timed(&self) -> bool {
        self.timed
    }
}

impl State {
    /// Time goes on for the messages from `first` on, which have just been appended.
    #[cold]
    pub(super) fn arrive(&mut self, queue: &Arc<Queue>, first: Position, expiring: bool) {
        let now = queue.home.timers.now();
        self.backlog.arrive(first, now, expiring);
        self.alarm.timed = true;
        self.alarm.fresh = Some(now);
    }

    /// Whether messages may expire is found out anew.
    pub(super) fn note_timed(&mut self) {
        let ttl = self.settings.message_ttl.is_some();
        self.alarm.timed =
            ttl || self.backlog.next_deadline() != NEVER || self.backlog.unknown_times().is_some();
    }

    /// What has just arrived and was not taken by a consumer expires if it has no time at all.
    pub(super) fn expire_fresh(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        if let Some(now) = self.alarm.fresh.take() {
            self.expire(queue, now, wakes);
            self.set_alarm(queue, now);
        }
    }

    /// No message is handed out whose time is over.
    pub(super) fn expire_overdue(&mut self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        if self.alarm.timed {
            let now = queue.home.timers.now();
            self.expire(queue, now, wakes);
            self.set_alarm(queue, now);
        }
    }

    fn expire(&mut self, queue: &Arc<Queue>, now: u64, wakes: &mut Wakes) {
        while self.backlog.next_deadline() <= now {
            let mut expired = Vec::new();
            let Self { model, backlog, .. } = self;
            let wanted = backlog.due(now, |position| model.take(position), &mut expired);
            if let Some(position) = wanted {
                self.ask(queue, position);
            }
            if expired.is_empty() {
                break;
            }
            self.flow.leave(expired.len() as u64, |waker| wakes.add_publisher(waker));
            for run in expired.chunk_by(|a, b| a.0 + 1 == b.0) {
                let Some(&first) = run.first() else { continue };
                let run = Run { first, count: u32::try_from(run.len()).unwrap_or(u32::MAX) };
                self.count_taken(run);
                self.discard(queue, run, Reason::Expired, wakes);
            }
            self.tell_room();
        }
    }

    /// When the queue is deleted if nobody uses it until then.
    fn ends(&self) -> u64 {
        let unused = self.model.consumers().is_empty();
        self.settings.expires.filter(|_| unused).map_or(NEVER, |time| self.alarm.used.saturating_add(time))
    }

    /// Somebody uses the queue.
    pub(super) fn note_use(&mut self, queue: &Arc<Queue>) {
        if self.settings.expires.is_some() {
            let now = queue.home.timers.now();
            self.alarm.used = now;
            self.set_alarm(queue, now);
        }
    }

    pub(super) fn set_alarm(&mut self, queue: &Arc<Queue>, now: u64) {
        let next = self.backlog.next_deadline().min(self.ends()).min(self.leaving.again_at());
        if next == NEVER || next >= self.alarm.at {
            return;
        }
        let at = next.max(now + ROUND);
        if at < self.alarm.at {
            self.alarm.at = at;
            queue.home.timers.at(at, queue);
        }
    }
}

impl Queue {
    /// Somebody declared it again, which counts as use.
    pub fn touch(self: &Arc<Self>) {
        self.state.lock().note_use(self);
    }

    /// Does what time or a change of settings made due; `at` is what it was asked for.
    pub(crate) fn look(self: &Arc<Self>, at: u64, now: u64) {
        let mut wakes = Wakes::default();
        self.learn_times();
        let over = {
            let mut state = self.state.lock();
            if state.deleted {
                return;
            }
            if state.alarm.at == at {
                state.alarm.at = NEVER;
            }
            state.time_anew(now);
            state.shorten(self, &mut wakes);
            state.expire(self, now, &mut wakes);
            state.leaving.try_again(now, self.was_stirred());
            if state.leaving.is_waiting() {
                wakes.dead_letters.note(self);
            }
            state.dispatch(self, &mut wakes);
            // The limits may be others.
            state.tell_room();
            state.note_timed();
            state.set_alarm(self, now);
            state.ends() <= now
        };
        wakes.wake();
        if over && let Some(vhost) = self.home.running.upgrade() {
            vhost.delete_if_over(self, now);
        }
    }

    /// Whether it was unused for too long.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.state.lock().ends() <= now
    }

    /// Finds out when messages expire that an earlier life left in segments, from the segments' indexes.
    fn learn_times(self: &Arc<Self>) {
        let Some(stored) = &self.stored else { return };
        for _ in 0..LOOK_UPS_MAX {
            let Some(from) = self.state.lock().backlog.unknown_times() else { return };
            match stored.durable.next_page(stored.number, from) {
                Ok(page) => {
                    self.state.lock().backlog.learn(from, page.as_ref());
                }
                Err(error) => {
                    tracing::error!(%error, queue = &*self.name, "the index of a segment can not be read");
                    return;
                }
            }
        }
        self.home.timers.at(0, self);
    }
}
