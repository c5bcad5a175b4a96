//! The direct exchange: a map from binding key to targets.
//!
//! Owns the map. Must not know what a target is.

use hashbrown::HashMap;

use super::identity::{BindingId, Target};
use super::targets::Targets;

#[derive(Debug, Clone, Default)]
pub(super) struct DirectMap(HashMap<Box<[u8]>, Targets>);

impl DirectMap {
    pub(super) fn insert(&mut self, key: &[u8], target: Target, binding: BindingId) -> u32 {
        self.0.entry(key.into()).or_default().push(target, binding)
    }

    pub(super) fn remove(&mut self, key: &[u8], position: u32) -> Option<BindingId> {
        let targets = self.0.get_mut(key)?;
        let moved = targets.remove(position);
        if targets.is_empty() {
            self.0.remove(key);
        }
        moved
    }

    pub(super) fn matches(&self, key: &[u8], found: &mut impl FnMut(Target)) {
        if let Some(targets) = self.0.get(key) {
            targets.iter().for_each(found);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
