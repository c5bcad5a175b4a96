//! What RabbitMQ refuses, row by row: the method, whether it costs the channel or the connection, the code and the text.
//!
//! The rows that need more than one method to show are tested where their subject is.

use deepmq_amqp::codec::method::{basic, channel, confirm, exchange, queue, tx};
use deepmq_amqp::codec::{Method, MethodId};
use deepmq_model::{Table, Value};
use deepmq_testkit::{RawPeer, TestBroker};

/// What is refused, and the end of the text after the code's name.
type Row = (Method<'static>, &'static str);

fn arguments(key: &str, value: Value) -> Table {
    [(key, value)].into_iter().collect()
}

fn queue_of(queue: &'static str) -> queue::Declare<'static> {
    queue::Declare { queue, ..Default::default() }
}

fn exchange_of(exchange: &'static str, kind: &'static str) -> exchange::Declare<'static> {
    exchange::Declare { exchange, kind, ..Default::default() }
}

/// A queue declared with an argument that is wrong.
fn with(key: &str, value: Value) -> Method<'static> {
    queue::Declare { arguments: arguments(key, value), ..queue_of("new") }.into()
}

/// There are a durable queue `q` with a message, an exchange `x` bound to it, a queue `single` with a single active consumer,
/// a queue `used` with an exclusive consumer, and another connection's own queue `mine`.
async fn fixtures() -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut owner = broker.peer().await;
    owner.declare_with(1, queue::Declare { durable: true, ..queue_of("q") }).await;
    owner.publish(1, "", "q", "m").await;
    owner.declare_exchange(1, "x", "direct").await;
    owner.bind(1, "q", "x", "k").await;
    let single = arguments("x-single-active-consumer", Value::Bool(true));
    owner.declare_with(1, queue::Declare { arguments: single, ..queue_of("single") }).await;
    owner.declare(1, "used").await;
    owner.consume_with(1, basic::Consume { queue: "used", exclusive: true, ..Default::default() }).await;
    owner.declare_with(1, queue::Declare { exclusive: true, ..queue_of("mine") }).await;
    (broker, owner)
}

const LOCKED: &str = "cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It could be originally \
                      declared on another connection or the exclusive property value does not match that of the \
                      original declaration.";

fn not_found() -> Vec<Row> {
    let (no_queue, no_exchange) = ("no queue 'absent' in vhost '/'", "no exchange 'absent' in vhost '/'");
    vec![
        (queue::Declare { passive: true, ..queue_of("absent") }.into(), no_queue),
        (exchange::Declare { passive: true, ..exchange_of("absent", "") }.into(), no_exchange),
        (basic::Consume { queue: "absent", ..Default::default() }.into(), no_queue),
        (basic::Get { queue: "absent", ..Default::default() }.into(), no_queue),
        (queue::Purge { queue: "absent", ..Default::default() }.into(), no_queue),
        (queue::Bind { queue: "absent", exchange: "x", ..Default::default() }.into(), no_queue),
        (queue::Bind { queue: "q", exchange: "absent", ..Default::default() }.into(), no_exchange),
        (exchange::Bind { source: "absent", destination: "x", ..Default::default() }.into(), no_exchange),
        (exchange::Bind { source: "x", destination: "absent", ..Default::default() }.into(), no_exchange),
        (basic::Consume::default().into(), "no previously declared queue"),
        (basic::Get::default().into(), "no previously declared queue"),
        (queue::Delete::default().into(), "no previously declared queue"),
        (queue::Purge::default().into(), "no previously declared queue"),
        (queue::Bind { exchange: "x", ..Default::default() }.into(), "no previously declared queue"),
    ]
}

fn refused_access() -> Vec<Row> {
    let default = "operation not permitted on the default exchange";
    vec![
        (queue_of("amq.foo").into(), "queue name 'amq.foo' contains reserved prefix 'amq.*'"),
        (exchange_of("amq.foo", "fanout").into(), "exchange name 'amq.foo' contains reserved prefix 'amq.*'"),
        (
            exchange::Delete { exchange: "amq.direct", ..Default::default() }.into(),
            "deletion of system exchange 'amq.direct' in vhost '/' not allowed",
        ),
        (exchange_of("", "direct").into(), default),
        (exchange::Delete::default().into(), default),
        (queue::Bind { queue: "q", ..Default::default() }.into(), default),
        (queue::Unbind { queue: "q", ..Default::default() }.into(), default),
        (
            basic::Consume { queue: "used", ..Default::default() }.into(),
            "queue 'used' in vhost '/' in exclusive use",
        ),
        (
            basic::Consume { queue: "single", exclusive: true, ..Default::default() }.into(),
            "queue 'single' in vhost '/' in exclusive use",
        ),
        (
            queue::Bind { queue: "amq.rabbitmq.reply-to.x", exchange: "x", ..Default::default() }.into(),
            "cannot bind or unbind to a volatile (direct reply-to) queue",
        ),
    ]
}

fn locked() -> Vec<Row> {
    let queue = "mine";
    vec![
        // Before anything else is compared.
        (queue::Declare { durable: true, exclusive: true, ..queue_of(queue) }.into(), LOCKED),
        (queue::Declare { passive: true, ..queue_of(queue) }.into(), LOCKED),
        (basic::Consume { queue, ..Default::default() }.into(), LOCKED),
        (basic::Get { queue, ..Default::default() }.into(), LOCKED),
        (queue::Purge { queue, ..Default::default() }.into(), LOCKED),
        (queue::Bind { queue, exchange: "x", ..Default::default() }.into(), LOCKED),
        (queue::Unbind { queue, exchange: "x", ..Default::default() }.into(), LOCKED),
        (queue::Delete { queue, ..Default::default() }.into(), LOCKED),
        (
            basic::Get { queue: "single", ..Default::default() }.into(),
            "cannot obtain access to locked queue 'single' in vhost '/'. basic.get operations are not supported by \
             classic queues with single active consumer",
        ),
    ]
}

fn preconditions() -> Vec<Row> {
    vec![
        (
            queue_of("q").into(),
            "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'",
        ),
        (
            queue::Declare { durable: true, auto_delete: true, ..queue_of("q") }.into(),
            "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            queue::Declare {
                durable: true,
                arguments: arguments("x-message-ttl", Value::I32(100)),
                ..queue_of("q")
            }
            .into(),
            "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '100' of type \
             'signedint' but current is none",
        ),
        (
            exchange_of("x", "fanout").into(),
            "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'",
        ),
        (
            exchange::Declare { internal: true, ..exchange_of("x", "direct") }.into(),
            "inequivalent arg 'internal' for exchange 'x' in vhost '/': received 'true' but current is 'false'",
        ),
        (exchange_of("new", "no-such-type").into(), "unknown exchange type 'no-such-type'"),
        (
            exchange::Declare {
                arguments: arguments("alternate-exchange", Value::I32(1)),
                ..exchange_of("new", "direct")
            }
            .into(),
            "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'new' in vhost '/'",
        ),
        (
            queue::Delete { queue: "used", if_unused: true, ..Default::default() }.into(),
            "queue 'used' in vhost '/' in use",
        ),
        (
            queue::Delete { queue: "q", if_empty: true, ..Default::default() }.into(),
            "queue 'q' in vhost '/' not empty",
        ),
        (
            exchange::Delete { exchange: "x", if_unused: true, ..Default::default() }.into(),
            "exchange 'x' in vhost '/' in use",
        ),
        (basic::Ack { delivery_tag: 7, multiple: false }.into(), "unknown delivery tag 7"),
        (basic::Ack { delivery_tag: 0, multiple: false }.into(), "unknown delivery tag 0"),
        (basic::Nack { delivery_tag: 7, multiple: true, requeue: true }.into(), "unknown delivery tag 7"),
        (basic::Reject { delivery_tag: 7, requeue: true }.into(), "unknown delivery tag 7"),
        (
            basic::Consume {
                queue: "q",
                arguments: arguments("x-priority", Value::str("high")),
                ..Default::default()
            }
            .into(),
            "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got longstr\"",
        ),
        (
            basic::Consume { queue: "amq.rabbitmq.reply-to", ..Default::default() }.into(),
            "reply consumer cannot acknowledge",
        ),
        (tx::Commit {}.into(), "channel is not transactional"),
        (tx::Rollback {}.into(), "channel is not transactional"),
    ]
}

fn bad_arguments() -> Vec<Row> {
    vec![
        (
            with("x-max-length", Value::I32(-1)),
            "invalid arg 'x-max-length' for queue 'new' in vhost '/': {value_negative,-1}",
        ),
        (
            with("x-max-length", Value::str("1")),
            "invalid arg 'x-max-length' for queue 'new' in vhost '/': \"expected integer, got longstr\"",
        ),
        (
            with("x-expires", Value::I32(0)),
            "invalid arg 'x-expires' for queue 'new' in vhost '/': {value_zero,0}",
        ),
        (
            with("x-message-ttl", Value::I64(315_360_000_001)),
            "invalid arg 'x-message-ttl' for queue 'new' in vhost '/': {value_too_large,315360000001}",
        ),
        (
            with("x-max-priority", Value::I32(256)),
            "invalid arg 'x-max-priority' for queue 'new' in vhost '/': {max_value_exceeded,256}",
        ),
        (
            with("x-max-priority", Value::I32(-1)),
            "invalid arg 'x-max-priority' for queue 'new' in vhost '/': {value_negative,-1}",
        ),
        (
            with("x-single-active-consumer", Value::str("true")),
            "invalid arg 'x-single-active-consumer' for queue 'new' in vhost '/': {unacceptable_type,longstr}",
        ),
        (
            with("x-consumer-timeout", Value::str("1s")),
            "invalid arg 'x-consumer-timeout' for queue 'new' in vhost '/': \"expected integer, got longstr\"",
        ),
        (
            with("x-overflow", Value::str("burst")),
            "invalid arg 'x-overflow' for queue 'new' in vhost '/': invalid_overflow",
        ),
        (
            with("x-dead-letter-routing-key", Value::str("k")),
            "invalid arg 'x-dead-letter-routing-key' for queue 'new' in vhost '/': routing_key_but_no_dlx_defined",
        ),
        (
            with("x-dead-letter-exchange", Value::I32(1)),
            "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'new' in vhost '/'",
        ),
        (
            with("x-queue-type", Value::str("jms")),
            "invalid arg 'x-queue-type' for queue 'new' in vhost '/': \"unsupported queue type 'jms'\"",
        ),
        (
            with("x-queue-type", Value::str("quorum")),
            "invalid property 'non-durable' for queue 'new' in vhost '/'",
        ),
        (
            with("x-queue-mode", Value::I32(1)),
            "invalid arg 'x-queue-mode' for queue 'new' in vhost '/': {unacceptable_type,signedint}",
        ),
    ]
}

#[tokio::test]
async fn each_refusal_that_costs_the_channel_has_its_code_and_text() {
    let (broker, _owner) = fixtures().await;
    for (code, name, rows) in [
        (403, "ACCESS_REFUSED", refused_access()),
        (404, "NOT_FOUND", not_found()),
        (405, "RESOURCE_LOCKED", locked()),
        (406, "PRECONDITION_FAILED", preconditions()),
        (406, "PRECONDITION_FAILED", bad_arguments()),
    ] {
        for (method, text) in rows {
            // Names of queues are remembered by channel, so each has its own.
            let mut peer = broker.peer().await;
            peer.refused(method, code, &format!("{name} - {text}")).await;
            peer.expect_quiet(1).await;
        }
    }
}

#[tokio::test]
async fn each_refusal_that_costs_the_connection_has_its_code_and_text() {
    let (broker, _owner) = fixtures().await;
    let stream = "NOT_IMPLEMENTED - queue 'new' in vhost '/' cannot be a stream: streams are not supported";
    let rows: [(Method<'_>, u16, &str); 7] = [
        (with("x-queue-type", Value::str("stream")), 540, stream),
        (
            basic::Qos { prefetch_size: 7, ..Default::default() }.into(),
            540,
            "NOT_IMPLEMENTED - prefetch_size!=0 (7)",
        ),
        (basic::Recover { requeue: false }.into(), 540, "NOT_IMPLEMENTED - requeue=false"),
        (channel::Flow { active: false }.into(), 540, "NOT_IMPLEMENTED - active=false"),
        (channel::Open::default().into(), 504, "CHANNEL_ERROR - second 'channel.open' seen"),
        (
            basic::Publish { immediate: true, ..Default::default() }.into(),
            540,
            "NOT_IMPLEMENTED - immediate=true",
        ),
        (confirm::SelectOk {}.into(), 503, "COMMAND_INVALID - unimplemented method"),
    ];
    for (method, code, text) in rows {
        broker.peer().await.fatal(1, method, code, text).await;
    }
    let mut peer = broker.peer().await;
    peer.send(9, basic::Get::default()).await;
    let cause = MethodId { class: 60, method: 70 };
    peer.expect_connection_close(504, "CHANNEL_ERROR - expected 'channel.open'", cause).await;
}

#[tokio::test]
async fn what_is_no_error_is_answered() {
    let (broker, _owner) = fixtures().await;
    let mut peer = broker.peer().await;
    let answers: [(Method<'_>, Method<'_>); 6] = [
        (
            queue::Delete { queue: "absent", ..Default::default() }.into(),
            queue::DeleteOk { message_count: 0 }.into(),
        ),
        (exchange::Delete { exchange: "absent", ..Default::default() }.into(), exchange::DeleteOk {}.into()),
        (
            queue::Unbind { queue: "absent", exchange: "x", ..Default::default() }.into(),
            queue::UnbindOk {}.into(),
        ),
        (
            queue::Unbind { queue: "q", exchange: "absent", ..Default::default() }.into(),
            queue::UnbindOk {}.into(),
        ),
        (
            basic::Cancel { consumer_tag: "nobody", no_wait: false }.into(),
            basic::CancelOk { consumer_tag: "nobody" }.into(),
        ),
        (confirm::Select { no_wait: false }.into(), confirm::SelectOk {}.into()),
    ];
    for (asked, answer) in answers {
        assert_eq!(peer.call(1, asked).await, answer);
    }
    peer.ack(1, 0, true).await;
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn arguments_that_mean_nothing_here_are_taken_and_not_compared() {
    let (_broker, mut peer) = fixtures().await;
    let legacy = [
        ("x-queue-mode", Value::str("lazy")),
        ("x-queue-version", Value::I32(2)),
        ("x-queue-master-locator", Value::str("min-masters")),
        ("x-queue-leader-locator", Value::str("balanced")),
        ("x-quorum-initial-group-size", Value::I32(3)),
        ("x-initial-cluster-size", Value::I32(3)),
        ("x-max-in-memory-length", Value::I32(10)),
        ("x-max-in-memory-bytes", Value::I32(10)),
        ("x-ha-policy", Value::str("all")),
        ("ha-mode", Value::str("all")),
        ("ha-sync-mode", Value::str("automatic")),
        ("x-cancel-on-ha-failover", Value::Bool(true)),
        ("x-whatever", Value::Table(Table::new())),
    ];
    for kind in ["classic", "quorum"] {
        for (argument, value) in &legacy {
            let mut arguments = arguments("x-queue-type", Value::str(kind));
            arguments.push(*argument, value.clone());
            let declare = |arguments| queue::Declare { durable: true, arguments, ..queue_of("legacy") };
            assert_eq!(peer.declare_with(1, declare(arguments)).await.queue, "legacy", "{argument}");
            // Declared again without it, it is the same queue.
            peer.declare_with(1, declare([("x-queue-type", Value::str(kind))].into_iter().collect())).await;
            peer.send(1, queue::Delete { queue: "legacy", ..Default::default() }).await;
            peer.expect(1, queue::DeleteOk { message_count: 0 }).await;
        }
    }
}
