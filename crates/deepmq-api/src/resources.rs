//! The resources, one file for each noun.
//!
//! Owns what the nouns share: names in paths. The paths themselves stand at the handlers.

pub(crate) mod attempts;
pub(crate) mod bindings;
pub(crate) mod channels;
pub(crate) mod connections;
pub(crate) mod consumers;
pub(crate) mod definitions;
mod edits;
pub(crate) mod exchanges;
pub(crate) mod features;
pub(crate) mod limits;
pub(crate) mod login;
pub(crate) mod messages;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod parameters;
pub(crate) mod permissions;
pub(crate) mod policies;
pub(crate) mod queues;
pub(crate) mod statistics;
pub(crate) mod topology;
pub(crate) mod users;
pub(crate) mod vhosts;

use axum::http::StatusCode;
use deepmq_broker::connection::ConnectionId;
use deepmq_model::topology::Declared;

/// The vhost of the short paths.
pub(crate) const DEFAULT_VHOST: &str = "/";

/// Who changes the topology here is no connection, and so owns no exclusive queue.
pub(crate) const NOBODY: ConnectionId = ConnectionId(0);

/// The default exchange has no name, and a path needs one: RabbitMQ's.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// An exchange's name as a path gives it.
pub(crate) fn exchange_name(given: &str) -> &str {
    if given == DEFAULT_EXCHANGE { "" } else { given }
}

/// An exchange's name as a path takes it.
pub(crate) fn exchange_in_path(name: &str) -> &str {
    if name.is_empty() { DEFAULT_EXCHANGE } else { name }
}

/// 201 or 204.
pub(crate) fn declared(declared: Declared) -> StatusCode {
    match declared {
        Declared::Created => StatusCode::CREATED,
        Declared::Existing => StatusCode::NO_CONTENT,
    }
}
