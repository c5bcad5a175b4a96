//! Queues of several priorities.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::message::properties::Properties;
use deepmq_model::{Table, Value};
use deepmq_testkit::{RawPeer, TestBroker};
use std::collections::BTreeMap;

fn arguments(key: &str, value: Value) -> Table {
    [(key, value)].into_iter().collect()
}

/// A queue `q` of these arguments, and messages named by their priorities.
async fn published(arguments: Table, priorities: &[Option<u8>]) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, queue::Declare { queue: "q", durable: true, arguments, ..Default::default() }).await;
    for &priority in priorities {
        publish(&mut peer, priority).await;
    }
    (broker, peer)
}

async fn publish(peer: &mut RawPeer, priority: Option<u8>) {
    let mut properties = Vec::new();
    Properties { priority, ..Default::default() }.encode(&mut properties);
    let body = priority.map_or("none".to_owned(), |priority| priority.to_string());
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    peer.publish_with(1, &publish, &properties, body.as_bytes()).await;
}

async fn fetched(peer: &mut RawPeer) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some(got) = peer.get(1, "q", true).await {
        bodies.push(got.seen().0.to_owned());
    }
    bodies
}

#[tokio::test]
async fn the_highest_goes_first_none_is_zero_and_what_is_above_the_maximum_counts_as_it() {
    let priorities = [None, Some(3), Some(0), Some(5), Some(9), Some(3)];
    let (_broker, mut peer) = published(arguments("x-max-priority", Value::I32(5)), &priorities).await;
    assert_eq!(fetched(&mut peer).await, ["5", "9", "3", "3", "none", "0"]);
}

#[tokio::test]
async fn without_the_argument_the_order_is_that_of_publishing() {
    let (_broker, mut peer) = published(Table::new(), &[Some(1), None, Some(9)]).await;
    assert_eq!(fetched(&mut peer).await, ["1", "none", "9"]);
}

#[tokio::test]
async fn a_quorum_queue_has_32_priorities_of_which_4_is_that_of_a_message_without() {
    let priorities = [Some(3), None, Some(5), Some(4), Some(200), Some(31)];
    let (_broker, mut peer) = published(arguments("x-queue-type", Value::str("quorum")), &priorities).await;
    assert_eq!(fetched(&mut peer).await, ["200", "31", "5", "none", "4", "3"]);
}

#[tokio::test]
async fn a_consumer_gets_what_is_most_urgent_whenever_it_can_take_one() {
    let (_broker, mut peer) =
        published(arguments("x-max-priority", Value::U8(255)), &[Some(1), Some(1)]).await;
    peer.qos(1, 1, false).await;
    peer.consume(1, "q", "c").await;
    assert_eq!(peer.delivery(1).await.seen(), ("1", 1, false));
    publish(&mut peer, Some(255)).await;
    peer.send(1, basic::Reject { delivery_tag: 1, requeue: true }).await;
    assert_eq!(peer.delivery(1).await.seen(), ("255", 2, false));
    peer.ack(1, 2, false).await;
    assert_eq!(peer.delivery(1).await.seen(), ("1", 3, true), "it went back before its equals");
    peer.ack(1, 3, false).await;
    assert_eq!(peer.delivery(1).await.seen(), ("1", 4, false));
}

#[tokio::test]
async fn many_to_several_consumers_are_neither_lost_nor_repeated() {
    const MESSAGES: usize = 2000;
    let (broker, mut peer) = published(arguments("x-max-priority", Value::I32(10)), &[]).await;
    peer.qos(1, 50, false).await;
    for tag in ["a", "b"] {
        peer.consume(1, "q", tag).await;
    }
    for n in 0..MESSAGES {
        publish(&mut peer, Some(u8::try_from(n * 7 % 10).unwrap())).await;
    }
    let mut seen = BTreeMap::<String, usize>::new();
    for _ in 0..MESSAGES {
        let delivery = peer.delivery(1).await;
        let (body, tag, redelivered) = delivery.seen();
        assert!(!redelivered);
        *seen.entry(body.to_owned()).or_default() += 1;
        peer.ack(1, tag, false).await;
    }
    let each = (0..10).map(|priority: u8| (priority.to_string(), MESSAGES / 10));
    assert_eq!(seen, each.collect());
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked, broker.depth("q").bytes), (0, 0, 0));
}

#[tokio::test]
async fn a_purge_takes_all_of_them() {
    let (broker, mut peer) =
        published(arguments("x-max-priority", Value::I32(2)), &[Some(1), None, Some(2)]).await;
    peer.get(1, "q", false).await.unwrap();
    peer.send(1, queue::Purge { queue: "q", ..Default::default() }).await;
    peer.expect(1, queue::PurgeOk { message_count: 2 }).await;
    peer.send(1, basic::Reject { delivery_tag: 1, requeue: true }).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 1);
    assert_eq!(fetched(&mut peer).await, ["2"]);
}
