//! Declaring, looking up and deleting exchanges.

use super::*;

fn spec() -> ExchangeSpec {
    ExchangeSpec::durable(ExchangeKind::Direct)
}

#[test]
fn the_predeclared_exchanges_are_durable_and_of_their_types() {
    let topology = topology();
    let found: Vec<_> = topology.exchanges().map(|x| (&*x.name, x.kind.name(), x.durable)).collect();
    assert_eq!(
        found,
        [
            ("", "direct", true),
            ("amq.direct", "direct", true),
            ("amq.fanout", "fanout", true),
            ("amq.headers", "headers", true),
            ("amq.match", "headers", true),
            ("amq.topic", "topic", true),
        ]
    );
}

#[test]
fn an_exchange_is_created_once_and_found_afterwards() {
    let mut topology = topology();
    assert_eq!(topology.declare_exchange("x", spec()), Ok(Declared::Created));
    assert_eq!(topology.declare_exchange("x", spec()), Ok(Declared::Existing));
    assert_eq!(topology.exchange("x").unwrap().kind, ExchangeKind::Direct);
    assert_eq!(topology.exchange("y"), Err(TopologyError::NotFound(Resource::exchange("y"))));
}

#[test]
fn each_differing_flag_is_told_with_both_values() {
    let mut topology = topology();
    topology.declare_exchange("x", spec()).unwrap();
    let cases = [
        (ExchangeSpec { kind: ExchangeKind::Fanout, ..spec() }, "type", "fanout", "direct"),
        (ExchangeSpec { durable: false, ..spec() }, "durable", "false", "true"),
        (ExchangeSpec { auto_delete: true, ..spec() }, "auto_delete", "true", "false"),
        (ExchangeSpec { internal: true, ..spec() }, "internal", "true", "false"),
    ];
    for (spec, flag, received, current) in cases {
        let error = topology.declare_exchange("x", spec).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "inequivalent arg '{flag}' for exchange 'x': received '{received}' but current is '{current}'"
            )
        );
    }
}

#[test]
fn the_alternate_exchange_is_compared_and_other_arguments_are_not() {
    let mut topology = topology();
    let with = |arguments| ExchangeSpec { arguments, ..spec() };
    topology.declare_exchange("x", with(table([("alternate-exchange", text("a"))]))).unwrap();
    let other = table([("alternate-exchange", text("a")), ("x-whatever", Value::I32(1))]);
    assert_eq!(topology.declare_exchange("x", with(other)), Ok(Declared::Existing));
    let error = topology.declare_exchange("x", spec()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "inequivalent arg 'alternate-exchange' for exchange 'x': received none but current is the value 'a' of \
         type 'longstr'"
    );
}

#[test]
fn an_alternate_exchange_must_be_a_string() {
    let spec = ExchangeSpec { arguments: table([("alternate-exchange", Value::I32(1))]), ..spec() };
    assert_eq!(
        topology().declare_exchange("x", spec).unwrap_err().to_string(),
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x'"
    );
}

#[test]
fn only_new_names_are_refused_for_the_reserved_prefix() {
    let mut topology = topology();
    let error = topology.declare_exchange("amq.foo", spec()).unwrap_err();
    assert_eq!(error.to_string(), "exchange name 'amq.foo' contains reserved prefix 'amq.*'");
    assert_eq!(topology.declare_exchange("amq.direct", spec()), Ok(Declared::Existing));
}

#[test]
fn the_default_exchange_is_nobodys() {
    let mut topology = topology();
    assert_eq!(topology.declare_exchange("", spec()), Err(TopologyError::DefaultExchange));
    assert_eq!(topology.exchange(""), Err(TopologyError::DefaultExchange));
    assert_eq!(topology.delete_exchange("", false), Err(TopologyError::DefaultExchange));
    assert_eq!(topology.find_exchange("").unwrap().kind, ExchangeKind::Direct);
}

#[test]
fn a_system_exchange_is_not_deleted() {
    assert_eq!(
        topology().delete_exchange("amq.topic", false).unwrap_err().to_string(),
        "deletion of system exchange 'amq.topic' not allowed"
    );
}

#[test]
fn deleting_an_absent_exchange_changes_nothing() {
    let mut topology = topology();
    let before = topology.generation();
    assert!(topology.delete_exchange("x", true).unwrap().is_empty());
    assert_eq!(topology.generation(), before);
}

#[test]
fn if_unused_spares_the_source_of_a_binding_only() {
    let mut topology = topology();
    topology.with_exchange("x", ExchangeKind::Fanout);
    topology.with_exchange("y", ExchangeKind::Fanout);
    topology.bind_exchange("x", "y", "");
    assert_eq!(topology.delete_exchange("x", true), Err(TopologyError::InUse(Resource::exchange("x"))));
    let changes = topology.delete_exchange("y", true).unwrap();
    assert_eq!(told(&changes), ["x --> exchange y", "exchange y"]);
    assert_eq!(told(&topology.delete_exchange("x", true).unwrap()), ["exchange x"]);
    topology.assert_bare();
}

#[test]
fn type_names_are_read_and_unknown_ones_refused() {
    for kind in [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers] {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    let error = "x-nope".parse::<ExchangeKind>().unwrap_err();
    assert_eq!(error.to_string(), "unknown exchange type 'x-nope'");
}

#[test]
fn the_limit_counts_declared_exchanges() {
    let mut topology = Topology::new(Limits { exchanges_max: 2, ..Limits::default() });
    topology.declare_exchange("a", spec()).unwrap();
    topology.declare_exchange("b", spec()).unwrap();
    assert_eq!(
        topology.declare_exchange("c", spec()),
        Err(TopologyError::LimitReached { limit: Limit::Exchanges, name: "c".into(), max: 2 })
    );
    assert_eq!(topology.declare_exchange("b", spec()), Ok(Declared::Existing));
    topology.delete_exchange("a", false).unwrap();
    assert_eq!(topology.declare_exchange("c", spec()), Ok(Declared::Created));
}

#[test]
fn a_name_has_at_most_255_bytes() {
    let mut topology = topology();
    assert_eq!(topology.declare_exchange(&"x".repeat(254), spec()), Ok(Declared::Created));
    assert_eq!(topology.declare_exchange(&"x".repeat(255), spec()), Ok(Declared::Created));
    let error = topology.declare_exchange(&"x".repeat(256), spec()).unwrap_err();
    assert!(matches!(error, TopologyError::LimitReached { limit: Limit::NameBytes, max: 255, .. }));
}
