//! The keys of a policy's definition: their types and ranges, and how two values of one are merged.
//!
//! Owns the list. Must not know what follows from a key. Keys that mean nothing here, such as those of mirrored queues, are
//! taken as long as RabbitMQ took them, so that a definition exported there can be imported.

use std::fmt::{self, Display};

use super::PolicyRank;
use crate::value::{Table, Value};

/// What is wrong with a definition. The texts are RabbitMQ's where it has one.
#[derive(Debug, Clone, PartialEq)]
pub enum DefinitionFault {
    /// It has no keys.
    Empty,
    /// A key that does not exist.
    UnknownKey(String),
    /// A key that operators do not have.
    NotForOperators(String),
    /// A value of the wrong type or out of range; what it must be.
    Value {
        /// The key.
        key: String,
        /// What its value must be.
        must_be: &'static str,
    },
    /// A key that means nothing without another.
    Missing {
        /// The key that is there.
        key: &'static str,
        /// The key it needs.
        needs: &'static str,
    },
}

impl Display for DefinitionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no policy provided"),
            Self::UnknownKey(key) => write!(f, "{key:?} is not a recognised policy setting"),
            Self::NotForOperators(key) => write!(f, "{key:?} is not a recognised operator policy setting"),
            Self::Value { key, must_be } => write!(f, "{key:?} must be {must_be}"),
            Self::Missing { key, needs } => write!(f, "{key:?} needs {needs:?} beside it"),
        }
    }
}

impl std::error::Error for DefinitionFault {}

/// What values a key takes.
#[derive(Debug, Clone, Copy)]
enum Sort {
    Natural,
    Positive,
    Integer,
    Text,
    OneOf(&'static [&'static str], &'static str),
    Anything,
}

/// How a user's and an operator's value are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merge {
    /// Operators do not have the key.
    UserOnly,
    Smaller,
    Larger,
    /// As `Smaller`, but a negative value is no limit.
    SmallerLimit,
    OperatorWins,
}

struct Key {
    name: &'static str,
    sort: Sort,
    merge: Merge,
}

const fn key(name: &'static str, sort: Sort) -> Key {
    Key { name, sort, merge: Merge::UserOnly }
}

const fn shared(name: &'static str, sort: Sort, merge: Merge) -> Key {
    Key { name, sort, merge }
}

const OVERFLOW: Sort = Sort::OneOf(
    &["drop-head", "reject-publish", "reject-publish-dlx"],
    "one of drop-head, reject-publish, reject-publish-dlx",
);
const STRATEGY: Sort = Sort::OneOf(&["at-most-once", "at-least-once"], "one of at-most-once, at-least-once");
const QUEUE_MODE: Sort = Sort::OneOf(&["default", "lazy"], "one of default, lazy");

const KEYS: &[Key] = &[
    key("alternate-exchange", Sort::Text),
    key("consumer-disconnected-timeout", Sort::Natural),
    key("consumer-timeout", Sort::Natural),
    key("dead-letter-exchange", Sort::Text),
    key("dead-letter-routing-key", Sort::Text),
    key("dead-letter-strategy", STRATEGY),
    key("delayed-message", Sort::Anything),
    key("delayed-retry-max", Sort::Natural),
    key("delayed-retry-min", Sort::Natural),
    key("delayed-retry-type", Sort::Text),
    shared("delivery-limit", Sort::Integer, Merge::SmallerLimit),
    shared("expires", Sort::Positive, Merge::Smaller),
    key("federation-upstream", Sort::Text),
    key("federation-upstream-set", Sort::Text),
    key("federation-upstream-pattern", Sort::Text),
    key("ha-mode", Sort::Text),
    key("ha-params", Sort::Anything),
    key("ha-promote-on-failure", Sort::Text),
    key("ha-promote-on-shutdown", Sort::Text),
    key("ha-sync-batch-size", Sort::Natural),
    key("ha-sync-mode", Sort::Text),
    key("initial-cluster-size", Sort::Positive),
    key("max-age", Sort::Text),
    shared("max-in-memory-bytes", Sort::Natural, Merge::Smaller),
    shared("max-in-memory-length", Sort::Natural, Merge::Smaller),
    shared("max-length", Sort::Natural, Merge::Smaller),
    shared("max-length-bytes", Sort::Natural, Merge::Smaller),
    shared("message-ttl", Sort::Natural, Merge::Smaller),
    shared("overflow", OVERFLOW, Merge::OperatorWins),
    key("queue-leader-locator", Sort::Text),
    key("queue-master-locator", Sort::Text),
    key("queue-mode", QUEUE_MODE),
    shared("queue-version", Sort::Natural, Merge::OperatorWins),
    key("stream-filter-size-bytes", Sort::Natural),
    key("stream-max-segment-size-bytes", Sort::Natural),
    shared("target-group-size", Sort::Positive, Merge::Larger),
];

/// Checks a definition.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_definition(definition: &Table, rank: PolicyRank) -> Result<(), DefinitionFault> {
    if definition.is_empty() {
        return Err(DefinitionFault::Empty);
    }
    for (name, value) in definition.iter() {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            return Err(DefinitionFault::UnknownKey(name.to_owned()));
        };
        if rank == PolicyRank::Operator && key.merge == Merge::UserOnly {
            return Err(DefinitionFault::NotForOperators(name.to_owned()));
        }
        if let Err(must_be) = check_value(key.sort, value) {
            return Err(DefinitionFault::Value { key: name.to_owned(), must_be });
        }
    }
    let ha_mode = definition.get("ha-mode");
    if definition.get("ha-params").is_some() && ha_mode.is_none() {
        return Err(DefinitionFault::Missing { key: "ha-params", needs: "ha-mode" });
    }
    Ok(())
}

fn check_value(sort: Sort, value: &Value) -> Result<(), &'static str> {
    let at_least = |least: i64, must_be| match value.as_integer() {
        Some(number) if number >= least => Ok(()),
        _ => Err(must_be),
    };
    match sort {
        Sort::Natural => at_least(0, "a non-negative integer"),
        Sort::Positive => at_least(1, "a positive integer"),
        Sort::Integer => at_least(i64::MIN, "an integer"),
        Sort::Text => value.as_str().map(drop).ok_or("a string"),
        Sort::OneOf(words, must_be) => {
            value.as_str().filter(|text| words.contains(text)).map(drop).ok_or(must_be)
        }
        Sort::Anything => Ok(()),
    }
}

/// Which of a user's and an operator's value of a key counts.
pub(super) fn stricter<'v>(name: &str, user: &'v Value, operator: &'v Value) -> &'v Value {
    let merge = KEYS.iter().find(|key| key.name == name).map_or(Merge::UserOnly, |key| key.merge);
    let (Some(ours), Some(theirs)) = (user.as_integer(), operator.as_integer()) else {
        return if merge == Merge::UserOnly { user } else { operator };
    };
    let operator_counts = match merge {
        Merge::UserOnly => false,
        Merge::OperatorWins => true,
        Merge::Smaller => theirs < ours,
        Merge::Larger => theirs > ours,
        Merge::SmallerLimit => theirs >= 0 && (ours < 0 || theirs < ours),
    };
    if operator_counts { operator } else { user }
}
