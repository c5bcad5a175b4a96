//! The whole document, and its form in JSON.
//!
//! Owns the order of its parts. Must not know a broker.

use super::entries::{BindingEntry, ExchangeEntry, QueueEntry, UserEntry, VhostEntry};
use crate::registry::{GlobalParameter, Parameter, PermissionRecord, PolicyRecord, TopicPermissionRecord};
use deepmq_model::Name;
use serde::Serialize;
use serde_json::{Map, Value};

/// What a document is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scope {
    /// Everything.
    #[default]
    Broker,
    /// One vhost: its entries do not name it, so that they can be imported into another.
    Vhost(Name),
}

/// Everything administered and declared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definitions {
    /// What it is about.
    pub scope: Scope,
    /// What wrote it: product, version and cluster. Only written.
    pub origin: Origin,
    /// Users; none in the scope of a vhost, and so for the next two.
    pub users: Vec<UserEntry>,
    /// Vhosts.
    pub vhosts: Vec<VhostEntry>,
    /// Permissions.
    pub permissions: Vec<PermissionRecord>,
    /// Topic permissions.
    pub topic_permissions: Vec<TopicPermissionRecord>,
    /// Parameters, with operator policies and limits of vhosts among them.
    pub parameters: Vec<Parameter>,
    /// Parameters of the broker.
    pub global_parameters: Vec<GlobalParameter>,
    /// Policies.
    pub policies: Vec<PolicyRecord>,
    /// Queues, but for exclusive ones.
    pub queues: Vec<QueueEntry>,
    /// Exchanges, but for the predeclared ones.
    pub exchanges: Vec<ExchangeEntry>,
    /// Bindings between those, but for the default exchange's.
    pub bindings: Vec<BindingEntry>,
    /// What of the text that was read was not taken.
    pub notes: Vec<String>,
}

/// What wrote a document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origin {
    /// The product.
    pub product: String,
    /// Its version; RabbitMQ's tools read it as the broker's.
    pub version: String,
    /// The broker's name.
    pub node_name: String,
}

impl Definitions {
    /// As JSON. The same content always gives the same.
    pub fn to_json(&self) -> Value {
        let mut document = Map::new();
        let mut put = |key: &str, value: Value| document.insert(key.to_owned(), value);
        for key in ["rabbit_version", "rabbitmq_version", "product_version"] {
            put(key, self.origin.version.clone().into());
        }
        put("product_name", self.origin.product.clone().into());
        put("original_cluster_name", self.origin.node_name.clone().into());
        let within = match &self.scope {
            Scope::Broker => {
                put("rabbitmq_definition_format", "cluster".into());
                put("users", list(&self.users, false));
                put("vhosts", list(&self.vhosts, false));
                put("permissions", list(&self.permissions, false));
                put("topic_permissions", list(&self.topic_permissions, false));
                put("global_parameters", list(&self.global_parameters, false));
                false
            }
            Scope::Vhost(name) => {
                put("rabbitmq_definition_format", "single_virtual_host".into());
                put("original_vhost_name", (&**name).into());
                true
            }
        };
        put("parameters", list(&self.parameters, within));
        put("policies", list(&self.policies, within));
        put("queues", list(&self.queues, within));
        put("exchanges", list(&self.exchanges, within));
        put("bindings", list(&self.bindings, within));
        Value::Object(document)
    }
}

/// Entries as JSON, without the name of their vhost if all are `within` one.
fn list<T: Serialize>(entries: &[T], within: bool) -> Value {
    let entry = |entry: &T| {
        let mut json = serde_json::to_value(entry).expect("entries have names for keys");
        if let (true, Value::Object(fields)) = (within, &mut json) {
            fields.remove("vhost");
        }
        json
    };
    entries.iter().map(entry).collect()
}
