//! What the registry says of a vhost: its limit of queues, the default type of queues, and its policies.
//!
//! Owns how they meet the catalogue. Must not know where they are kept.

use super::{Catalogue, Vhost};
use crate::limits::Limits;
use deepmq_model::policy::{EffectivePolicy, Policies, Target};
use deepmq_model::queue::Settings;
use deepmq_model::topology::{self as model, Queue, QueueSpec};
use deepmq_model::{Name, Value};

/// The argument that names a queue's type.
const QUEUE_TYPE: &str = "x-queue-type";
/// The type that goes with every property of a queue.
const CLASSIC: &str = "classic";

/// The registry's word on a vhost.
#[derive(Debug, Default)]
pub(crate) struct VhostSettings {
    /// Queues there may be, if that is fewer than in any vhost.
    pub(crate) queues_max: Option<usize>,
    /// The type of queues that are declared without one.
    pub(crate) default_queue_type: Option<Name>,
    /// All its policies.
    pub(crate) policies: Policies,
}

impl VhostSettings {
    /// The alternate exchange that policies name for an exchange.
    pub(super) fn alternate_of(&self, exchange: &str) -> Option<Name> {
        let definition = self.policies.effective(Target::Exchange, exchange).definition;
        definition.get("alternate-exchange").and_then(Value::as_str).map(Name::from)
    }
}

impl Vhost {
    /// Takes over settings, and the limits of any vhost. They hold for what is declared from now on, policies for everything.
    pub(crate) fn settle(&self, settings: VhostSettings, limits: &Limits) {
        let mut catalogue = self.write();
        let of_any = topology_limits(limits);
        let queues_max = settings.queues_max.map_or(of_any.queues_max, |own| own.min(of_any.queues_max));
        catalogue.topology.limit(model::Limits { queues_max, ..of_any });
        catalogue.settings = settings;
        for (id, declared) in catalogue.topology.queues() {
            if let Some(queue) = catalogue.queue(id) {
                queue.follow(catalogue.settings_for(declared));
            }
        }
        let Catalogue { topology, settings, .. } = &mut *catalogue;
        topology.set_alternates(|exchange| settings.alternate_of(exchange));
        self.publish_generation(&catalogue);
    }

    /// Takes back what there was, however much that is, until [`Vhost::settle`].
    pub(crate) fn lift_limits(&self) {
        self.write().topology.limit(model::Limits::UNLIMITED);
    }

    /// What policies say of a queue; nothing if there is none of that name.
    pub fn policy_of_queue(&self, name: &str) -> EffectivePolicy {
        let catalogue = self.catalogue.read();
        let queue = catalogue.topology.find_queue(name).and_then(|id| catalogue.topology.queue_spec(id));
        queue.map(|queue| catalogue.policy_of(queue)).unwrap_or_default()
    }

    /// What policies say of an exchange, whether or not it exists. They say nothing of the default exchange.
    pub fn policy_of_exchange(&self, name: &str) -> EffectivePolicy {
        if name.is_empty() {
            return EffectivePolicy::default();
        }
        self.catalogue.read().settings.policies.effective(Target::Exchange, name)
    }
}

/// The limits of any vhost, as the topology knows them.
pub(super) fn topology_limits(limits: &Limits) -> model::Limits {
    model::Limits {
        queues_max: limits.queues_per_vhost_max,
        exchanges_max: limits.exchanges_per_vhost_max,
        bindings_max: limits.bindings_per_vhost_max,
        ..model::Limits::default()
    }
}

impl Catalogue {
    pub(super) fn policy_of(&self, queue: &Queue) -> EffectivePolicy {
        self.settings.policies.effective(Target::Queue(queue.settings.kind), &queue.name)
    }

    /// What holds for a queue by its arguments and policies.
    pub(super) fn settings_for(&self, declared: &Queue) -> Settings {
        Settings::effective(&declared.settings, &self.policy_of(declared).definition)
    }

    /// A declaration with the vhost's default type, if it names none and the type goes with it. A queue that exists is asked
    /// for as what it is, so that a new default does not break who declared it before.
    pub(super) fn with_default_type(&self, name: &str, mut spec: QueueSpec) -> QueueSpec {
        let Some(default) = &self.settings.default_queue_type else { return spec };
        if spec.arguments.get(QUEUE_TYPE).is_some() {
            return spec;
        }
        let existing = self.topology.find_queue(name).and_then(|id| self.topology.queue_spec(id));
        if let Some(existing) = existing {
            let kind = existing.arguments.get(QUEUE_TYPE).cloned();
            kind.into_iter().for_each(|kind| spec.arguments.push(QUEUE_TYPE, kind));
            return spec;
        }
        let plain = spec.durable && !spec.exclusive && !spec.auto_delete && !spec.server_named;
        if plain || &**default == CLASSIC {
            spec.arguments.push(QUEUE_TYPE, Value::str(default));
        }
        spec
    }
}
