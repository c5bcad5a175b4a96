//! The topology of one vhost: its exchanges, its queues' declarations and the bindings between them.
//!
//! Owns the names, the rules of declaring, binding and deleting, and the routing of a message to queues. Must not know
//! what a queue holds, what a connection is beyond its id, or which protocol asked.
//!
//! Path in: `declare_*`, `bind`, `unbind`, `delete_*`, each taking `&mut self`. Path out: [`Topology::route`], which
//! reads only, and [`Changes`], which tells what a removal took with it.

mod arguments;
mod binding;
mod class;
mod direct;
mod equivalence;
mod error;
mod exchange;
mod headers;
mod identity;
mod inspection;
mod link;
mod names;
mod queue;
mod removal;
mod route;
mod router;
mod slab;
mod targets;
mod trie;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use hashbrown::HashMap;

pub use arguments::{DeadLetterStrategy, DeliveryLimit, DurabilityMode, Overflow, QueueArguments, QueueKind};
pub use binding::{Binding, Destination};
pub use error::{ArgumentFault, Limit, Resource, ResourceKind, TopologyError, describe};
pub use exchange::{Exchange, ExchangeKind, ExchangeSpec};
pub use identity::{ConnectionId, QueueId};
pub use inspection::BindingView;
pub use queue::{Queue, QueueSpec};
pub use removal::{Changes, Removed};
pub use route::{Origin, RouteError, RouteSet};

use exchange::ExchangeNode;
use identity::ExchangeId;
use link::Bindings;
use names::Names;
use queue::QueueNode;
use slab::Slab;

/// The longest name and the longest routing or binding key, in bytes: AMQP's short string.
pub const NAME_BYTES_MAX: usize = 255;

/// Names that start so are the broker's own.
const RESERVED_PREFIX: &str = "amq.";

/// The default exchange, by which every queue is bound under its own name, is the first to be predeclared.
const DEFAULT_EXCHANGE: ExchangeId = ExchangeId(0);

/// How much one vhost may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Queues.
    pub queues_max: usize,
    /// Exchanges beside the predeclared ones.
    pub exchanges_max: usize,
    /// Bindings, the default exchange's implicit ones not counted.
    pub bindings_max: usize,
    /// Entries in the arguments of one queue, exchange or binding.
    pub arguments_max: usize,
}

impl Limits {
    /// None.
    pub const UNLIMITED: Self = Self {
        queues_max: usize::MAX,
        exchanges_max: usize::MAX,
        bindings_max: usize::MAX,
        arguments_max: usize::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self { queues_max: 1_000_000, exchanges_max: 100_000, bindings_max: 4_000_000, arguments_max: 128 }
    }
}

/// What a declaration found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// There was none: it was created.
    Created,
    /// An equivalent one was already there.
    Existing,
}

/// One vhost's exchanges, queue declarations and bindings. A clone is a draft: what is tried there can be dropped.
#[derive(Debug, Clone)]
pub struct Topology {
    limits: Limits,
    generation: u64,
    exchanges: Slab<ExchangeNode>,
    exchange_names: Names,
    queues: Slab<QueueNode>,
    queue_names: Names,
    owned: HashMap<ConnectionId, BTreeSet<QueueId>>,
    bindings: Bindings,
}

impl Topology {
    /// A topology of the predeclared exchanges only.
    pub fn new(limits: Limits) -> Self {
        let mut topology = Self {
            limits,
            generation: 0,
            exchanges: Slab::new(),
            exchange_names: Names::new(),
            queues: Slab::new(),
            queue_names: Names::new(),
            owned: HashMap::new(),
            bindings: Bindings::new(),
        };
        topology.predeclare();
        topology
    }

    /// Grows with every change that can alter any route: what [`Topology::route`] answered, and every [`QueueId`] in
    /// it, holds for as long as this number stands.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The limits given to [`Topology::new`].
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets how much there may be from now on; what is there stays.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    fn changed(&mut self) {
        self.generation += 1;
    }

    fn check_arguments(&self, name: &str, count: usize) -> Result<(), TopologyError> {
        check_limit(Limit::Arguments, name, count, self.limits.arguments_max)
    }
}

/// Refuses a name or key too long for AMQP.
fn check_name(name: &str) -> Result<(), TopologyError> {
    check_limit(Limit::NameBytes, name, name.len(), NAME_BYTES_MAX)
}

/// Refuses a `count` over `max`; `name` is what was asked for.
fn check_limit(limit: Limit, name: &str, count: usize, max: usize) -> Result<(), TopologyError> {
    if count <= max { Ok(()) } else { Err(TopologyError::LimitReached { limit, name: name.into(), max }) }
}
