//! The topology's behaviour, by subject. Here: what the subjects share.

mod arguments;
mod bindings;
mod exchanges;
mod headers;
mod queues;
mod reference;
mod removal;
mod routing;
mod topic;

use super::*;
use crate::value::{Table, Value};

const ME: ConnectionId = ConnectionId(1);
const OTHER: ConnectionId = ConnectionId(2);

fn topology() -> Topology {
    Topology::new(Limits::default())
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().collect()
}

fn text(text: &str) -> Value {
    Value::str(text)
}

impl Topology {
    fn with_queue(&mut self, name: &str) -> QueueId {
        self.declare_queue(name, QueueSpec::default(), ME).unwrap().0
    }

    fn with_exchange(&mut self, name: &str, kind: ExchangeKind) {
        self.declare_exchange(name, ExchangeSpec::durable(kind)).unwrap();
    }

    fn bind_queue(&mut self, source: &str, queue: &str, key: &str) {
        assert!(self.bind(source, Destination::Queue(queue), key.as_bytes(), &Table::new(), ME).unwrap());
    }

    fn bind_exchange(&mut self, source: &str, exchange: &str, key: &str) {
        assert!(
            self.bind(source, Destination::Exchange(exchange), key.as_bytes(), &Table::new(), ME).unwrap()
        );
    }

    /// The names of the queues a message without headers goes to, sorted.
    fn routed(&self, exchange: &str, key: &str) -> Vec<&str> {
        self.routed_with(exchange, key, &Table::new())
    }

    fn routed_with(&self, exchange: &str, key: &str, headers: &Table) -> Vec<&str> {
        let mut out = RouteSet::new();
        self.route(exchange.as_bytes(), key.as_bytes(), &mut || Some(headers.clone()), &mut out).unwrap();
        let mut names: Vec<&str> =
            out.queues().iter().map(|&id| &*self.queue_spec(id).unwrap().name).collect();
        names.sort_unstable();
        names
    }

    /// Nothing but the predeclared exchanges is left, in any index.
    fn assert_bare(&self) {
        assert_eq!(self.queues.len(), 0);
        assert_eq!(self.queue_names.len(), 0);
        assert_eq!((self.bindings.len(), self.bindings.indexed()), (0, 0));
        assert!(self.owned.is_empty());
        assert_eq!(self.exchanges.len(), 6);
        assert_eq!(self.exchange_names.len(), 6);
        for (_, exchange) in self.exchanges.iter() {
            assert!(exchange.router.is_empty());
            assert!(exchange.incoming.is_empty() && exchange.outgoing.is_empty());
        }
    }
}

/// What a removal took, as words.
fn told(changes: &Changes) -> Vec<String> {
    changes
        .removed
        .iter()
        .map(|removed| match removed {
            Removed::Binding(binding) => format!(
                "{} -{}-> {} {}",
                binding.source,
                String::from_utf8_lossy(&binding.key),
                binding.destination_kind,
                binding.destination
            ),
            Removed::Exchange(exchange) => format!("exchange {}", exchange.name),
            Removed::Queue(_, queue) => format!("queue {}", queue.name),
        })
        .collect()
}
