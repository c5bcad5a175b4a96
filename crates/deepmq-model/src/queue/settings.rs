//! What holds for a queue: its arguments and its policies in one.
//!
//! Owns how they are merged, and when a queue is over its limits. Must not know what is done about that. The rules are
//! RabbitMQ's (reference 1.7 and 2.7): of two numbers the smaller counts; of anything else the argument, but for the overflow
//! of quorum queues, where the policy does.

#[cfg(test)]
mod tests;

use crate::topology::{DeadLetterStrategy, DeliveryLimit, Overflow, QueueArguments, QueueKind};
use crate::value::{Name, Table, Value};
use std::time::Duration;

/// How often a message of a quorum queue may come back, if nothing else is said.
const QUORUM_DELIVERY_LIMIT: u64 = 20;

/// Where dead letters go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterTo {
    /// The exchange, which need not exist.
    pub exchange: Name,
    /// The routing key they get; their own if none.
    pub routing_key: Option<Box<[u8]>>,
    /// They stay until every queue they are routed to has taken them, instead of being lost where one does not.
    pub at_least_once: bool,
}

/// What holds for one queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// How long a message may be ready, in milliseconds.
    pub message_ttl: Option<u64>,
    /// How long the queue may be unused, in milliseconds.
    pub expires: Option<u64>,
    /// Ready messages it may have.
    pub max_length: Option<u64>,
    /// Bytes of ready messages' bodies it may have.
    pub max_length_bytes: Option<u64>,
    /// What gives way when there are more.
    pub overflow: Overflow,
    /// Where dead letters go; without it they are dropped.
    pub dead_letter: Option<DeadLetterTo>,
    /// How often a message may come back.
    pub delivery_limit: Option<u64>,
    /// How long a delivery may be unsettled, in milliseconds; 0: for ever.
    pub consumer_timeout: Option<u64>,
    /// Consumers are told how often a message came back.
    pub tells_returns: bool,
}

impl Settings {
    /// What follows from a queue's arguments and the definition of the policies for it.
    pub fn effective(declared: &QueueArguments, policy: &Table) -> Self {
        let integer = |key| policy.get(key).and_then(Value::as_integer);
        let natural = |key| integer(key).and_then(|number| u64::try_from(number).ok());
        let of_policy = policy.get("overflow").and_then(Value::as_str);
        let overflows = [declared.overflow, of_policy.and_then(|name| Overflow::of_name(name.as_bytes()))];
        let [first, second] = overflows;
        let quorum = declared.kind == QueueKind::Quorum;
        let limits = (declared.delivery_limit, integer("delivery-limit"));
        let overflow = if quorum { second.or(first) } else { first.or(second) }.unwrap_or_default();
        Self {
            message_ttl: smaller(declared.message_ttl.map(milliseconds), natural("message-ttl")),
            expires: smaller(declared.expires.map(milliseconds), natural("expires")),
            max_length: smaller(declared.max_length, natural("max-length")),
            max_length_bytes: smaller(declared.max_length_bytes, natural("max-length-bytes")),
            overflow,
            dead_letter: dead_letter(declared, policy, overflow),
            delivery_limit: delivery_limit(limits, quorum),
            consumer_timeout: smaller(
                declared.consumer_timeout.map(milliseconds),
                natural("consumer-timeout"),
            ),
            tells_returns: quorum || limits != (None, None),
        }
    }

    /// Whether there is a bound on what the queue holds.
    pub fn is_limited(&self) -> bool {
        self.max_length.is_some() || self.max_length_bytes.is_some()
    }

    /// Whether so many ready messages with so many bytes of bodies are too much.
    pub fn is_exceeded(&self, ready: u64, bytes: u64) -> bool {
        self.max_length.is_some_and(|max| ready > max) || self.max_length_bytes.is_some_and(|max| bytes > max)
    }

    /// Whether a full queue refuses what is published, rather than to let go of the oldest.
    pub fn refuses(&self) -> bool {
        self.is_limited() && self.overflow != Overflow::DropHead
    }

    /// Whether a message that came back so many times has come back too often.
    pub fn is_undeliverable(&self, returns: u32) -> bool {
        self.delivery_limit.is_some_and(|limit| u64::from(returns) > limit)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn smaller(argument: Option<u64>, policy: Option<u64>) -> Option<u64> {
    argument.into_iter().chain(policy).min()
}

/// Exchange, key and strategy are looked for on their own, as RabbitMQ does. At least once is only for queues that refuse what is
/// published when they are full, for what waits counts against their limits; others do as if nothing were said.
fn dead_letter(declared: &QueueArguments, policy: &Table, overflow: Overflow) -> Option<DeadLetterTo> {
    let of_policy = || policy.get("dead-letter-exchange").and_then(Value::as_str).map(Name::from);
    let key = || policy.get("dead-letter-routing-key").and_then(Value::as_str);
    let strategy = || DeadLetterStrategy::of_name(policy.get("dead-letter-strategy")?.as_str()?.as_bytes());
    let strategy = declared.dead_letter_strategy.or_else(strategy);
    Some(DeadLetterTo {
        exchange: declared.dead_letter_exchange.clone().or_else(of_policy)?,
        routing_key: declared.dead_letter_routing_key.clone().or_else(|| Some(key()?.as_bytes().into())),
        at_least_once: strategy == Some(DeadLetterStrategy::AtLeastOnce)
            && overflow == Overflow::RejectPublish,
    })
}

/// A negative limit is none, and gives way to one that is.
fn delivery_limit((argument, policy): (Option<DeliveryLimit>, Option<i64>), quorum: bool) -> Option<u64> {
    if (argument, policy) == (None, None) {
        return quorum.then_some(QUORUM_DELIVERY_LIMIT);
    }
    let argument = match argument {
        Some(DeliveryLimit::Times(times)) => Some(times),
        Some(DeliveryLimit::Unlimited) | None => None,
    };
    smaller(argument, policy.and_then(|limit| u64::try_from(limit).ok()))
}
