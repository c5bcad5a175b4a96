//! Definitions that become the broker's, all of them or none.
//!
//! Owns the order: try everything on copies, with all that is concerned locked, journal it as one record, then let the copies
//! count. What exists stays: nothing is deleted, and a queue or exchange that differs is noted. Must not know how a document is
//! read.

use super::Broker;
use crate::definitions::{
    BindingEntry, Definitions, DefinitionsError, DestinationType, ExchangeEntry, Imported, QueueEntry, Scope,
    UserEntry, VhostEntry,
};
use crate::durable::change::{Binding, Change};
use crate::json;
use crate::registry::{Edit, RegistryError, State, UserLimits, UserRecord, VhostLimits, VhostRecord};
use crate::vhost::{Draft, Vhost};
use deepmq_model::Name;
use deepmq_model::policy::PolicyRank;
use deepmq_model::topology::{ExchangeKind, ExchangeSpec, QueueSpec, ResourceKind, TopologyError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An edit, and where in the document it stands.
type Placed = (String, Edit);

impl Broker {
    /// Imports definitions. Queues and exchanges cannot be declared meanwhile. Blocks for as long as that takes: milliseconds for
    /// thousands of entries.
    ///
    /// # Errors
    /// The first entry that is refused, and where it is.
    pub fn import_definitions(&self, definitions: &Definitions) -> Result<Imported, DefinitionsError> {
        let mut state = self.0.registry.write();
        if let Scope::Vhost(name) = &definitions.scope
            && state.vhost(name).is_none()
        {
            return Err(DefinitionsError::NoVhost(name.to_string()));
        }
        let mut notes = definitions.notes.clone();
        let mut draft = state.clone();
        let mut made = Vec::new();
        for (path, edit) in edits(&state, definitions)? {
            let created =
                draft.apply(edit.clone()).map_err(|error| DefinitionsError::Registry { path, error })?;
            made.push((edit, created));
        }
        let vhosts = self.concerned(&draft, definitions)?;
        // All of them at once, in the order of their names: nobody else locks two.
        let mut drafts: BTreeMap<&str, Draft<'_>> =
            vhosts.iter().map(|(name, vhost)| (&**name, vhost.draft())).collect();
        declare(definitions, &mut drafts, &mut notes)?;
        let mut changes: Vec<_> = made.iter().map(|(edit, _)| Change::registry(edit.clone())).collect();
        changes.extend(drafts.values().flat_map(Draft::changes));
        let lsn = if changes.is_empty() { None } else { self.0.registry.keep(&changes, &[]) };
        drafts.into_values().for_each(|draft| draft.settle(lsn));
        *state = draft;
        self.0.vhosts.write().extend(vhosts);
        for (edit, created) in &made {
            self.follow(&state, edit);
            self.0.events.publish(&edit.event(*created));
        }
        Ok(Imported { notes, lsn })
    }

    /// The vhosts in which something is declared, running already or about to.
    fn concerned(
        &self,
        draft: &State,
        definitions: &Definitions,
    ) -> Result<BTreeMap<Name, Arc<Vhost>>, DefinitionsError> {
        let exchanges = definitions.exchanges.iter().map(|exchange| &exchange.vhost).enumerate();
        let queues = definitions.queues.iter().map(|queue| &queue.vhost).enumerate();
        let bindings = definitions.bindings.iter().map(|binding| &binding.vhost).enumerate();
        let exchanges = exchanges.map(|named| ("exchanges", named));
        let queues = queues.map(|named| ("queues", named));
        let bindings = bindings.map(|named| ("bindings", named));
        let mut vhosts = BTreeMap::new();
        for (part, (at, name)) in exchanges.chain(queues).chain(bindings) {
            if draft.vhost(name).is_none() {
                let error = RegistryError::missing("vhost", &**name);
                return Err(DefinitionsError::Registry { path: format!("{part}[{at}]"), error });
            }
            if !vhosts.contains_key(name) {
                vhosts.insert(name.clone(), self.vhost(name).unwrap_or_else(|| self.new_vhost(name)));
            }
        }
        Ok(vhosts)
    }
}

/// What the document asks of the registry, each thing after what it is about.
fn edits(state: &State, definitions: &Definitions) -> Result<Vec<Placed>, DefinitionsError> {
    let mut edits = Vec::new();
    let mut put = |part: &str, at: usize, edit: Edit| edits.push((format!("{part}[{at}]"), edit));
    for (at, user) in definitions.users.iter().enumerate() {
        put("users", at, Edit::User(user_record(state, user)));
        if user.limits != UserLimits::default() {
            put("users", at, Edit::UserLimits { user: user.name.clone(), limits: user.limits });
        }
    }
    for (at, vhost) in definitions.vhosts.iter().enumerate() {
        put("vhosts", at, Edit::Vhost(vhost_record(state, vhost)));
        if vhost.limits != VhostLimits::default() {
            put("vhosts", at, Edit::VhostLimits { vhost: vhost.name.clone(), limits: vhost.limits });
        }
    }
    for (at, permission) in definitions.permissions.iter().enumerate() {
        put("permissions", at, Edit::Permission(permission.clone()));
    }
    for (at, permission) in definitions.topic_permissions.iter().enumerate() {
        put("topic_permissions", at, Edit::TopicPermission(permission.clone()));
    }
    for (at, parameter) in definitions.parameters.iter().enumerate() {
        let path = format!("parameters[{at}]");
        let edit = Edit::parameter(parameter.clone());
        put("parameters", at, edit.map_err(|error| DefinitionsError::Registry { path, error })?);
    }
    for (at, parameter) in definitions.global_parameters.iter().enumerate() {
        put("global_parameters", at, Edit::GlobalParameter(parameter.clone()));
    }
    for (at, policy) in definitions.policies.iter().enumerate() {
        put("policies", at, Edit::policy(PolicyRank::User, policy.clone()));
    }
    // What is there already is no edit.
    let known: Vec<_> = state.tell();
    edits.retain(|(_, edit)| !known.contains(edit));
    Ok(edits)
}

/// Declares everything on the drafts.
fn declare(
    definitions: &Definitions,
    drafts: &mut BTreeMap<&str, Draft<'_>>,
    notes: &mut Vec<String>,
) -> Result<(), DefinitionsError> {
    let mut run = |part: &str, at: usize, vhost: &Name, declare: &dyn Fn(&mut Draft<'_>) -> Declared| {
        let path = format!("{part}[{at}]");
        let Some(draft) = drafts.get_mut(&**vhost) else { return Ok(()) };
        match declare(draft) {
            Ok(None) => Ok(()),
            Ok(Some(differs)) => {
                notes.push(format!("{path}: exists and stays as it is: {differs}"));
                Ok(())
            }
            Err(error) => Err(DefinitionsError::Topology { path, error: Box::new(error) }),
        }
    };
    for (at, exchange) in definitions.exchanges.iter().enumerate() {
        run("exchanges", at, &exchange.vhost, &|draft| {
            draft.declare_exchange(&exchange.name, exchange_spec(exchange)?)
        })?;
    }
    for (at, queue) in definitions.queues.iter().enumerate() {
        run("queues", at, &queue.vhost, &|draft| draft.declare_queue(&queue.name, queue_spec(queue)))?;
    }
    for (at, binding) in definitions.bindings.iter().enumerate() {
        run("bindings", at, &binding.vhost, &|draft| draft.bind(kept_binding(binding)).map(|()| None))?;
    }
    Ok(())
}

/// In what an existing thing differs; or why it cannot be declared.
type Declared = Result<Option<TopologyError>, TopologyError>;

fn user_record(state: &State, user: &UserEntry) -> UserRecord {
    let known = state.user(&user.name).map(|user| user.loopback_only);
    UserRecord {
        name: user.name.clone(),
        password_hash: user.password_hash.clone(),
        hashing_algorithm: user.hashing_algorithm.clone(),
        tags: user.tags.clone(),
        loopback_only: user.loopback_only.or(known).unwrap_or_else(|| super::accounts::is_local(&user.name)),
    }
}

fn vhost_record(state: &State, vhost: &VhostEntry) -> VhostRecord {
    let known = state.vhost(&vhost.name).cloned().unwrap_or_default();
    let VhostEntry { name, description, tags, default_queue_type, metadata, .. } = vhost.clone();
    VhostRecord {
        name,
        description: description.or(metadata.description).unwrap_or(known.description),
        tags: tags.or(metadata.tags).unwrap_or(known.tags),
        default_queue_type: default_queue_type.or(metadata.default_queue_type).or(known.default_queue_type),
        protected_from_deletion: metadata.protected_from_deletion.unwrap_or(known.protected_from_deletion),
    }
}

fn exchange_spec(exchange: &ExchangeEntry) -> Result<ExchangeSpec, TopologyError> {
    Ok(ExchangeSpec {
        kind: exchange.kind.parse::<ExchangeKind>()?,
        durable: exchange.durable,
        auto_delete: exchange.auto_delete,
        internal: exchange.internal,
        arguments: json::table(&exchange.arguments),
    })
}

fn queue_spec(queue: &QueueEntry) -> QueueSpec {
    QueueSpec {
        durable: queue.durable,
        exclusive: false,
        auto_delete: queue.auto_delete,
        // A name of the broker's own was made up by the broker that wrote the document.
        server_named: queue.name.starts_with("amq."),
        arguments: json::table(&queue.arguments),
    }
}

fn kept_binding(binding: &BindingEntry) -> Binding {
    Binding {
        source: binding.source.clone(),
        to: match binding.destination_type {
            DestinationType::Queue => ResourceKind::Queue,
            DestinationType::Exchange => ResourceKind::Exchange,
        },
        destination: binding.destination.clone(),
        key: binding.routing_key.as_bytes().into(),
        arguments: json::table(&binding.arguments),
    }
}
