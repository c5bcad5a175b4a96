//! Methods: what the peers ask of and answer each other.
//!
//! Owns the list of all classes and how a method is told from another. Must not know in which order methods make sense.
//!
//! ```text
//! method = class:u16 method:u16 arguments
//! ```

use std::fmt;

#[cfg(test)]
use deepmq_model::Table;

use super::frame::{self, Kind};
use super::{Malformed, Reader};

#[macro_use]
mod class;
mod field;
#[cfg(test)]
mod sample;

pub mod access;
pub mod basic;
pub mod channel;
pub mod confirm;
pub mod connection;
pub mod exchange;
pub mod queue;
pub mod tx;

pub use field::LongStr;

/// The numbers of a class and a method in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MethodId {
    /// The class.
    pub class: u16,
    /// The method.
    pub method: u16,
}

impl fmt::Display for MethodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.class, self.method)
    }
}

/// A method that could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// There is no such method.
    #[error("method {0} is unknown")]
    Unknown(MethodId),
    /// The arguments are not those of the method.
    #[error("method {id} is malformed: {what}")]
    Malformed {
        /// The method, or zeros if not even that could be read.
        id: MethodId,
        /// What is wrong, for a person to read.
        what: Malformed,
    },
}

/// Any method.
#[derive(Debug, Clone, PartialEq)]
pub enum Method<'a> {
    /// Class connection.
    Connection(connection::Method<'a>),
    /// Class channel.
    Channel(channel::Method<'a>),
    /// Class access.
    Access(access::Method<'a>),
    /// Class exchange.
    Exchange(exchange::Method<'a>),
    /// Class queue.
    Queue(queue::Method<'a>),
    /// Class basic.
    Basic(basic::Method<'a>),
    /// Class confirm.
    Confirm(confirm::Method),
    /// Class tx.
    Tx(tx::Method),
}

impl<'a> Method<'a> {
    /// Decodes the payload of a method frame.
    ///
    /// # Errors
    /// [`MethodError`] if there is no such method, or its arguments are malformed or too many.
    pub fn decode(payload: &'a [u8]) -> Result<Self, MethodError> {
        let mut reader = Reader::new(payload);
        let id =
            read_id(&mut reader).map_err(|what| MethodError::Malformed { id: MethodId::default(), what })?;
        let malformed = |what| MethodError::Malformed { id, what };
        let method =
            Self::decode_arguments(id, &mut reader).map_err(malformed)?.ok_or(MethodError::Unknown(id))?;
        reader.finish().map_err(malformed)?;
        Ok(method)
    }

    fn decode_arguments(id: MethodId, reader: &mut Reader<'a>) -> Result<Option<Self>, Malformed> {
        Ok(match id.class {
            connection::CLASS => connection::Method::decode(id.method, reader)?.map(Self::Connection),
            channel::CLASS => channel::Method::decode(id.method, reader)?.map(Self::Channel),
            access::CLASS => access::Method::decode(id.method, reader)?.map(Self::Access),
            exchange::CLASS => exchange::Method::decode(id.method, reader)?.map(Self::Exchange),
            queue::CLASS => queue::Method::decode(id.method, reader)?.map(Self::Queue),
            basic::CLASS => basic::Method::decode(id.method, reader)?.map(Self::Basic),
            confirm::CLASS => confirm::Method::decode(id.method, reader)?.map(Self::Confirm),
            tx::CLASS => tx::Method::decode(id.method, reader)?.map(Self::Tx),
            _ => None,
        })
    }

    /// Appends the whole method frame.
    pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
        match self {
            Self::Connection(method) => method.encode(channel, out),
            Self::Channel(method) => method.encode(channel, out),
            Self::Access(method) => method.encode(channel, out),
            Self::Exchange(method) => method.encode(channel, out),
            Self::Queue(method) => method.encode(channel, out),
            Self::Basic(method) => method.encode(channel, out),
            Self::Confirm(method) => method.encode(channel, out),
            Self::Tx(method) => method.encode(channel, out),
        }
    }

    /// Which method this is.
    pub const fn id(&self) -> MethodId {
        match self {
            Self::Connection(method) => method.id(),
            Self::Channel(method) => method.id(),
            Self::Access(method) => method.id(),
            Self::Exchange(method) => method.id(),
            Self::Queue(method) => method.id(),
            Self::Basic(method) => method.id(),
            Self::Confirm(method) => method.id(),
            Self::Tx(method) => method.id(),
        }
    }
}

macro_rules! from_class {
    ($($variant:ident($method:ty))+) => {$(
        impl<'a> From<$method> for Method<'a> {
            fn from(method: $method) -> Self {
                Self::$variant(method)
            }
        }
    )+};
}

from_class! {
    Connection(connection::Method<'a>)
    Channel(channel::Method<'a>)
    Access(access::Method<'a>)
    Exchange(exchange::Method<'a>)
    Queue(queue::Method<'a>)
    Basic(basic::Method<'a>)
    Confirm(confirm::Method)
    Tx(tx::Method)
}

fn read_id(reader: &mut Reader<'_>) -> Result<MethodId, Malformed> {
    Ok(MethodId { class: reader.u16()?, method: reader.u16()? })
}

#[cfg(test)]
impl<'a> Method<'a> {
    /// Any method, with arguments drawn from the rest.
    pub(crate) fn any(which: usize, bytes: &'a [u8], texts: &'a [String], tables: &'a [Table]) -> Self {
        let mut sample = sample::Sample { bytes: Reader::new(bytes), texts, tables };
        let mut all = Self::sample_each(&mut sample);
        all.swap_remove(which % all.len())
    }

    /// One of every method there is, its arguments drawn from `sample`.
    fn sample_each(sample: &mut sample::Sample<'a>) -> Vec<Self> {
        let mut all = Vec::new();
        all.extend(connection::Method::sample_each(sample).map(Self::Connection));
        all.extend(channel::Method::sample_each(sample).map(Self::Channel));
        all.extend(access::Method::sample_each(sample).map(Self::Access));
        all.extend(exchange::Method::sample_each(sample).map(Self::Exchange));
        all.extend(queue::Method::sample_each(sample).map(Self::Queue));
        all.extend(basic::Method::sample_each(sample).map(Self::Basic));
        all.extend(confirm::Method::sample_each(sample).map(Self::Confirm));
        all.extend(tx::Method::sample_each(sample).map(Self::Tx));
        all
    }
}

/// Appends a method frame with the arguments that `write` appends.
fn write_frame(id: MethodId, channel: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut super::Writer<'_>)) {
    frame::write(Kind::Method, channel, out, |writer| {
        writer.u16(id.class);
        writer.u16(id.method);
        write(writer);
    });
}

#[cfg(test)]
mod tests;
