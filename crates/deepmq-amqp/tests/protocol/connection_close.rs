//! How connections end, and what is tidied up before the end is announced.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::frame::{self, Kind};
use deepmq_amqp::codec::method::{LongStr, basic, channel, connection, queue};
use deepmq_testkit::{RawPeer, TestBroker, until};

const SECOND_OPEN: &str = "CHANNEL_ERROR - second 'channel.open' seen";

#[tokio::test]
async fn exclusive_and_abandoned_queues_are_gone_when_close_ok_comes() {
    let broker = TestBroker::start().await;
    let (mut peer, mut other) = (broker.peer().await, broker.peer().await);
    let declare = queue::Declare { queue: "mine", exclusive: true, ..Default::default() };
    peer.declare_with(1, declare).await;
    let declare = queue::Declare { queue: "fleeting", auto_delete: true, ..Default::default() };
    peer.declare_with(1, declare).await;
    peer.consume(1, "fleeting", "c").await;
    peer.close().await;
    for (queue, text) in [
        ("mine", "NOT_FOUND - no queue 'mine' in vhost '/'"),
        ("fleeting", "NOT_FOUND - no queue 'fleeting' in vhost '/'"),
    ] {
        other.refused(queue::Declare { queue, passive: true, ..Default::default() }, 404, text).await;
    }
}

#[tokio::test]
async fn unsettled_deliveries_go_back_in_order_and_are_marked() {
    for politely in [true, false] {
        let broker = TestBroker::start().await;
        let (mut peer, mut other) = (broker.peer().await, broker.peer().await);
        peer.declare(1, "q").await;
        peer.publish_all(1, "q", (0..5).map(|n| n.to_string())).await;
        peer.qos(1, 3, false).await;
        peer.consume(1, "q", "c").await;
        peer.deliveries(1, 3).await;
        if politely {
            peer.close().await;
        } else {
            drop(peer);
        }
        until(|| broker.depth("q").ready == 5).await;
        other.consume(1, "q", "c").await;
        let expected = [("0", 1, true), ("1", 2, true), ("2", 3, true), ("3", 4, false), ("4", 5, false)];
        let expected = expected.map(|(body, tag, again)| (body.to_owned(), tag, again));
        assert_eq!(other.deliveries(1, 5).await, expected);
    }
}

#[tokio::test]
async fn after_the_servers_close_everything_but_the_answer_is_ignored() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let mut bytes = RawPeer::bytes_of(1, channel::Open::default());
    bytes.extend(RawPeer::bytes_of(1, queue::Declare { queue: "late", ..Default::default() }));
    bytes.extend(RawPeer::bytes_of(1, channel::Open::default()));
    frame::write(Kind::Heartbeat, 1, &mut bytes, |_| {});
    frame::write(Kind::Body, 7, &mut bytes, |writer| writer.raw(b"stray"));
    peer.send_bytes(&bytes).await;
    peer.expect_connection_close(504, SECOND_OPEN, channel::Open::ID).await;
    assert!(broker.queue("late").is_none());
}

#[tokio::test]
async fn closes_that_cross_are_both_answered() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let mut bytes = RawPeer::bytes_of(1, channel::Open::default());
    bytes.extend(RawPeer::bytes_of(0, connection::Close { reply_code: 200, ..Default::default() }));
    peer.send_bytes(&bytes).await;
    let close = peer.method(0).await;
    assert!(matches!(close, Method::Connection(connection::Method::Close(_))), "{close:?}");
    peer.expect(0, connection::CloseOk {}).await;
    peer.send(0, connection::CloseOk {}).await;
    peer.expect_eof().await;
}

#[tokio::test]
async fn a_connection_can_be_closed_from_outside() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let connections = broker.broker().connections();
    assert!(broker.broker().kill_connection(connections[0].id, "Closed via management plugin"));
    let text = "CONNECTION_FORCED - Closed via management plugin";
    peer.expect_connection_close(320, text, RawPeer::NO_METHOD).await;
    assert_eq!(broker.broker().connections().len(), 0);
}

#[tokio::test]
async fn a_stopping_broker_closes_its_connections() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
    tokio::join!(broker.stop(), peer.expect_connection_close(320, text, RawPeer::NO_METHOD));
}

#[tokio::test]
async fn a_new_secret_is_agreed_to() {
    let broker = TestBroker::start().await;
    let update = connection::UpdateSecret { new_secret: LongStr(b"token"), reason: "expired" };
    let answer = broker.peer().await.call(0, update).await;
    assert_eq!(answer, connection::UpdateSecretOk {}.into());
}

#[tokio::test]
async fn what_only_a_server_says_is_unimplemented() {
    let broker = TestBroker::start().await;
    let methods: [(u16, Method<'_>); 6] = [
        (0, connection::Tune::default().into()),
        (0, connection::OpenOk::default().into()),
        (0, connection::Blocked::default().into()),
        (1, channel::OpenOk::default().into()),
        (1, queue::DeclareOk::default().into()),
        (1, basic::Deliver::default().into()),
    ];
    for (channel, method) in methods {
        broker.peer().await.fatal(channel, method, 503, "COMMAND_INVALID - unimplemented method").await;
    }
}

#[tokio::test]
async fn methods_that_do_not_exist_are_unimplemented() {
    let broker = TestBroker::start().await;
    for (class, method) in [(99_u16, 1_u16), (60, 99), (10, 99)] {
        let mut peer = broker.peer().await;
        let mut bytes = Vec::new();
        frame::write(Kind::Method, 1, &mut bytes, |writer| {
            writer.u16(class);
            writer.u16(method);
        });
        peer.send_bytes(&bytes).await;
        let cause = deepmq_amqp::codec::MethodId { class, method };
        peer.expect_connection_close(503, "COMMAND_INVALID - unimplemented method", cause).await;
    }
}

#[tokio::test]
async fn a_stop_closes_connections_that_are_still_in_their_handshake() {
    let broker = TestBroker::start().await;
    let mut silent = RawPeer::connect(broker.address()).await;
    let mut greeted = RawPeer::connect(broker.address()).await;
    greeted.send_bytes(b"AMQP\0\0\x09\x01").await;
    greeted.method(0).await;
    broker.stop().await;
    silent.expect_eof().await;
    greeted.expect_eof().await;
}
