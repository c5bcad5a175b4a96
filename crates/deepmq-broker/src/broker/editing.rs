//! Edits of the registry, and what follows from them: vhosts that begin and end, logins, permissions, settings.
//!
//! Owns the order: state, journal, effects, event, all with the registry locked. Must not know who may edit: that is for the
//! front-end to ask.

use super::Broker;
use crate::durable::change::Change;
use crate::registry::{Done, Edit, RegistryError, State, UserRecord};
use crate::subscriber::Wakes;
use crate::users::{PasswordHash, User};
use crate::vhost::{Vhost, VhostSettings};
use deepmq_model::Name;
use deepmq_storage::{Durability, Lsn, StorageFailure};
use std::sync::Arc;

impl Broker {
    /// Waits until an edit or a change of topology is durable: [`Done::lsn`], or
    /// [`Vhost::last_change`](crate::Vhost::last_change). At once in a broker that keeps nothing.
    ///
    /// # Errors
    /// The data directory has failed, and the broker is about to stop.
    pub async fn durable_at(&self, lsn: Option<Lsn>) -> Result<(), StorageFailure> {
        let (Some(lsn), Some(durable)) = (lsn, self.durable()) else { return Ok(()) };
        std::future::poll_fn(|cx| durable.journal().poll(lsn, Durability::Fsync, cx.waker())).await
    }

    /// As [`Broker::durable_at`], for callers that may block.
    ///
    /// # Errors
    /// The data directory has failed, and the broker is about to stop.
    pub fn wait_durable(&self, lsn: Option<Lsn>) -> Result<(), StorageFailure> {
        let (Some(lsn), Some(durable)) = (lsn, self.durable()) else { return Ok(()) };
        durable.journal().wait(lsn, Durability::Fsync)
    }

    /// Makes an edit.
    pub(super) fn edit(&self, edit: Edit) -> Result<Done, RegistryError> {
        self.edit_locked(&mut self.0.registry.write(), edit)
    }

    /// Makes an edit, with the registry locked by the caller.
    pub(super) fn edit_locked(&self, state: &mut State, edit: Edit) -> Result<Done, RegistryError> {
        let created = state.apply(edit.clone())?;
        let change = [Change::registry(edit.clone())];
        let keep = |deleted: &[u64]| self.0.registry.keep(&change, deleted);
        let lsn = match &edit {
            Edit::NoVhost { name } => self.end_vhost(name, keep),
            _ => keep(&[]),
        };
        self.follow(state, &edit);
        self.0.events.publish(&edit.event(created));
        Ok(Done { created, lsn })
    }

    /// Ends a running vhost and its connections. `keep` journals that, given the numbers of its queues.
    fn end_vhost(&self, name: &Name, keep: impl FnOnce(&[u64]) -> Option<Lsn>) -> Option<Lsn> {
        let Some(vhost) = self.0.vhosts.write().remove(name) else { return keep(&[]) };
        let mut wakes = Wakes::default();
        let lsn = vhost.close(keep, &mut wakes);
        wakes.wake();
        self.0.connections.close_those(|info| info.vhost == *name, &format!("vhost '{name}' is deleted"));
        lsn
    }

    /// What an edit changes beyond the registry.
    pub(super) fn follow(&self, state: &State, edit: &Edit) {
        match edit {
            Edit::User(user) => self.let_in(user),
            Edit::NoUser { name } => {
                self.0.users.remove(name);
                self.0
                    .connections
                    .close_those(|info| info.user == *name, &format!("user '{name}' is deleted"));
            }
            Edit::Vhost(vhost) => {
                self.run_vhost(&vhost.name);
            }
            _ => {}
        }
        if let Some(vhost) = edit.settles() {
            self.settle(state, vhost);
        }
        if edit.alters_access() {
            self.0.registry.access_changed();
        }
    }

    /// Lets a user log in.
    pub(super) fn let_in(&self, record: &UserRecord) {
        // What is in the registry was checked when it came there.
        let hash = PasswordHash::read(&record.hashing_algorithm, &record.password_hash);
        let user = User {
            name: record.name.clone(),
            tags: record.tags.clone(),
            loopback_only: record.loopback_only,
        };
        self.0.users.set(user, hash.unwrap_or_else(|_| PasswordHash::nothing()));
    }

    /// The running vhost of this name, which begins now if there is none.
    pub(super) fn run_vhost(&self, name: &Name) -> Arc<Vhost> {
        self.0.vhosts.write().entry(name.clone()).or_insert_with(|| self.new_vhost(name)).clone()
    }

    /// A vhost that is not running yet.
    pub(super) fn new_vhost(&self, name: &Name) -> Arc<Vhost> {
        let inner = &self.0;
        let (memory, events, durable) = (inner.memory.clone(), inner.events.clone(), inner.durable.clone());
        Vhost::new(name.clone(), &inner.config.limits, memory, events, inner.timers.clone(), durable)
    }

    /// Tells a running vhost what the registry says of it.
    pub(super) fn settle(&self, state: &State, name: &Name) {
        let Some(vhost) = self.vhost(name) else { return };
        let settings = VhostSettings {
            queues_max: state.vhost_limits(name).max_queues.and_then(|max| usize::try_from(max).ok()),
            default_queue_type: state.vhost(name).and_then(|vhost| vhost.default_queue_type.clone()),
            policies: state.policies_of(name),
        };
        vhost.settle(settings, self.limits());
    }
}
