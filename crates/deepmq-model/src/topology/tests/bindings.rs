//! Binding and unbinding.

use super::*;

fn bind(topology: &mut Topology, source: &str, destination: Destination<'_>) -> Result<bool, TopologyError> {
    topology.bind(source, destination, b"k", &Table::new(), ME)
}

#[test]
fn the_same_binding_is_there_once_and_other_arguments_make_another() {
    let mut topology = topology();
    topology.with_queue("q");
    let destination = Destination::Queue("q");
    let arguments = table([("a", Value::I32(1)), ("b", text("x"))]);
    let reordered = table([("b", text("x")), ("a", Value::I64(1)), ("a", Value::I64(2))]);
    assert_eq!(topology.bind("amq.direct", destination, b"k", &Table::new(), ME), Ok(true));
    assert_eq!(topology.bind("amq.direct", destination, b"k", &Table::new(), ME), Ok(false));
    assert_eq!(topology.bind("amq.direct", destination, b"k", &arguments, ME), Ok(true));
    assert_eq!(topology.bind("amq.direct", destination, b"k", &reordered, ME), Ok(false));
    assert_eq!(topology.bindings_from_exchange("amq.direct").count(), 2);
    assert_eq!(topology.routed("amq.direct", "k"), ["q"]);
}

#[test]
fn a_missing_end_is_told_exchange_first() {
    let mut topology = topology();
    let no_exchange = Err(TopologyError::NotFound(Resource::exchange("x")));
    assert_eq!(bind(&mut topology, "x", Destination::Queue("q")), no_exchange);
    assert_eq!(
        bind(&mut topology, "amq.direct", Destination::Queue("q")),
        Err(TopologyError::NotFound(Resource::queue("q")))
    );
    assert_eq!(bind(&mut topology, "amq.direct", Destination::Exchange("x")), no_exchange);
}

#[test]
fn unbinding_what_is_not_there_changes_nothing() {
    let mut topology = topology();
    topology.with_queue("q");
    let before = topology.generation();
    for (source, destination) in [
        ("x", Destination::Queue("q")),
        ("amq.direct", Destination::Queue("p")),
        ("amq.direct", Destination::Exchange("x")),
        ("amq.direct", Destination::Queue("q")),
    ] {
        let changes = topology.unbind(source, destination, b"k", &Table::new(), ME).unwrap();
        assert!(changes.is_empty());
    }
    assert_eq!(topology.generation(), before);
}

#[test]
fn the_default_exchange_is_neither_bound_nor_unbound() {
    let mut topology = topology();
    topology.with_queue("q");
    let none = Table::new();
    for (source, destination) in [("", Destination::Queue("q")), ("amq.direct", Destination::Exchange(""))] {
        let refused = Err(TopologyError::DefaultExchange);
        assert_eq!(topology.bind(source, destination, b"k", &none, ME), refused);
        assert_eq!(
            topology.unbind(source, destination, b"k", &none, ME),
            Err(TopologyError::DefaultExchange)
        );
    }
}

#[test]
fn another_connections_exclusive_queue_is_neither_bound_nor_unbound() {
    let mut topology = topology();
    let exclusive = QueueSpec { exclusive: true, ..QueueSpec::default() };
    topology.declare_queue("q", exclusive, OTHER).unwrap();
    let (destination, none) = (Destination::Queue("q"), Table::new());
    let locked = TopologyError::Locked { queue: "q".into() };
    assert_eq!(topology.bind("amq.direct", destination, b"k", &none, ME), Err(locked.clone()));
    assert_eq!(topology.bind("absent", destination, b"k", &none, ME), Err(locked.clone()));
    assert_eq!(topology.unbind("amq.direct", destination, b"k", &none, ME), Err(locked));
    assert_eq!(topology.bind("amq.direct", destination, b"k", &none, OTHER), Ok(true));
}

#[test]
fn a_topic_key_has_at_most_two_hashes() {
    let mut topology = topology();
    topology.with_queue("q");
    topology.bind_queue("amq.topic", "q", "#.a.#");
    let error =
        topology.bind("amq.topic", Destination::Queue("q"), b"#.a.#.#", &Table::new(), ME).unwrap_err();
    assert_eq!(error.to_string(), "Topic binding key '#.a.#.#' uses 3 '#' wildcards, at most 2 are allowed");
    topology.bind_queue("amq.topic", "q", "a#.b#.c#.##");
    topology.bind_queue("amq.direct", "q", "#.#.#");
}

#[test]
fn x_match_must_be_one_of_four_strings() {
    let mut topology = topology();
    topology.with_queue("q");
    let mut bind =
        |value| topology.bind("amq.headers", Destination::Queue("q"), b"", &table([("x-match", value)]), ME);
    for good in ["all", "any", "all-with-x", "any-with-x"] {
        assert_eq!(bind(text(good)), Ok(true));
    }
    assert_eq!(
        bind(text("some")).unwrap_err().to_string(),
        "Invalid x-match field value some; expected all, any, all-with-x, or any-with-x"
    );
    assert_eq!(bind(Value::I32(1)), Err(TopologyError::InvalidMatchType { type_name: "signedint" }));
}

#[test]
fn the_limit_of_bindings_holds_at_its_border() {
    let mut topology = Topology::new(Limits { bindings_max: 2, ..Limits::default() });
    topology.with_queue("q");
    topology.bind_queue("amq.direct", "q", "a");
    topology.bind_queue("amq.direct", "q", "b");
    let error = topology.bind("amq.direct", Destination::Queue("q"), b"c", &Table::new(), ME);
    assert_eq!(
        error,
        Err(TopologyError::LimitReached { limit: Limit::Bindings, name: "amq.direct".into(), max: 2 })
    );
    assert_eq!(topology.bind("amq.direct", Destination::Queue("q"), b"b", &Table::new(), ME), Ok(false));
}

#[test]
fn a_key_has_at_most_255_bytes() {
    let mut topology = topology();
    topology.with_queue("q");
    topology.bind_queue("amq.topic", "q", &".".repeat(254));
    topology.bind_queue("amq.topic", "q", &".".repeat(255));
    let long = ".".repeat(256);
    let error = topology.bind("amq.topic", Destination::Queue("q"), long.as_bytes(), &Table::new(), ME);
    assert!(matches!(error, Err(TopologyError::LimitReached { limit: Limit::NameBytes, max: 255, .. })));
    assert_eq!(topology.routed("amq.topic", &".".repeat(255)), ["q"]);
}

#[test]
fn bindings_are_listed_with_the_implicit_ones_marked() {
    let mut topology = topology();
    let id = topology.with_queue("q");
    topology.with_exchange("x", ExchangeKind::Fanout);
    topology.bind_queue("x", "q", "k");
    topology.bind_exchange("amq.topic", "x", "#");
    let words = |view: BindingView<'_>| {
        let key = String::from_utf8_lossy(view.key).into_owned();
        format!("{}|{key}|{} {}|{}", view.source, view.destination_kind, view.destination, view.implicit)
    };
    let all: Vec<_> = topology.bindings().map(words).collect();
    assert_eq!(all, ["|q|queue q|true", "x|k|queue q|false", "amq.topic|#|exchange x|false"]);
    let to_queue: Vec<_> = topology.bindings_to_queue(id).map(words).collect();
    assert_eq!(to_queue, ["|q|queue q|true", "x|k|queue q|false"]);
    let to_exchange: Vec<_> = topology.bindings_to_exchange("x").map(words).collect();
    assert_eq!(to_exchange, ["amq.topic|#|exchange x|false"]);
    assert_eq!(topology.bindings_from_exchange("absent").count(), 0);
}
