//! How many logins were tried, by protocol and by who tried.
//!
//! Owns the counts and the bound on them. Must not know how a login is decided.

use std::collections::BTreeMap;
use std::net::IpAddr;

use deepmq_model::Name;
use parking_lot::Mutex;

/// Sources told apart at most: their names are whatever peers say. Those of more are counted by protocol alone.
pub const SOURCES_MAX: usize = 1_000;

/// Who tried to log in, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// RabbitMQ's word for the protocol: `amqp091`, `http`.
    pub protocol: &'static str,
    /// From where.
    pub address: IpAddr,
    /// As whom.
    pub user: Name,
}

/// Tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that were let in.
    pub succeeded: u64,
    /// Those that were not.
    pub failed: u64,
}

/// All counts since the start, or since they were last reset.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    protocols: BTreeMap<&'static str, Tally>,
    sources: BTreeMap<Source, Tally>,
}

impl Tally {
    fn note(&mut self, succeeded: bool) {
        *(if succeeded { &mut self.succeeded } else { &mut self.failed }) += 1;
    }
}

impl Attempts {
    /// Counts a login that was decided.
    pub fn note(&self, source: Source, succeeded: bool) {
        let mut counts = self.0.lock();
        counts.protocols.entry(source.protocol).or_default().note(succeeded);
        if counts.sources.len() < SOURCES_MAX || counts.sources.contains_key(&source) {
            counts.sources.entry(source).or_default().note(succeeded);
        }
    }

    /// Counts by protocol.
    pub fn by_protocol(&self) -> Vec<(&'static str, Tally)> {
        self.0.lock().protocols.iter().map(|(protocol, tally)| (*protocol, *tally)).collect()
    }

    /// Counts by who tried.
    pub fn by_source(&self) -> Vec<(Source, Tally)> {
        self.0.lock().sources.iter().map(|(source, tally)| (source.clone(), *tally)).collect()
    }

    /// Begins to count anew.
    pub fn reset(&self) {
        *self.0.lock() = Counts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(user: &str) -> Source {
        Source { protocol: "http", address: IpAddr::from([127, 0, 0, 1]), user: user.into() }
    }

    #[test]
    fn logins_are_counted_by_protocol_and_by_who_tried_until_they_are_reset() {
        let attempts = Attempts::default();
        attempts.note(source("a"), true);
        attempts.note(source("a"), false);
        attempts.note(source("b"), false);
        assert_eq!(attempts.by_protocol(), [("http", Tally { succeeded: 1, failed: 2 })]);
        assert_eq!(attempts.by_source().len(), 2);
        attempts.reset();
        assert!(attempts.by_protocol().is_empty() && attempts.by_source().is_empty());
    }

    #[test]
    fn a_crowd_of_names_is_counted_and_not_remembered() {
        let attempts = Attempts::default();
        (0..=SOURCES_MAX).for_each(|n| attempts.note(source(&n.to_string()), false));
        attempts.note(source("0"), false);
        let all = u64::try_from(SOURCES_MAX).unwrap() + 2;
        assert_eq!(attempts.by_protocol(), [("http", Tally { succeeded: 0, failed: all })]);
        let sources = attempts.by_source();
        assert_eq!((sources.len(), sources[0].1.failed), (SOURCES_MAX, 2));
    }
}
