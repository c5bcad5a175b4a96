//! What goes with what is removed.

use super::*;

fn auto_delete(topology: &mut Topology, name: &str) {
    let spec = ExchangeSpec { auto_delete: true, ..ExchangeSpec::durable(ExchangeKind::Fanout) };
    topology.declare_exchange(name, spec).unwrap();
}

#[test]
fn an_auto_delete_exchange_goes_with_its_last_binding_as_source() {
    let mut topology = topology();
    auto_delete(&mut topology, "x");
    topology.with_queue("q");
    topology.bind_queue("x", "q", "a");
    topology.bind_queue("x", "q", "b");
    let mut unbind =
        |key: &[u8]| told(&topology.unbind("x", Destination::Queue("q"), key, &Table::new(), ME).unwrap());
    assert_eq!(unbind(b"a"), ["x -a-> queue q"]);
    assert_eq!(unbind(b"b"), ["x -b-> queue q", "exchange x"]);
    assert!(topology.find_exchange("x").is_none());
}

#[test]
fn an_auto_delete_exchange_that_was_only_a_destination_stays() {
    let mut topology = topology();
    auto_delete(&mut topology, "x");
    topology.bind_exchange("amq.fanout", "x", "");
    topology.unbind("amq.fanout", Destination::Exchange("x"), b"", &Table::new(), ME).unwrap();
    assert!(topology.find_exchange("x").is_some());
}

#[test]
fn a_chain_of_auto_delete_exchanges_goes_from_its_end() {
    let mut topology = topology();
    auto_delete(&mut topology, "x");
    auto_delete(&mut topology, "y");
    let id = topology.with_queue("q");
    topology.bind_exchange("x", "y", "");
    topology.bind_queue("y", "q", "");
    let changes = topology.delete_queue(id);
    assert_eq!(told(&changes), ["y --> queue q", "x --> exchange y", "exchange x", "exchange y", "queue q"]);
    topology.assert_bare();
}

#[test]
fn an_auto_delete_exchange_bound_to_itself_can_be_deleted() {
    let mut topology = topology();
    auto_delete(&mut topology, "x");
    topology.bind_exchange("x", "x", "");
    assert_eq!(told(&topology.delete_exchange("x", false).unwrap()), ["x --> exchange x", "exchange x"]);
    topology.assert_bare();
}

#[test]
fn a_long_chain_of_auto_delete_exchanges_goes_without_recursion() {
    let mut topology = topology();
    let last = 20_000;
    for i in 0..=last {
        auto_delete(&mut topology, &format!("x{i}"));
    }
    for i in 0..last {
        topology.bind_exchange(&format!("x{i}"), &format!("x{}", i + 1), "");
    }
    let changes = topology.delete_exchange(&format!("x{last}"), false).unwrap();
    assert_eq!(changes.removed.len(), 2 * last + 1);
    topology.assert_bare();
}

#[test]
fn many_queues_and_bindings_come_and_go() {
    let mut topology = topology();
    topology.with_exchange("h", ExchangeKind::Headers);
    let count = 10_000;
    let ids: Vec<_> = (0..count).map(|i| topology.with_queue(&format!("q{i}"))).collect();
    for i in 0..count {
        let queue = format!("q{i}");
        topology.bind_queue("amq.fanout", &queue, "");
        topology.bind_queue("amq.direct", &queue, "same");
        topology.bind_queue("amq.topic", &queue, "same.#");
        let any = table([("x-match", text("any")), ("same", Value::I32(1)), ("own", text(&queue))]);
        assert!(topology.bind("h", Destination::Queue(&queue), b"", &any, ME).unwrap());
    }
    assert_eq!(topology.routed("amq.direct", "same").len(), count);
    assert_eq!(topology.routed("amq.topic", "same.word").len(), count);
    assert_eq!(topology.routed_with("h", "", &table([("same", Value::I32(1))])).len(), count);
    for &id in ids.iter().skip(count / 2) {
        assert_eq!(topology.delete_queue(id).removed.len(), 5);
    }
    assert_eq!(topology.routed("amq.fanout", "").len(), count / 2);
    for &id in ids.iter().take(count / 2) {
        topology.delete_queue(id);
    }
    topology.delete_exchange("h", true).unwrap();
    topology.assert_bare();
}
