//! The mechanisms by which clients may say who they are (SASL, RFC 4422).
//!
//! Owns their names. Must not know how a front-end speaks them.

use std::fmt::{self, Display};

/// A mechanism. Every one ends in a user and a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// `PLAIN` (RFC 4616).
    Plain,
    /// `AMQPLAIN`: the same in a table.
    AmqPlain,
    /// `RABBIT-CR-DEMO`: the password is asked for. It is RabbitMQ's example of a challenge, and as open as the others.
    CrDemo,
}

impl Mechanism {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Plain, Self::AmqPlain, Self::CrDemo];

    /// As peers name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
            Self::CrDemo => "RABBIT-CR-DEMO",
        }
    }
}

impl Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
