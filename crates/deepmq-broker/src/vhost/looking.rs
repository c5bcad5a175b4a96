//! Looking into a vhost: what is declared, and the running queue behind each declaration.
//!
//! Owns short reads of the catalogue, so that who looks at ten thousand queues holds its lock only to copy a list. Must not
//! change anything.

use super::Vhost;
use crate::inspect::BindingInfo;
use crate::queue::Queue;
use deepmq_model::policy::EffectivePolicy;
use deepmq_model::topology::{self as model, Exchange};
use std::sync::Arc;

/// A queue as declared, and the one that runs.
#[derive(Debug, Clone)]
pub struct RunningQueue {
    /// What it was declared as.
    pub declared: model::Queue,
    /// What it holds and counts is read from here, without the vhost.
    pub running: Arc<Queue>,
    /// What policies say of it.
    pub policy: EffectivePolicy,
}

impl Vhost {
    /// All queues, by name.
    pub fn declared_queues(&self) -> Vec<RunningQueue> {
        let mut queues = self.copy_queues();
        queues.sort_unstable_by(|a, b| a.declared.name.cmp(&b.declared.name));
        queues
    }

    fn copy_queues(&self) -> Vec<RunningQueue> {
        let catalogue = self.catalogue.read();
        let queues = catalogue.topology.queues();
        queues
            .filter_map(|(id, declared)| {
                let running = catalogue.queue(id)?.clone();
                let policy = catalogue.policy_of(declared);
                Some(RunningQueue { declared: declared.clone(), running, policy })
            })
            .collect()
    }

    /// The queue of a name, whoever it belongs to.
    pub fn declared_queue(&self, name: &str) -> Option<RunningQueue> {
        let catalogue = self.catalogue.read();
        let id = catalogue.topology.find_queue(name)?;
        let declared = catalogue.topology.queue_spec(id)?.clone();
        let policy = catalogue.policy_of(&declared);
        Some(RunningQueue { declared, running: catalogue.queue(id)?.clone(), policy })
    }

    /// The exchange of a name, the default one among them.
    pub fn find_exchange(&self, name: &str) -> Option<Exchange> {
        self.catalogue.read().topology.find_exchange(name).cloned()
    }

    /// The bindings that lead to a queue, the implicit one first; none if there is no such queue.
    pub fn bindings_to_queue(&self, name: &str) -> Option<Vec<BindingInfo>> {
        let catalogue = self.catalogue.read();
        let id = catalogue.topology.find_queue(name)?;
        Some(catalogue.topology.bindings_to_queue(id).map(BindingInfo::from).collect())
    }

    /// The bindings that lead from an exchange; none if there is no such exchange.
    pub fn bindings_from_exchange(&self, name: &str) -> Option<Vec<BindingInfo>> {
        let topology = &self.catalogue.read().topology;
        topology.find_exchange(name)?;
        if name.is_empty() {
            return Some(topology.bindings().filter(|view| view.implicit).map(BindingInfo::from).collect());
        }
        Some(topology.bindings_from_exchange(name).map(BindingInfo::from).collect())
    }

    /// The bindings that lead to an exchange; none if there is no such exchange.
    pub fn bindings_to_exchange(&self, name: &str) -> Option<Vec<BindingInfo>> {
        let topology = &self.catalogue.read().topology;
        topology.find_exchange(name)?;
        Some(topology.bindings_to_exchange(name).map(BindingInfo::from).collect())
    }
}
