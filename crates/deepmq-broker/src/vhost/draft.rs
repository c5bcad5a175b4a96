//! A vhost as it would be: many declarations that are made all or not at all.
//!
//! Owns the draft of the topology, while nothing else of the vhost can change, and how it becomes the topology. Must not know
//! where the declarations come from.

use super::keeping::NOBODY;
use super::{Catalogue, Vhost};
use crate::durable::change::{Binding, Change, What};
use crate::events::Event;
use crate::queue::Queue;
use deepmq_model::Name;
use deepmq_model::topology::{Declared, ExchangeSpec, QueueId, QueueSpec, Topology, TopologyError};
use deepmq_storage::Lsn;
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;

/// A draft. Dropped, nothing has happened.
#[derive(Debug)]
pub(crate) struct Draft<'v> {
    vhost: &'v Vhost,
    catalogue: RwLockWriteGuard<'v, Catalogue>,
    topology: Topology,
    queues: Vec<(QueueId, Arc<Queue>)>,
    changes: Vec<What>,
    events: Vec<Event>,
}

impl Vhost {
    /// Begins a draft, and locks the vhost for as long as there is one.
    pub(crate) fn draft(&self) -> Draft<'_> {
        let catalogue = self.write();
        let topology = catalogue.topology.clone();
        Draft {
            vhost: self,
            catalogue,
            topology,
            queues: Vec::new(),
            changes: Vec::new(),
            events: Vec::new(),
        }
    }
}

impl Draft<'_> {
    /// Declares an exchange; of one that exists, says in what it differs.
    pub(crate) fn declare_exchange(
        &mut self,
        name: &Name,
        spec: ExchangeSpec,
    ) -> Result<Option<TopologyError>, TopologyError> {
        let exists = self.topology.find_exchange(name).is_some();
        let kind = spec.kind.name();
        match self.topology.declare_exchange(name, spec) {
            Ok(Declared::Existing) => Ok(None),
            Ok(Declared::Created) => {
                let alternate = self.catalogue.settings.alternate_of(name);
                self.topology.set_alternate(name, alternate);
                let durable = self.topology.find_exchange(name).filter(|exchange| exchange.durable);
                self.changes.extend(durable.map(What::exchange));
                let vhost = self.vhost.name.clone();
                self.events.push(Event::ExchangeCreated { vhost, exchange: name.clone(), kind });
                Ok(None)
            }
            Err(differs) if exists => Ok(Some(differs)),
            Err(error) => Err(error),
        }
    }

    /// Declares a queue; of one that exists, says in what it differs.
    pub(crate) fn declare_queue(
        &mut self,
        name: &Name,
        spec: QueueSpec,
    ) -> Result<Option<TopologyError>, TopologyError> {
        let exists = self.topology.find_queue(name).is_some();
        match self.topology.declare_queue(name, spec, NOBODY) {
            Ok((_, Declared::Existing)) => Ok(None),
            Ok((id, Declared::Created)) => {
                let declared = self.topology.queue_spec(id).expect("it has just been declared");
                let durable = Some(declared).filter(|queue| queue.durable);
                let stored = self.vhost.stored_as(durable);
                if let (Some(declared), Some(stored)) = (durable, &stored) {
                    self.changes.push(What::queue(declared, stored.number));
                }
                let settings = self.catalogue.settings_for(declared);
                self.queues.push((id, self.vhost.new_queue(declared, settings, stored)));
                self.events.push(Event::QueueCreated { vhost: self.vhost.name.clone(), queue: name.clone() });
                Ok(None)
            }
            Err(differs) if exists => Ok(Some(differs)),
            Err(error) => Err(error),
        }
    }

    /// Binds, unless there is such a binding.
    pub(crate) fn bind(&mut self, binding: Binding) -> Result<(), TopologyError> {
        let Binding { source, key, arguments, .. } = &binding;
        let new = self.topology.bind(source, binding.destination(), key, arguments, NOBODY)?;
        if new {
            let (vhost, destination) = (self.vhost.name.clone(), super::binding_to(binding.destination()));
            let (source, key) = (source.clone(), key.clone());
            self.events.push(Event::BindingCreated { vhost, source, destination, key });
            if binding.is_durable(&self.topology) {
                self.changes.push(What::Binding(binding));
            }
        }
        Ok(())
    }

    /// What is to be journalled before the draft counts.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.changes.iter().map(|what| Change { vhost: self.vhost.name.clone(), what: what.clone() })
    }

    /// From now on the draft is the topology; `lsn` is the record that keeps it.
    pub(crate) fn settle(self, lsn: Option<Lsn>) {
        let Self { vhost, mut catalogue, topology, queues, changes, events } = self;
        catalogue.topology = topology;
        queues.into_iter().for_each(|(id, queue)| catalogue.set(id, Some(queue)));
        if let Some(lsn) = lsn.filter(|_| !changes.is_empty()) {
            vhost.kept_up_to(lsn);
        }
        vhost.publish_generation(&catalogue);
        events.iter().for_each(|event| vhost.events.publish(event));
    }
}
