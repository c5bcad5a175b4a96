//! Routing: from an exchange and a message's keys and headers to the queues that get a copy.
//!
//! Owns the walk over exchange-to-exchange bindings and alternate exchanges. Must not know how an exchange matches.

use thiserror::Error;

use super::exchange::ExchangeNode;
use super::identity::{ExchangeId, QueueId, Target};
use super::{DEFAULT_EXCHANGE, Topology};
use crate::value::Table;

/// Why a message cannot be routed at all. A message that merely matches nothing is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RouteError {
    /// There is no such exchange.
    #[error("there is no such exchange")]
    NotFound,
    /// The exchange takes messages from other exchanges only.
    #[error("the exchange is internal")]
    Internal,
}

/// Who sends the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client: an internal exchange refuses it.
    Publisher,
    /// The broker itself, such as with a dead letter: an internal exchange takes it.
    Broker,
}

/// The queues a message goes to, each once, in ascending order of their ids.
///
/// Reuse one for many messages: it keeps its memory.
#[derive(Debug, Default, Clone)]
pub struct RouteSet {
    queues: Vec<QueueId>,
    pending: Vec<ExchangeId>,
    /// Every exchange met so far, sorted.
    visited: Vec<ExchangeId>,
}

impl RouteSet {
    /// An empty set.
    pub const fn new() -> Self {
        Self { queues: Vec::new(), pending: Vec::new(), visited: Vec::new() }
    }

    /// The queues.
    pub fn queues(&self) -> &[QueueId] {
        &self.queues
    }

    /// Whether the message was unroutable.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Forgets the queues, keeps the memory. [`Topology::route`] does so by itself.
    pub fn clear(&mut self) {
        self.queues.clear();
        self.pending.clear();
        self.visited.clear();
    }

    fn add(&mut self, target: Target) {
        match target {
            Target::Queue(queue) => self.queues.push(queue),
            Target::Exchange(exchange) => self.visit(exchange),
        }
    }

    fn visit(&mut self, exchange: ExchangeId) {
        if let Err(position) = self.visited.binary_search(&exchange) {
            self.visited.insert(position, exchange);
            self.pending.push(exchange);
        }
    }

    fn dedupe(&mut self) {
        if self.queues.len() > 1 {
            self.queues.sort_unstable();
            self.queues.dedup();
        }
    }
}

/// A message's headers, decoded when the first headers exchange is met.
pub(super) struct LazyHeaders<'h> {
    decode: &'h mut dyn FnMut() -> Option<Table>,
    table: Option<Table>,
}

impl LazyHeaders<'_> {
    pub(super) fn table(&mut self) -> &Table {
        self.table.get_or_insert_with(|| (self.decode)().unwrap_or_default())
    }
}

impl Topology {
    /// Routes a client's message: leaves in `out` every queue it goes to, none if it matches nothing.
    ///
    /// `headers` is called at most once, and only if a headers exchange is met.
    ///
    /// # Errors
    /// There is no such exchange, or it is internal; `out` is empty then.
    pub fn route(
        &self,
        exchange: &[u8],
        key: &[u8],
        headers: &mut dyn FnMut() -> Option<Table>,
        out: &mut RouteSet,
    ) -> Result<(), RouteError> {
        self.route_keys(exchange, &[key], Origin::Publisher, headers, out)
    }

    /// Routes a message of several keys (its own and those of CC and BCC, or of a dead letter) as one.
    ///
    /// An exchange at which no key matches any binding hands the message to its alternate exchange, as RabbitMQ does: what
    /// becomes of the message behind an exchange-to-exchange binding does not matter.
    ///
    /// # Errors
    /// There is no such exchange, or it is internal and the message a client's; `out` is empty then.
    pub fn route_keys(
        &self,
        exchange: &[u8],
        keys: &[&[u8]],
        origin: Origin,
        headers: &mut dyn FnMut() -> Option<Table>,
        out: &mut RouteSet,
    ) -> Result<(), RouteError> {
        out.clear();
        let first = self.exchange_names.get(exchange).map(ExchangeId).ok_or(RouteError::NotFound)?;
        let node = self.exchanges.get(first.0).ok_or(RouteError::NotFound)?;
        if node.definition.internal && origin == Origin::Publisher {
            return Err(RouteError::Internal);
        }
        let mut headers = LazyHeaders { decode: headers, table: None };
        out.visit(first);
        while let Some(id) = out.pending.pop() {
            if let Some(node) = self.exchanges.get(id.0) {
                self.route_at(id, node, keys, &mut headers, out);
            }
        }
        out.dedupe();
        Ok(())
    }

    fn route_at(
        &self,
        id: ExchangeId,
        node: &ExchangeNode,
        keys: &[&[u8]],
        headers: &mut LazyHeaders<'_>,
        out: &mut RouteSet,
    ) {
        if id == DEFAULT_EXCHANGE {
            out.queues.extend(keys.iter().filter_map(|key| self.queue_names.get(key).map(QueueId)));
            return;
        }
        let mut matched = false;
        node.router.matches(keys, headers, &mut |target| {
            matched = true;
            out.add(target);
        });
        if !matched
            && let Some(alternate) =
                node.definition.alternate_exchange.as_ref().or(node.alternate_by_policy.as_ref())
            && let Some(alternate) = self.exchange_names.get(alternate.as_bytes())
        {
            out.visit(ExchangeId(alternate));
        }
    }
}
