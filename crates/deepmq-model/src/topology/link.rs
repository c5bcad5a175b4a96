//! The store of a vhost's bindings, and linking one to its ends.
//!
//! Owns what makes a binding cheap to find and to remove: an index over all that makes one differ from another, and in each
//! binding its position in the lists of its source and its destination. Must not know when a binding is allowed.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::class::{hash_table, same_entries};
use super::identity::{BindingId, ExchangeId, Target};
use super::slab::Slab;
use super::{Binding, Topology};
use crate::value::Table;

#[derive(Debug, Clone)]
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
#[derive(Debug, Clone)]
pub(super) struct Bindings {
    stored: Slab<StoredBinding>,
    index: HashTable<BindingId>,
    hasher: RandomState,
}

impl Bindings {
    pub(super) fn new() -> Self {
        Self { stored: Slab::new(), index: HashTable::new(), hasher: RandomState::default() }
    }

    pub(super) fn get(&self, id: BindingId) -> Option<&StoredBinding> {
        self.stored.get(id.0)
    }

    fn hash(&self, source: ExchangeId, target: Target, key: &[u8], arguments: &Table) -> u64 {
        self.hasher.hash_one((source, target, key)) ^ hash_table(&self.hasher, arguments)
    }

    pub(super) fn find(
        &self,
        source: ExchangeId,
        target: Target,
        key: &[u8],
        arguments: &Table,
    ) -> Option<BindingId> {
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

    pub(super) fn len(&self) -> usize {
        self.stored.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredBinding> {
        self.stored.iter().map(|(_, binding)| binding)
    }

    #[cfg(test)]
    pub(super) fn indexed(&self) -> usize {
        self.index.len()
    }
}

impl Topology {
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

    pub(super) fn link(&mut self, source: ExchangeId, target: Target, key: Box<[u8]>, arguments: Table) {
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
