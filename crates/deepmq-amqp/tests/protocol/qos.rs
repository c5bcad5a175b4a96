//! Prefetch: of each consumer, of the channel, and both.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::basic;
use deepmq_testkit::{RawPeer, TestBroker};

async fn with_messages(count: u32) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (1..=count).map(|n| n.to_string())).await;
    (broker, peer)
}

fn bodies(seen: &[(String, u64, bool)]) -> Vec<&str> {
    seen.iter().map(|(body, _, _)| body.as_str()).collect()
}

#[tokio::test]
async fn a_consumer_holds_at_most_its_prefetch() {
    let (broker, mut peer) = with_messages(6).await;
    peer.qos(1, 2, false).await;
    peer.consume(1, "q", "c").await;
    assert_eq!(bodies(&peer.deliveries(1, 2).await), ["1", "2"]);
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").unacked, 2);
    peer.ack(1, 2, false).await;
    assert_eq!(bodies(&peer.deliveries(1, 1).await), ["3"]);
    peer.ack(1, 3, true).await;
    assert_eq!(bodies(&peer.deliveries(1, 2).await), ["4", "5"]);
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn each_consumer_has_its_own_and_only_new_ones_the_latest() {
    let (broker, mut peer) = with_messages(0).await;
    peer.qos(1, 1, false).await;
    peer.consume(1, "q", "one").await;
    peer.qos(1, 3, false).await;
    peer.consume(1, "q", "three").await;
    peer.publish_all(1, "q", (0..10).map(|n| n.to_string())).await;
    let mut tags = Vec::new();
    for _ in 0..4 {
        tags.push(peer.delivery(1).await.deliver.consumer_tag);
    }
    tags.sort_unstable();
    assert_eq!(tags, ["one", "three", "three", "three"]);
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").unacked, 4);
}

/// Raises the shared limit. The deliveries that this makes possible may come before the answer.
async fn set_shared_while_deliveries_come(peer: &mut RawPeer, prefetch_count: u16, deliveries: usize) {
    peer.send(1, basic::Qos { prefetch_size: 0, prefetch_count, global: true }).await;
    let (mut came, mut answered) = (0, false);
    while came < deliveries || !answered {
        match peer.method(1).await {
            Method::Basic(basic::Method::QosOk(_)) => answered = true,
            Method::Basic(basic::Method::Deliver(_)) => {
                peer.content(1).await;
                came += 1;
            }
            other => panic!("{other:?} came"),
        }
    }
}

#[tokio::test]
async fn a_channels_consumers_share_the_global_one() {
    let (broker, mut peer) = with_messages(0).await;
    peer.qos(1, 3, true).await;
    peer.consume(1, "q", "a").await;
    peer.consume(1, "q", "b").await;
    peer.publish_all(1, "q", (0..10).map(|n| n.to_string())).await;
    peer.deliveries(1, 3).await;
    peer.expect_quiet(1).await;
    peer.ack(1, 2, true).await;
    peer.deliveries(1, 2).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").unacked, 3);
    // A higher limit holds at once, and 0 is none.
    set_shared_while_deliveries_come(&mut peer, 5, 2).await;
    peer.expect_quiet(1).await;
    set_shared_while_deliveries_come(&mut peer, 0, 3).await;
    assert_eq!(broker.depth("q").unacked, 8);
}

#[tokio::test]
async fn both_limits_apply_together() {
    let (broker, mut peer) = with_messages(10).await;
    peer.qos(1, 3, true).await;
    peer.qos(1, 2, false).await;
    peer.consume(1, "q", "a").await;
    peer.deliveries(1, 2).await;
    peer.expect_quiet(1).await;
    peer.consume(1, "q", "b").await;
    peer.deliveries(1, 1).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").unacked, 3);
}

#[tokio::test]
async fn the_shared_limit_is_each_channels_own() {
    let (broker, mut peer) = with_messages(10).await;
    peer.open_channel(2).await;
    peer.qos(1, 1, true).await;
    peer.consume(1, "q", "a").await;
    peer.deliveries(1, 1).await;
    peer.consume(2, "q", "b").await;
    peer.deliveries(2, 9).await;
    assert_eq!(broker.depth("q").unacked, 10);
}

#[tokio::test]
async fn a_cancelled_consumers_deliveries_still_count_against_the_shared_limit() {
    let (_broker, mut peer) = with_messages(4).await;
    peer.qos(1, 2, true).await;
    peer.consume(1, "q", "a").await;
    peer.deliveries(1, 2).await;
    peer.send(1, basic::Cancel { consumer_tag: "a", no_wait: false }).await;
    peer.expect(1, basic::CancelOk { consumer_tag: "a" }).await;
    peer.consume(1, "q", "b").await;
    peer.expect_quiet(1).await;
    peer.ack(1, 1, false).await;
    assert_eq!(bodies(&peer.deliveries(1, 1).await), ["3"]);
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn a_requeue_frees_the_place_it_took() {
    let (_broker, mut peer) = with_messages(2).await;
    peer.qos(1, 1, false).await;
    peer.consume(1, "q", "c").await;
    assert_eq!(peer.delivery(1).await.seen(), ("1", 1, false));
    peer.send(1, basic::Reject { delivery_tag: 1, requeue: true }).await;
    assert_eq!(peer.delivery(1).await.seen(), ("1", 2, true));
    peer.send(1, basic::Reject { delivery_tag: 2, requeue: false }).await;
    assert_eq!(peer.delivery(1).await.seen(), ("2", 3, false));
}

#[tokio::test]
async fn a_limit_in_bytes_is_not_implemented() {
    let broker = TestBroker::start().await;
    let qos = basic::Qos { prefetch_size: 7, ..Default::default() };
    broker.peer().await.fatal(1, qos, 540, "NOT_IMPLEMENTED - prefetch_size!=0 (7)").await;
}

#[tokio::test]
async fn a_channel_that_says_nothing_has_the_brokers_prefetch_and_0_lifts_it() {
    let broker = TestBroker::start_with(|config| config.default_consumer_prefetch = 2).await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (0..5).map(|n| n.to_string())).await;
    peer.consume(1, "q", "limited").await;
    peer.deliveries(1, 2).await;
    peer.expect_quiet(1).await;
    peer.qos(1, 0, false).await;
    peer.consume(1, "q", "free").await;
    peer.deliveries(1, 3).await;
}
