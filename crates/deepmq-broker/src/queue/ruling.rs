//! What holds for a queue, and what follows at once when that changes.
//!
//! Owns the change. Must not know where settings come from.

use super::Queue;
use crate::subscriber::Wakes;
use deepmq_model::queue::Settings;
use std::sync::Arc;
use std::time::Duration;

impl Queue {
    /// What holds for it now.
    pub fn settings(&self) -> Settings {
        self.state.lock().settings.clone()
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
        state.settings = settings;
        state.recount_ready();
        self.home.timers.at(0, self);
    }

    /// Does what time or a change of settings made due.
    pub(crate) fn look(self: &Arc<Self>, _now: u64) {
        let mut wakes = Wakes::default();
        {
            let mut state = self.state.lock();
            if state.deleted {
                return;
            }
            state.shorten(self, &mut wakes);
            if state.leaving.is_waiting() {
                wakes.dead_letters.note(self);
            }
        }
        wakes.wake();
    }
}
