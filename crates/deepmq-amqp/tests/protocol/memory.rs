//! What happens while the memory for messages is full.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, connection, queue, tx};
use deepmq_testkit::{Handshake, RawPeer, TestBroker, until};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const MESSAGE_BYTES: usize = 50_000;
const BLOCKED: connection::Blocked<'_> = connection::Blocked { reason: "low on memory" };

/// A broker that is full with two messages, and a peer that has put two into `q`, and two short ones into `small`.
async fn full() -> (TestBroker, RawPeer) {
    let broker =
        TestBroker::start_with(|config| config.limits.ready_memory_bytes_max = 2 * MESSAGE_BYTES).await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.declare(1, "small").await;
    peer.publish_all(1, "small", ["m".to_owned(), "m".to_owned()]).await;
    for _ in 0..2 {
        peer.publish(1, "", "q", vec![b'x'; MESSAGE_BYTES]).await;
    }
    peer.expect_quiet(1).await;
    assert!(broker.broker().memory().is_full());
    (broker, peer)
}

#[tokio::test]
async fn a_publisher_is_blocked_and_told_until_a_consumer_has_made_room() {
    let (broker, mut publisher) = full().await;
    let mut consumer = broker.peer().await;
    publisher.publish(1, "", "q", "late").await;
    publisher.expect(0, BLOCKED).await;
    assert_eq!(broker.depth("q").ready, 2);
    consumer.consume(1, "q", "c").await;
    for tag in 1..=2 {
        assert_eq!(consumer.delivery(1).await.content.body.len(), MESSAGE_BYTES);
        consumer.ack(1, tag, false).await;
    }
    publisher.expect(0, connection::Unblocked {}).await;
    assert_eq!(consumer.delivery(1).await.content.body, b"late");
}

#[tokio::test]
async fn a_client_that_does_not_know_of_it_is_blocked_without_a_word() {
    let (broker, _filler) = full().await;
    let mut simple = broker.peer_with(&Handshake::capable_of(&[])).await;
    simple.publish(1, "", "q", "late").await;
    let mut consumer = broker.peer().await;
    consumer.consume(1, "q", "c").await;
    consumer.delivery(1).await;
    consumer.delivery(1).await;
    consumer.ack(1, 2, true).await;
    assert_eq!(consumer.delivery(1).await.content.body, b"late");
    simple.expect_quiet(1).await;
}

#[tokio::test]
async fn who_does_not_publish_is_not_blocked() {
    let (broker, _filler) = full().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "other").await;
    peer.expect_quiet(1).await;
    assert_eq!(peer.get(1, "q", true).await.unwrap().content.body.len(), MESSAGE_BYTES);
}

#[tokio::test]
async fn acks_behind_a_blocked_publish_are_heard_and_so_make_room_for_it() {
    let (broker, mut peer) = full().await;
    peer.get(1, "q", false).await.unwrap();
    peer.get(1, "q", false).await.unwrap();
    peer.publish(1, "", "q", "late").await;
    peer.expect(0, BLOCKED).await;
    peer.ack(1, 2, true).await;
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (1, 0));
}

#[tokio::test]
async fn acks_and_nacks_behind_a_blocked_publish_keep_their_order() {
    let (broker, mut peer) = full().await;
    peer.get(1, "q", false).await.unwrap();
    peer.get(1, "q", false).await.unwrap();
    peer.publish(1, "", "q", "late").await;
    peer.expect(0, BLOCKED).await;
    peer.send(1, basic::Reject { delivery_tag: 1, requeue: false }).await;
    peer.ack(1, 2, true).await;
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (1, 0));
}

#[tokio::test]
async fn an_ack_after_a_publish_of_which_the_end_is_parked_waits_with_it() {
    let broker =
        TestBroker::start_with(|config| config.limits.ready_memory_bytes_max = 2 * MESSAGE_BYTES).await;
    let mut peer = broker.peer().await;
    peer.open_channel(2).await;
    peer.declare(1, "q").await;
    peer.declare(1, "small").await;
    peer.publish(1, "", "small", "m").await;
    let got = peer.get(2, "small", false).await.expect("a message").get_ok.delivery_tag;
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    let whole = peer.message(2, &publish, &[0, 0], b"in two pieces");
    let (begun, rest) = whole.split_at(whole.len() - 21);
    peer.send_bytes(begun).await;
    for _ in 0..3 {
        peer.publish(1, "", "q", vec![b'x'; MESSAGE_BYTES]).await;
    }
    peer.expect(0, BLOCKED).await;
    peer.send_bytes(rest).await;
    peer.ack(2, got, false).await;
    let mut consumer = broker.peer().await;
    consumer.consume(1, "q", "c").await;
    let bodies = consumer.deliveries(1, 2).await;
    assert_eq!(bodies.len(), 2);
    consumer.ack(1, 2, true).await;
    peer.expect(0, connection::Unblocked {}).await;
    let late = [consumer.delivery(1).await, consumer.delivery(1).await];
    assert!(late.iter().any(|delivery| delivery.content.body == b"in two pieces"));
    until(|| broker.depth("small").unacked == 0).await;
}

#[tokio::test]
async fn what_a_transaction_settles_stays_part_of_it_while_blocked() {
    let (broker, mut peer) = full().await;
    peer.open_channel(2).await;
    peer.select_tx(2).await;
    for channel in [1, 2] {
        assert_eq!(peer.get(channel, "small", false).await.unwrap().seen(), ("m", 1, false));
    }
    peer.publish(2, "", "small", "late").await;
    peer.expect(0, BLOCKED).await;
    peer.send(2, tx::Commit {}).await;
    peer.ack(2, 1, false).await;
    peer.ack(1, 1, false).await;
    until(|| broker.depth("small").unacked == 1).await;
    broker.queue("q").unwrap().purge(&mut deepmq_broker::subscriber::Wakes::default());
    peer.expect(2, tx::CommitOk {}).await;
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect_quiet(2).await;
    assert_eq!((broker.depth("small").ready, broker.depth("small").unacked), (1, 1));
    peer.send(2, tx::Commit {}).await;
    peer.expect(2, tx::CommitOk {}).await;
    assert_eq!((broker.depth("small").ready, broker.depth("small").unacked), (1, 0));
}

#[tokio::test]
async fn a_blocked_peer_that_is_gone_gives_back_what_it_held_without_heartbeats_too() {
    let broker =
        TestBroker::start_with(|config| config.limits.ready_memory_bytes_max = 2 * MESSAGE_BYTES).await;
    let mut peer = broker.peer_with(&Handshake::default().tune(10, 131_072, 0)).await;
    peer.declare(1, "q").await;
    for _ in 0..2 {
        peer.publish(1, "", "q", vec![b'x'; MESSAGE_BYTES]).await;
    }
    for _ in 0..2 {
        peer.get(1, "q", false).await.unwrap();
    }
    peer.publish(1, "", "q", "late").await;
    peer.expect(0, BLOCKED).await;
    // More than is parked: from now on the connection is not read.
    for _ in 0..15 {
        peer.publish(1, "", "q", vec![b'x'; MESSAGE_BYTES]).await;
    }
    drop(peer);
    let requeued = async {
        while broker.depth("q").ready < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_mins(1), requeued).await.expect("the deliveries of the peer come back");
}

#[tokio::test]
async fn room_is_made_by_purging_and_deleting_too() {
    for delete in [false, true] {
        let (broker, mut peer) = full().await;
        let mut other = broker.peer().await;
        peer.publish(1, "", "q", "late").await;
        peer.expect(0, BLOCKED).await;
        if delete {
            other.send(1, queue::Delete { queue: "q", ..Default::default() }).await;
        } else {
            other.send(1, queue::Purge { queue: "q", ..Default::default() }).await;
        }
        other.method(1).await;
        peer.expect(0, connection::Unblocked {}).await;
        peer.expect_quiet(1).await;
        assert_eq!(broker.depth("q").ready, u64::from(!delete));
    }
}

#[tokio::test]
async fn many_times_the_memory_goes_through_without_loss() {
    const COUNT: usize = 400;
    let broker = TestBroker::start_with(|config| config.limits.ready_memory_bytes_max = 256 << 10).await;
    let (mut publisher, mut consumer) = (broker.peer().await, broker.peer().await);
    publisher.declare(1, "q").await;
    publisher.select_confirms(1).await;
    consumer.qos(1, 4, false).await;
    consumer.consume(1, "q", "c").await;
    let bodies = (0..COUNT).map(|n| format!("{n:016384}"));
    let publish = async {
        publisher.publish_all(1, "q", bodies).await;
        publisher
    };
    let consume = async {
        let mut most = 0;
        for n in 0..COUNT {
            let (body, tag, redelivered) = {
                let delivery = consumer.delivery(1).await;
                let (body, tag, redelivered) = delivery.seen();
                (body.trim_start_matches('0').parse().unwrap_or(0), tag, redelivered)
            };
            assert_eq!((body, redelivered), (n, false));
            most = most.max(broker.broker().memory().used());
            consumer.ack(1, tag, false).await;
        }
        most
    };
    let (mut publisher, most) = tokio::join!(publish, consume);
    // The bound, what reads can add to it, and what lies in blocks that are not empty yet.
    assert!(most < 3 * (256 << 10), "{most} bytes");
    let (mut confirmed, mut blocked) = (0, 0);
    while confirmed < COUNT as u64 || blocked > 0 {
        match publisher.next_frame().await.expect("confirms").method() {
            Method::Basic(basic::Method::Ack(ack)) => confirmed = ack.delivery_tag,
            Method::Connection(connection::Method::Blocked(_)) => blocked += 1,
            Method::Connection(connection::Method::Unblocked(_)) => blocked -= 1,
            other => panic!("{other:?} came"),
        }
        assert!((0..=1).contains(&blocked), "blocked and unblocked take turns");
    }
}
