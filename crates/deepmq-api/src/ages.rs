//! How old the oldest message of a queue is, as far as somebody looked: messages carry no time of their own.
//!
//! Owns what was seen at each look, and forgets it when nobody looks any more. A message that was there at a look is at least as
//! old as that, so who asks every fifteen seconds, as Prometheus does, knows ages to fifteen seconds. Must not know queues.

use crate::rates::QueueKey;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// What nobody looked at for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_mins(10);
/// Looks remembered of a queue; of more, every second one is forgotten.
const LOOKS_MAX: usize = 32;
/// Queues at most; of more there is no age.
const QUEUES_MAX: usize = 100_000;

/// The oldest message and the one to come, by their places in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) oldest: u64,
    pub(crate) next: u64,
}

/// At a time, all messages before `next` had come.
#[derive(Debug, Clone, Copy)]
struct Look {
    next: u64,
    at: Duration,
}

#[derive(Debug, Default)]
struct Looks {
    looks: VecDeque<Look>,
    last: Duration,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<QueueKey, Looks>,
    swept_at: Duration,
}

/// All looks.
#[derive(Debug, Default)]
pub(crate) struct Ages(Mutex<State>);

impl Ages {
    /// Looks at a queue: the least age of its oldest message; none if it has no message.
    pub(crate) fn look(&self, queue: QueueKey, span: Option<Span>, now: Duration) -> Option<Duration> {
        let mut state = self.0.lock();
        state.sweep(now);
        let Some(span) = span else {
            state.queues.remove(&queue);
            return None;
        };
        if state.queues.len() >= QUEUES_MAX && !state.queues.contains_key(&queue) {
            return Some(Duration::ZERO);
        }
        Some(state.queues.entry(queue).or_default().look(span, now))
    }
}

impl State {
    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept_at) >= FORGET_AFTER / 2 {
            self.swept_at = now;
            self.queues.retain(|_, looks| now.saturating_sub(looks.last) < FORGET_AFTER);
        }
    }
}

impl Looks {
    fn look(&mut self, span: Span, now: Duration) -> Duration {
        self.last = now;
        // Of messages that are gone nothing need be known.
        while self.looks.front().is_some_and(|look| look.next <= span.oldest) {
            self.looks.pop_front();
        }
        if self.looks.back().is_none_or(|look| look.next < span.next) {
            if self.looks.len() >= LOOKS_MAX {
                let mut keep = false;
                self.looks.retain(|_| {
                    keep = !keep;
                    keep
                });
            }
            self.looks.push_back(Look { next: span.next, at: now });
        }
        self.looks.front().map(|look| now.saturating_sub(look.at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(looks: &mut Looks, oldest: u64, next: u64, secs: u64) -> u64 {
        looks.look(Span { oldest, next }, Duration::from_secs(secs)).as_secs()
    }

    #[test]
    fn a_message_is_at_least_as_old_as_the_first_look_that_found_it() {
        let mut looks = Looks::default();
        assert_eq!(look(&mut looks, 0, 5, 100), 0, "it may be older, but nobody looked");
        assert_eq!(look(&mut looks, 0, 9, 115), 15);
        assert_eq!(look(&mut looks, 4, 9, 130), 30);
        assert_eq!(look(&mut looks, 5, 9, 130), 15, "it came after the first look");
        assert_eq!(look(&mut looks, 9, 12, 145), 0);
    }

    #[test]
    fn many_looks_cost_no_more_than_some_and_an_age_never_shrinks_for_it() {
        let mut looks = Looks::default();
        for n in 1..=1_000 {
            assert_eq!(look(&mut looks, 0, n, n), n - 1);
            assert!(looks.looks.len() <= LOOKS_MAX);
        }
        assert!(look(&mut looks, 500, 1_000, 1_000) <= 500, "never more than it can be");
    }

    #[test]
    fn an_empty_queue_has_no_age_and_who_is_not_asked_about_is_forgotten() {
        let ages = Ages::default();
        let key = || QueueKey::default();
        let at = Duration::from_secs;
        assert_eq!(ages.look(key(), Some(Span { oldest: 0, next: 1 }), at(1)), Some(at(0)));
        assert_eq!(ages.look(key(), Some(Span { oldest: 0, next: 1 }), at(5)), Some(at(4)));
        assert_eq!(ages.look(key(), None, at(6)), None);
        assert_eq!(ages.look(key(), Some(Span { oldest: 0, next: 1 }), at(7)), Some(at(0)));
        assert_eq!(ages.look(key(), Some(Span { oldest: 0, next: 1 }), at(7_000)), Some(at(0)));
    }
}
