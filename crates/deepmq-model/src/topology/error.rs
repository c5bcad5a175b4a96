//! Why the topology refuses an operation.
//!
//! Owns the refusals, with the fields a front-end needs to word them. Must not know reply codes or vhosts' names.

use std::fmt;

use thiserror::Error;

use super::arguments::QueueKind;
use crate::value::Value;

/// The two kinds of things with a name in a vhost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// A queue.
    Queue,
    /// An exchange.
    Exchange,
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Exchange => "exchange",
        })
    }
}

/// A queue or exchange by name, whether it exists or not. Displays as `queue 'q'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its name.
    pub name: Box<str>,
}

impl Resource {
    /// A queue.
    pub fn queue(name: &str) -> Self {
        Self { kind: ResourceKind::Queue, name: name.into() }
    }

    /// An exchange.
    pub fn exchange(name: &str) -> Self {
        Self { kind: ResourceKind::Exchange, name: name.into() }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", self.kind, self.name)
    }
}

/// What is limited, see [`super::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Queues of the vhost.
    Queues,
    /// Exchanges of the vhost.
    Exchanges,
    /// Bindings of the vhost.
    Bindings,
    /// Entries of one table of arguments.
    Arguments,
    /// Bytes of one name or key.
    NameBytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queues => "queues",
            Self::Exchanges => "exchanges",
            Self::Bindings => "bindings",
            Self::Arguments => "arguments",
            Self::NameBytes => "name bytes",
        })
    }
}

/// What is wrong with a queue argument. Displays as the tail of RabbitMQ's `invalid arg` text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentFault {
    /// Not an integer; the type it has.
    #[error("\"expected integer, got {0}\"")]
    NotInteger(&'static str),
    /// Another type than the one needed; the type it has.
    #[error("{{unacceptable_type,{0}}}")]
    UnacceptableType(&'static str),
    /// Below zero.
    #[error("{{value_negative,{0}}}")]
    Negative(i64),
    /// Zero, where at least one is needed.
    #[error("{{value_zero,0}}")]
    Zero,
    /// A time over ten years, in milliseconds.
    #[error("{{value_too_large,{0}}}")]
    TooLarge(i64),
    /// A priority over 255.
    #[error("{{max_value_exceeded,{0}}}")]
    MaxExceeded(i64),
    /// No known `x-overflow`.
    #[error("invalid_overflow")]
    Overflow,
    /// No known `x-dead-letter-strategy`.
    #[error("invalid_dlx_strategy")]
    DeadLetterStrategy,
    /// `x-dead-letter-routing-key` without `x-dead-letter-exchange`.
    #[error("routing_key_but_no_dlx_defined")]
    NoDeadLetterExchange,
    /// No known `x-queue-type`.
    #[error("\"unsupported queue type '{0}'\"")]
    QueueType(String),
    /// No known `x-durability`.
    #[error("\"expected 'fsync' or 'os', got '{0}'\"")]
    Durability(String),
    /// A name that is not UTF-8.
    #[error("invalid_utf8")]
    NotUtf8,
}

/// Why an operation on the topology is refused; nothing has changed then.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TopologyError {
    /// There is none.
    #[error("no {0}")]
    NotFound(Resource),
    /// The queue is exclusive to another connection, or the declaration differs in being exclusive.
    #[error("cannot obtain exclusive access to locked queue '{queue}'")]
    Locked {
        /// The queue's name.
        queue: Box<str>,
    },
    /// It exists and differs in its type or a flag.
    #[error("inequivalent arg '{flag}' for {resource}: received '{received}' but current is '{current}'")]
    InequivalentFlag {
        /// What was declared.
        resource: Resource,
        /// `type`, `durable`, `auto_delete` or `internal`.
        flag: &'static str,
        /// As declared now: a type's name, `true` or `false`.
        received: &'static str,
        /// As it is.
        current: &'static str,
    },
    /// It exists and differs in an argument.
    #[error("inequivalent arg '{argument}' for {resource}: received {} but current is {}",
        describe(received.as_ref()), describe(current.as_ref()))]
    InequivalentArgument {
        /// What was declared.
        resource: Resource,
        /// The argument's key.
        argument: &'static str,
        /// As declared now, see [`describe`].
        received: Option<Value>,
        /// As it is.
        current: Option<Value>,
    },
    /// A new name that starts with `amq.`.
    #[error("{} name '{}' contains reserved prefix 'amq.*'", .0.kind, .0.name)]
    ReservedName(Resource),
    /// A queue without a name: naming it is for who asks.
    #[error("a queue needs a name")]
    UnnamedQueue,
    /// No exchange type has this name.
    #[error("unknown exchange type '{name}'")]
    UnknownExchangeType {
        /// The name given.
        name: String,
    },
    /// A queue argument is out of its range.
    #[error("invalid arg '{argument}' for queue '{queue}': {fault}")]
    InvalidArgument {
        /// The queue's name.
        queue: Box<str>,
        /// The argument's key.
        argument: &'static str,
        /// What is wrong with it.
        fault: ArgumentFault,
    },
    /// A dead letter or alternate exchange is not given as a string.
    #[error("invalid type '{type_name}' for arg '{argument}' in {resource}")]
    InvalidArgumentType {
        /// What was declared.
        resource: Resource,
        /// The argument's key.
        argument: &'static str,
        /// The type it has.
        type_name: &'static str,
    },
    /// A property the queue's type does not have: `exclusive-owner`, `auto-delete` or `non-durable`.
    #[error("invalid property '{property}' for queue '{queue}'")]
    InvalidProperty {
        /// The queue's name.
        queue: Box<str>,
        /// RabbitMQ's name of the property.
        property: &'static str,
    },
    /// Streams are not supported.
    #[error("queue '{queue}' cannot be a stream: streams are not supported")]
    StreamUnsupported {
        /// The queue's name.
        queue: Box<str>,
    },
    /// The server names queues of the classic type only.
    #[error("Cannot declare a server-named queue for type {kind}")]
    ServerNamed {
        /// The type asked for.
        kind: QueueKind,
    },
    /// The default exchange is nobody's to declare, delete or bind.
    #[error("operation not permitted on the default exchange")]
    DefaultExchange,
    /// An `amq.` exchange is nobody's to delete.
    #[error("deletion of system exchange '{exchange}' not allowed")]
    SystemExchange {
        /// The exchange's name.
        exchange: Box<str>,
    },
    /// It is to be deleted only if unused, but has bindings.
    #[error("{0} in use")]
    InUse(Resource),
    /// A topic binding key has too many `#`.
    #[error("Topic binding key '{key}' uses {hashes} '#' wildcards, at most {max} are allowed")]
    TooManyHashes {
        /// The key, as far as it is UTF-8.
        key: String,
        /// How many it has.
        hashes: usize,
        /// How many it may have.
        max: usize,
    },
    /// No known `x-match`.
    #[error("Invalid x-match field value {value}; expected all, any, all-with-x, or any-with-x")]
    InvalidMatch {
        /// The value, as far as it is UTF-8.
        value: String,
    },
    /// An `x-match` that is no string.
    #[error("Invalid x-match field type {type_name}; expected longstr")]
    InvalidMatchType {
        /// The type it has.
        type_name: &'static str,
    },
    /// Something would exceed its limit.
    #[error("'{name}' exceeds the limit of {max} {limit}")]
    LimitReached {
        /// What is limited.
        limit: Limit,
        /// What was asked for.
        name: Box<str>,
        /// How much is allowed.
        max: usize,
    },
}

/// An argument's value as RabbitMQ's inequivalence text tells it: `none`, or `the value '100' of type 'signedint'`.
pub fn describe(value: Option<&Value>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    let text = match value {
        Value::Str(bytes) | Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::F32(float) => float.to_string(),
        Value::F64(float) => float.to_string(),
        Value::Timestamp(seconds) => seconds.to_string(),
        Value::Void => "undefined".to_owned(),
        Value::Decimal { .. } | Value::Array(_) | Value::Table(_) => format!("{value:?}"),
        Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_) => value.as_integer().unwrap_or_default().to_string(),
    };
    format!("the value '{text}' of type '{}'", value.type_name())
}
