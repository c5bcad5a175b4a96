//! The words that lead on from one node of the topic trie.
//!
//! Owns their lookup. Most nodes have one word or none: that one is kept in the node itself, since every further place in
//! memory to visit costs more than the comparing.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// A word kept in place: most are short enough to need no allocation of their own.
type StoredWord = SmallVec<[u8; 16]>;

/// A word with its hash, by the hasher of the trie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'k> {
    pub(super) bytes: &'k [u8],
    pub(super) hash: u64,
}

impl<'k> Word<'k> {
    pub(super) fn new(bytes: &'k [u8], hasher: &RandomState) -> Self {
        Self { bytes, hash: hasher.hash_one(bytes) }
    }
}

/// A map from words to nodes.
#[derive(Debug, Clone, Default)]
pub(super) enum Words {
    #[default]
    None,
    One(StoredWord, u32),
    Many(Box<HashTable<(StoredWord, u32)>>),
}

impl Words {
    pub(super) fn get(&self, word: Word<'_>) -> Option<u32> {
        match self {
            Self::None => None,
            Self::One(known, node) => (known.as_slice() == word.bytes).then_some(*node),
            Self::Many(table) => {
                table.find(word.hash, |(known, _)| known.as_slice() == word.bytes).map(|found| found.1)
            }
        }
    }

    /// Adds a word that is not there.
    pub(super) fn insert(&mut self, word: Word<'_>, node: u32, hasher: &RandomState) {
        let hash_of = |(word, _): &(StoredWord, u32)| hasher.hash_one(word.as_slice());
        let entry = (StoredWord::from_slice(word.bytes), node);
        *self = match std::mem::take(self) {
            Self::None => Self::One(entry.0, entry.1),
            Self::One(first, node) => {
                let mut table = HashTable::with_capacity(2);
                let first = (first, node);
                table.insert_unique(hash_of(&first), first, hash_of);
                table.insert_unique(word.hash, entry, hash_of);
                Self::Many(Box::new(table))
            }
            Self::Many(mut table) => {
                table.insert_unique(word.hash, entry, hash_of);
                Self::Many(table)
            }
        };
    }

    pub(super) fn remove(&mut self, word: Word<'_>) {
        match self {
            Self::None => {}
            Self::One(known, _) => {
                if known.as_slice() == word.bytes {
                    *self = Self::None;
                }
            }
            Self::Many(table) => {
                if let Ok(entry) = table.find_entry(word.hash, |(known, _)| known.as_slice() == word.bytes) {
                    entry.remove();
                }
                if table.is_empty() {
                    *self = Self::None;
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }
}
