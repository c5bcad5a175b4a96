//! Listing bindings: all of them, or those at one queue or exchange.
//!
//! Owns the view of a binding by names, and the pretence that the default exchange stores its bindings.

use super::identity::{BindingId, Target};
use super::link::StoredBinding;
use super::{DEFAULT_EXCHANGE, QueueId, ResourceKind, Topology};
use crate::value::{Name, Table};

/// A binding that is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BindingView<'t> {
    /// The exchange it leads from; empty for the default exchange.
    pub source: &'t Name,
    /// Whether it leads to a queue or an exchange.
    pub destination_kind: ResourceKind,
    /// The name of that.
    pub destination: &'t Name,
    /// The binding key.
    pub key: &'t [u8],
    /// The arguments, each key once.
    pub arguments: &'t Table,
    /// Whether it is one of the default exchange's, which are not stored and cannot be removed.
    pub implicit: bool,
}

impl Topology {
    /// All bindings: the implicit ones first, then the stored ones in ascending order of their slots.
    pub fn bindings(&self) -> impl Iterator<Item = BindingView<'_>> {
        let implicit = self.queues().filter_map(|(id, _)| self.implicit_binding(id));
        implicit.chain(self.bindings.iter().filter_map(|binding| self.view(binding)))
    }

    /// The bindings that lead to a queue, the implicit one first.
    pub fn bindings_to_queue(&self, id: QueueId) -> impl Iterator<Item = BindingView<'_>> {
        let stored = self.queues.get(id.0).map(|queue| queue.incoming.as_slice());
        self.implicit_binding(id).into_iter().chain(self.views(stored.unwrap_or_default()))
    }

    /// The stored bindings that lead to an exchange.
    pub fn bindings_to_exchange(&self, name: &str) -> impl Iterator<Item = BindingView<'_>> {
        let id = self.exchange_names.get(name.as_bytes());
        let stored = id.and_then(|id| self.exchanges.get(id)).map(|exchange| exchange.incoming.as_slice());
        self.views(stored.unwrap_or_default())
    }

    /// The stored bindings that lead from an exchange.
    pub fn bindings_from_exchange(&self, name: &str) -> impl Iterator<Item = BindingView<'_>> {
        let id = self.exchange_names.get(name.as_bytes());
        let stored = id.and_then(|id| self.exchanges.get(id)).map(|exchange| exchange.outgoing.as_slice());
        self.views(stored.unwrap_or_default())
    }

    fn views<'t>(&'t self, ids: &'t [BindingId]) -> impl Iterator<Item = BindingView<'t>> {
        ids.iter().filter_map(|&id| self.view(self.bindings.get(id)?))
    }

    pub(super) fn view<'t>(&'t self, binding: &'t StoredBinding) -> Option<BindingView<'t>> {
        let (destination_kind, destination) = match binding.target {
            Target::Queue(id) => (ResourceKind::Queue, &self.queues.get(id.0)?.definition.name),
            Target::Exchange(id) => (ResourceKind::Exchange, &self.exchanges.get(id.0)?.definition.name),
        };
        Some(BindingView {
            source: &self.exchanges.get(binding.source.0)?.definition.name,
            destination_kind,
            destination,
            key: &binding.key,
            arguments: &binding.arguments,
            implicit: false,
        })
    }

    fn implicit_binding(&self, id: QueueId) -> Option<BindingView<'_>> {
        const NO_ARGUMENTS: &Table = &Table::new();
        let destination = &self.queue_spec(id)?.name;
        Some(BindingView {
            source: &self.exchanges.get(DEFAULT_EXCHANGE.0)?.definition.name,
            destination_kind: ResourceKind::Queue,
            destination,
            key: destination.as_bytes(),
            arguments: NO_ARGUMENTS,
            implicit: true,
        })
    }
}
