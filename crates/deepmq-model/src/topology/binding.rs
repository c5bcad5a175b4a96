//! Bindings: an edge from an exchange to a queue or another exchange, with a key and arguments.
//!
//! Owns the vhost's bindings and the rules of binding and unbinding. Each binding knows its position in the lists of its
//! source and its destination, so removing one costs the same however many there are.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::class::{hash_table, same_entries, without_repetitions};
use super::exchange::check_not_default;
use super::identity::{BindingId, ConnectionId, ExchangeId, Target};
use super::removal::Step;
use super::slab::Slab;
use super::{
    Changes, Limit, NAME_BYTES_MAX, QueueId, Resource, ResourceKind, Topology, TopologyError, check_limit,
};
use crate::value::{Name, Table};

/// What a binding leads to, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination<'a> {
    /// A queue.
    Queue(&'a str),
    /// An exchange.
    Exchange(&'a str),
}

/// A binding that was removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The exchange it led from.
    pub source: Name,
    /// Whether it led to a queue or an exchange.
    pub destination_kind: ResourceKind,
    /// The name of that.
    pub destination: Name,
    /// The binding key.
    pub key: Box<[u8]>,
    /// The arguments, each key once.
    pub arguments: Table,
}

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

#[derive(Debug)]
pub(super) struct StoredBinding {
    pub(super) source: ExchangeId,
    pub(super) target: Target,
    pub(super) key: Box<[u8]>,
    pub(super) arguments: Table,
    /// Its slot in the source's router.
    pub(super) slot: u32,
    hash: u64,
    outgoing_position: u32,
    incoming_position: u32,
}

/// All bindings of a vhost, found by all that makes one differ from another.
#[derive(Debug)]
pub(super) struct Bindings {
    stored: Slab<StoredBinding>,
    index: HashTable<BindingId>,
    hasher: RandomState,
}

impl Bindings {
    pub(super) fn new() -> Self {
        Self { stored: Slab::new(), index: HashTable::new(), hasher: RandomState::default() }
    }

    fn get(&self, id: BindingId) -> Option<&StoredBinding> {
        self.stored.get(id.0)
    }

    fn hash(&self, source: ExchangeId, target: Target, key: &[u8], arguments: &Table) -> u64 {
        self.hasher.hash_one((source, target, key)) ^ hash_table(&self.hasher, arguments)
    }

    fn find(&self, source: ExchangeId, target: Target, key: &[u8], arguments: &Table) -> Option<BindingId> {
        let hash = self.hash(source, target, key, arguments);
        let same = |binding: &StoredBinding| {
            binding.source == source
                && binding.target == target
                && *binding.key == *key
                && same_entries(&binding.arguments, arguments)
        };
        self.index.find(hash, |&id| self.get(id).is_some_and(same)).copied()
    }

    fn insert(&mut self, binding: StoredBinding) -> BindingId {
        let hash = binding.hash;
        let id = BindingId(self.stored.insert(binding));
        let stored = &self.stored;
        self.index.insert_unique(hash, id, |known| stored.get(known.0).map_or(0, |binding| binding.hash));
        id
    }

    fn remove(&mut self, id: BindingId) -> Option<StoredBinding> {
        let binding = self.stored.remove(id.0)?;
        if let Ok(entry) = self.index.find_entry(binding.hash, |&known| known == id) {
            entry.remove();
        }
        Some(binding)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.stored.len(), self.index.len());
        self.stored.len()
    }
}

impl Topology {
    /// Binds a queue or an exchange to an exchange; answers whether the binding is new.
    ///
    /// # Errors
    /// Either end is the default exchange or does not exist, the queue is exclusive to another connection, the exchange's
    /// type refuses the key or the arguments, or a limit is reached.
    pub fn bind(
        &mut self,
        source: &str,
        destination: Destination<'_>,
        key: &[u8],
        arguments: &Table,
        by: ConnectionId,
    ) -> Result<bool, TopologyError> {
        let (source_id, target) = self.ends(source, destination, by)?;
        self.check_arguments(source, arguments.len())?;
        check_limit(Limit::NameBytes, &String::from_utf8_lossy(key), key.len(), NAME_BYTES_MAX)?;
        let arguments = without_repetitions(arguments);
        if let Some(exchange) = self.exchanges.get(source_id.0) {
            exchange.router.check(key, &arguments)?;
        }
        if self.bindings.find(source_id, target, key, &arguments).is_some() {
            return Ok(false);
        }
        check_limit(Limit::Bindings, source, self.bindings.stored.len() + 1, self.limits.bindings_max)?;
        self.link(source_id, target, key.into(), arguments);
        Ok(true)
    }

    /// Removes a binding. That it or either end does not exist is no error: nothing has changed then.
    ///
    /// # Errors
    /// Either end is the default exchange, or the queue is exclusive to another connection.
    pub fn unbind(
        &mut self,
        source: &str,
        destination: Destination<'_>,
        key: &[u8],
        arguments: &Table,
        by: ConnectionId,
    ) -> Result<Changes, TopologyError> {
        let (source, target) = match self.ends(source, destination, by) {
            Ok(ends) => ends,
            Err(TopologyError::NotFound(_)) => return Ok(Changes::default()),
            Err(refused) => return Err(refused),
        };
        self.check_arguments("", arguments.len())?;
        let arguments = without_repetitions(arguments);
        match self.bindings.find(source, target, key, &arguments) {
            Some(id) => Ok(self.remove(Step::Binding(id))),
            None => Ok(Changes::default()),
        }
    }

    /// All bindings: the implicit ones first, then the stored ones in ascending order of their slots.
    pub fn bindings(&self) -> impl Iterator<Item = BindingView<'_>> {
        let implicit = self.queues().filter_map(|(id, _)| self.implicit_binding(id));
        implicit.chain(self.bindings.stored.iter().filter_map(|(_, binding)| self.view(binding)))
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

    /// Takes a binding out of every list; answers it with its source.
    pub(super) fn unlink(&mut self, id: BindingId) -> Option<(Binding, ExchangeId)> {
        let removed = self.view(self.bindings.get(id)?).map(|view| Binding {
            source: view.source.clone(),
            destination_kind: view.destination_kind,
            destination: view.destination.clone(),
            key: view.key.into(),
            arguments: view.arguments.clone(),
        })?;
        let binding = self.bindings.remove(id)?;
        let source = self.exchanges.get_mut(binding.source.0).expect("a binding's source exists");
        let slot_moved = source.router.remove(&binding);
        let outgoing_moved = swap_out(&mut source.outgoing, binding.outgoing_position);
        let incoming_moved = swap_out(self.incoming(binding.target), binding.incoming_position);
        let stored = &mut self.bindings.stored;
        if let Some(moved) = slot_moved.and_then(|moved| stored.get_mut(moved.0)) {
            moved.slot = binding.slot;
        }
        if let Some(moved) = outgoing_moved.and_then(|moved| stored.get_mut(moved.0)) {
            moved.outgoing_position = binding.outgoing_position;
        }
        if let Some(moved) = incoming_moved.and_then(|moved| stored.get_mut(moved.0)) {
            moved.incoming_position = binding.incoming_position;
        }
        self.changed();
        Some((removed, binding.source))
    }

    fn link(&mut self, source: ExchangeId, target: Target, key: Box<[u8]>, arguments: Table) {
        let hash = self.bindings.hash(source, target, &key, &arguments);
        let binding = StoredBinding {
            source,
            target,
            key,
            arguments,
            slot: 0,
            hash,
            outgoing_position: 0,
            incoming_position: 0,
        };
        let id = self.bindings.insert(binding);
        let incoming_position = push(self.incoming(target), id);
        let exchange = self.exchanges.get_mut(source.0).expect("the caller found the source");
        let binding = self.bindings.stored.get_mut(id.0).expect("the binding was just inserted");
        binding.incoming_position = incoming_position;
        binding.outgoing_position = push(&mut exchange.outgoing, id);
        binding.slot = exchange.router.insert(binding, id);
        self.changed();
    }

    fn incoming(&mut self, target: Target) -> &mut Vec<BindingId> {
        match target {
            Target::Queue(id) => self.queues.get_mut(id.0).map(|queue| &mut queue.incoming),
            Target::Exchange(id) => self.exchanges.get_mut(id.0).map(|exchange| &mut exchange.incoming),
        }
        .expect("a binding's destination exists")
    }

    fn ends(
        &self,
        source: &str,
        destination: Destination<'_>,
        by: ConnectionId,
    ) -> Result<(ExchangeId, Target), TopologyError> {
        check_not_default(source)?;
        if let Destination::Exchange(name) = destination {
            check_not_default(name)?;
        }
        let find = |name: &str| {
            let id = self.exchange_names.get(name.as_bytes()).map(ExchangeId);
            id.ok_or_else(|| TopologyError::NotFound(Resource::exchange(name)))
        };
        // A locked queue is refused before a missing exchange, a missing exchange before a missing queue.
        let queue = match destination {
            Destination::Queue(name) => Some(self.queue(name, by)),
            Destination::Exchange(_) => None,
        };
        if let Some(Err(locked @ TopologyError::Locked { .. })) = queue {
            return Err(locked);
        }
        let source = find(source)?;
        let target = match (queue, destination) {
            (Some(queue), _) => Target::Queue(queue?),
            (None, Destination::Exchange(name) | Destination::Queue(name)) => Target::Exchange(find(name)?),
        };
        Ok((source, target))
    }

    fn views<'t>(&'t self, ids: &'t [BindingId]) -> impl Iterator<Item = BindingView<'t>> {
        ids.iter().filter_map(|&id| self.view(self.bindings.get(id)?))
    }

    fn view<'t>(&'t self, binding: &'t StoredBinding) -> Option<BindingView<'t>> {
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
            source: &self.exchanges.get(super::DEFAULT_EXCHANGE.0)?.definition.name,
            destination_kind: ResourceKind::Queue,
            destination,
            key: destination.as_bytes(),
            arguments: NO_ARGUMENTS,
            implicit: true,
        })
    }
}

fn push(list: &mut Vec<BindingId>, id: BindingId) -> u32 {
    list.push(id);
    u32::try_from(list.len() - 1).expect("bindings have 32-bit ids")
}

/// Removes the entry at `position`, and answers the one that is there now.
fn swap_out(list: &mut Vec<BindingId>, position: u32) -> Option<BindingId> {
    let position = position as usize;
    if position < list.len() {
        list.swap_remove(position);
    }
    list.get(position).copied()
}
