//! Which operation needs which permission (reference: RabbitMQ's access control), for all front-ends.
//!
//! Owns the order of the checks. Must not know how a permission is decided, or who asks.

use crate::vhost::Vhost;
use deepmq_model::access::{Access, Permission, Refused};
use deepmq_model::topology::{Destination, ExchangeKind, ResourceKind};
use deepmq_model::{Table, Value};

/// The argument by which a queue sends on what it drops.
pub const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
/// The argument by which an exchange sends on what it cannot route.
pub const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// May a queue or exchange be declared? What a new one sends on to another exchange counts as read from it and written
/// there.
///
/// # Errors
/// What is not allowed.
pub fn declare(
    access: &Access,
    (kind, name): (ResourceKind, &str),
    exists: bool,
    arguments: &Table,
) -> Result<(), Refused> {
    access.check(Permission::Configure, kind, name)?;
    if exists {
        return Ok(());
    }
    let onward = match kind {
        ResourceKind::Queue => DEAD_LETTER_EXCHANGE,
        ResourceKind::Exchange => ALTERNATE_EXCHANGE,
    };
    let Some(to) = arguments.get(onward).and_then(Value::as_str) else { return Ok(()) };
    access.check(Permission::Read, kind, name)?;
    access.check(Permission::Write, ResourceKind::Exchange, to)
}

/// May something be bound, or unbound?
///
/// # Errors
/// What is not allowed.
pub fn bind(
    access: &Access,
    vhost: &Vhost,
    source: &str,
    destination: Destination<'_>,
    key: &[u8],
) -> Result<(), Refused> {
    let (kind, name) = match destination {
        Destination::Queue(name) => (ResourceKind::Queue, name),
        Destination::Exchange(name) => (ResourceKind::Exchange, name),
    };
    access.check(Permission::Write, kind, name)?;
    // The default exchange is bound by nobody, whatever the permissions.
    if source.is_empty() || name.is_empty() {
        return Ok(());
    }
    access.check(Permission::Read, ResourceKind::Exchange, source)?;
    topic(access, vhost, Permission::Read, source, key)
}

/// May a message be published?
///
/// # Errors
/// What is not allowed.
pub fn publish(access: &Access, vhost: &Vhost, exchange: &str, key: &[u8]) -> Result<(), Refused> {
    access.check(Permission::Write, ResourceKind::Exchange, exchange)?;
    topic(access, vhost, Permission::Write, exchange, key)
}

/// Refuses a key, if the exchange is a topic exchange for which there is a rule.
fn topic(
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
