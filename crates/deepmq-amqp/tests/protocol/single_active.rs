//! Queues with a single active consumer.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::queue::Activity;
use deepmq_model::{Table, Value};
use deepmq_testkit::{RawPeer, TestBroker};

fn arguments(entries: &[(&str, Value)]) -> Table {
    entries.iter().cloned().collect()
}

async fn broker_and_peer(kind: &str) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let arguments =
        arguments(&[("x-single-active-consumer", Value::Bool(true)), ("x-queue-type", Value::str(kind))]);
    peer.declare_with(1, queue::Declare { queue: "q", durable: true, arguments, ..Default::default() }).await;
    (broker, peer)
}

async fn consume(peer: &mut RawPeer, consumer_tag: &str, priority: i32) {
    let arguments = arguments(&[("x-priority", Value::I32(priority))]);
    let consume = basic::Consume { queue: "q", consumer_tag, arguments, ..Default::default() };
    peer.consume_with(1, consume).await;
}

fn activities(broker: &TestBroker) -> Vec<(String, Activity)> {
    let mut consumers: Vec<_> = broker.queue("q").expect("it was declared").consumers();
    consumers.sort_by(|a, b| a.tag.cmp(&b.tag));
    consumers.into_iter().map(|consumer| (consumer.tag.to_string(), consumer.activity)).collect()
}

#[tokio::test]
async fn the_next_consumer_takes_over_with_what_the_last_one_held_when_its_connection_ends() {
    let (broker, mut publisher) = broker_and_peer("classic").await;
    let (mut first, mut second, mut third) = (broker.peer().await, broker.peer().await, broker.peer().await);
    consume(&mut first, "a", 0).await;
    consume(&mut second, "b", 0).await;
    consume(&mut third, "c", 1).await;
    publisher.publish_all(1, "q", (0..4).map(|n| n.to_string())).await;
    let got = first.deliveries(1, 4).await;
    assert_eq!(got.iter().map(|(body, ..)| &**body).collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    second.expect_quiet(1).await;
    third.expect_quiet(1).await;
    let (active, waiting) = (Activity::SingleActive, Activity::Waiting);
    let named = |tag: &str, activity| (tag.to_owned(), activity);
    assert_eq!(activities(&broker), [named("a", active), named("b", waiting), named("c", waiting)]);
    first.ack(1, 2, true).await;
    first.expect_quiet(1).await;
    first.close().await;
    assert_eq!(activities(&broker), [named("b", waiting), named("c", active)], "the higher priority");
    publisher.publish(1, "", "q", "4").await;
    let got = third.deliveries(1, 3).await;
    let got: Vec<_> = got.iter().map(|(body, _, redelivered)| (&**body, *redelivered)).collect();
    assert_eq!(got, [("2", true), ("3", true), ("4", false)]);
    second.expect_quiet(1).await;
}

#[tokio::test]
async fn cancelling_the_active_consumer_hands_over_and_leaves_it_what_it_holds() {
    let (broker, mut first) = broker_and_peer("quorum").await;
    let mut second = broker.peer().await;
    first.qos(1, 1, false).await;
    consume(&mut first, "a", 0).await;
    consume(&mut second, "b", 0).await;
    second.publish_all(1, "q", ["1".to_owned(), "2".to_owned()]).await;
    assert_eq!(first.delivery(1).await.seen(), ("1", 1, false));
    second.expect_quiet(1).await;
    first.send(1, basic::Cancel { consumer_tag: "a", no_wait: false }).await;
    first.expect(1, basic::CancelOk { consumer_tag: "a" }).await;
    assert_eq!(second.delivery(1).await.seen(), ("2", 1, false));
    first.ack(1, 1, false).await;
    first.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (0, 1));
}

#[tokio::test]
async fn neither_an_exclusive_consumer_nor_a_fetch_goes_with_it() {
    for kind in ["classic", "quorum"] {
        let (_broker, mut peer) = broker_and_peer(kind).await;
        let text = "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use";
        peer.refused(basic::Consume { queue: "q", exclusive: true, ..Default::default() }, 403, text).await;
        let text = format!(
            "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations are not \
             supported by {kind} queues with single active consumer"
        );
        peer.refused(basic::Get { queue: "q", ..Default::default() }, 405, &text).await;
    }
}
