//! Channels: numbers, opening, closing, and what happens in between.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{access, basic, channel, confirm, connection, exchange, queue, tx};
use deepmq_testkit::{Handshake, TestBroker};

const NOT_OPEN: &str = "CHANNEL_ERROR - expected 'channel.open'";
const ABSENT: &str = "NOT_FOUND - no queue 'absent' in vhost '/'";

fn passive() -> queue::Declare<'static> {
    queue::Declare { queue: "absent", passive: true, ..Default::default() }
}

#[tokio::test]
async fn a_channel_opens_once() {
    let broker = TestBroker::start().await;
    let text = "CHANNEL_ERROR - second 'channel.open' seen";
    broker.peer().await.fatal(1, channel::Open::default(), 504, text).await;
}

#[tokio::test]
async fn on_a_channel_that_is_not_open_nothing_is_allowed() {
    let broker = TestBroker::start().await;
    let methods: [Method<'_>; 10] = [
        queue::Declare::default().into(),
        exchange::Declare::default().into(),
        basic::Qos::default().into(),
        basic::Ack::default().into(),
        basic::Publish::default().into(),
        tx::Select {}.into(),
        confirm::Select::default().into(),
        access::Request::default().into(),
        channel::Close::default().into(),
        channel::CloseOk {}.into(),
    ];
    for method in methods {
        broker.peer().await.fatal(5, method, 504, NOT_OPEN).await;
    }
}

#[tokio::test]
async fn channel_0_is_the_connections_own() {
    let broker = TestBroker::start().await;
    let text = "CHANNEL_ERROR - unexpected method in connection state running";
    let methods: [Method<'_>; 4] = [
        channel::Open::default().into(),
        channel::Close::default().into(),
        queue::Declare::default().into(),
        basic::Publish::default().into(),
    ];
    for method in methods {
        broker.peer().await.fatal(0, method, 504, text).await;
    }
}

#[tokio::test]
async fn the_connections_methods_are_unimplemented_on_a_channel() {
    let broker = TestBroker::start().await;
    let methods: [Method<'_>; 2] = [connection::Open::default().into(), connection::Close::default().into()];
    for method in methods {
        broker.peer().await.fatal(1, method, 503, "COMMAND_INVALID - unimplemented method").await;
    }
}

#[tokio::test]
async fn the_negotiated_maximum_is_how_many_channels_there_are_whatever_their_numbers() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer_with(&Handshake::default().tune(3, 131_072, 0)).await;
    peer.open_channel(65_535).await;
    peer.open_channel(3).await;
    peer.close_channel(1).await;
    peer.open_channel(4).await;
    let text = "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)";
    peer.fatal(1, channel::Open::default(), 530, text).await;
}

#[tokio::test]
async fn a_closed_channel_can_be_opened_again_and_starts_afresh() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.select_confirms(1).await;
    peer.publish(1, "", "q", "a").await;
    peer.expect_confirmed_up_to(1, 1).await;
    peer.close_channel(1).await;
    peer.open_channel(1).await;
    peer.refused(basic::Get::default(), 404, "NOT_FOUND - no previously declared queue").await;
    peer.publish(1, "", "q", "b").await;
    peer.expect_quiet(1).await;
    assert_eq!(peer.get(1, "q", true).await.unwrap().get_ok.delivery_tag, 1);
}

#[tokio::test]
async fn a_channel_error_leaves_other_channels_alone() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.open_channel(2).await;
    peer.refused(passive(), 404, ABSENT).await;
    peer.declare(2, "q").await;
}

#[tokio::test]
async fn after_the_servers_close_the_channel_ignores_all_until_close_ok() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.open_channel(2).await;
    peer.send(1, passive()).await;
    peer.send(1, queue::Declare { queue: "late", ..Default::default() }).await;
    peer.publish(1, "", "q", "late").await;
    peer.ack(1, 99, false).await;
    peer.send(1, basic::Qos { prefetch_size: 1, ..Default::default() }).await;
    peer.expect_channel_close(1, 404, ABSENT, queue::Declare::ID).await;
    peer.expect_quiet(2).await;
    assert!(broker.queue("late").is_none());
    assert_eq!(broker.depth("q").ready, 0);
    peer.open_channel(1).await;
}

#[tokio::test]
async fn closes_of_a_channel_that_cross_are_both_answered() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.send(1, passive()).await;
    peer.send(1, channel::Close { reply_code: 200, ..Default::default() }).await;
    peer.expect_channel_close(1, 404, ABSENT, queue::Declare::ID).await;
    peer.expect(1, channel::CloseOk {}).await;
    peer.open_channel(1).await;
}

#[tokio::test]
async fn opening_a_channel_before_its_close_is_answered_is_refused_rather_than_left_waiting() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.send(1, passive()).await;
    let close = peer.method(1).await;
    assert!(matches!(close, Method::Channel(channel::Method::Close(_))), "{close:?}");
    peer.fatal(1, channel::Open::default(), 504, "CHANNEL_ERROR - second 'channel.open' seen").await;
}

#[tokio::test]
async fn closing_a_channel_puts_its_deliveries_back_in_order() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.open_channel(2).await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (0..6).map(|n| n.to_string())).await;
    peer.qos(1, 4, false).await;
    peer.consume(1, "q", "c").await;
    peer.deliveries(1, 4).await;
    peer.ack(1, 2, false).await;
    // The ack makes room for one more.
    peer.deliveries(1, 1).await;
    peer.close_channel(1).await;
    peer.consume(2, "q", "c").await;
    let seen = peer.deliveries(2, 5).await;
    let seen: Vec<_> = seen.iter().map(|(body, _, again)| (body.as_str(), *again)).collect();
    assert_eq!(seen, [("0", true), ("2", true), ("3", true), ("4", true), ("5", false)]);
}

#[tokio::test]
async fn an_auto_delete_queue_goes_with_the_channel_of_its_last_consumer() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.open_channel(2).await;
    let declare = queue::Declare { queue: "q", auto_delete: true, ..Default::default() };
    peer.declare_with(1, declare).await;
    peer.consume(1, "q", "c").await;
    peer.close_channel(1).await;
    assert!(broker.queue("q").is_none());
}

#[tokio::test]
async fn flow_can_be_turned_on_but_not_off() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.expect_quiet(1).await;
    peer.fatal(1, channel::Flow { active: false }, 540, "NOT_IMPLEMENTED - active=false").await;
}

#[tokio::test]
async fn access_is_granted_to_all() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.send(1, access::Request::default()).await;
    peer.expect(1, access::RequestOk { ticket: 1 }).await;
}
