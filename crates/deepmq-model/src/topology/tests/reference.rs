//! Any sequence of operations against a reference that keeps everything in plain sets.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The types of the four exchanges; the odd ones are auto-delete.
const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Direct];

#[derive(Debug, Clone)]
enum Operation {
    DeclareExchange(usize),
    DeleteExchange(usize, bool),
    DeclareQueue(usize),
    DeleteQueue(usize),
    Bind(Edge),
    Unbind(Edge),
}

/// Source, whether the destination is a queue, destination, key.
type Edge = (usize, bool, usize, usize);

const KEYS: [&str; 3] = ["a", "#", "a.b"];

#[derive(Debug, Default)]
struct Reference {
    exchanges: BTreeSet<usize>,
    queues: BTreeSet<usize>,
    edges: BTreeSet<Edge>,
}

fn auto_delete(exchange: usize) -> bool {
    exchange % 2 == 1
}

impl Reference {
    fn cut(&mut self, cut: &dyn Fn(&Edge) -> bool) {
        let gone: Vec<Edge> = self.edges.iter().copied().filter(|edge| cut(edge)).collect();
        for edge in gone {
            if self.edges.remove(&edge)
                && auto_delete(edge.0)
                && !self.edges.iter().any(|other| other.0 == edge.0)
                && self.exchanges.remove(&edge.0)
            {
                self.cut(&|other| !other.1 && other.2 == edge.0);
            }
        }
    }

    fn can_bind(&self, edge: &Edge) -> bool {
        let destinations = if edge.1 { &self.queues } else { &self.exchanges };
        self.exchanges.contains(&edge.0) && destinations.contains(&edge.2)
    }

    fn route(&self, exchange: usize, key: &str) -> Vec<String> {
        let mut reached = BTreeSet::from([exchange]);
        let mut queues = BTreeSet::new();
        let mut pending = vec![exchange];
        while let Some(at) = pending.pop() {
            for edge in self.edges.iter().filter(|edge| edge.0 == at && over(edge, key)) {
                if edge.1 {
                    queues.insert(format!("q{}", edge.2));
                } else if reached.insert(edge.2) {
                    pending.push(edge.2);
                }
            }
        }
        queues.into_iter().collect()
    }
}

/// Whether a message goes over a binding.
fn over(edge: &Edge, key: &str) -> bool {
    let bound = KEYS[edge.3];
    match KINDS[edge.0] {
        ExchangeKind::Fanout => true,
        ExchangeKind::Topic if bound == "#" => true,
        _ => bound == key,
    }
}

fn edge() -> impl Strategy<Value = Edge> {
    (0..4usize, any::<bool>(), 0..4usize, 0..3usize)
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => (0..4usize).prop_map(Operation::DeclareExchange),
        1 => (0..4usize, any::<bool>()).prop_map(|(x, unused)| Operation::DeleteExchange(x, unused)),
        2 => (0..4usize).prop_map(Operation::DeclareQueue),
        1 => (0..4usize).prop_map(Operation::DeleteQueue),
        6 => edge().prop_map(Operation::Bind),
        2 => edge().prop_map(Operation::Unbind),
    ]
}

fn apply(topology: &mut Topology, reference: &mut Reference, operation: &Operation) {
    match operation {
        &Operation::DeclareExchange(x) => {
            let spec = ExchangeSpec { auto_delete: auto_delete(x), ..ExchangeSpec::durable(KINDS[x]) };
            let created = topology.declare_exchange(&format!("x{x}"), spec) == Ok(Declared::Created);
            assert_eq!(created, reference.exchanges.insert(x));
        }
        &Operation::DeleteExchange(x, if_unused) => {
            let used = reference.edges.iter().any(|edge| edge.0 == x);
            let deleted = topology.delete_exchange(&format!("x{x}"), if_unused);
            assert_eq!(deleted.is_err(), if_unused && used);
            if deleted.is_ok() && reference.exchanges.remove(&x) {
                reference.cut(&|edge| edge.0 == x || (!edge.1 && edge.2 == x));
            }
        }
        &Operation::DeclareQueue(q) => {
            let (_, declared) = topology.declare_queue(&format!("q{q}"), QueueSpec::default(), ME).unwrap();
            assert_eq!(declared == Declared::Created, reference.queues.insert(q));
        }
        &Operation::DeleteQueue(q) => {
            let id = topology.find_queue(&format!("q{q}"));
            assert_eq!(id.is_some(), reference.queues.remove(&q));
            if let Some(id) = id {
                topology.delete_queue(id);
                reference.cut(&|edge| edge.1 && edge.2 == q);
            }
        }
        Operation::Bind(edge) => {
            let bound = with_edge(edge, |source, destination, key| {
                topology.bind(source, destination, key, &Table::new(), ME)
            });
            assert_eq!(bound.is_ok(), reference.can_bind(edge));
            if let Ok(new) = bound {
                assert_eq!(new, reference.edges.insert(*edge));
            }
        }
        Operation::Unbind(edge) => {
            let changes = with_edge(edge, |source, destination, key| {
                topology.unbind(source, destination, key, &Table::new(), ME).unwrap()
            });
            assert_eq!(!changes.is_empty(), reference.edges.contains(edge));
            reference.cut(&|other| other == edge);
        }
    }
}

fn with_edge<T>(edge: &Edge, act: impl FnOnce(&str, Destination<'_>, &[u8]) -> T) -> T {
    let (queue, exchange) = (format!("q{}", edge.2), format!("x{}", edge.2));
    let destination = if edge.1 { Destination::Queue(&queue) } else { Destination::Exchange(&exchange) };
    act(&format!("x{}", edge.0), destination, KEYS[edge.3].as_bytes())
}

fn check(topology: &Topology, reference: &Reference) {
    let mut stored = BTreeMap::new();
    for view in topology.bindings().filter(|view| !view.implicit) {
        let key = String::from_utf8_lossy(view.key).into_owned();
        let binding =
            (view.source.to_string(), view.destination_kind == ResourceKind::Queue, view.destination, key);
        *stored.entry(binding).or_insert(0) += 1;
    }
    assert_eq!(stored.len(), reference.edges.len());
    assert!(stored.values().all(|&count| count == 1));
    assert_eq!(topology.queues().count(), reference.queues.len());
    assert_eq!(topology.exchanges().count(), reference.exchanges.len() + 6);
    for &x in &reference.exchanges {
        let name = format!("x{x}");
        let outgoing = reference.edges.iter().filter(|edge| edge.0 == x).count();
        let incoming = reference.edges.iter().filter(|edge| !edge.1 && edge.2 == x).count();
        assert_eq!(topology.bindings_from_exchange(&name).count(), outgoing);
        assert_eq!(topology.bindings_to_exchange(&name).count(), incoming);
        for key in KEYS {
            assert_eq!(topology.routed(&name, key), reference.route(x, key), "{name} with {key}");
        }
    }
}

proptest! {
    #[test]
    fn any_sequence_of_operations_agrees_with_the_reference_and_leaves_nothing_behind(
        operations in prop::collection::vec(operation(), 0..60),
    ) {
        let mut topology = topology();
        let mut reference = Reference::default();
        for operation in &operations {
            apply(&mut topology, &mut reference, operation);
            check(&topology, &reference);
        }
        for x in 0..4 {
            topology.delete_exchange(&format!("x{x}"), false).unwrap();
        }
        for q in 0..4 {
            if let Some(id) = topology.find_queue(&format!("q{q}")) {
                topology.delete_queue(id);
            }
        }
        topology.assert_bare();
    }
}
