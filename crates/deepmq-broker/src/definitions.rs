//! Definitions: everything administered and declared, as one JSON document in RabbitMQ's form.
//!
//! Owns reading and writing the document, and saying where one is wrong. How it meets a running broker is in
//! `broker/importing`. Must not know files or HTTP.

mod document;
mod entries;
mod read;
#[cfg(test)]
mod tests;

pub use document::{Definitions, Origin, Scope};
pub use entries::{
    BindingEntry, DestinationType, ExchangeEntry, QueueEntry, UserEntry, VhostEntry, VhostMetadata,
};

use crate::registry::RegistryError;
use deepmq_model::topology::TopologyError;

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What of the document was not taken, and why: keys that mean nothing, queues and exchanges that exist and differ.
    pub notes: Vec<String>,
    /// The record of the journal that keeps all of it, for [`Broker::durable_at`](crate::Broker::durable_at).
    pub lsn: Option<deepmq_storage::Lsn>,
}

/// Why a document is not imported. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DefinitionsError {
    /// It is no JSON.
    #[error("line {line}, column {column}: {why}")]
    Json {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// Something in it does not have its form.
    #[error("{path}: {why}")]
    Form {
        /// Where it is: `queues[3]`.
        path: String,
        /// What is wrong there.
        why: String,
    },
    /// Something administered is refused.
    #[error("{path}: {error}")]
    Registry {
        /// Where it is: `policies[3]`.
        path: String,
        /// Why it is refused.
        error: RegistryError,
    },
    /// Something declared is refused.
    #[error("{path}: {error}")]
    Topology {
        /// Where it is: `queues[3]`.
        path: String,
        /// Why it is refused.
        error: Box<TopologyError>,
    },
    /// The vhost the document is for does not exist.
    #[error("vhost '{0}' does not exist")]
    NoVhost(String),
}
