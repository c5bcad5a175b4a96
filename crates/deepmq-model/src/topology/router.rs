//! The one index an exchange routes by, of the kind its type needs.
//!
//! Owns the choice by type. Must not know names, nor where a target leads.

use super::direct::DirectMap;
use super::error::TopologyError;
use super::exchange::ExchangeKind;
use super::headers::HeadersIndex;
use super::identity::{BindingId, Target};
use super::link::StoredBinding;
use super::route::LazyHeaders;
use super::targets::Targets;
use super::trie::TopicTrie;
use crate::value::Table;

#[derive(Debug, Clone)]
pub(super) enum Router {
    Direct(DirectMap),
    Fanout(Targets),
    Topic(Box<TopicTrie>),
    Headers(Box<HeadersIndex>),
}

impl Router {
    pub(super) fn new(kind: ExchangeKind) -> Self {
        match kind {
            ExchangeKind::Direct => Self::Direct(DirectMap::default()),
            ExchangeKind::Fanout => Self::Fanout(Targets::default()),
            ExchangeKind::Topic => Self::Topic(Box::new(TopicTrie::new())),
            ExchangeKind::Headers => Self::Headers(Box::default()),
        }
    }

    /// Refuses a binding that the type does not take.
    pub(super) fn check(&self, key: &[u8], arguments: &Table) -> Result<(), TopologyError> {
        match self {
            Self::Direct(_) | Self::Fanout(_) => Ok(()),
            Self::Topic(_) => TopicTrie::check(key),
            Self::Headers(_) => HeadersIndex::check(arguments),
        }
    }

    /// Adds a binding, and answers its slot.
    pub(super) fn insert(&mut self, binding: &StoredBinding, id: BindingId) -> u32 {
        match self {
            Self::Direct(map) => map.insert(&binding.key, binding.target, id),
            Self::Fanout(targets) => targets.push(binding.target, id),
            Self::Topic(trie) => trie.insert(&binding.key, binding.target, id),
            Self::Headers(index) => index.insert(&binding.arguments, binding.target),
        }
    }

    /// Removes a binding by its slot, and answers the binding that has that slot now.
    pub(super) fn remove(&mut self, binding: &StoredBinding) -> Option<BindingId> {
        match self {
            Self::Direct(map) => map.remove(&binding.key, binding.slot),
            Self::Fanout(targets) => targets.remove(binding.slot),
            Self::Topic(trie) => trie.remove(&binding.key, binding.slot),
            Self::Headers(index) => {
                index.remove(binding.slot);
                None
            }
        }
    }

    /// Tells the target of every binding that any of `keys` matches; one may be told more than once.
    pub(super) fn matches(
        &self,
        keys: &[&[u8]],
        headers: &mut LazyHeaders<'_>,
        found: &mut impl FnMut(Target),
    ) {
        match self {
            Self::Direct(map) => keys.iter().for_each(|key| map.matches(key, found)),
            Self::Fanout(targets) => targets.iter().for_each(found),
            Self::Topic(trie) => keys.iter().for_each(|key| trie.matches(key, found)),
            Self::Headers(index) => index.matches(headers.table(), found),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Direct(map) => map.is_empty(),
            Self::Fanout(targets) => targets.is_empty(),
            Self::Topic(trie) => trie.is_empty(),
            Self::Headers(index) => index.is_empty(),
        }
    }
}
