//! Publisher confirms.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, confirm, queue, tx};
use deepmq_testkit::TestBroker;

#[tokio::test]
async fn every_message_is_confirmed_wherever_it_goes() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    for queue in ["a", "b"] {
        peer.declare(1, queue).await;
    }
    peer.select_confirms(1).await;
    for (key, seqno) in [("a", 1), ("b", 2), ("nowhere", 3)] {
        peer.publish(1, "", key, "m").await;
        peer.expect(1, basic::Ack { delivery_tag: seqno, multiple: false }).await;
    }
}

#[tokio::test]
async fn what_is_returned_is_returned_before_it_is_confirmed() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    for seqno in 1..=3 {
        let publish = basic::Publish { routing_key: b"nowhere", mandatory: true, ..Default::default() };
        peer.publish_with(1, &publish, &[0, 0], b"m").await;
        assert_eq!(peer.returned(1).await.content.body, b"m");
        peer.expect(1, basic::Ack { delivery_tag: seqno, multiple: false }).await;
    }
}

#[tokio::test]
async fn messages_that_come_together_are_confirmed_together() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.select_confirms(1).await;
    peer.publish_all(1, "q", (0..1000).map(|n| n.to_string())).await;
    let mut acks = 0;
    let mut last = 0;
    while last < 1000 {
        let Method::Basic(basic::Method::Ack(ack)) = peer.method(1).await else { panic!("not a confirm") };
        assert!(ack.delivery_tag > last);
        last = ack.delivery_tag;
        acks += 1;
    }
    assert!(acks < 500, "{acks} confirms for 1,000 messages");
    assert_eq!(broker.depth("q").ready, 1000);
}

#[tokio::test]
async fn numbers_start_at_the_select_and_are_each_channels_own() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.open_channel(2).await;
    peer.declare(1, "q").await;
    peer.publish(1, "", "q", "before").await;
    peer.select_confirms(1).await;
    peer.select_confirms(2).await;
    peer.publish(1, "", "q", "m").await;
    peer.expect(1, basic::Ack { delivery_tag: 1, multiple: false }).await;
    peer.publish(2, "", "q", "m").await;
    peer.expect(2, basic::Ack { delivery_tag: 1, multiple: false }).await;
    // Selecting again changes nothing.
    peer.select_confirms(1).await;
    peer.publish(1, "", "q", "m").await;
    peer.expect(1, basic::Ack { delivery_tag: 2, multiple: false }).await;
}

#[tokio::test]
async fn select_can_do_without_an_answer() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.send(1, confirm::Select { no_wait: true }).await;
    peer.publish(1, "", "nowhere", "m").await;
    peer.expect(1, basic::Ack { delivery_tag: 1, multiple: false }).await;
}

#[tokio::test]
async fn confirms_and_transactions_exclude_each_other() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    let text = "PRECONDITION_FAILED - cannot switch from confirm to tx mode";
    peer.refused(tx::Select {}, 406, text).await;
    peer.select_tx(1).await;
    let text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode";
    peer.refused(confirm::Select::default(), 406, text).await;
}

#[tokio::test]
async fn a_message_that_comes_in_pieces_is_confirmed_after_the_last() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.open_channel(2).await;
    peer.select_confirms(1).await;
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    let bytes = peer.message(1, &publish, &[0, 0], &vec![b'x'; 200_000]);
    // The last frame of the body: 200,000 bytes less one full frame.
    let (most, last) = bytes.split_at(bytes.len() - (200_000 - (131_072 - 8)) - 8);
    peer.send_bytes(most).await;
    peer.expect_quiet(2).await;
    peer.send_bytes(last).await;
    peer.expect(1, basic::Ack { delivery_tag: 1, multiple: false }).await;
}

#[tokio::test]
async fn a_queue_deleted_meanwhile_does_not_hold_a_confirm_back() {
    let broker = TestBroker::start().await;
    let (mut peer, mut other) = (broker.peer().await, broker.peer().await);
    peer.declare(1, "q").await;
    peer.select_confirms(1).await;
    peer.publish(1, "", "q", "m").await;
    peer.expect_confirmed_up_to(1, 1).await;
    other.send(1, queue::Delete { queue: "q", ..Default::default() }).await;
    other.expect(1, queue::DeleteOk { message_count: 1 }).await;
    peer.publish(1, "", "q", "m").await;
    peer.expect(1, basic::Ack { delivery_tag: 2, multiple: false }).await;
}
