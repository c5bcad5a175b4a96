//! Exchanges: what they are declared as, and the rules of declaring and deleting them.
//!
//! Owns the exchanges' part of the topology. Must not know how an exchange matches a message.

use std::fmt;
use std::str::FromStr;

use super::equivalence::{check_argument, check_flag, shown};
use super::identity::{BindingId, ExchangeId};
use super::removal::Step;
use super::router::Router;
use super::{
    Changes, DEFAULT_EXCHANGE, Declared, Limit, RESERVED_PREFIX, Resource, Topology, TopologyError,
    check_limit, check_name,
};
use crate::value::{Name, Table, Value};

const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// The predeclared exchanges, the default one first.
const PREDECLARED: [(&str, ExchangeKind); 6] = [
    ("", ExchangeKind::Direct),
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
    ("amq.topic", ExchangeKind::Topic),
];

/// How an exchange matches messages with bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// The routing key equals the binding key.
    Direct,
    /// Every message matches every binding.
    Fanout,
    /// The routing key's words match the binding key's, with wildcards.
    Topic,
    /// The message's headers match the binding's arguments.
    Headers,
}

impl ExchangeKind {
    /// The name clients give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
        }
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ExchangeKind {
    type Err = TopologyError;

    fn from_str(name: &str) -> Result<Self, TopologyError> {
        match name {
            "direct" => Ok(Self::Direct),
            "fanout" => Ok(Self::Fanout),
            "topic" => Ok(Self::Topic),
            "headers" => Ok(Self::Headers),
            unknown => Err(TopologyError::UnknownExchangeType { name: unknown.to_owned() }),
        }
    }
}

/// What an exchange is to be declared as.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeSpec {
    /// Its type; [`ExchangeKind::from_str`] reads the name.
    pub kind: ExchangeKind,
    /// Whether it outlives a restart.
    pub durable: bool,
    /// Whether it goes with the last binding of which it is the source.
    pub auto_delete: bool,
    /// Whether it refuses clients' messages.
    pub internal: bool,
    /// `alternate-exchange` is known; others are kept and ignored.
    pub arguments: Table,
}

impl ExchangeSpec {
    /// A durable exchange of this type without further traits.
    pub fn durable(kind: ExchangeKind) -> Self {
        Self { kind, durable: true, auto_delete: false, internal: false, arguments: Table::new() }
    }
}

/// A declared exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Its name; empty for the default exchange.
    pub name: Name,
    /// Its type.
    pub kind: ExchangeKind,
    /// Whether it outlives a restart.
    pub durable: bool,
    /// Whether it goes with the last binding of which it is the source.
    pub auto_delete: bool,
    /// Whether it refuses clients' messages.
    pub internal: bool,
    /// All arguments it was declared with.
    pub arguments: Table,
    /// Where messages go that match no binding; need not exist.
    pub alternate_exchange: Option<Name>,
}

impl Exchange {
    fn check_equivalent(&self, spec: &ExchangeSpec) -> Result<(), TopologyError> {
        let resource = || Resource::exchange(&self.name);
        check_flag(resource, "type", spec.kind.name(), self.kind.name())?;
        check_flag(resource, "durable", shown(spec.durable), shown(self.durable))?;
        check_flag(resource, "auto_delete", shown(spec.auto_delete), shown(self.auto_delete))?;
        check_flag(resource, "internal", shown(spec.internal), shown(self.internal))?;
        check_argument(resource, ALTERNATE_EXCHANGE, None, &spec.arguments, &self.arguments)
    }
}

/// An exchange with its bindings.
#[derive(Debug, Clone)]
pub(super) struct ExchangeNode {
    pub(super) definition: Exchange,
    /// The alternate exchange that a policy names, which counts if it was declared without one.
    pub(super) alternate_by_policy: Option<Name>,
    pub(super) router: Router,
    /// The bindings of which it is the source.
    pub(super) outgoing: Vec<BindingId>,
    /// The bindings of which it is the destination.
    pub(super) incoming: Vec<BindingId>,
}

impl Topology {
    /// Declares an exchange.
    ///
    /// # Errors
    /// It is the default exchange; it exists and is not equivalent; its new name is reserved or too long; its alternate
    /// exchange is not a string; or a limit is reached.
    pub fn declare_exchange(&mut self, name: &str, spec: ExchangeSpec) -> Result<Declared, TopologyError> {
        check_not_default(name)?;
        if let Some(existing) = self.find_exchange(name) {
            existing.check_equivalent(&spec)?;
            return Ok(Declared::Existing);
        }
        if name.starts_with(RESERVED_PREFIX) {
            return Err(TopologyError::ReservedName(Resource::exchange(name)));
        }
        check_name(name)?;
        self.check_arguments(name, spec.arguments.len())?;
        let alternate = alternate_exchange(name, &spec.arguments)?;
        let declared = self.exchanges.len() - PREDECLARED.len();
        check_limit(Limit::Exchanges, name, declared + 1, self.limits.exchanges_max)?;
        self.insert_exchange(name, spec, alternate);
        Ok(Declared::Created)
    }

    /// The exchange of this name, as a passive declaration asks for it; see [`Topology::find_exchange`] for others.
    ///
    /// # Errors
    /// It is the default exchange, or there is none.
    pub fn exchange(&self, name: &str) -> Result<&Exchange, TopologyError> {
        check_not_default(name)?;
        self.find_exchange(name).ok_or_else(|| TopologyError::NotFound(Resource::exchange(name)))
    }

    /// The exchange of this name, the default one among them.
    pub fn find_exchange(&self, name: &str) -> Option<&Exchange> {
        let id = self.exchange_names.get(name.as_bytes())?;
        self.exchanges.get(id).map(|node| &node.definition)
    }

    /// Takes over which alternate exchange policies name for each exchange but the default one.
    pub fn set_alternates(&mut self, mut by_policy: impl FnMut(&str) -> Option<Name>) {
        let mut changed = false;
        for node in self.exchanges.iter_mut().filter(|node| !node.definition.name.is_empty()) {
            let alternate = by_policy(&node.definition.name);
            changed |= node.alternate_by_policy != alternate;
            node.alternate_by_policy = alternate;
        }
        if changed {
            self.changed();
        }
    }

    /// As [`Topology::set_alternates`], for one exchange.
    pub fn set_alternate(&mut self, exchange: &str, by_policy: Option<Name>) {
        let node = self.exchange_names.get(exchange.as_bytes()).and_then(|id| self.exchanges.get_mut(id));
        if let Some(node) = node.filter(|node| node.alternate_by_policy != by_policy) {
            node.alternate_by_policy = by_policy;
            self.changed();
        }
    }

    /// All exchanges, the predeclared ones among them.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().map(|(_, node)| &node.definition)
    }

    /// Deletes an exchange with all its bindings. That there is none is no error: nothing has changed then.
    ///
    /// # Errors
    /// It is the default or a system exchange, or `if_unused` is set and it is the source of a binding.
    pub fn delete_exchange(&mut self, name: &str, if_unused: bool) -> Result<Changes, TopologyError> {
        check_not_default(name)?;
        if name.starts_with(RESERVED_PREFIX) {
            return Err(TopologyError::SystemExchange { exchange: name.into() });
        }
        let Some(id) = self.exchange_names.get(name.as_bytes()) else { return Ok(Changes::default()) };
        if if_unused && self.exchanges.get(id).is_some_and(|node| !node.outgoing.is_empty()) {
            return Err(TopologyError::InUse(Resource::exchange(name)));
        }
        Ok(self.remove(Step::Exchange(ExchangeId(id))))
    }

    pub(super) fn predeclare(&mut self) {
        for (name, kind) in PREDECLARED {
            self.insert_exchange(name, ExchangeSpec::durable(kind), None);
        }
    }

    fn insert_exchange(&mut self, name: &str, spec: ExchangeSpec, alternate_exchange: Option<Name>) {
        let ExchangeSpec { kind, durable, auto_delete, internal, arguments } = spec;
        let name: Name = name.into();
        let router = Router::new(kind);
        let definition = Exchange {
            name: name.clone(),
            kind,
            durable,
            auto_delete,
            internal,
            arguments,
            alternate_exchange,
        };
        let node = ExchangeNode {
            definition,
            alternate_by_policy: None,
            router,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        };
        let id = self.exchanges.insert(node);
        debug_assert!(name.is_empty() == (ExchangeId(id) == DEFAULT_EXCHANGE));
        self.exchange_names.insert(name, id);
        self.changed();
    }
}

/// Refuses the default exchange.
pub(super) fn check_not_default(name: &str) -> Result<(), TopologyError> {
    if name.is_empty() { Err(TopologyError::DefaultExchange) } else { Ok(()) }
}

fn alternate_exchange(name: &str, arguments: &Table) -> Result<Option<Name>, TopologyError> {
    let Some(value) = arguments.get(ALTERNATE_EXCHANGE) else { return Ok(None) };
    match value {
        // A name that is not UTF-8 names nothing, and an alternate exchange need not exist.
        Value::Str(bytes) => Ok(std::str::from_utf8(bytes).ok().map(Name::from)),
        other => Err(TopologyError::InvalidArgumentType {
            resource: Resource::exchange(name),
            argument: ALTERNATE_EXCHANGE,
            type_name: other.type_name(),
        }),
    }
}
