//! A list of bindings' targets from which any entry can be removed at once.
//!
//! Owns the positions: a removal moves the last entry, and tells whose position changed.

use smallvec::SmallVec;

use super::identity::{BindingId, Target};

#[derive(Debug, Clone, Default)]
pub(super) struct Targets(SmallVec<[(Target, BindingId); 1]>);

impl Targets {
    /// Appends, and answers the position by which to remove.
    pub(super) fn push(&mut self, target: Target, binding: BindingId) -> u32 {
        self.0.push((target, binding));
        u32::try_from(self.0.len() - 1).expect("bindings have 32-bit ids")
    }

    /// Removes the entry at `position`, and answers the binding whose entry is there now.
    pub(super) fn remove(&mut self, position: u32) -> Option<BindingId> {
        let position = position as usize;
        if position < self.0.len() {
            self.0.swap_remove(position);
        }
        self.0.get(position).map(|&(_, binding)| binding)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Target> {
        self.0.iter().map(|&(target, _)| target)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
