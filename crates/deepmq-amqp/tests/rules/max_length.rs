//! Queues with a bound on their messages.

use super::rig::{bodies, dead_letters_to, death, declare, drain, number, publish, text};
use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, tx};
use deepmq_model::Value;
use deepmq_model::message::Properties;
use deepmq_testkit::{RawPeer, TestBroker};

const REFUSE: (&str, &str) = ("x-overflow", "reject-publish");

fn limit(messages: i64) -> (&'static str, Value) {
    ("x-max-length", number(messages))
}

fn refuse() -> (&'static str, Value) {
    (REFUSE.0, text(REFUSE.1))
}

/// What is confirmed up to `last`: each number with whether the message was taken.
async fn confirms(peer: &mut RawPeer, last: u64) -> Vec<(u64, bool)> {
    let mut seen = Vec::new();
    while (seen.len() as u64) < last {
        let (upto, taken) = match peer.method(1).await {
            Method::Basic(basic::Method::Ack(ack)) => (ack.delivery_tag, true),
            Method::Basic(basic::Method::Nack(nack)) => (nack.delivery_tag, false),
            other => panic!("not a confirm: {other:?}"),
        };
        (seen.len() as u64 + 1..=upto).for_each(|number| seen.push((number, taken)));
    }
    seen
}

#[tokio::test]
async fn the_oldest_messages_go_and_all_are_confirmed() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    declare(&mut peer, "q", false, &[limit(2)]).await;
    peer.publish_all(1, "q", ["1", "2", "3", "4"].map(String::from)).await;
    assert_eq!(confirms(&mut peer, 4).await, [1, 2, 3, 4].map(|number| (number, true)));
    assert_eq!(bodies(&mut peer, "q").await, ["3", "4"]);
}

#[tokio::test]
async fn a_queue_of_length_zero_takes_a_message_only_for_a_consumer() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[limit(0)]).await;
    peer.publish(1, "", "q", "nobody is there").await;
    assert_eq!(bodies(&mut peer, "q").await, [""; 0]);
    peer.consume(1, "q", "c").await;
    peer.publish(1, "", "q", "somebody is").await;
    assert_eq!(peer.delivery(1).await.content.body, b"somebody is");
}

#[tokio::test]
async fn unacked_messages_do_not_count_and_one_that_comes_back_does() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[limit(1)]).await;
    peer.publish(1, "", "q", "held").await;
    let tag = peer.get(1, "q", false).await.unwrap().get_ok.delivery_tag;
    peer.publish(1, "", "q", "ready").await;
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (1, 1));
    peer.send(1, basic::Nack { delivery_tag: tag, multiple: false, requeue: true }).await;
    assert_eq!(bodies(&mut peer, "q").await, ["ready"], "what came back is the oldest");
}

#[tokio::test]
async fn bytes_of_bodies_are_counted_without_properties() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[("x-max-length-bytes", number(10))]).await;
    let long = Properties { message_id: Some(b"0123456789"[..].into()), ..Properties::default() };
    for body in ["12345", "67890", "x", "abcdefghij"] {
        publish(&mut peer, "q", &long, body).await;
        if body == "x" {
            peer.expect_quiet(1).await;
            assert_eq!(broker.depth("q").ready, 2, "the first had to go");
        }
    }
    assert_eq!(bodies(&mut peer, "q").await, ["abcdefghij"]);
    peer.publish(1, "", "q", "12345678901").await;
    assert_eq!(bodies(&mut peer, "q").await, [""; 0], "one that is too long by itself");
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_nack_and_takes_again_once_there_is_room() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    declare(&mut peer, "q", false, &[limit(2), refuse()]).await;
    peer.publish_all(1, "q", ["1", "2", "3", "4"].map(String::from)).await;
    assert_eq!(confirms(&mut peer, 4).await, [(1, true), (2, true), (3, false), (4, false)]);
    assert_eq!(bodies(&mut peer, "q").await, ["1", "2"]);
    peer.publish(1, "", "q", "5").await;
    peer.expect(1, basic::Ack { delivery_tag: 5, multiple: false }).await;
    assert_eq!(bodies(&mut peer, "q").await, ["5"]);
}

#[tokio::test]
async fn a_small_message_fits_where_a_large_one_was_refused() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    declare(&mut peer, "q", false, &[("x-max-length-bytes", number(6)), refuse()]).await;
    peer.publish_all(1, "q", ["1234", "567", "89"].map(String::from)).await;
    assert_eq!(confirms(&mut peer, 3).await, [(1, true), (2, false), (3, true)]);
    assert_eq!(bodies(&mut peer, "q").await, ["1234", "89"]);
}

#[tokio::test]
async fn one_refusal_of_several_queues_is_a_nack_and_the_others_keep_the_message() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    declare(&mut peer, "full", false, &[limit(0), refuse()]).await;
    declare(&mut peer, "free", false, &[]).await;
    peer.declare_exchange(1, "x", "fanout").await;
    peer.bind(1, "full", "x", "").await;
    peer.bind(1, "free", "x", "").await;
    peer.publish(1, "x", "", "m").await;
    peer.expect(1, basic::Nack { delivery_tag: 1, multiple: false, requeue: false }).await;
    assert_eq!(bodies(&mut peer, "free").await, ["m"]);
}

#[tokio::test]
async fn without_confirms_a_refusal_is_silent_and_mandatory_does_not_return_it() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[limit(0), refuse()]).await;
    let publish = basic::Publish { routing_key: b"q", mandatory: true, ..Default::default() };
    peer.publish_with(1, &publish, &[0, 0], b"m").await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 0);
}

#[tokio::test]
async fn consumers_make_room_within_a_batch() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[limit(1), refuse()]).await;
    peer.consume_with(1, basic::Consume { queue: "q", no_ack: true, ..Default::default() }).await;
    peer.publish_all(1, "q", (0..50).map(|n| n.to_string())).await;
    let seen: Vec<_> = peer.deliveries(1, 50).await.into_iter().map(|(body, ..)| body).collect();
    assert_eq!(seen, (0..50).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_transaction_that_a_queue_refuses_a_part_of_ends_the_channel() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[limit(1), refuse()]).await;
    peer.select_tx(1).await;
    peer.publish(1, "", "q", "1").await;
    peer.publish(1, "", "q", "2").await;
    peer.refused(tx::Commit {}, 406, "PRECONDITION_FAILED - partial tx completion").await;
    assert_eq!(bodies(&mut peer, "q").await, ["1"]);
}

#[tokio::test]
async fn what_had_to_go_is_dead_lettered_in_order() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "dead", false, &[]).await;
    declare(&mut peer, "q", false, &[&[limit(1)], &dead_letters_to("dead")[..]].concat()).await;
    peer.publish_all(1, "q", ["1", "2", "3"].map(String::from)).await;
    peer.expect_quiet(1).await;
    let dead = drain(&mut peer, "dead").await;
    assert_eq!(dead.iter().map(|message| &*message.body).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(dead[0].died(), [death("maxlen", "q", 1)]);
    assert_eq!(bodies(&mut peer, "q").await, ["3"]);
}

#[tokio::test]
async fn what_was_refused_is_dead_lettered_too_if_the_queue_overflows_so() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    declare(&mut peer, "dead", false, &[]).await;
    let overflow = ("x-overflow", text("reject-publish-dlx"));
    declare(&mut peer, "q", false, &[&[limit(1), overflow], &dead_letters_to("dead")[..]].concat()).await;
    peer.publish_all(1, "q", ["1", "2"].map(String::from)).await;
    assert_eq!(confirms(&mut peer, 2).await, [(1, true), (2, false)]);
    let dead = drain(&mut peer, "dead").await;
    assert_eq!((&*dead[0].body, dead[0].died()), ("2", vec![death("maxlen", "q", 1)]));
    assert_eq!(bodies(&mut peer, "q").await, ["1"]);
}
