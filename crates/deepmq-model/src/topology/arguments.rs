//! The arguments of a queue that the broker knows: their names, types and ranges, and which a redeclaration compares.
//!
//! Owns reading them from a table. Must not know what a queue does with them.
//!
//! Every argument goes with either queue type, for one engine serves both. Unknown arguments are kept and ignored.

use std::fmt;
use std::time::Duration;

use super::error::{ArgumentFault, Resource, TopologyError};
use crate::value::{Name, Table, Value};

pub(super) const QUEUE_TYPE: &str = "x-queue-type";
const MESSAGE_TTL: &str = "x-message-ttl";
const EXPIRES: &str = "x-expires";
const MAX_LENGTH: &str = "x-max-length";
const MAX_LENGTH_BYTES: &str = "x-max-length-bytes";
const OVERFLOW: &str = "x-overflow";
const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
const DEAD_LETTER_ROUTING_KEY: &str = "x-dead-letter-routing-key";
const DEAD_LETTER_STRATEGY: &str = "x-dead-letter-strategy";
const MAX_PRIORITY: &str = "x-max-priority";
const SINGLE_ACTIVE_CONSUMER: &str = "x-single-active-consumer";
const DELIVERY_LIMIT: &str = "x-delivery-limit";
const CONSUMER_TIMEOUT: &str = "x-consumer-timeout";
const DURABILITY: &str = "x-durability";

/// The arguments a redeclaration must agree in.
pub(super) const COMPARED: [&str; 14] = [
    QUEUE_TYPE,
    MESSAGE_TTL,
    EXPIRES,
    MAX_LENGTH,
    MAX_LENGTH_BYTES,
    OVERFLOW,
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_ROUTING_KEY,
    DEAD_LETTER_STRATEGY,
    MAX_PRIORITY,
    SINGLE_ACTIVE_CONSUMER,
    DELIVERY_LIMIT,
    CONSUMER_TIMEOUT,
    DURABILITY,
];

/// Strings that say where or how RabbitMQ keeps a queue: their type is checked, their value means nothing here.
const IGNORED_STRINGS: [&str; 3] = ["x-queue-mode", "x-queue-leader-locator", "x-queue-master-locator"];

/// Integers of the same sort.
const IGNORED_INTEGERS: [&str; 5] = [
    "x-queue-version",
    "x-quorum-initial-group-size",
    "x-initial-cluster-size",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
];

/// The longest time an argument may give, ten years, in milliseconds.
const TIME_MAX: i64 = 315_360_000_000;

/// A queue's type: two profiles of one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueKind {
    /// `classic`
    #[default]
    Classic,
    /// `quorum`
    Quorum,
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        })
    }
}

/// What becomes of a message that a full queue has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The oldest messages make room.
    #[default]
    DropHead,
    /// The new message is refused.
    RejectPublish,
    /// The new message is refused and dead-lettered.
    RejectPublishDeadLetter,
}

impl Overflow {
    /// The one that clients call so.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        match name {
            b"drop-head" => Some(Self::DropHead),
            b"reject-publish" => Some(Self::RejectPublish),
            b"reject-publish-dlx" => Some(Self::RejectPublishDeadLetter),
            _ => None,
        }
    }
}

/// How sure a dead letter's way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterStrategy {
    /// `at-most-once`
    AtMostOnce,
    /// `at-least-once`
    AtLeastOnce,
}

impl DeadLetterStrategy {
    /// By its name in arguments and policies.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        match name {
            b"at-most-once" => Some(Self::AtMostOnce),
            b"at-least-once" => Some(Self::AtLeastOnce),
            _ => None,
        }
    }
}

/// How often a message may be delivered in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryLimit {
    /// For ever: any negative number.
    Unlimited,
    /// So many times.
    Times(u64),
}

/// How far a persistent message must have come before it is confirmed. Ours, not RabbitMQ's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityMode {
    /// `fsync`: on the disk, so that it outlives the machine's end
    Fsync,
    /// `os`: with the operating system, so that it outlives the broker's end
    Os,
}

/// A queue's known arguments. What is `None` was not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueArguments {
    /// `x-queue-type`
    pub kind: QueueKind,
    /// `x-message-ttl`: 0 to 10 years
    pub message_ttl: Option<Duration>,
    /// `x-expires`: 1 ms to 10 years
    pub expires: Option<Duration>,
    /// `x-max-length`: ready messages
    pub max_length: Option<u64>,
    /// `x-max-length-bytes`: bytes of ready messages' bodies
    pub max_length_bytes: Option<u64>,
    /// `x-overflow`
    pub overflow: Option<Overflow>,
    /// `x-dead-letter-exchange`: need not exist
    pub dead_letter_exchange: Option<Name>,
    /// `x-dead-letter-routing-key`
    pub dead_letter_routing_key: Option<Box<[u8]>>,
    /// `x-dead-letter-strategy`
    pub dead_letter_strategy: Option<DeadLetterStrategy>,
    /// `x-max-priority`
    pub max_priority: Option<u8>,
    /// `x-single-active-consumer`
    pub single_active_consumer: bool,
    /// `x-delivery-limit`
    pub delivery_limit: Option<DeliveryLimit>,
    /// `x-consumer-timeout`: 0 to 10 years; 0 is for ever
    pub consumer_timeout: Option<Duration>,
    /// `x-durability`: the broker's, if it is not given
    pub durability: Option<DurabilityMode>,
}

impl QueueArguments {
    /// Reads the arguments of the queue called `queue`.
    ///
    /// # Errors
    /// A known argument has a wrong type or value.
    pub fn parse(queue: &str, table: &Table) -> Result<Self, TopologyError> {
        if let Some(value) = table.get(DEAD_LETTER_EXCHANGE).filter(|value| !matches!(value, Value::Str(_))) {
            return Err(TopologyError::InvalidArgumentType {
                resource: Resource::queue(queue),
                argument: DEAD_LETTER_EXCHANGE,
                type_name: value.type_name(),
            });
        }
        if table.get(QUEUE_TYPE).and_then(Value::as_str) == Some("stream") {
            return Err(TopologyError::StreamUnsupported { queue: queue.into() });
        }
        let reader = Reader { queue, table };
        for argument in IGNORED_STRINGS {
            reader.read(argument, |value| string(value).map(drop))?;
        }
        for argument in IGNORED_INTEGERS {
            reader.read(argument, natural)?;
        }
        Ok(Self {
            kind: reader.read(QUEUE_TYPE, queue_kind)?.unwrap_or_default(),
            message_ttl: reader.read(MESSAGE_TTL, time)?,
            expires: reader.read(EXPIRES, positive_time)?,
            max_length: reader.read(MAX_LENGTH, natural)?,
            max_length_bytes: reader.read(MAX_LENGTH_BYTES, natural)?,
            overflow: reader.read(OVERFLOW, overflow)?,
            dead_letter_exchange: reader.read(DEAD_LETTER_EXCHANGE, name)?,
            dead_letter_routing_key: reader
                .read(DEAD_LETTER_ROUTING_KEY, |value| dead_letter_routing_key(value, table))?,
            dead_letter_strategy: reader.read(DEAD_LETTER_STRATEGY, dead_letter_strategy)?,
            max_priority: reader.read(MAX_PRIORITY, priority)?,
            single_active_consumer: reader.read(SINGLE_ACTIVE_CONSUMER, boolean)?.unwrap_or_default(),
            delivery_limit: reader.read(DELIVERY_LIMIT, delivery_limit)?,
            consumer_timeout: reader.read(CONSUMER_TIMEOUT, time)?,
            durability: reader.read(DURABILITY, durability)?,
        })
    }
}

struct Reader<'a> {
    queue: &'a str,
    table: &'a Table,
}

impl Reader<'_> {
    fn read<T>(
        &self,
        argument: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, ArgumentFault>,
    ) -> Result<Option<T>, TopologyError> {
        self.table.get(argument).map(parse).transpose().map_err(|fault| TopologyError::InvalidArgument {
            queue: self.queue.into(),
            argument,
            fault,
        })
    }
}

fn integer(value: &Value) -> Result<i64, ArgumentFault> {
    value.as_integer().ok_or(ArgumentFault::NotInteger(value.type_name()))
}

fn natural(value: &Value) -> Result<u64, ArgumentFault> {
    let number = integer(value)?;
    u64::try_from(number).map_err(|_| ArgumentFault::Negative(number))
}

fn time(value: &Value) -> Result<Duration, ArgumentFault> {
    let milliseconds = natural(value)?;
    let number = integer(value)?;
    if number > TIME_MAX {
        return Err(ArgumentFault::TooLarge(number));
    }
    Ok(Duration::from_millis(milliseconds))
}

fn positive_time(value: &Value) -> Result<Duration, ArgumentFault> {
    let time = time(value)?;
    if time.is_zero() { Err(ArgumentFault::Zero) } else { Ok(time) }
}

fn priority(value: &Value) -> Result<u8, ArgumentFault> {
    let number = natural(value)?;
    u8::try_from(number).map_err(|_| ArgumentFault::MaxExceeded(number.cast_signed()))
}

fn delivery_limit(value: &Value) -> Result<DeliveryLimit, ArgumentFault> {
    let number = integer(value)?;
    Ok(u64::try_from(number).map_or(DeliveryLimit::Unlimited, DeliveryLimit::Times))
}

fn boolean(value: &Value) -> Result<bool, ArgumentFault> {
    match value {
        Value::Bool(bool) => Ok(*bool),
        other => Err(ArgumentFault::UnacceptableType(other.type_name())),
    }
}

fn string(value: &Value) -> Result<&[u8], ArgumentFault> {
    match value {
        Value::Str(bytes) => Ok(bytes),
        other => Err(ArgumentFault::UnacceptableType(other.type_name())),
    }
}

fn name(value: &Value) -> Result<Name, ArgumentFault> {
    let text = std::str::from_utf8(string(value)?).map_err(|_| ArgumentFault::NotUtf8)?;
    Ok(text.into())
}

fn dead_letter_routing_key(value: &Value, table: &Table) -> Result<Box<[u8]>, ArgumentFault> {
    let key = string(value)?;
    if table.get(DEAD_LETTER_EXCHANGE).is_none() {
        return Err(ArgumentFault::NoDeadLetterExchange);
    }
    Ok(key.into())
}

fn queue_kind(value: &Value) -> Result<QueueKind, ArgumentFault> {
    match string(value)? {
        b"classic" => Ok(QueueKind::Classic),
        b"quorum" => Ok(QueueKind::Quorum),
        other => Err(ArgumentFault::QueueType(String::from_utf8_lossy(other).into_owned())),
    }
}

fn durability(value: &Value) -> Result<DurabilityMode, ArgumentFault> {
    match string(value)? {
        b"fsync" => Ok(DurabilityMode::Fsync),
        b"os" => Ok(DurabilityMode::Os),
        other => Err(ArgumentFault::Durability(String::from_utf8_lossy(other).into_owned())),
    }
}

fn overflow(value: &Value) -> Result<Overflow, ArgumentFault> {
    Overflow::of_name(string(value)?).ok_or(ArgumentFault::Overflow)
}

fn dead_letter_strategy(value: &Value) -> Result<DeadLetterStrategy, ArgumentFault> {
    DeadLetterStrategy::of_name(string(value)?).ok_or(ArgumentFault::DeadLetterStrategy)
}
