//! Bindings: an edge from an exchange to a queue or another exchange, with a key and arguments.
//!
//! Owns the rules of binding and unbinding. Must not know how a binding is stored or matched.

use super::class::without_repetitions;
use super::exchange::check_not_default;
use super::identity::{ConnectionId, ExchangeId, Target};
use super::removal::Step;
use super::{Changes, Limit, NAME_BYTES_MAX, Resource, ResourceKind, Topology, TopologyError, check_limit};
use crate::value::{Name, Table};

/// What a binding leads to, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination<'a> {
    /// A queue.
    Queue(&'a str),
    /// An exchange.
    Exchange(&'a str),
}

/// A binding that was removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The exchange it led from.
    pub source: Name,
    /// Whether it led to a queue or an exchange.
    pub destination_kind: ResourceKind,
    /// The name of that.
    pub destination: Name,
    /// The binding key.
    pub key: Box<[u8]>,
    /// The arguments, each key once.
    pub arguments: Table,
}

impl Topology {
    /// Binds a queue or an exchange to an exchange; answers whether the binding is new.
    ///
    /// # Errors
    /// Either end is the default exchange or does not exist, the queue is exclusive to another connection, the exchange's
    /// type refuses the key or the arguments, or a limit is reached.
    pub fn bind(
        &mut self,
        source: &str,
        destination: Destination<'_>,
        key: &[u8],
        arguments: &Table,
        by: ConnectionId,
    ) -> Result<bool, TopologyError> {
        let (source_id, target) = self.ends(source, destination, by)?;
        self.check_arguments(source, arguments.len())?;
        check_limit(Limit::NameBytes, &String::from_utf8_lossy(key), key.len(), NAME_BYTES_MAX)?;
        let arguments = without_repetitions(arguments);
        if let Some(exchange) = self.exchanges.get(source_id.0) {
            exchange.router.check(key, &arguments)?;
        }
        if self.bindings.find(source_id, target, key, &arguments).is_some() {
            return Ok(false);
        }
        check_limit(Limit::Bindings, source, self.bindings.len() + 1, self.limits.bindings_max)?;
        self.link(source_id, target, key.into(), arguments);
        Ok(true)
    }

    /// Removes a binding. That it or either end does not exist is no error: nothing has changed then.
    ///
    /// # Errors
    /// Either end is the default exchange, or the queue is exclusive to another connection.
    pub fn unbind(
        &mut self,
        source: &str,
        destination: Destination<'_>,
        key: &[u8],
        arguments: &Table,
        by: ConnectionId,
    ) -> Result<Changes, TopologyError> {
        let (source_id, target) = match self.ends(source, destination, by) {
            Ok(ends) => ends,
            Err(TopologyError::NotFound(_)) => return Ok(Changes::default()),
            Err(refused) => return Err(refused),
        };
        self.check_arguments(source, arguments.len())?;
        let arguments = without_repetitions(arguments);
        match self.bindings.find(source_id, target, key, &arguments) {
            Some(id) => Ok(self.remove(Step::Binding(id))),
            None => Ok(Changes::default()),
        }
    }

    fn ends(
        &self,
        source: &str,
        destination: Destination<'_>,
        by: ConnectionId,
    ) -> Result<(ExchangeId, Target), TopologyError> {
        check_not_default(source)?;
        if let Destination::Exchange(name) = destination {
            check_not_default(name)?;
        }
        let find = |name: &str| {
            let id = self.exchange_names.get(name.as_bytes()).map(ExchangeId);
            id.ok_or_else(|| TopologyError::NotFound(Resource::exchange(name)))
        };
        // A locked queue is refused before a missing exchange, a missing exchange before a missing queue.
        let queue = match destination {
            Destination::Queue(name) => Some(self.queue(name, by)),
            Destination::Exchange(_) => None,
        };
        if let Some(Err(locked @ TopologyError::Locked { .. })) = queue {
            return Err(locked);
        }
        let source = find(source)?;
        let target = match (queue, destination) {
            (Some(queue), _) => Target::Queue(queue?),
            (None, Destination::Exchange(name) | Destination::Queue(name)) => Target::Exchange(find(name)?),
        };
        Ok((source, target))
    }
}
