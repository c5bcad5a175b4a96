//! What the connection's user may do, remembered for one generation of the permissions.
//!
//! Owns what is remembered, and the refusal. Must not know which operation needs which permission.

use super::{Failure, Session};
use crate::translate;
use deepmq_broker::permits;
use deepmq_model::Table;
use deepmq_model::access::{Access, Permission};
use deepmq_model::topology::{Destination, ResourceKind};
use std::sync::Arc;

/// What was remembered.
#[derive(Debug, Default)]
pub(super) struct Permits {
    generation: u64,
    access: Option<Arc<Access>>,
}

impl Session {
    /// What the user may do now.
    pub(super) fn access(&mut self) -> Result<Arc<Access>, Failure> {
        // Read first: what is found after it is at least as new.
        let generation = self.broker.access_generation();
        if self.permits.generation == generation
            && let Some(access) = &self.permits.access
        {
            return Ok(access.clone());
        }
        let (Some(user), Some(vhost)) = (&self.user, &self.vhost) else {
            return Err(Failure::wrong_phase("starting"));
        };
        let access = self.broker.access(&user.name, vhost.name());
        let access =
            access.unwrap_or_else(|| Arc::new(Access::none(user.name.clone(), vhost.name().clone())));
        self.permits = Permits { generation, access: Some(access.clone()) };
        Ok(access)
    }

    /// Refuses what the user may not do with a queue or exchange, whether it exists or not.
    pub(super) fn permit(
        &mut self,
        permission: Permission,
        kind: ResourceKind,
        name: &str,
    ) -> Result<(), Failure> {
        self.access()?.check(permission, kind, name).map_err(translate::access_refused)
    }

    /// Refuses to tell of a queue or exchange that the user may do nothing with.
    pub(super) fn permit_any(&mut self, kind: ResourceKind, name: &str) -> Result<(), Failure> {
        self.access()?.check_any(kind, name).map_err(translate::access_refused)
    }

    /// Refuses to declare.
    pub(super) fn permit_declare(
        &mut self,
        what: (ResourceKind, &str),
        exists: bool,
        arguments: &Table,
    ) -> Result<(), Failure> {
        permits::declare(&*self.access()?, what, exists, arguments).map_err(translate::access_refused)
    }

    /// Refuses to bind or unbind.
    pub(super) fn permit_binding(
        &mut self,
        source: &str,
        destination: Destination<'_>,
        key: &[u8],
    ) -> Result<(), Failure> {
        let (access, vhost) = (self.access()?, self.vhost()?);
        permits::bind(&access, &vhost, source, destination, key).map_err(translate::access_refused)
    }
}
