//! Rates: how fast counters grew between two looks.
//!
//! Owns the last samples of what somebody looks at, and forgets them when nobody does any more: no history is kept. Must not
//! know what is counted.

use deepmq_broker::connection::ConnectionId;
use deepmq_broker::queue::Queue;
use deepmq_model::Name;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Samples closer than this are taken for one, so that two who look at once do not spoil each other's rates.
const STEP: Duration = Duration::from_secs(1);
/// What nobody looked at for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_mins(1);
/// Samples at most; with more there are no further rates.
const SAMPLES_MAX: usize = 200_000;

/// Whose counters they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Watched {
    Broker,
    Totals(Name),
    Vhost(Name),
    Connection(ConnectionId),
    Channel(ConnectionId, u16),
    Queue(QueueKey),
    Depth(QueueKey),
    /// By vhost and name.
    Exchange(Name, Name),
}

/// A queue by its identity: one of the same name later is another. Holds its memory, not its messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueKey(Weak<Queue>);

impl From<&Arc<Queue>> for QueueKey {
    fn from(queue: &Arc<Queue>) -> Self {
        Self(Arc::downgrade(queue))
    }
}

impl PartialEq for QueueKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for QueueKey {}

impl std::hash::Hash for QueueKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

/// So many counters at most are sampled together.
pub(crate) const COUNTERS: usize = 10;
/// Counters that are sampled together.
pub(crate) type Counters = [u64; COUNTERS];

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    counters: Counters,
}

#[derive(Debug)]
struct Samples {
    /// What rates are measured against.
    base: Sample,
    last: Sample,
    looked_at: Duration,
    /// Since when no counter changed, as far as was seen.
    idle_since: Duration,
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rated {
    /// By how much each counter grew per second.
    pub(crate) rates: [f64; COUNTERS],
    /// Since when nothing changed, on the broker's clock.
    pub(crate) idle_since: Duration,
}

#[derive(Debug, Default)]
struct State {
    samples: HashMap<Watched, Samples>,
    swept_at: Duration,
}

/// All samples.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<State>);

impl Rates {
    /// Forgets all samples.
    pub(crate) fn forget(&self) {
        self.0.lock().samples.clear();
    }

    /// Samples counters, and tells how fast they grew since they were sampled before; at first, not at all.
    pub(crate) fn sample(&self, watched: Watched, counters: Counters, now: Duration) -> Rated {
        let mut state = self.0.lock();
        state.sweep(now);
        let sample = Sample { at: now, counters };
        if state.samples.len() >= SAMPLES_MAX && !state.samples.contains_key(&watched) {
            return Rated { rates: [0.0; COUNTERS], idle_since: now };
        }
        let known = state.samples.entry(watched).or_insert(Samples {
            base: sample,
            last: sample,
            looked_at: now,
            idle_since: now,
        });
        if known.last.counters != counters {
            known.idle_since = now;
        }
        known.looked_at = now;
        if now.saturating_sub(known.last.at) >= STEP {
            known.base = known.last;
            known.last = sample;
        }
        Rated { rates: growth(&known.base, &sample), idle_since: known.idle_since }
    }
}

impl State {
    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept_at) >= FORGET_AFTER / 2 {
            self.swept_at = now;
            self.samples.retain(|_, known| now.saturating_sub(known.looked_at) < FORGET_AFTER);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown, not counted with")]
fn growth(from: &Sample, to: &Sample) -> [f64; COUNTERS] {
    let seconds = to.at.saturating_sub(from.at).as_secs_f64();
    let mut rates = [0.0; COUNTERS];
    if seconds > 0.0 {
        for ((rate, from), to) in rates.iter_mut().zip(from.counters).zip(to.counters) {
            let grown = i128::from(to) - i128::from(from);
            *rate = grown as f64 / seconds;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(first: u64) -> Counters {
        let mut counters = [0; COUNTERS];
        counters[0] = first;
        counters
    }

    fn rate(rates: &Rates, count: u64, millis: u64) -> f64 {
        rates.sample(Watched::Broker, counted(count), Duration::from_millis(millis)).rates[0]
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these divisions are exact")]
    fn a_rate_is_the_growth_since_the_look_before_and_0_at_first() {
        let rates = Rates::default();
        assert_eq!(rate(&rates, 100, 1_000), 0.0);
        assert_eq!(rate(&rates, 300, 3_000), 100.0);
        assert_eq!(rate(&rates, 300, 3_000), 100.0, "who looks at once sees the same");
        assert_eq!(rate(&rates, 350, 3_500), 100.0);
        assert_eq!(rate(&rates, 200, 8_000), -20.0, "a depth may shrink");
    }

    #[test]
    fn what_nobody_looks_at_is_forgotten() {
        let rates = Rates::default();
        let at = Duration::from_secs;
        rates.sample(Watched::Vhost("v".into()), counted(1), at(0));
        rates.sample(Watched::Broker, counted(1), at(40));
        rates.sample(Watched::Broker, counted(1), at(80));
        assert_eq!(rates.0.lock().samples.len(), 1);
    }

    #[test]
    fn what_does_not_change_is_idle_since_it_was_seen_to_change() {
        let rates = Rates::default();
        let idle = |count, secs| {
            rates.sample(Watched::Broker, counted(count), Duration::from_secs(secs)).idle_since.as_secs()
        };
        assert_eq!((idle(1, 5), idle(1, 9), idle(2, 12), idle(2, 20)), (5, 5, 12, 12));
    }
}
