//! The known queue arguments: types, ranges, and the texts of what is wrong.

use std::time::Duration;

use super::*;

fn parse(arguments: &Table) -> Result<QueueArguments, TopologyError> {
    QueueArguments::parse("q", arguments)
}

#[test]
fn what_is_wrong_is_told_as_rabbitmq_tells_it() {
    let ten_years = 315_360_000_000;
    let cases = [
        ("x-max-length", Value::I32(-1), "{value_negative,-1}"),
        ("x-max-length", text("5"), "\"expected integer, got longstr\""),
        ("x-max-length-bytes", Value::F64(1.0), "\"expected integer, got double\""),
        ("x-message-ttl", Value::I32(-1), "{value_negative,-1}"),
        ("x-message-ttl", Value::I64(ten_years + 1), "{value_too_large,315360000001}"),
        ("x-expires", Value::I32(0), "{value_zero,0}"),
        ("x-expires", Value::I64(ten_years + 1), "{value_too_large,315360000001}"),
        ("x-max-priority", Value::I32(256), "{max_value_exceeded,256}"),
        ("x-max-priority", Value::I32(-1), "{value_negative,-1}"),
        ("x-overflow", text("explode"), "invalid_overflow"),
        ("x-overflow", Value::I32(1), "{unacceptable_type,signedint}"),
        ("x-dead-letter-routing-key", text("k"), "routing_key_but_no_dlx_defined"),
        ("x-dead-letter-routing-key", Value::Bool(true), "{unacceptable_type,bool}"),
        ("x-dead-letter-strategy", text("maybe"), "invalid_dlx_strategy"),
        ("x-single-active-consumer", text("true"), "{unacceptable_type,longstr}"),
        ("x-queue-type", text("x"), "\"unsupported queue type 'x'\""),
        ("x-queue-type", Value::I32(1), "{unacceptable_type,signedint}"),
        ("x-delivery-limit", text("5"), "\"expected integer, got longstr\""),
        ("x-durability", text("Fsync"), "\"expected 'fsync' or 'os', got 'Fsync'\""),
        ("x-durability", Value::Bool(true), "{unacceptable_type,bool}"),
        ("x-queue-mode", Value::I32(1), "{unacceptable_type,signedint}"),
        ("x-queue-version", text("2"), "\"expected integer, got longstr\""),
    ];
    for (argument, value, tail) in cases {
        let error = parse(&table([(argument, value)])).unwrap_err();
        assert_eq!(error.to_string(), format!("invalid arg '{argument}' for queue 'q': {tail}"));
    }
}

#[test]
fn a_dead_letter_exchange_must_be_a_string() {
    assert_eq!(
        parse(&table([("x-dead-letter-exchange", Value::I32(1))])).unwrap_err().to_string(),
        "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q'"
    );
}

#[test]
fn a_stream_has_an_error_of_its_own() {
    assert_eq!(
        parse(&table([("x-queue-type", text("stream"))])),
        Err(TopologyError::StreamUnsupported { queue: "q".into() })
    );
}

#[test]
fn all_known_arguments_are_read() {
    let arguments = parse(&table([
        ("x-queue-type", text("quorum")),
        ("x-message-ttl", Value::I32(0)),
        ("x-expires", Value::U8(1)),
        ("x-max-length", Value::I64(0)),
        ("x-max-length-bytes", Value::I16(7)),
        ("x-overflow", text("reject-publish-dlx")),
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text("dead")),
        ("x-dead-letter-strategy", text("at-least-once")),
        ("x-max-priority", Value::U8(255)),
        ("x-single-active-consumer", Value::Bool(true)),
        ("x-delivery-limit", Value::I32(3)),
        ("x-consumer-timeout", Value::I32(60_000)),
        ("x-durability", text("os")),
    ]));
    let expected = QueueArguments {
        kind: QueueKind::Quorum,
        message_ttl: Some(Duration::ZERO),
        expires: Some(Duration::from_millis(1)),
        max_length: Some(0),
        max_length_bytes: Some(7),
        overflow: Some(Overflow::RejectPublishDeadLetter),
        dead_letter_exchange: Some("".into()),
        dead_letter_routing_key: Some(b"dead".as_slice().into()),
        dead_letter_strategy: Some(DeadLetterStrategy::AtLeastOnce),
        max_priority: Some(255),
        single_active_consumer: true,
        consumer_timeout: Some(Duration::from_mins(1)),
        delivery_limit: Some(DeliveryLimit::Times(3)),
        durability: Some(DurabilityMode::Os),
    };
    assert_eq!(arguments, Ok(expected));
}

#[test]
fn a_negative_delivery_limit_is_none() {
    let arguments = parse(&table([("x-delivery-limit", Value::I32(-1))])).unwrap();
    assert_eq!(arguments.delivery_limit, Some(DeliveryLimit::Unlimited));
}

#[test]
fn arguments_of_other_brokers_and_times_are_accepted_and_ignored() {
    let arguments = parse(&table([
        ("x-queue-mode", text("lazy")),
        ("x-queue-version", Value::I32(2)),
        ("x-queue-master-locator", text("min-masters")),
        ("x-quorum-initial-group-size", Value::I32(3)),
        ("x-whatever", Value::Void),
    ]));
    assert_eq!(arguments, Ok(QueueArguments::default()));
}

#[test]
fn a_quorum_queue_is_durable_shared_and_lasting() {
    let quorum = QueueSpec {
        durable: true,
        arguments: table([("x-queue-type", text("quorum"))]),
        ..QueueSpec::default()
    };
    let cases = [
        (QueueSpec { durable: false, ..quorum.clone() }, "non-durable"),
        (QueueSpec { exclusive: true, ..quorum.clone() }, "exclusive-owner"),
        (QueueSpec { auto_delete: true, ..quorum.clone() }, "auto-delete"),
    ];
    let mut topology = topology();
    for (spec, property) in cases {
        let expected = TopologyError::InvalidProperty { queue: "q".into(), property };
        assert_eq!(topology.declare_queue("q", spec, ME), Err(expected));
    }
    let named = QueueSpec { server_named: true, ..quorum.clone() };
    assert_eq!(
        topology.declare_queue("amq.gen-1", named, ME).unwrap_err().to_string(),
        "Cannot declare a server-named queue for type quorum"
    );
    assert!(topology.declare_queue("q", quorum, ME).is_ok());
}
