//! The entries of a document whose form in JSON is not that of the records: RabbitMQ wrote some of them differently over time.
//!
//! Owns the forms that are taken, and which keys there are. Must not know which values are sound.

use crate::json;
use crate::registry::{UserLimits, VhostLimits};
use deepmq_model::Name;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A user.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct UserEntry {
    /// Its name.
    pub name: Name,
    /// The hash of its password; empty: it cannot log in with one.
    #[serde(default)]
    pub password_hash: String,
    /// The hash's algorithm.
    #[serde(default = "rabbit_sha256")]
    pub hashing_algorithm: Name,
    /// A list, or a text with commas.
    #[serde(default, deserialize_with = "words")]
    pub tags: Vec<Name>,
    /// An object, or an empty list.
    #[serde(default, deserialize_with = "limits")]
    pub limits: UserLimits,
    /// Not RabbitMQ's: whether it may log in from the broker's machine only. Without it nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback_only: Option<bool>,
}

impl fmt::Debug for UserEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserEntry")
            .field("name", &self.name)
            .field("tags", &self.tags)
            .finish_non_exhaustive()
    }
}

/// A vhost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VhostEntry {
    /// Its name.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// A list, or a text with commas.
    #[serde(default, deserialize_with = "some_words")]
    pub tags: Option<Vec<Name>>,
    /// The type of queues that are declared without one; `undefined` is none.
    #[serde(default, deserialize_with = "queue_type", skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<Name>,
    /// An object, or an empty list.
    #[serde(default, deserialize_with = "limits")]
    pub limits: VhostLimits,
    /// The same again, in newer versions.
    #[serde(default)]
    pub metadata: VhostMetadata,
}

/// What newer versions say of a vhost beside its name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VhostMetadata {
    /// As in the entry.
    #[serde(default)]
    pub description: Option<String>,
    /// As in the entry.
    #[serde(default, deserialize_with = "some_words")]
    pub tags: Option<Vec<Name>>,
    /// As in the entry.
    #[serde(default, deserialize_with = "queue_type", skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<Name>,
    /// The vhost is not to be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_from_deletion: Option<bool>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Its vhost.
    pub vhost: Name,
    /// Its name.
    pub name: Name,
    /// Whether it outlives a restart.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    #[serde(default)]
    pub auto_delete: bool,
    /// Its arguments.
    #[serde(default, deserialize_with = "object")]
    pub arguments: Map<String, Value>,
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeEntry {
    /// Its vhost.
    pub vhost: Name,
    /// Its name.
    pub name: Name,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it outlives a restart.
    pub durable: bool,
    /// Whether it goes with its last binding.
    #[serde(default)]
    pub auto_delete: bool,
    /// Whether it refuses clients' messages.
    #[serde(default)]
    pub internal: bool,
    /// Its arguments.
    #[serde(default, deserialize_with = "object")]
    pub arguments: Map<String, Value>,
}

/// A binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BindingEntry {
    /// Its vhost.
    pub vhost: Name,
    /// The exchange it leads from.
    pub source: Name,
    /// Where it leads.
    pub destination: Name,
    /// `queue` or `exchange`.
    pub destination_type: DestinationType,
    /// Its key. What is not UTF-8 in it is replaced.
    #[serde(default)]
    pub routing_key: String,
    /// Its arguments.
    #[serde(default, deserialize_with = "object")]
    pub arguments: Map<String, Value>,
}

/// What a binding leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DestinationType {
    /// A queue.
    Queue,
    /// An exchange.
    Exchange,
}

/// The keys of each kind of entry that mean something, or are known to mean nothing here.
pub(super) const KEYS: [(&str, &[&str]); 10] = [
    ("users", &["name", "password_hash", "hashing_algorithm", "tags", "limits", "loopback_only"]),
    ("vhosts", &["name", "description", "tags", "default_queue_type", "limits", "metadata"]),
    ("permissions", &["user", "vhost", "configure", "write", "read"]),
    ("topic_permissions", &["user", "vhost", "exchange", "write", "read"]),
    ("parameters", &["component", "vhost", "name", "value"]),
    ("global_parameters", &["name", "value"]),
    ("policies", &["vhost", "name", "pattern", "apply-to", "definition", "priority"]),
    ("exchanges", &["vhost", "name", "type", "durable", "auto_delete", "internal", "arguments"]),
    ("queues", &["vhost", "name", "type", "durable", "auto_delete", "arguments"]),
    (
        "bindings",
        &["vhost", "source", "destination", "destination_type", "routing_key", "arguments", "properties_key"],
    ),
];

fn rabbit_sha256() -> Name {
    "rabbit_password_hashing_sha256".into()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    List(Vec<Name>),
    Text(String),
}

fn some_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Name>>, D::Error> {
    let words = Option::<Words>::deserialize(deserializer)
        .map_err(|_| D::Error::custom("tags must be a list of texts, or a text with commas"))?;
    Ok(words.map(|words| match words {
        Words::List(list) => list,
        Words::Text(text) => {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(Name::from).collect()
        }
    }))
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Name>, D::Error> {
    some_words(deserializer).map(Option::unwrap_or_default)
}

fn queue_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Name>, D::Error> {
    let kind = Option::<Name>::deserialize(deserializer)?;
    Ok(kind.and_then(|kind| match &*kind {
        "undefined" | "" => None,
        // Some versions write the names of their modules.
        "rabbit_classic_queue" => Some("classic".into()),
        "rabbit_quorum_queue" => Some("quorum".into()),
        _ => Some(kind),
    }))
}

fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    json::read_object(deserializer).map_err(|_| D::Error::custom("arguments must be an object"))
}

fn limits<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let limits = json::read_object(deserializer).ok();
    let limits = limits.and_then(|limits| serde_json::from_value(Value::Object(limits)).ok());
    limits.ok_or_else(|| D::Error::custom("limits must be an object of max-... and numbers"))
}
