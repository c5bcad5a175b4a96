//! Settling deliveries: ack, nack, reject, recover.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::basic;
use deepmq_testkit::{RawPeer, TestBroker};

fn ack(delivery_tag: u64, multiple: bool) -> basic::Ack {
    basic::Ack { delivery_tag, multiple }
}

/// A broker and a peer that holds deliveries 1 to `count` of queue `q`, which has no further message.
async fn holding(count: u64) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (1..=count).map(|n| n.to_string())).await;
    for _ in 0..count {
        peer.get(1, "q", false).await.expect("it was published");
    }
    (broker, peer)
}

/// Ready and unacked messages of `q`.
async fn depth(broker: &TestBroker, peer: &mut RawPeer) -> (u64, u64) {
    peer.expect_quiet(1).await;
    let depth = broker.depth("q");
    (depth.ready, depth.unacked)
}

#[tokio::test]
async fn an_ack_settles_one_or_all_up_to_it() {
    let (broker, mut peer) = holding(6).await;
    peer.ack(1, 3, false).await;
    assert_eq!(depth(&broker, &mut peer).await, (0, 5));
    peer.ack(1, 4, true).await;
    assert_eq!(depth(&broker, &mut peer).await, (0, 2));
    peer.ack(1, 0, true).await;
    assert_eq!(depth(&broker, &mut peer).await, (0, 0));
    // There is nothing to settle, which is fine.
    peer.ack(1, 0, true).await;
    assert_eq!(depth(&broker, &mut peer).await, (0, 0));
}

#[tokio::test]
async fn an_unknown_tag_costs_the_channel_and_settles_nothing() {
    let cases: [(Method<'_>, u64); 9] = [
        (ack(99, false).into(), 99),
        (ack(99, true).into(), 99),
        (ack(0, false).into(), 0),
        (ack(1, false).into(), 1),
        (ack(1, true).into(), 1),
        (basic::Nack { delivery_tag: 99, multiple: false, requeue: true }.into(), 99),
        (basic::Nack { delivery_tag: 99, multiple: true, requeue: false }.into(), 99),
        (basic::Reject { delivery_tag: 99, requeue: true }.into(), 99),
        (basic::Reject { delivery_tag: 0, requeue: false }.into(), 0),
    ];
    for (method, tag) in cases {
        let (broker, mut peer) = holding(3).await;
        peer.ack(1, 1, false).await;
        let text = format!("PRECONDITION_FAILED - unknown delivery tag {tag}");
        peer.refused(method, 406, &text).await;
        assert_eq!(depth(&broker, &mut peer).await, (2, 0));
        assert_eq!(peer.get(1, "q", true).await.unwrap().seen(), ("2", 1, true));
        assert_eq!(peer.get(1, "q", true).await.unwrap().seen(), ("3", 2, true));
    }
}

#[tokio::test]
async fn acks_before_a_bad_one_in_the_same_write_still_count() {
    let (broker, mut peer) = holding(4).await;
    let bytes = [ack(1, false), ack(2, false), ack(9, false), ack(3, false)];
    let bytes: Vec<u8> = bytes.into_iter().flat_map(|ack| RawPeer::bytes_of(1, ack)).collect();
    peer.send_bytes(&bytes).await;
    peer.expect_channel_close(1, 406, "PRECONDITION_FAILED - unknown delivery tag 9", basic::Ack::ID).await;
    peer.open_channel(1).await;
    assert_eq!(depth(&broker, &mut peer).await, (2, 0));
}

#[tokio::test]
async fn tags_are_known_on_their_channel_only() {
    let (_broker, mut peer) = holding(1).await;
    peer.open_channel(2).await;
    peer.send(2, ack(1, false)).await;
    peer.expect_channel_close(2, 406, "PRECONDITION_FAILED - unknown delivery tag 1", basic::Ack::ID).await;
    peer.ack(1, 1, false).await;
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn what_is_requeued_goes_back_to_its_place_and_is_marked() {
    let (broker, mut peer) = holding(5).await;
    peer.publish_all(1, "q", ["6".to_owned()]).await;
    peer.send(1, basic::Reject { delivery_tag: 4, requeue: true }).await;
    peer.send(1, basic::Nack { delivery_tag: 2, multiple: false, requeue: true }).await;
    peer.ack(1, 3, false).await;
    assert_eq!(depth(&broker, &mut peer).await, (3, 2));
    peer.send(1, basic::Nack { delivery_tag: 5, multiple: true, requeue: true }).await;
    let mut seen = Vec::new();
    while let Some(got) = peer.get(1, "q", true).await {
        let (body, _, redelivered) = got.seen();
        seen.push((body.to_owned(), redelivered));
    }
    let expected = [("1", true), ("2", true), ("4", true), ("5", true), ("6", false)];
    assert_eq!(seen, expected.map(|(body, redelivered)| (body.to_owned(), redelivered)));
}

#[tokio::test]
async fn what_is_refused_without_requeue_is_dropped() {
    let (broker, mut peer) = holding(4).await;
    peer.send(1, basic::Reject { delivery_tag: 2, requeue: false }).await;
    peer.send(1, basic::Nack { delivery_tag: 3, multiple: true, requeue: false }).await;
    assert_eq!(depth(&broker, &mut peer).await, (0, 1));
}

#[tokio::test]
async fn a_requeued_message_goes_to_a_consumer_at_once() {
    let (_broker, mut peer) = holding(2).await;
    peer.consume(1, "q", "c").await;
    peer.send(1, basic::Nack { delivery_tag: 2, multiple: false, requeue: true }).await;
    assert_eq!(peer.delivery(1).await.seen(), ("2", 3, true));
}

#[tokio::test]
async fn recover_redelivers_everything_in_order() {
    let (_broker, mut peer) = holding(3).await;
    peer.ack(1, 2, false).await;
    peer.send(1, basic::Recover { requeue: true }).await;
    peer.expect(1, basic::RecoverOk {}).await;
    assert_eq!(peer.get(1, "q", false).await.unwrap().seen(), ("1", 4, true));
    assert_eq!(peer.get(1, "q", false).await.unwrap().seen(), ("3", 5, true));
    peer.send(1, basic::RecoverAsync { requeue: true }).await;
    assert_eq!(peer.get(1, "q", false).await.unwrap().seen(), ("1", 6, true));
}

#[tokio::test]
async fn recovering_without_requeue_is_not_implemented() {
    let broker = TestBroker::start().await;
    let text = "NOT_IMPLEMENTED - requeue=false";
    broker.peer().await.fatal(1, basic::Recover { requeue: false }, 540, text).await;
    broker.peer().await.fatal(1, basic::RecoverAsync { requeue: false }, 540, text).await;
}

#[tokio::test]
async fn settling_for_a_deleted_queue_is_fine() {
    let (broker, mut peer) = holding(2).await;
    let delete = deepmq_amqp::codec::method::queue::Delete { queue: "q", ..Default::default() };
    peer.send(1, delete).await;
    peer.method(1).await;
    peer.ack(1, 1, false).await;
    peer.send(1, basic::Nack { delivery_tag: 2, multiple: false, requeue: true }).await;
    peer.expect_quiet(1).await;
    assert!(broker.queue("q").is_none());
}
