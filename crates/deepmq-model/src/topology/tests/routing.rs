//! From an exchange to queues, over bindings between exchanges and alternate exchanges.

use proptest::prelude::*;

use super::*;

fn alternate(topology: &mut Topology, name: &str, kind: ExchangeKind, to: &str) {
    let arguments = table([("alternate-exchange", text(to))]);
    topology.declare_exchange(name, ExchangeSpec { arguments, ..ExchangeSpec::durable(kind) }).unwrap();
}

#[test]
fn the_default_exchange_routes_by_queue_name() {
    let mut topology = topology();
    let id = topology.with_queue("q");
    assert_eq!(topology.routed("", "q"), ["q"]);
    assert!(topology.routed("", "p").is_empty());
    topology.delete_queue(id);
    assert!(topology.routed("", "q").is_empty());
}

#[test]
fn direct_compares_the_key_and_fanout_does_not() {
    let mut topology = topology();
    for queue in ["a", "b", "c"] {
        topology.with_queue(queue);
    }
    topology.bind_queue("amq.direct", "a", "k");
    topology.bind_queue("amq.direct", "b", "k");
    topology.bind_queue("amq.direct", "c", "other");
    topology.bind_queue("amq.fanout", "c", "k");
    assert_eq!(topology.routed("amq.direct", "k"), ["a", "b"]);
    assert!(topology.routed("amq.direct", "K").is_empty());
    assert_eq!(topology.routed("amq.fanout", "whatever"), ["c"]);
}

#[test]
fn keys_may_be_any_bytes() {
    let mut topology = topology();
    let id = topology.with_queue("q");
    let key = b"\xff\x00.\xfe";
    for exchange in ["amq.direct", "amq.topic"] {
        topology.bind(exchange, Destination::Queue("q"), key, &Table::new(), ME).unwrap();
        let mut out = RouteSet::new();
        topology.route(exchange.as_bytes(), key, &mut || None, &mut out).unwrap();
        assert_eq!(out.queues(), [id]);
    }
}

#[test]
fn no_exchange_and_an_internal_one_are_refused_and_leave_nothing() {
    let mut topology = topology();
    let id = topology.with_queue("q");
    let spec = ExchangeSpec { internal: true, ..ExchangeSpec::durable(ExchangeKind::Fanout) };
    topology.declare_exchange("inner", spec).unwrap();
    topology.bind_queue("inner", "q", "");
    let mut out = RouteSet::new();
    topology.route(b"", b"q", &mut || None, &mut out).unwrap();
    for (exchange, error) in
        [(&b"x"[..], RouteError::NotFound), (b"inner", RouteError::Internal), (b"\xff", RouteError::NotFound)]
    {
        assert_eq!(topology.route(exchange, b"q", &mut || None, &mut out), Err(error));
        assert!(out.is_empty());
    }
    topology.route_keys(b"inner", &[b""], Origin::Broker, &mut || None, &mut out).unwrap();
    assert_eq!(out.queues(), [id]);
    topology.bind_exchange("amq.direct", "inner", "k");
    assert_eq!(topology.routed("amq.direct", "k"), ["q"]);
}

#[test]
fn each_queue_is_told_once_however_many_ways_lead_to_it() {
    let mut topology = topology();
    topology.with_queue("q");
    topology.with_exchange("x", ExchangeKind::Fanout);
    topology.bind_queue("amq.topic", "q", "#");
    topology.bind_queue("amq.topic", "q", "a.*");
    topology.bind_queue("amq.topic", "q", "#.b");
    topology.bind_exchange("amq.topic", "x", "a.b");
    topology.bind_queue("x", "q", "");
    topology.bind_exchange("x", "amq.topic", "");
    assert_eq!(topology.routed("amq.topic", "a.b"), ["q"]);
}

#[test]
fn several_keys_route_as_one_message() {
    let mut topology = topology();
    let (a, b) = (topology.with_queue("a"), topology.with_queue("b"));
    let mut out = RouteSet::new();
    topology.route_keys(b"", &[b"b", b"a", b"b"], Origin::Publisher, &mut || None, &mut out).unwrap();
    assert_eq!(out.queues(), [a, b]);
    topology.with_queue("lost");
    alternate(&mut topology, "x", ExchangeKind::Direct, "amq.fanout");
    topology.bind_queue("amq.fanout", "lost", "");
    topology.bind_queue("x", "a", "a");
    topology.route_keys(b"x", &[b"a", b"none"], Origin::Publisher, &mut || None, &mut out).unwrap();
    assert_eq!(out.queues(), [a]);
}

#[test]
fn an_alternate_exchange_takes_what_matches_nothing() {
    let mut topology = topology();
    topology.with_queue("q");
    topology.with_queue("lost");
    alternate(&mut topology, "x", ExchangeKind::Direct, "y");
    topology.bind_queue("x", "q", "k");
    assert!(topology.routed("x", "none").is_empty(), "y does not exist yet");
    alternate(&mut topology, "y", ExchangeKind::Direct, "amq.fanout");
    topology.bind_queue("amq.fanout", "lost", "");
    assert_eq!(topology.routed("x", "k"), ["q"]);
    assert_eq!(topology.routed("x", "none"), ["lost"]);
}

#[test]
fn alternate_exchanges_in_a_circle_end() {
    let mut topology = topology();
    alternate(&mut topology, "x", ExchangeKind::Direct, "y");
    alternate(&mut topology, "y", ExchangeKind::Direct, "x");
    alternate(&mut topology, "self", ExchangeKind::Direct, "self");
    assert!(topology.routed("x", "k").is_empty());
    assert!(topology.routed("self", "k").is_empty());
}

#[test]
fn the_default_exchange_may_be_an_alternate() {
    let mut topology = topology();
    topology.with_queue("q");
    alternate(&mut topology, "x", ExchangeKind::Topic, "");
    assert_eq!(topology.routed("x", "q"), ["q"]);
}

#[test]
fn an_alternate_exchange_counts_for_its_own_exchange_behind_a_binding() {
    let mut topology = topology();
    topology.with_queue("q");
    topology.with_queue("lost");
    alternate(&mut topology, "x", ExchangeKind::Direct, "amq.fanout");
    topology.bind_queue("amq.fanout", "lost", "");
    topology.bind_queue("amq.direct", "q", "k");
    topology.bind_exchange("amq.direct", "x", "k");
    assert_eq!(topology.routed("amq.direct", "k"), ["lost", "q"]);
}

#[test]
fn headers_are_decoded_once_and_only_for_a_headers_exchange() {
    let mut topology = topology();
    topology.with_queue("q");
    topology.bind_queue("amq.direct", "q", "k");
    topology.bind_exchange("amq.fanout", "amq.headers", "");
    topology.bind_exchange("amq.fanout", "amq.match", "");
    let mut calls = 0;
    let mut out = RouteSet::new();
    let mut headers = || {
        calls += 1;
        None
    };
    topology.route(b"amq.direct", b"k", &mut headers, &mut out).unwrap();
    topology.route(b"amq.fanout", b"k", &mut headers, &mut out).unwrap();
    assert_eq!(calls, 1);
}

#[test]
fn every_change_of_a_route_is_a_new_generation() {
    let mut topology = topology();
    let mut last = topology.generation();
    let mut grew = |topology: &Topology| {
        let grown = topology.generation() > last;
        last = topology.generation();
        grown
    };
    let id = topology.with_queue("q");
    assert!(grew(&topology));
    topology.with_exchange("x", ExchangeKind::Fanout);
    assert!(grew(&topology));
    topology.bind_queue("x", "q", "");
    assert!(grew(&topology));
    topology.unbind("x", Destination::Queue("q"), b"", &Table::new(), ME).unwrap();
    assert!(grew(&topology));
    topology.delete_queue(id);
    assert!(grew(&topology));
    topology.delete_exchange("x", false).unwrap();
    assert!(grew(&topology));
    topology.routed("", "q");
    assert!(!grew(&topology));
}

proptest! {
    #[test]
    fn any_graph_of_exchanges_gives_the_reachable_queues_once(
        edges in prop::collection::vec((0..8usize, 0..8usize), 0..30),
        ends in prop::collection::vec((0..8usize, 0..5usize), 0..20),
    ) {
        let mut topology = topology();
        for i in 0..8 {
            topology.with_exchange(&format!("x{i}"), ExchangeKind::Fanout);
        }
        for i in 0..5 {
            topology.with_queue(&format!("q{i}"));
        }
        let none = Table::new();
        for &(from, to) in &edges {
            topology.bind(&format!("x{from}"), Destination::Exchange(&format!("x{to}")), b"", &none, ME).unwrap();
        }
        for &(from, to) in &ends {
            topology.bind(&format!("x{from}"), Destination::Queue(&format!("q{to}")), b"", &none, ME).unwrap();
        }
        let mut reached = [false; 8];
        reached[0] = true;
        for _ in 0..8 {
            for &(from, to) in &edges {
                reached[to] |= reached[from];
            }
        }
        let expected: BTreeSet<String> =
            ends.iter().filter(|&&(from, _)| reached[from]).map(|&(_, to)| format!("q{to}")).collect();
        prop_assert_eq!(topology.routed("x0", ""), expected.into_iter().collect::<Vec<_>>());
    }
}
