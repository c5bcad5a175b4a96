//! What an embedder sees of a vhost: plain data, a copy at one moment.
//!
//! Owns the shapes. Must not hold anything of the running broker.

use crate::connection::ConnectionId;
use crate::events::BindingTo;
use crate::queue::{ConsumerInfo, Counters, Depth, Queue, Storage};
use deepmq_model::policy::EffectivePolicy;
use deepmq_model::topology::{self as model, BindingView, ResourceKind};
use deepmq_model::{Name, Table};
use deepmq_storage::Durability;

/// A queue.
#[derive(Debug, Clone)]
pub struct QueueInfo {
    /// Its name.
    pub name: Name,
    /// It is to survive a restart.
    pub durable: bool,
    /// It goes with its last consumer.
    pub auto_delete: bool,
    /// The connection it belongs to.
    pub owner: Option<ConnectionId>,
    /// Its arguments as declared.
    pub arguments: Table,
    /// How far its persistent messages must have come before they are confirmed; nothing of it is kept if none.
    pub durability: Option<Durability>,
    /// What it holds.
    pub depth: Depth,
    /// What it has on disk beside the journal.
    pub storage: Storage,
    /// What it counted.
    pub counters: Counters,
    /// Its consumers.
    pub consumers: Vec<ConsumerInfo>,
    /// What policies say of it.
    pub policy: EffectivePolicy,
}

impl QueueInfo {
    pub(crate) fn new(declared: &model::Queue, running: &Queue, policy: EffectivePolicy) -> Self {
        Self {
            name: declared.name.clone(),
            durable: declared.durable,
            auto_delete: declared.auto_delete,
            owner: declared.owner,
            arguments: declared.arguments.clone(),
            durability: running.durability(),
            depth: running.depth(),
            storage: running.storage(),
            counters: running.counters(),
            consumers: running.consumers(),
            policy,
        }
    }
}

/// A binding.
#[derive(Debug, Clone)]
pub struct BindingInfo {
    /// The exchange that messages come from.
    pub source: Name,
    /// Where they go.
    pub destination: BindingTo,
    /// The binding key.
    pub key: Box<[u8]>,
    /// Its arguments.
    pub arguments: Table,
    /// It is one of those to the default exchange that every queue has.
    pub implicit: bool,
}

impl From<BindingView<'_>> for BindingInfo {
    fn from(view: BindingView<'_>) -> Self {
        Self {
            source: view.source.clone(),
            destination: match view.destination_kind {
                ResourceKind::Queue => BindingTo::Queue(view.destination.clone()),
                ResourceKind::Exchange => BindingTo::Exchange(view.destination.clone()),
            },
            key: view.key.into(),
            arguments: view.arguments.clone(),
            implicit: view.implicit,
        }
    }
}
