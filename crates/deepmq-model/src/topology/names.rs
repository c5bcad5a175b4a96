//! A map from names to slab indices, looked up by the bytes a frame holds: a name need not be checked to be UTF-8
//! before it is known to exist.
//!
//! Owns the hashing. Must not know what the names name.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::value::Name;

#[derive(Debug, Clone)]
pub(super) struct Names {
    table: HashTable<(Name, u32)>,
    hasher: RandomState,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { table: HashTable::new(), hasher: RandomState::default() }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.table.find(hash, |(known, _)| known.as_bytes() == name).map(|&(_, index)| index)
    }

    /// Adds a name that is not there.
    pub(super) fn insert(&mut self, name: Name, index: u32) {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(name.as_bytes());
        self.table.insert_unique(hash, (name, index), |(known, _)| hasher.hash_one(known.as_bytes()));
    }

    pub(super) fn remove(&mut self, name: &str) {
        let hash = self.hasher.hash_one(name.as_bytes());
        if let Ok(entry) = self.table.find_entry(hash, |(known, _)| &**known == name) {
            entry.remove();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }
}
