//! Declaring, purging and deleting queues and exchanges.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, exchange, queue};
use deepmq_model::{Table, Value};
use deepmq_testkit::{RawPeer, TestBroker};

const LOCKED: &str = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It could \
                      be originally declared on another connection or the exclusive property value does not match \
                      that of the original declaration.";

fn arguments(key: &str, value: Value) -> Table {
    [(key, value)].into_iter().collect()
}

fn named(queue: &str) -> queue::Declare<'_> {
    queue::Declare { queue, ..Default::default() }
}

fn exchange_of<'a>(exchange: &'a str, kind: &'a str) -> exchange::Declare<'a> {
    exchange::Declare { exchange, kind, ..Default::default() }
}

async fn broker_and_peer() -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let peer = broker.peer().await;
    (broker, peer)
}

#[tokio::test]
async fn declare_ok_counts_ready_messages_and_consumers() {
    let (_broker, mut peer) = broker_and_peer().await;
    let ok = peer.declare_with(1, named("q")).await;
    assert_eq!(ok, queue::DeclareOk { queue: "q", message_count: 0, consumer_count: 0 });
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    peer.get(1, "q", false).await.unwrap();
    peer.qos(1, 1, false).await;
    peer.consume(1, "q", "c").await;
    peer.delivery(1).await;
    let ok = peer.declare_with(1, queue::Declare { passive: true, ..named("q") }).await;
    assert_eq!(ok, queue::DeclareOk { queue: "q", message_count: 1, consumer_count: 1 });
}

#[tokio::test]
async fn a_passive_declare_only_looks() {
    let (broker, mut peer) = broker_and_peer().await;
    let passive = queue::Declare { passive: true, ..named("absent") };
    peer.refused(passive, 404, "NOT_FOUND - no queue 'absent' in vhost '/'").await;
    let passive = exchange::Declare { passive: true, ..exchange_of("absent", "direct") };
    peer.refused(passive, 404, "NOT_FOUND - no exchange 'absent' in vhost '/'").await;
    assert!(broker.queue("absent").is_none());
    // Flags and arguments do not matter then.
    peer.declare(1, "q").await;
    let passive = queue::Declare {
        passive: true,
        durable: true,
        auto_delete: true,
        arguments: arguments("x-message-ttl", Value::I32(1)),
        ..named("q")
    };
    peer.declare_with(1, passive).await;
    peer.send(1, exchange::Declare { passive: true, ..exchange_of("amq.topic", "fanout") }).await;
    peer.expect(1, exchange::DeclareOk {}).await;
}

#[tokio::test]
async fn a_queue_declared_again_must_be_the_same() {
    let (_broker, mut peer) = broker_and_peer().await;
    let ttl = |ms| arguments("x-message-ttl", Value::I32(ms));
    peer.declare_with(1, queue::Declare { durable: true, arguments: ttl(100), ..named("q") }).await;
    // Integers of any width are one class; unknown arguments are not compared.
    let mut wide = arguments("x-message-ttl", Value::I64(100));
    wide.push("x-whatever", Value::str("new"));
    peer.declare_with(1, queue::Declare { durable: true, arguments: wide, ..named("q") }).await;
    let same = || queue::Declare { durable: true, arguments: ttl(100), ..named("q") };
    for (declare, text) in [
        (
            queue::Declare { durable: false, ..same() },
            "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'",
        ),
        (
            queue::Declare { auto_delete: true, ..same() },
            "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            queue::Declare { arguments: ttl(200), ..same() },
            "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '200' of type \
             'signedint' but current is the value '100' of type 'signedint'",
        ),
        (
            queue::Declare { arguments: Table::new(), ..same() },
            "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is the value \
             '100' of type 'signedint'",
        ),
    ] {
        peer.refused(declare, 406, &format!("PRECONDITION_FAILED - {text}")).await;
    }
}

#[tokio::test]
async fn an_exchange_declared_again_must_be_the_same() {
    let (_broker, mut peer) = broker_and_peer().await;
    let same = || exchange_of("x", "direct");
    peer.declare_exchange(1, "x", "direct").await;
    peer.send(1, exchange::Declare { arguments: arguments("x-other", Value::Bool(true)), ..same() }).await;
    peer.expect(1, exchange::DeclareOk {}).await;
    for (declare, flag, received, current) in [
        (exchange_of("x", "fanout"), "type", "fanout", "direct"),
        (exchange::Declare { durable: true, ..same() }, "durable", "true", "false"),
        (exchange::Declare { auto_delete: true, ..same() }, "auto_delete", "true", "false"),
        (exchange::Declare { internal: true, ..same() }, "internal", "true", "false"),
    ] {
        let text = format!(
            "PRECONDITION_FAILED - inequivalent arg '{flag}' for exchange 'x' in vhost '/': received '{received}' \
             but current is '{current}'"
        );
        peer.refused(declare, 406, &text).await;
    }
    let alternate =
        exchange::Declare { arguments: arguments("alternate-exchange", Value::str("y")), ..same() };
    let text = "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': received \
                the value 'y' of type 'longstr' but current is none";
    peer.refused(alternate, 406, text).await;
}

#[tokio::test]
async fn an_exclusive_queue_is_locked_for_other_connections() {
    let (broker, mut owner) = broker_and_peer().await;
    owner.declare_with(1, queue::Declare { exclusive: true, ..named("mine") }).await;
    let mut peer = broker.peer().await;
    let queue = "mine";
    let methods: [Method<'_>; 8] = [
        named(queue).into(),
        queue::Declare { exclusive: true, durable: true, ..named(queue) }.into(),
        queue::Declare { passive: true, ..named(queue) }.into(),
        basic::Consume { queue, ..Default::default() }.into(),
        basic::Get { queue, ..Default::default() }.into(),
        queue::Purge { queue, ..Default::default() }.into(),
        queue::Bind { queue, exchange: "amq.direct", ..Default::default() }.into(),
        queue::Delete { queue, ..Default::default() }.into(),
    ];
    for method in methods {
        peer.refused(method, 405, LOCKED).await;
    }
    // Publishing is not using it.
    peer.publish(1, "", queue, "m").await;
    peer.expect_quiet(1).await;
    assert!(owner.get(1, queue, true).await.is_some());
    owner.refused(named(queue), 405, LOCKED).await;
}

#[tokio::test]
async fn reserved_names_and_unknown_types_are_refused() {
    let (_broker, mut peer) = broker_and_peer().await;
    let text = "ACCESS_REFUSED - queue name 'amq.foo' contains reserved prefix 'amq.*'";
    peer.refused(named("amq.foo"), 403, text).await;
    let text = "ACCESS_REFUSED - exchange name 'amq.foo' contains reserved prefix 'amq.*'";
    peer.refused(exchange_of("amq.foo", "direct"), 403, text).await;
    let text = "PRECONDITION_FAILED - unknown exchange type 'odd'";
    peer.refused(exchange_of("x", "odd"), 406, text).await;
    peer.send(1, exchange::Declare { durable: true, ..exchange_of("amq.direct", "direct") }).await;
    peer.expect(1, exchange::DeclareOk {}).await;
}

#[tokio::test]
async fn bad_arguments_are_refused_with_the_reason() {
    let (broker, mut peer) = broker_and_peer().await;
    for (key, value, why) in [
        ("x-max-length", Value::I32(-1), "{value_negative,-1}"),
        ("x-message-ttl", Value::str("1"), "\"expected integer, got longstr\""),
        ("x-expires", Value::I32(0), "{value_zero,0}"),
        ("x-message-ttl", Value::I64(315_360_000_001), "{value_too_large,315360000001}"),
        ("x-max-priority", Value::I32(256), "{max_value_exceeded,256}"),
        ("x-overflow", Value::str("never"), "invalid_overflow"),
        ("x-dead-letter-routing-key", Value::str("k"), "routing_key_but_no_dlx_defined"),
        ("x-queue-type", Value::str("odd"), "\"unsupported queue type 'odd'\""),
    ] {
        let declare = queue::Declare { arguments: arguments(key, value), ..named("q") };
        let text = format!("PRECONDITION_FAILED - invalid arg '{key}' for queue 'q' in vhost '/': {why}");
        peer.refused(declare, 406, &text).await;
    }
    let wrong = arguments("x-dead-letter-exchange", Value::I32(1));
    let text = "PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'";
    peer.refused(queue::Declare { arguments: wrong, ..named("q") }, 406, text).await;
    assert!(broker.queue("q").is_none());
}

#[tokio::test]
async fn a_quorum_queue_is_durable_and_shared() {
    let (_broker, mut peer) = broker_and_peer().await;
    let quorum = || queue::Declare {
        durable: true,
        arguments: arguments("x-queue-type", Value::str("quorum")),
        ..named("q")
    };
    for (declare, property) in [
        (queue::Declare { exclusive: true, ..quorum() }, "exclusive-owner"),
        (queue::Declare { auto_delete: true, ..quorum() }, "auto-delete"),
        (queue::Declare { durable: false, ..quorum() }, "non-durable"),
    ] {
        let text = format!("PRECONDITION_FAILED - invalid property '{property}' for queue 'q' in vhost '/'");
        peer.refused(declare, 406, &text).await;
    }
    peer.declare_with(1, quorum()).await;
}

#[tokio::test]
async fn an_empty_name_is_the_queue_last_declared_on_the_channel() {
    let (broker, mut peer) = broker_and_peer().await;
    let methods: [Method<'_>; 6] = [
        basic::Consume::default().into(),
        basic::Get::default().into(),
        queue::Purge::default().into(),
        queue::Delete::default().into(),
        queue::Bind { exchange: "amq.direct", ..Default::default() }.into(),
        queue::Unbind { exchange: "amq.direct", ..Default::default() }.into(),
    ];
    for method in methods {
        peer.refused(method, 404, "NOT_FOUND - no previously declared queue").await;
    }
    let name = peer.declare_with(1, queue::Declare::default()).await.queue;
    // With neither queue nor key the key is the queue's name too.
    peer.send(1, queue::Bind { exchange: "amq.direct", ..Default::default() }).await;
    peer.expect(1, queue::BindOk {}).await;
    peer.publish(1, "amq.direct", name, "m").await;
    assert_eq!(peer.get(1, "", true).await.unwrap().content.body, b"m");
    peer.publish(1, "", name, "m").await;
    peer.send(1, queue::Purge::default()).await;
    peer.expect(1, queue::PurgeOk { message_count: 1 }).await;
    peer.send(1, queue::Delete::default()).await;
    peer.expect(1, queue::DeleteOk { message_count: 0 }).await;
    assert!(broker.queue(name).is_none());
}

#[tokio::test]
async fn names_the_server_makes_up_are_long_and_differ() {
    let (broker, mut peer) = broker_and_peer().await;
    let first = peer.declare_with(1, queue::Declare::default()).await.queue;
    let second = peer.declare_with(1, queue::Declare::default()).await.queue;
    assert_ne!(first, second);
    for name in [first, second] {
        let random = name.strip_prefix("amq.gen-").unwrap();
        assert_eq!(random.len(), 22);
        assert!(random.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{name}");
        assert!(broker.queue(name).is_some());
    }
}

#[tokio::test]
async fn line_ends_in_names_are_stripped() {
    let (broker, mut peer) = broker_and_peer().await;
    let ok = peer.declare_with(1, named("a\r\nb")).await;
    assert_eq!(ok.queue, "ab");
    peer.publish(1, "", "ab", "m").await;
    assert!(peer.get(1, "\na\rb\n", true).await.is_some());
    assert!(broker.queue("ab").is_some());
}

#[tokio::test]
async fn a_name_may_have_255_bytes() {
    let (_broker, mut peer) = broker_and_peer().await;
    let name = "n".repeat(255);
    assert_eq!(peer.declare_with(1, named(&name)).await.queue, name);
}

#[tokio::test]
async fn deleting_what_is_not_there_is_fine() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.send(1, queue::Delete { queue: "absent", ..Default::default() }).await;
    peer.expect(1, queue::DeleteOk { message_count: 0 }).await;
    peer.send(1, exchange::Delete { exchange: "absent", ..Default::default() }).await;
    peer.expect(1, exchange::DeleteOk {}).await;
}

#[tokio::test]
async fn a_queue_can_be_kept_from_being_deleted_while_used_or_not_empty() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", ["a".to_owned(), "b".to_owned()]).await;
    let delete = queue::Delete { queue: "q", ..Default::default() };
    let text = "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty";
    peer.refused(queue::Delete { if_empty: true, ..delete.clone() }, 406, text).await;
    peer.open_channel(2).await;
    peer.qos(2, 1, false).await;
    peer.consume(2, "q", "c").await;
    peer.delivery(2).await;
    let text = "PRECONDITION_FAILED - queue 'q' in vhost '/' in use";
    peer.refused(queue::Delete { if_unused: true, ..delete.clone() }, 406, text).await;
    peer.send(1, delete).await;
    // Only what was ready counts.
    peer.expect(1, queue::DeleteOk { message_count: 1 }).await;
    peer.expect(2, basic::Cancel { consumer_tag: "c", no_wait: true }).await;
}

#[tokio::test]
async fn an_exchange_can_be_kept_from_being_deleted_while_bound() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.declare_exchange(1, "x", "fanout").await;
    peer.declare(1, "q").await;
    peer.bind(1, "q", "x", "").await;
    let delete = exchange::Delete { exchange: "x", if_unused: true, ..Default::default() };
    peer.refused(delete.clone(), 406, "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use").await;
    peer.send(1, queue::Unbind { queue: "q", exchange: "x", ..Default::default() }).await;
    peer.expect(1, queue::UnbindOk {}).await;
    peer.send(1, delete).await;
    peer.expect(1, exchange::DeleteOk {}).await;
}

#[tokio::test]
async fn the_exchanges_of_the_server_are_nobodys_to_delete() {
    let (_broker, mut peer) = broker_and_peer().await;
    for exchange in ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"] {
        let text =
            format!("ACCESS_REFUSED - deletion of system exchange '{exchange}' in vhost '/' not allowed");
        peer.refused(exchange::Delete { exchange, ..Default::default() }, 403, &text).await;
    }
}

#[tokio::test]
async fn the_default_exchange_is_nobodys_to_touch() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.declare(1, "q").await;
    let methods: [Method<'_>; 6] = [
        exchange_of("", "direct").into(),
        exchange::Delete::default().into(),
        queue::Bind { queue: "q", routing_key: b"k", ..Default::default() }.into(),
        queue::Unbind { queue: "q", routing_key: b"k", ..Default::default() }.into(),
        exchange::Bind { source: "", destination: "amq.fanout", ..Default::default() }.into(),
        exchange::Bind { source: "amq.fanout", destination: "", ..Default::default() }.into(),
    ];
    for method in methods {
        let text = "ACCESS_REFUSED - operation not permitted on the default exchange";
        peer.refused(method, 403, text).await;
    }
}

#[tokio::test]
async fn purging_drops_only_what_is_ready() {
    let (broker, mut peer) = broker_and_peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    peer.get(1, "q", false).await.unwrap();
    peer.send(1, queue::Purge { queue: "q", ..Default::default() }).await;
    peer.expect(1, queue::PurgeOk { message_count: 2 }).await;
    let depth = broker.depth("q");
    assert_eq!((depth.ready, depth.unacked), (0, 1));
    let text = "NOT_FOUND - no queue 'absent' in vhost '/'";
    peer.refused(queue::Purge { queue: "absent", ..Default::default() }, 404, text).await;
}

#[tokio::test]
async fn without_waiting_there_is_no_answer_but_there_are_errors() {
    let (broker, mut peer) = broker_and_peer().await;
    let no_wait = true;
    peer.send(1, queue::Declare { no_wait, ..named("q") }).await;
    peer.send(1, exchange::Declare { no_wait, ..exchange_of("x", "fanout") }).await;
    peer.send(1, queue::Bind { queue: "q", exchange: "x", no_wait, ..Default::default() }).await;
    peer.send(1, exchange::Bind { source: "x", destination: "amq.fanout", no_wait, ..Default::default() })
        .await;
    peer.send(1, basic::Consume { queue: "q", consumer_tag: "c", no_wait, ..Default::default() }).await;
    peer.send(1, basic::Cancel { consumer_tag: "c", no_wait }).await;
    peer.send(1, queue::Purge { queue: "q", no_wait, ..Default::default() }).await;
    peer.expect_quiet(1).await;
    assert!(broker.queue("q").is_some());
    peer.send(1, queue::Delete { queue: "q", no_wait, ..Default::default() }).await;
    peer.send(1, exchange::Delete { exchange: "x", no_wait, ..Default::default() }).await;
    peer.expect_quiet(1).await;
    assert!(broker.queue("q").is_none());
    peer.refused(
        queue::Bind { queue: "q", exchange: "amq.fanout", no_wait, ..Default::default() },
        404,
        "NOT_FOUND - no queue 'q' in vhost '/'",
    )
    .await;
}

#[tokio::test]
async fn an_auto_delete_queue_that_was_never_consumed_stays() {
    let (broker, mut peer) = broker_and_peer().await;
    peer.declare_with(1, queue::Declare { auto_delete: true, ..named("q") }).await;
    peer.close_channel(1).await;
    assert!(broker.queue("q").is_some());
    peer.open_channel(1).await;
    peer.consume(1, "q", "c").await;
    peer.send(1, basic::Cancel { consumer_tag: "c", no_wait: false }).await;
    peer.expect(1, basic::CancelOk { consumer_tag: "c" }).await;
    peer.expect_quiet(1).await;
    assert!(broker.queue("q").is_none());
}
