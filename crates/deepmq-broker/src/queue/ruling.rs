//! What holds for a queue, and what follows at once when that changes.
//!
//! Owns the change. Must not know where settings come from.

use super::{Queue, State};
use deepmq_model::queue::Settings;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Queue {
    /// What holds for it now.
    pub fn settings(&self) -> Settings {
        self.state.lock().settings.clone()
    }

    /// These settings hold for a new queue.
    pub(super) fn begin(self: &Arc<Self>, settings: Settings) {
        let mut state = self.state.lock();
        state.settings = settings;
        state.time_anew(self.home.timers.now());
        state.note_use(self);
    }

    /// How long its deliveries may be unsettled, if it is said of this queue; zero is for ever.
    pub fn consumer_timeout(&self) -> Option<Duration> {
        self.state.lock().settings.consumer_timeout.map(Duration::from_millis)
    }

    /// From now on these settings hold. What follows for the messages it has is done by the timers' thread, soon.
    pub(crate) fn follow(self: &Arc<Self>, settings: Settings) {
        let mut state = self.state.lock();
        if state.deleted || state.settings == settings {
            return;
        }
        let begins_to_end = state.settings.expires.is_none();
        state.settings = settings;
        state.recount_ready();
        if state.backlog.is_empty() {
            // Otherwise it can take a while.
            state.time_anew(self.home.timers.now());
        }
        if begins_to_end {
            state.note_use(self);
        }
        // Dead letters may go elsewhere now.
        self.stirred.store(true, Relaxed);
        self.home.timers.at(0, self);
    }
}

impl State {
    /// Messages are good for as long as the settings say now.
    pub(super) fn time_anew(&mut self, now: u64) {
        self.backlog.set_ttl(self.settings.message_ttl, now);
        self.note_timed();
    }
}
