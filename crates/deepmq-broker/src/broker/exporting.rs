//! The broker's definitions.
//!
//! Owns what is part of them: not what is exclusive, predeclared or implicit. Must not know how they are written.

use super::Broker;
use crate::definitions::{
    BindingEntry, Definitions, DestinationType, ExchangeEntry, Origin, QueueEntry, Scope, UserEntry,
    VhostEntry, VhostMetadata,
};
use crate::events::BindingTo;
use crate::inspect::BindingInfo;
use crate::json;
use crate::registry::{State, UserRecord, VhostLimits, VhostRecord};
use crate::vhost::Vhost;
use deepmq_model::policy::PolicyRank;
use std::collections::HashSet;

impl Broker {
    /// Everything administered and declared, at about one moment.
    pub fn export_definitions(&self) -> Definitions {
        let mut definitions = self.0.registry.read(|state| Definitions {
            users: state.users().into_iter().map(|user| user_entry(state, user)).collect(),
            vhosts: state.vhosts().into_iter().map(vhost_entry).collect(),
            permissions: state.permissions(),
            topic_permissions: state.topic_permissions(),
            parameters: state.parameters(),
            global_parameters: state.global_parameters(),
            policies: state.policies(PolicyRank::User),
            ..Definitions::default()
        });
        definitions.origin = self.origin();
        self.vhosts().iter().for_each(|vhost| add_topology(&mut definitions, vhost));
        definitions
    }

    /// What is administered and declared in one vhost; none if it does not exist.
    pub fn export_vhost_definitions(&self, name: &str) -> Option<Definitions> {
        let vhost = self.vhost(name)?;
        let mut definitions = self.0.registry.read(|state| Definitions {
            scope: Scope::Vhost(vhost.name().clone()),
            parameters: state.parameters().into_iter().filter(|of| *of.vhost == *name).collect(),
            policies: state.policies(PolicyRank::User).into_iter().filter(|of| *of.vhost == *name).collect(),
            ..Definitions::default()
        });
        definitions.origin = self.origin();
        add_topology(&mut definitions, &vhost);
        Some(definitions)
    }

    fn origin(&self) -> Origin {
        let config = self.config();
        Origin {
            product: config.product.to_string(),
            version: config.version.to_string(),
            node_name: config.node_name.to_string(),
        }
    }
}

fn user_entry(state: &State, user: UserRecord) -> UserEntry {
    UserEntry {
        limits: state.user_limits(&user.name),
        name: user.name,
        password_hash: user.password_hash,
        hashing_algorithm: user.hashing_algorithm,
        tags: user.tags,
        loopback_only: Some(user.loopback_only),
    }
}

fn vhost_entry(vhost: VhostRecord) -> VhostEntry {
    let VhostRecord { name, description, tags, default_queue_type, protected_from_deletion } = vhost;
    let metadata = VhostMetadata {
        description: Some(description.clone()),
        tags: Some(tags.clone()),
        default_queue_type: default_queue_type.clone(),
        protected_from_deletion: protected_from_deletion.then_some(true),
    };
    // The limits are among the parameters, where RabbitMQ looks for them.
    let limits = VhostLimits::default();
    VhostEntry {
        name,
        description: Some(description),
        tags: Some(tags),
        default_queue_type,
        limits,
        metadata,
    }
}

fn add_topology(definitions: &mut Definitions, vhost: &Vhost) {
    let name = vhost.name();
    let (own, exclusive): (Vec<_>, Vec<_>) =
        vhost.queue_declarations().into_iter().partition(|queue| queue.owner.is_none());
    let exclusive: HashSet<_> = exclusive.into_iter().map(|queue| queue.name).collect();
    let queues = own.into_iter().map(|queue| QueueEntry {
        vhost: name.clone(),
        durable: queue.durable,
        auto_delete: queue.auto_delete,
        arguments: json::object(&queue.arguments),
        name: queue.name,
    });
    let declared = |exchange: &str| !exchange.is_empty() && !exchange.starts_with("amq.");
    let exchanges = vhost.exchanges().into_iter().filter(|exchange| declared(&exchange.name));
    let exchanges = exchanges.map(|exchange| ExchangeEntry {
        vhost: name.clone(),
        kind: exchange.kind.name().to_owned(),
        durable: exchange.durable,
        auto_delete: exchange.auto_delete,
        internal: exchange.internal,
        arguments: json::object(&exchange.arguments),
        name: exchange.name,
    });
    let bindings = vhost.bindings().into_iter().filter(|binding| !binding.implicit);
    let mut bindings: Vec<_> = bindings
        .map(|binding| binding_entry(vhost, binding))
        .filter(|b| b.destination_type == DestinationType::Exchange || !exclusive.contains(&b.destination))
        .collect();
    bindings.sort_by_cached_key(|binding| {
        let BindingEntry { source, destination, destination_type, routing_key, arguments, .. } =
            binding.clone();
        (source, destination_type, destination, routing_key, serde_json::Value::from(arguments).to_string())
    });
    let (mut queues, mut exchanges): (Vec<_>, Vec<_>) = (queues.collect(), exchanges.collect());
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    exchanges.sort_by(|a, b| a.name.cmp(&b.name));
    definitions.queues.extend(queues);
    definitions.exchanges.extend(exchanges);
    definitions.bindings.extend(bindings);
}

fn binding_entry(vhost: &Vhost, binding: BindingInfo) -> BindingEntry {
    let (destination_type, destination) = match binding.destination {
        BindingTo::Queue(name) => (DestinationType::Queue, name),
        BindingTo::Exchange(name) => (DestinationType::Exchange, name),
    };
    BindingEntry {
        vhost: vhost.name().clone(),
        source: binding.source,
        destination,
        destination_type,
        routing_key: String::from_utf8_lossy(&binding.key).into_owned(),
        arguments: json::object(&binding.arguments),
    }
}
