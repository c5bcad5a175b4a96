//! Everything that is administered: users, vhosts, permissions, policies, parameters and limits.
//!
//! Owns their state under one lock, the order of its edits, and that each is journalled in that order. Must not know running
//! vhosts or connections: what follows from an edit there is the broker's business.

mod edit;
mod error;
mod record;
mod state;

pub(crate) use edit::Edit;
pub use error::RegistryError;
pub use record::{
    GlobalParameter, Parameter, PermissionRecord, PolicyRecord, TopicPermissionRecord, UserLimits,
    UserRecord, VhostLimits, VhostRecord,
};
pub(crate) use state::State;

use crate::durable::Durable;
use crate::durable::change::Change;
use deepmq_storage::Lsn;
use parking_lot::{RwLock, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// An edit that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Whether what was put was not there before.
    pub created: bool,
    /// The record of the journal that keeps it, for [`Broker::durable_at`](crate::Broker::durable_at); none in a broker that
    /// keeps nothing.
    pub lsn: Option<Lsn>,
}

/// The registry of a broker.
#[derive(Debug)]
pub(crate) struct Registry {
    state: RwLock<State>,
    /// Grows with every edit that can alter what a user may do.
    generation: AtomicU64,
    durable: Option<Arc<Durable>>,
}

impl Registry {
    /// An empty one.
    pub(crate) fn new(durable: Option<Arc<Durable>>) -> Self {
        Self { state: RwLock::new(State::new()), generation: AtomicU64::new(1), durable }
    }

    /// Reads the state.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.state.read())
    }

    /// The right to edit.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Journals changes; `deleted` are numbers of queues that go with them. To be called with the state locked, so that their
    /// order is that of the edits. A failed journal is waited for in vain, and says so then.
    pub(crate) fn keep(&self, changes: &[Change], deleted: &[u64]) -> Option<Lsn> {
        let durable = self.durable.as_ref()?;
        Some(durable.record(changes, deleted).unwrap_or_else(|error| {
            tracing::error!(%error, "an edit of the registry was not journalled");
            Lsn(u64::MAX)
        }))
    }

    /// A number that grows with every edit that can alter what a user may do.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// What users may do has changed.
    pub(crate) fn access_changed(&self) {
        self.generation.fetch_add(1, Release);
    }
}
