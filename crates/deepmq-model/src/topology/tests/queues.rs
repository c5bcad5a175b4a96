//! Declaring, looking up and deleting queues.

use super::*;

fn locked() -> TopologyError {
    TopologyError::Locked { queue: "q".into() }
}

fn with(arguments: Table) -> QueueSpec {
    QueueSpec { arguments, ..QueueSpec::default() }
}

#[test]
fn a_queue_is_created_once_and_found_by_everyone() {
    let mut topology = topology();
    let spec = QueueSpec { durable: true, ..QueueSpec::default() };
    let (id, declared) = topology.declare_queue("q", spec.clone(), ME).unwrap();
    assert_eq!(declared, Declared::Created);
    assert_eq!(topology.declare_queue("q", spec, OTHER), Ok((id, Declared::Existing)));
    assert_eq!(topology.queue("q", OTHER), Ok(id));
    assert!(topology.queue_spec(id).unwrap().durable);
    assert_eq!(topology.queue("p", ME), Err(TopologyError::NotFound(Resource::queue("p"))));
}

#[test]
fn each_differing_flag_is_told_with_both_values() {
    let mut topology = topology();
    topology.declare_queue("q", QueueSpec { durable: true, ..QueueSpec::default() }, ME).unwrap();
    let transient = QueueSpec::default();
    assert_eq!(
        topology.declare_queue("q", transient, ME).unwrap_err().to_string(),
        "inequivalent arg 'durable' for queue 'q': received 'false' but current is 'true'"
    );
    let auto_delete = QueueSpec { durable: true, auto_delete: true, ..QueueSpec::default() };
    assert_eq!(
        topology.declare_queue("q", auto_delete, ME).unwrap_err().to_string(),
        "inequivalent arg 'auto_delete' for queue 'q': received 'true' but current is 'false'"
    );
}

#[test]
fn known_arguments_are_compared_by_value_and_unknown_ones_are_not() {
    let mut topology = topology();
    topology.declare_queue("q", with(table([("x-max-length", Value::I32(5))])), ME).unwrap();
    let same = table([("x-max-length", Value::I64(5)), ("x-whatever", text("else"))]);
    assert_eq!(topology.declare_queue("q", with(same), ME).unwrap().1, Declared::Existing);
    let more = table([("x-max-length", Value::I32(5)), ("x-message-ttl", Value::I32(100))]);
    assert_eq!(
        topology.declare_queue("q", with(more), ME).unwrap_err().to_string(),
        "inequivalent arg 'x-message-ttl' for queue 'q': received the value '100' of type 'signedint' but current \
         is none"
    );
    assert_eq!(
        topology.declare_queue("q", with(Table::new()), ME),
        Err(TopologyError::InequivalentArgument {
            resource: Resource::queue("q"),
            argument: "x-max-length",
            received: None,
            current: Some(Value::I32(5)),
        })
    );
}

#[test]
fn no_queue_type_means_classic() {
    let mut topology = topology();
    topology.with_queue("q");
    let classic = with(table([("x-queue-type", text("classic"))]));
    assert_eq!(topology.declare_queue("q", classic, ME).unwrap().1, Declared::Existing);
    let quorum = with(table([("x-queue-type", text("quorum"))]));
    assert!(matches!(
        topology.declare_queue("q", quorum, ME),
        Err(TopologyError::InequivalentArgument { argument: "x-queue-type", current: None, .. })
    ));
}

#[test]
fn an_exclusive_queue_is_locked_for_others_before_anything_is_compared() {
    let mut topology = topology();
    let exclusive = QueueSpec { exclusive: true, ..QueueSpec::default() };
    let (id, _) = topology.declare_queue("q", exclusive.clone(), ME).unwrap();
    assert_eq!(topology.queue("q", ME), Ok(id));
    assert_eq!(topology.queue("q", OTHER), Err(locked()));
    let differing = QueueSpec { auto_delete: true, ..exclusive.clone() };
    assert_eq!(topology.declare_queue("q", differing, OTHER), Err(locked()));
    assert_eq!(topology.declare_queue("q", QueueSpec::default(), ME), Err(locked()));
    assert_eq!(topology.declare_queue("q", exclusive, ME), Ok((id, Declared::Existing)));
}

#[test]
fn an_ordinary_queue_cannot_be_redeclared_exclusive() {
    let mut topology = topology();
    topology.with_queue("q");
    let exclusive = QueueSpec { exclusive: true, ..QueueSpec::default() };
    assert_eq!(topology.declare_queue("q", exclusive, ME), Err(locked()));
}

#[test]
fn an_exclusive_queue_is_never_durable() {
    let mut topology = topology();
    let durable = QueueSpec { exclusive: true, durable: true, ..QueueSpec::default() };
    let (id, _) = topology.declare_queue("q", durable.clone(), ME).unwrap();
    assert!(!topology.queue_spec(id).unwrap().durable);
    let transient = QueueSpec { durable: false, ..durable };
    assert_eq!(topology.declare_queue("q", transient, ME), Ok((id, Declared::Existing)));
}

#[test]
fn only_the_server_gives_new_names_of_the_reserved_prefix() {
    let mut topology = topology();
    let error = topology.declare_queue("amq.gen-1", QueueSpec::default(), ME).unwrap_err();
    assert_eq!(error.to_string(), "queue name 'amq.gen-1' contains reserved prefix 'amq.*'");
    let named = QueueSpec { server_named: true, ..QueueSpec::default() };
    let (id, _) = topology.declare_queue("amq.gen-1", named, ME).unwrap();
    let again = topology.declare_queue("amq.gen-1", QueueSpec::default(), ME);
    assert_eq!(again, Ok((id, Declared::Existing)));
}

#[test]
fn a_queue_needs_a_name_of_at_most_255_bytes() {
    let mut topology = topology();
    assert_eq!(topology.declare_queue("", QueueSpec::default(), ME), Err(TopologyError::UnnamedQueue));
    topology.with_queue(&"q".repeat(254));
    topology.with_queue(&"q".repeat(255));
    let error = topology.declare_queue(&"q".repeat(256), QueueSpec::default(), ME).unwrap_err();
    assert!(matches!(error, TopologyError::LimitReached { limit: Limit::NameBytes, max: 255, .. }));
}

#[test]
fn the_limit_of_queues_counts_those_there_are() {
    let mut topology = Topology::new(Limits { queues_max: 2, ..Limits::default() });
    let id = topology.with_queue("a");
    topology.with_queue("b");
    assert_eq!(
        topology.declare_queue("c", QueueSpec::default(), ME),
        Err(TopologyError::LimitReached { limit: Limit::Queues, name: "c".into(), max: 2 })
    );
    topology.delete_queue(id);
    topology.with_queue("c");
}

#[test]
fn the_limit_of_arguments_holds_at_its_border() {
    let mut topology = Topology::new(Limits { arguments_max: 2, ..Limits::default() });
    let arguments = |count: usize| with((0..count).map(|i| (format!("k{i}"), Value::Void)).collect());
    topology.declare_queue("a", arguments(1), ME).unwrap();
    topology.declare_queue("b", arguments(2), ME).unwrap();
    assert_eq!(
        topology.declare_queue("c", arguments(3), ME),
        Err(TopologyError::LimitReached { limit: Limit::Arguments, name: "c".into(), max: 2 })
    );
}

#[test]
fn the_owners_queues_are_listed_until_deleted() {
    let mut topology = topology();
    let exclusive = QueueSpec { exclusive: true, ..QueueSpec::default() };
    let (a, _) = topology.declare_queue("a", exclusive.clone(), ME).unwrap();
    let (b, _) = topology.declare_queue("b", exclusive.clone(), ME).unwrap();
    let (c, _) = topology.declare_queue("c", exclusive, OTHER).unwrap();
    let d = topology.with_queue("d");
    assert_eq!(topology.queues_owned_by(ME), [a, b]);
    topology.delete_queue(a);
    assert_eq!(topology.queues_owned_by(ME), [b]);
    assert_eq!(topology.queues_owned_by(OTHER), [c]);
    topology.delete_queue(b);
    assert_eq!(topology.queues_owned_by(ME), []);
    topology.delete_queue(c);
    topology.delete_queue(d);
    topology.assert_bare();
}

#[test]
fn a_deleted_queue_is_gone_and_its_id_may_come_back_in_a_later_generation() {
    let mut topology = topology();
    let id = topology.with_queue("q");
    let before = topology.generation();
    assert_eq!(told(&topology.delete_queue(id)), ["queue q"]);
    assert!(topology.delete_queue(id).is_empty());
    assert_eq!(topology.queue_spec(id), None);
    assert_eq!(topology.with_queue("other"), id);
    assert!(topology.generation() > before);
}
