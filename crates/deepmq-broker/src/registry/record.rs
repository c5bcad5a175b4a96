//! What is administered, as plain data: the same in the API, in definitions and in the journal.
//!
//! Owns the shapes. The names of fields in JSON are RabbitMQ's. Must not know which values are sound.

use crate::json;
use deepmq_model::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A user.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRecord {
    /// Its name, unique in the broker: 1 to 255 bytes.
    pub name: Name,
    /// The hash of its password, in the form of its algorithm; empty: it cannot log in with a password.
    pub password_hash: String,
    /// `argon2id`, or RabbitMQ's `rabbit_password_hashing_sha256` and `rabbit_password_hashing_sha512`.
    pub hashing_algorithm: Name,
    /// RabbitMQ's tags, e.g. `administrator`; any word is allowed.
    pub tags: Vec<Name>,
    /// Whether it may log in only from the machine the broker runs on.
    #[serde(default)]
    pub loopback_only: bool,
}

impl std::fmt::Debug for UserRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserRecord")
            .field("name", &self.name)
            .field("tags", &self.tags)
            .finish_non_exhaustive()
    }
}

/// A vhost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VhostRecord {
    /// Its name, unique in the broker: 1 to 255 bytes.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Words of its owner.
    #[serde(default)]
    pub tags: Vec<Name>,
    /// The type of queues that are declared without one: `classic` or `quorum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<Name>,
    /// It is not deleted before this is taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected_from_deletion: bool,
}

/// What a user may do in a vhost: patterns of the names to configure, write and read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRecord {
    /// The user.
    pub user: Name,
    /// The vhost.
    pub vhost: Name,
    /// Names it may declare and delete.
    pub configure: Name,
    /// Names it may publish to.
    pub write: Name,
    /// Names it may take from.
    pub read: Name,
}

impl PermissionRecord {
    /// The permission to do everything in a vhost.
    pub fn full(user: impl Into<Name>, vhost: impl Into<Name>) -> Self {
        let all: Name = ".*".into();
        Self { user: user.into(), vhost: vhost.into(), configure: all.clone(), write: all.clone(), read: all }
    }
}

/// With which routing keys a user may publish to a topic exchange and bind to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPermissionRecord {
    /// The user.
    pub user: Name,
    /// The vhost.
    pub vhost: Name,
    /// The exchange; it need not exist. Empty for the default exchange.
    pub exchange: Name,
    /// Keys to publish with; `{username}` and `{vhost}` stand for those.
    pub write: Name,
    /// Keys to bind with.
    pub read: Name,
}

/// A policy or an operator policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyRecord {
    /// The vhost.
    pub vhost: Name,
    /// Its name, unique among the vhost's policies.
    pub name: Name,
    /// The names of queues and exchanges it is for.
    pub pattern: Name,
    /// `all`, `queues`, `classic_queues`, `quorum_queues`, `streams` or `exchanges`.
    #[serde(default = "all")]
    pub apply_to: Name,
    /// Its settings.
    #[serde(deserialize_with = "json::read_object")]
    pub definition: Map<String, Value>,
    /// Of several policies for one queue or exchange, the one with the highest counts.
    #[serde(default)]
    pub priority: i64,
}

fn all() -> Name {
    "all".into()
}

/// A parameter of some component, such as `federation-upstream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Whose it is. `vhost-limits`, `policy` and `operator_policy` stand for those.
    pub component: Name,
    /// The vhost.
    pub vhost: Name,
    /// Its name, unique in component and vhost.
    pub name: Name,
    /// Anything.
    pub value: Value,
}

/// A parameter of the whole broker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlobalParameter {
    /// Its name.
    pub name: Name,
    /// Anything.
    pub value: Value,
}

/// Limits of one vhost. A negative number is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VhostLimits {
    /// Connections open at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,
    /// Queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queues: Option<i64>,
}

/// Limits of one user. A negative number is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserLimits {
    /// Connections open at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,
    /// Channels open at once, on all its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_channels: Option<i64>,
}
