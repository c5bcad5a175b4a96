//! Bounds: at one below, at the bound, and one beyond.

use deepmq_amqp::codec::method::{basic, channel, exchange, queue};
use deepmq_model::message::Properties;
use deepmq_model::{Table, Value};
use deepmq_testkit::{PATIENCE, RawPeer, TestBroker};
use tokio::time::timeout;

fn named(queue: &str) -> queue::Declare<'_> {
    queue::Declare { queue, ..Default::default() }
}

#[tokio::test]
async fn a_connection_has_2047_channels_and_no_more() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let opens: Vec<u8> =
        (2..=2047).flat_map(|number| RawPeer::bytes_of(number, channel::Open::default())).collect();
    peer.send_bytes(&opens).await;
    for number in 2..=2047 {
        peer.expect(number, channel::OpenOk::default()).await;
    }
    let id = broker.broker().connections()[0].id;
    assert_eq!(broker.broker().channels(id).len(), 2047);
    peer.declare(2047, "q").await;
    let text = "NOT_ALLOWED - number of channels opened (2047) has reached the negotiated channel_max (2047)";
    peer.fatal(2048, channel::Open::default(), 530, text).await;
    assert!(broker.broker().channels(id).is_empty());
}

#[tokio::test]
async fn one_connection_too_many_is_dropped_and_let_in_once_another_is_gone() {
    let broker = TestBroker::start_with(|config| config.limits.connections_max = 2).await;
    let first = broker.peer().await;
    let mut second = broker.peer().await;
    let mut third = RawPeer::connect(broker.address()).await;
    third.expect_eof().await;
    second.expect_quiet(1).await;
    first.close().await;
    // That there is room again is known a moment after the end.
    timeout(PATIENCE, async {
        loop {
            let mut peer = RawPeer::connect(broker.address()).await;
            peer.try_send_bytes(b"AMQP\0\0\x09\x01").await;
            if peer.next_frame().await.is_some() {
                return;
            }
        }
    })
    .await
    .expect("a connection is let in");
}

#[tokio::test]
async fn a_channel_has_so_many_consumers() {
    let broker = TestBroker::start_with(|config| config.limits.consumers_per_channel_max = 3).await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.open_channel(2).await;
    for tag in ["1", "2", "3"] {
        peer.consume(1, "q", tag).await;
        peer.consume(2, "q", tag).await;
    }
    peer.send(1, basic::Cancel { consumer_tag: "2", no_wait: false }).await;
    peer.expect(1, basic::CancelOk { consumer_tag: "2" }).await;
    peer.consume(1, "q", "4").await;
    let fifth = basic::Consume { queue: "q", consumer_tag: "5", ..Default::default() };
    peer.fatal(1, fifth, 530, "NOT_ALLOWED - reached maximum (3) of consumers per channel").await;
    assert_eq!(broker.depth("q").consumers, 0);
}

#[tokio::test]
async fn a_vhost_has_so_many_queues() {
    let broker = TestBroker::start_with(|config| config.limits.queues_per_vhost_max = 2).await;
    let mut peer = broker.peer().await;
    peer.declare(1, "a").await;
    peer.declare(1, "b").await;
    let text = "PRECONDITION_FAILED - cannot declare queue 'c': queue limit in vhost '/' (2) is reached";
    peer.refused(named("c"), 406, text).await;
    peer.declare(1, "a").await;
    peer.send(1, queue::Delete { queue: "a", ..Default::default() }).await;
    peer.expect(1, queue::DeleteOk { message_count: 0 }).await;
    peer.declare(1, "c").await;
}

#[tokio::test]
async fn a_vhost_has_so_many_exchanges_and_bindings() {
    let broker = TestBroker::start_with(|config| {
        config.limits.exchanges_per_vhost_max = 1;
        config.limits.bindings_per_vhost_max = 2;
    })
    .await;
    let mut peer = broker.peer().await;
    peer.declare_exchange(1, "x", "fanout").await;
    let text = "PRECONDITION_FAILED - cannot declare exchange 'y': exchange limit of 1 is reached";
    peer.refused(exchange::Declare { exchange: "y", kind: "fanout", ..Default::default() }, 406, text).await;
    peer.declare(1, "q").await;
    for key in ["a", "b", "b"] {
        peer.bind(1, "q", "x", key).await;
    }
    let text = "PRECONDITION_FAILED - cannot bind to 'x': binding limit in vhost '/' (2) is reached";
    let bind = queue::Bind { queue: "q", exchange: "x", routing_key: b"c", ..Default::default() };
    peer.refused(bind, 406, text).await;
}

#[tokio::test]
async fn a_message_has_so_many_bytes() {
    let broker = TestBroker::start_with(|config| config.limits.message_bytes_max = 1000).await;
    let mut peer = broker.peer().await;
    peer.open_channel(2).await;
    peer.declare(1, "q").await;
    for size in [999, 1000] {
        peer.publish(1, "", "q", vec![b'x'; size]).await;
        assert_eq!(peer.get(1, "q", true).await.unwrap().content.body.len(), size);
    }
    let text = "PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000";
    peer.publish(1, "", "q", vec![b'x'; 1001]).await;
    peer.expect_channel_close(1, 406, text, basic::Publish::ID).await;
    peer.open_channel(1).await;
    // Refused as soon as it is announced.
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    let mut bytes = RawPeer::bytes_of(1, publish);
    let announced =
        deepmq_amqp::codec::content::Header { class: 60, body_size: 1 << 63, properties: &[0, 0] };
    announced.encode(1, &mut bytes);
    peer.send_bytes(&bytes).await;
    let text =
        "PRECONDITION_FAILED - message size 9223372036854775808 is larger than configured max size 1000";
    peer.expect_channel_close(1, 406, text, basic::Publish::ID).await;
    peer.expect_quiet(2).await;
    assert_eq!(broker.depth("q").ready, 0);
}

fn nested(depth: usize) -> Table {
    (1..depth).fold(Table::new(), |inner, _| [("k", Value::Table(inner))].into_iter().collect())
}

#[tokio::test]
async fn arguments_nest_as_deep_as_configured_and_no_deeper() {
    for max in [64, 3] {
        let broker = TestBroker::start_with(|config| config.limits.table_depth_max = max).await;
        let mut peer = broker.peer().await;
        peer.declare_with(1, queue::Declare { arguments: nested(max - 1), ..named("p") }).await;
        peer.declare_with(1, queue::Declare { arguments: nested(max), ..named("q") }).await;
        let text = "SYNTAX_ERROR - a table is nested deeper than the limit";
        peer.fatal(1, queue::Declare { arguments: nested(max + 1), ..named("r") }, 502, text).await;
    }
}

#[tokio::test]
async fn headers_nest_as_deep_as_configured_and_no_deeper() {
    let broker = TestBroker::start_with(|config| config.limits.table_depth_max = 3).await;
    let properties = |depth| {
        let mut encoded = Vec::new();
        Properties { headers: Some(nested(depth)), ..Properties::default() }.encode(&mut encoded);
        encoded
    };
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    peer.publish_with(1, &publish, &properties(3), b"as deep as allowed").await;
    peer.publish_with(1, &publish, &properties(4), b"deeper").await;
    let text = "SYNTAX_ERROR - a table is nested deeper than the limit";
    peer.expect_connection_close(502, text, basic::Publish::ID).await;
    assert_eq!(broker.depth("q").ready, 1);
}
