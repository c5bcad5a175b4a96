//! What the connection's user may do, remembered for one generation of the permissions.
//!
//! Owns which operation needs which permission on what (reference 1.7), and the order of the checks. Must not know how a
//! permission is decided.

use super::{Failure, Session};
use crate::translate;
use deepmq_broker::Vhost;
use deepmq_model::access::{Access, Permission, Refused};
use deepmq_model::topology::{Destination, ExchangeKind, ResourceKind};
use deepmq_model::{Table, Value};
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

    /// Refuses to declare: what a new queue or exchange sends on to another exchange counts as read from it and written there.
    /// `onward` is the argument that names the other exchange.
    pub(super) fn permit_declare(
        &mut self,
        (kind, name): (ResourceKind, &str),
        exists: bool,
        (arguments, onward): (&Table, &str),
    ) -> Result<(), Failure> {
        self.permit(Permission::Configure, kind, name)?;
        if exists {
            return Ok(());
        }
        let Some(to) = arguments.get(onward).and_then(Value::as_str) else { return Ok(()) };
        self.permit(Permission::Read, kind, name)?;
        self.permit(Permission::Write, ResourceKind::Exchange, to)
    }

    /// Refuses to bind or unbind.
    pub(super) fn permit_binding(
        &mut self,
        source: &str,
        destination: Destination<'_>,
        key: &[u8],
    ) -> Result<(), Failure> {
        let (kind, name) = match destination {
            Destination::Queue(name) => (ResourceKind::Queue, name),
            Destination::Exchange(name) => (ResourceKind::Exchange, name),
        };
        self.permit(Permission::Write, kind, name)?;
        // The default exchange is bound by nobody, whatever the permissions.
        if source.is_empty() || name.is_empty() {
            return Ok(());
        }
        self.permit(Permission::Read, ResourceKind::Exchange, source)?;
        let (access, vhost) = (self.access()?, self.vhost()?);
        check_topic(&access, &vhost, Permission::Read, source, key).map_err(translate::access_refused)
    }
}

/// Refuses a publish.
pub(super) fn check_publish(
    access: &Access,
    vhost: &Vhost,
    exchange: &str,
    key: &[u8],
) -> Result<(), Refused> {
    access.check(Permission::Write, ResourceKind::Exchange, exchange)?;
    check_topic(access, vhost, Permission::Write, exchange, key)
}

/// Refuses a key, if the exchange is a topic exchange for which there is a rule.
fn check_topic(
    access: &Access,
    vhost: &Vhost,
    permission: Permission,
    exchange: &str,
    key: &[u8],
) -> Result<(), Refused> {
    if access.narrows(exchange) && vhost.exchange_kind(exchange) == Some(ExchangeKind::Topic) {
        return access.check_topic(permission, exchange, key);
    }
    Ok(())
}
