//! Deliveries that nobody settles.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, queue};
use deepmq_broker::registry::PolicyRecord;
use deepmq_model::policy::PolicyRank;
use deepmq_model::{Table, Value};
use deepmq_testkit::{Handshake, RawPeer, TestBroker, until};
use std::time::Duration;

fn arguments(key: &str, value: Value) -> Table {
    [(key, value)].into_iter().collect()
}

async fn declare(peer: &mut RawPeer, arguments: Table) {
    peer.declare_with(1, queue::Declare { queue: "q", arguments, ..Default::default() }).await;
}

/// A peer whose consumer `slow` holds two messages and is cancelled for it.
async fn cancelled(broker: &TestBroker) -> RawPeer {
    let mut slow = broker.peer().await;
    slow.consume(1, "q", "slow").await;
    slow.publish_all(1, "q", ["1".to_owned(), "2".to_owned()]).await;
    slow.deliveries(1, 2).await;
    slow.expect(1, basic::Cancel { consumer_tag: "slow", no_wait: true }).await;
    slow
}

#[tokio::test]
async fn what_is_held_too_long_goes_to_another_consumer_and_the_channel_stays_open() {
    let broker = TestBroker::start().await;
    let mut other = broker.peer().await;
    declare(&mut other, arguments("x-consumer-timeout", Value::I32(100))).await;
    let mut slow = cancelled(&broker).await;
    until(|| broker.depth("q").ready == 2).await;
    assert_eq!((broker.depth("q").unacked, broker.depth("q").consumers), (0, 0));
    other.consume_with(1, basic::Consume { queue: "q", no_ack: true, ..Default::default() }).await;
    let again = other.deliveries(1, 2).await;
    assert_eq!(again, [("1".to_owned(), 1, true), ("2".to_owned(), 2, true)]);
    // The client learns of it while its acks are on the way: they mean nothing any more, and are no error.
    slow.ack(1, 1, false).await;
    slow.ack(1, 2, true).await;
    slow.expect_quiet(1).await;
    slow.refused(
        basic::Ack { delivery_tag: 2, multiple: false },
        406,
        "PRECONDITION_FAILED - unknown delivery tag 2",
    )
    .await;
}

#[tokio::test]
async fn the_shortest_of_argument_and_policy_holds_and_the_brokers_where_there_is_neither() {
    let broker = TestBroker::start_with(|config| config.consumer_timeout = Duration::from_millis(100)).await;
    let mut peer = broker.peer().await;
    declare(&mut peer, Table::new()).await;
    cancelled(&broker).await;
    let policy = PolicyRecord {
        vhost: "/".into(),
        name: "p".into(),
        pattern: ".*".into(),
        apply_to: "all".into(),
        definition: [("consumer-timeout".to_owned(), 100.into())].into_iter().collect(),
        priority: 0,
    };
    let long = || arguments("x-consumer-timeout", Value::I32(3_600_000));
    for with_policy in [true, false] {
        if with_policy {
            broker.broker().put_policy(PolicyRank::User, policy.clone()).unwrap();
        } else {
            broker.broker().delete_policy(PolicyRank::User, "/", "p").unwrap();
        }
        peer.send(1, queue::Delete { queue: "q", ..Default::default() }).await;
        assert!(matches!(peer.method(1).await, Method::Queue(queue::Method::DeleteOk(_))));
        declare(&mut peer, long()).await;
        if with_policy {
            cancelled(&broker).await;
        }
    }
    let mut patient = broker.peer().await;
    patient.consume(1, "q", "patient").await;
    patient.publish(1, "", "q", "m").await;
    patient.delivery(1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    patient.expect_quiet(1).await;
    assert_eq!(broker.depth("q").unacked, 1);
}

#[tokio::test]
async fn who_settles_in_time_is_left_alone_and_a_fetched_message_goes_back_too() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, arguments("x-consumer-timeout", Value::I32(200))).await;
    peer.publish_all(1, "q", ["1".to_owned(), "2".to_owned()]).await;
    assert!(peer.get(1, "q", false).await.is_some());
    let mut busy = broker.peer().await;
    busy.qos(1, 1, false).await;
    busy.consume(1, "q", "busy").await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let delivery = busy.delivery(1).await;
        seen.push((delivery.seen().0.to_owned(), delivery.deliver.redelivered));
        busy.ack(1, delivery.deliver.delivery_tag, false).await;
    }
    assert_eq!(seen, [("2".to_owned(), false), ("1".to_owned(), true)]);
    busy.expect_quiet(1).await;
    peer.ack(1, 1, false).await;
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").unacked, broker.depth("q").consumers), (0, 1));
}

#[tokio::test]
async fn who_does_not_know_of_cancels_is_cancelled_without_a_word() {
    let broker = TestBroker::start().await;
    let mut simple = broker.peer_with(&Handshake::capable_of(&[])).await;
    declare(&mut simple, arguments("x-consumer-timeout", Value::I32(100))).await;
    simple.consume(1, "q", "slow").await;
    simple.publish(1, "", "q", "m").await;
    simple.delivery(1).await;
    until(|| broker.depth("q").ready == 1).await;
    simple.expect_quiet(1).await;
    assert_eq!(broker.depth("q").consumers, 0);
}
