//! Consumers: tags, exclusiveness, cancelling, and being cancelled.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::{Table, Value};
use deepmq_testkit::{Handshake, RawPeer, TestBroker};

async fn broker_and_peer() -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    (broker, peer)
}

fn consume(consumer_tag: &str) -> basic::Consume<'_> {
    basic::Consume { queue: "q", consumer_tag, ..Default::default() }
}

#[tokio::test]
async fn consume_ok_comes_before_the_first_delivery() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.publish(1, "", "q", "m").await;
    assert_eq!(peer.consume_with(1, consume("mine")).await, "mine");
    let delivery = peer.delivery(1).await;
    let expected = basic::Deliver {
        consumer_tag: "mine",
        delivery_tag: 1,
        redelivered: false,
        exchange: "",
        routing_key: b"q",
    };
    assert_eq!((delivery.deliver, delivery.content.body), (expected, b"m".to_vec()));
}

#[tokio::test]
async fn a_tag_is_made_up_where_none_is_given() {
    let (_broker, mut peer) = broker_and_peer().await;
    let first = peer.consume_with(1, consume("")).await;
    let second = peer.consume_with(1, consume("")).await;
    assert_ne!(first, second);
    assert_eq!(first.strip_prefix("amq.ctag-").map(str::len), Some(22));
}

#[tokio::test]
async fn a_tag_is_unique_on_its_channel_only() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.open_channel(2).await;
    peer.consume(1, "q", "c").await;
    peer.consume(2, "q", "c").await;
    peer.fatal(1, consume("c"), 530, "NOT_ALLOWED - attempt to reuse consumer tag 'c'").await;
}

#[tokio::test]
async fn an_exclusive_consumer_stays_alone() {
    let (_broker, mut peer) = broker_and_peer().await;
    let text = "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use";
    peer.open_channel(2).await;
    peer.consume_with(2, basic::Consume { exclusive: true, ..consume("only") }).await;
    peer.refused(consume("second"), 403, text).await;
    peer.send(2, basic::Cancel { consumer_tag: "only", no_wait: false }).await;
    peer.expect(2, basic::CancelOk { consumer_tag: "only" }).await;
    peer.consume(2, "q", "first").await;
    peer.refused(basic::Consume { exclusive: true, ..consume("only") }, 403, text).await;
}

#[tokio::test]
async fn a_missing_queue_has_no_consumers() {
    let (_broker, mut peer) = broker_and_peer().await;
    let text = "NOT_FOUND - no queue 'absent' in vhost '/'";
    peer.refused(basic::Consume { queue: "absent", ..Default::default() }, 404, text).await;
}

#[tokio::test]
async fn a_priority_is_a_number() {
    let (_broker, mut peer) = broker_and_peer().await;
    let arguments: Table = [("x-priority", Value::str("high"))].into_iter().collect();
    let text = "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got \
                longstr\"";
    peer.refused(basic::Consume { arguments, ..consume("c") }, 406, text).await;
}

#[tokio::test]
async fn a_consumer_of_higher_priority_is_served_first_until_it_is_full() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.qos(1, 2, false).await;
    for (tag, priority) in [("low", -5), ("high", 5)] {
        let arguments: Table = [("x-priority", Value::I32(priority))].into_iter().collect();
        peer.consume_with(1, basic::Consume { arguments, ..consume(tag) }).await;
    }
    peer.publish_all(1, "q", (0..4).map(|n| n.to_string())).await;
    for (tag, body) in [("high", "0"), ("high", "1"), ("low", "2"), ("low", "3")] {
        let delivery = peer.delivery(1).await;
        assert_eq!((delivery.deliver.consumer_tag, delivery.seen().0), (tag, body));
    }
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn nothing_is_delivered_after_cancel_ok_but_what_was_can_be_acked() {
    let (broker, mut peer) = broker_and_peer().await;
    peer.consume(1, "q", "c").await;
    peer.publish(1, "", "q", "before").await;
    peer.delivery(1).await;
    peer.send(1, basic::Cancel { consumer_tag: "c", no_wait: false }).await;
    peer.expect(1, basic::CancelOk { consumer_tag: "c" }).await;
    peer.publish(1, "", "q", "after").await;
    peer.ack(1, 1, false).await;
    peer.expect_quiet(1).await;
    let depth = broker.depth("q");
    assert_eq!((depth.ready, depth.unacked, depth.consumers), (1, 0, 0));
}

#[tokio::test]
async fn cancelling_an_unknown_tag_is_fine() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.send(1, basic::Cancel { consumer_tag: "nobody", no_wait: false }).await;
    peer.expect(1, basic::CancelOk { consumer_tag: "nobody" }).await;
    peer.send(1, basic::Cancel { consumer_tag: "nobody", no_wait: true }).await;
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn who_understands_it_is_told_that_its_queue_is_gone() {
    let (broker, mut peer) = broker_and_peer().await;
    let mut simple = broker.peer_with(&Handshake::capable_of(&[])).await;
    let mut capable = broker.peer().await;
    simple.consume(1, "q", "s").await;
    capable.consume(1, "q", "c").await;
    peer.send(1, queue::Delete { queue: "q", ..Default::default() }).await;
    peer.expect(1, queue::DeleteOk { message_count: 0 }).await;
    capable.expect(1, basic::Cancel { consumer_tag: "c", no_wait: true }).await;
    capable.send(1, basic::CancelOk { consumer_tag: "c" }).await;
    capable.expect_quiet(1).await;
    simple.expect_quiet(1).await;
}

#[tokio::test]
async fn without_acks_a_delivery_is_done_but_takes_a_tag() {
    let (broker, mut peer) = broker_and_peer().await;
    peer.consume_with(1, basic::Consume { no_ack: true, ..consume("c") }).await;
    peer.qos(1, 1, true).await;
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    let tags: Vec<_> = peer.deliveries(1, 3).await.into_iter().map(|(_, tag, _)| tag).collect();
    assert_eq!(tags, [1, 2, 3]);
    let depth = broker.depth("q");
    assert_eq!((depth.ready, depth.unacked), (0, 0));
    peer.refused(
        basic::Ack { delivery_tag: 1, multiple: false },
        406,
        "PRECONDITION_FAILED - unknown delivery tag 1",
    )
    .await;
}

#[tokio::test]
async fn no_local_is_ignored() {
    let (_broker, mut peer) = broker_and_peer().await;
    peer.consume_with(1, basic::Consume { no_local: true, ..consume("c") }).await;
    peer.publish(1, "", "q", "own").await;
    assert_eq!(peer.delivery(1).await.content.body, b"own");
}

#[tokio::test]
async fn a_consumer_that_does_not_read_is_sent_what_its_buffer_takes_and_no_more() {
    const MESSAGES: u64 = 20_000;
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (0..MESSAGES).map(|_| "x".repeat(1000))).await;
    peer.expect_quiet(1).await;
    let mut idle = broker.peer().await;
    let consume = basic::Consume { queue: "q", no_ack: true, ..Default::default() };
    idle.consume_with(1, consume).await;
    let mut left = MESSAGES;
    loop {
        // It is over once two looks see the same.
        peer.expect_quiet(1).await;
        let ready = broker.depth("q").ready;
        if ready == left && ready < MESSAGES {
            break;
        }
        left = ready;
    }
    // The rest is in the sockets of both sides.
    assert!(left > MESSAGES / 2, "{left} of {MESSAGES} messages of 1 KB are left, the buffer is 1 MiB");
}
