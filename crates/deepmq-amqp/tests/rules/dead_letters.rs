//! What dies in a queue, and where it goes.

use super::rig::{
    World, bodies, dead_letters_to, death, declare, drain, number, persistent, publish, ready, reject, take,
    text,
};
use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::message::Properties;
use deepmq_model::{Table, Value};
use deepmq_storage::seam::SimClock;
use deepmq_testkit::{RawPeer, TestBroker};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

async fn with_dead_letters(broker: &TestBroker) -> RawPeer {
    let mut peer = broker.peer().await;
    declare(&mut peer, "dead", false, &[]).await;
    declare(&mut peer, "q", false, &dead_letters_to("dead")).await;
    peer
}

#[tokio::test]
async fn a_rejected_message_tells_all_of_its_death() {
    let world = World::start().await;
    let mut peer = with_dead_letters(&world.broker).await;
    let headers: Table = [("mine", text("kept"))].into_iter().collect();
    let properties =
        Properties { headers: Some(headers), expiration: Some(b"60000"[..].into()), ..Properties::default() };
    publish(&mut peer, "q", &properties, "m").await;
    reject(&mut peer, "q", false).await;
    let dead = take(&mut peer, "dead").await.unwrap();
    let expected: Table = [
        ("original-expiration", text("60000")),
        ("count", number(1)),
        ("reason", text("rejected")),
        ("queue", text("q")),
        // 2000-01-01, where the simulated clock begins.
        ("time", Value::Timestamp(946_684_800)),
        ("exchange", text("")),
        ("routing-keys", Value::Array(vec![text("q")])),
    ]
    .into_iter()
    .collect();
    assert_eq!(dead.deaths(), [expected]);
    assert_eq!((dead.exchange.as_str(), dead.key.as_str(), dead.redelivered), ("", "dead", false));
    assert_eq!((dead.properties.expiration.as_ref(), dead.header("mine")), (None, Some(&text("kept"))));
    for when in ["first", "last"] {
        for (what, value) in [("reason", "rejected"), ("queue", "q"), ("exchange", "")] {
            assert_eq!(dead.header(&format!("x-{when}-death-{what}")), Some(&text(value)), "{when} {what}");
        }
    }
}

#[tokio::test]
async fn a_nack_of_several_sends_them_in_their_order_and_a_requeue_sends_none() {
    let broker = TestBroker::start().await;
    let mut peer = with_dead_letters(&broker).await;
    peer.publish_all(1, "q", (0..600).map(|n| n.to_string())).await;
    peer.consume(1, "q", "c").await;
    peer.deliveries(1, 600).await;
    peer.send(1, basic::Cancel { consumer_tag: "c", no_wait: true }).await;
    peer.send(1, basic::Reject { delivery_tag: 600, requeue: true }).await;
    peer.send(1, basic::Nack { delivery_tag: 599, multiple: true, requeue: false }).await;
    peer.expect_quiet(1).await;
    assert_eq!(bodies(&mut peer, "dead").await, (0..599).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(bodies(&mut peer, "q").await, ["599"]);
}

#[tokio::test]
async fn a_message_goes_on_by_its_own_keys_unless_the_queue_has_one() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare_exchange(1, "dlx", "direct").await;
    declare(&mut peer, "q", false, &[("x-dead-letter-exchange", text("dlx"))]).await;
    for queue in ["by key", "by cc"] {
        declare(&mut peer, queue, false, &[]).await;
    }
    peer.bind(1, "by key", "dlx", "q").await;
    peer.bind(1, "by cc", "dlx", "other").await;
    let headers: Table = [("CC", Value::Array(vec![text("other")]))].into_iter().collect();
    publish(&mut peer, "q", &Properties { headers: Some(headers), ..Properties::default() }, "m").await;
    reject(&mut peer, "q", false).await;
    for queue in ["by key", "by cc"] {
        let dead = take(&mut peer, queue).await.unwrap();
        assert_eq!((&*dead.exchange, &*dead.key), ("dlx", "q"), "{queue}");
        let keys = Value::Array(vec![text("q"), text("other")]);
        assert_eq!(dead.deaths()[0].get("routing-keys"), Some(&keys), "{queue}");
    }
}

#[tokio::test]
async fn without_an_exchange_or_anywhere_to_go_it_is_dropped() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    for (queue, exchange) in [("a", "missing"), ("b", "amq.direct")] {
        declare(&mut peer, queue, false, &[("x-dead-letter-exchange", text(exchange))]).await;
        peer.publish(1, "", queue, "m").await;
        reject(&mut peer, queue, false).await;
        let depth = broker.depth(queue);
        assert_eq!((depth.ready, depth.unacked, depth.bytes), (0, 0, 0), "{queue}");
    }
}

#[tokio::test]
async fn deaths_of_one_queue_and_reason_are_counted_and_move_to_the_front() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "a", false, &dead_letters_to("b")).await;
    declare(&mut peer, "b", false, &dead_letters_to("a")).await;
    peer.publish(1, "", "a", "m").await;
    for queue in ["a", "b", "a", "b"] {
        reject(&mut peer, queue, false).await;
    }
    let dead = take(&mut peer, "a").await.unwrap();
    assert_eq!(dead.died(), [death("rejected", "b", 2), death("rejected", "a", 2)]);
    assert_eq!(dead.header("x-first-death-queue"), Some(&text("a")));
    assert_eq!(dead.header("x-last-death-queue"), Some(&text("b")));
}

#[tokio::test]
async fn a_message_that_would_go_round_by_itself_is_dropped() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let to_itself = [&[("x-max-length", number(0))], &dead_letters_to("q")[..]].concat();
    declare(&mut peer, "q", false, &to_itself).await;
    declare(&mut peer, "a", false, &[&[("x-max-length", number(0))], &dead_letters_to("b")[..]].concat())
        .await;
    declare(&mut peer, "b", false, &[&[("x-max-length", number(0))], &dead_letters_to("a")[..]].concat())
        .await;
    for queue in ["q", "a"] {
        peer.publish(1, "", queue, "m").await;
        peer.expect_quiet(1).await;
        for queue in ["q", "a", "b"] {
            assert_eq!((broker.depth(queue).ready, broker.depth(queue).bytes), (0, 0), "{queue}");
        }
    }
}

#[tokio::test]
async fn deaths_that_a_client_tells_of_are_not_counted() {
    let broker = TestBroker::start().await;
    let mut peer = with_dead_letters(&broker).await;
    peer.publish(1, "", "q", "m").await;
    reject(&mut peer, "q", false).await;
    let dead = take(&mut peer, "dead").await.unwrap();
    publish(&mut peer, "q", &dead.properties, "again").await;
    reject(&mut peer, "q", false).await;
    assert_eq!(take(&mut peer, "dead").await.unwrap().died(), [death("rejected", "q", 1)]);
}

#[tokio::test]
async fn a_deleted_or_purged_queue_sends_nothing() {
    let broker = TestBroker::start().await;
    let mut peer = with_dead_letters(&broker).await;
    peer.publish(1, "", "q", "purged").await;
    peer.call(1, queue::Purge { queue: "q", ..Default::default() }).await;
    peer.publish(1, "", "q", "deleted").await;
    peer.call(1, queue::Delete { queue: "q", ..Default::default() }).await;
    assert_eq!(bodies(&mut peer, "dead").await, [""; 0]);
}

#[tokio::test]
async fn a_message_that_came_back_too_often_dies_of_it() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "dead", false, &[]).await;
    let limit = ("x-delivery-limit", number(2));
    declare(&mut peer, "q", false, &[&[limit], &dead_letters_to("dead")[..]].concat()).await;
    peer.publish(1, "", "q", "m").await;
    for returns in 0..3 {
        let got = peer.get(1, "q", false).await.unwrap();
        let properties = Properties::decode(&got.content.properties).unwrap();
        let count = properties.headers.as_ref().and_then(|headers| headers.get("x-delivery-count")).cloned();
        assert_eq!(count, (returns > 0).then(|| number(returns)), "the count is of deliveries in vain");
        peer.send(1, basic::Nack { delivery_tag: got.get_ok.delivery_tag, multiple: false, requeue: true })
            .await;
    }
    peer.expect_quiet(1).await;
    assert_eq!(take(&mut peer, "q").await, None);
    let dead = take(&mut peer, "dead").await.unwrap();
    assert_eq!((dead.died(), dead.header("x-delivery-count")), (vec![death("delivery_limit", "q", 1)], None));
}

#[tokio::test]
async fn a_quorum_queue_gives_up_after_twenty_returns_and_a_consumer_sees_the_count() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", true, &[("x-queue-type", text("quorum"))]).await;
    peer.consume(1, "q", "c").await;
    peer.publish(1, "", "q", "m").await;
    for returns in 0..21 {
        let delivery = peer.delivery(1).await;
        let properties = Properties::decode(&delivery.content.properties).unwrap();
        let count = properties.headers.as_ref().and_then(|headers| headers.get("x-delivery-count")).cloned();
        assert_eq!(count, (returns > 0).then(|| number(returns)));
        peer.send(1, basic::Reject { delivery_tag: delivery.deliver.delivery_tag, requeue: true }).await;
    }
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (0, 0));
}

#[tokio::test]
async fn dead_letters_and_counts_survive_a_restart() {
    let dir = TempDir::new().unwrap();
    let world = World::start_in(Some(dir.path()), Arc::new(SimClock::new())).await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "dead", true, &[]).await;
    let limit = ("x-delivery-limit", number(1));
    declare(&mut peer, "q", true, &[&[limit], &dead_letters_to("dead")[..]].concat()).await;
    publish(&mut peer, "q", &persistent(), "rejected").await;
    publish(&mut peer, "q", &persistent(), "came back").await;
    reject(&mut peer, "q", false).await;
    reject(&mut peer, "q", true).await;
    peer.close().await;

    let world = world.restart(dir.path(), Duration::from_secs(1)).await;
    let mut peer = world.broker.peer().await;
    world.ready("dead", 1).await;
    assert_eq!(world.broker.depth("q").ready, 1);
    reject(&mut peer, "q", true).await;
    ready(&world.broker, "q", 0).await;
    let dead = drain(&mut peer, "dead").await;
    let seen: Vec<_> = dead.iter().map(|message| (&*message.body, message.died())).collect();
    let expected =
        [("rejected", vec![death("rejected", "q", 1)]), ("came back", vec![death("delivery_limit", "q", 1)])];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn that_a_message_is_a_dead_letter_is_known_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let world = World::start_in(Some(dir.path()), Arc::new(SimClock::new())).await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "a", true, &dead_letters_to("b")).await;
    declare(&mut peer, "b", true, &dead_letters_to("a")).await;
    publish(&mut peer, "a", &persistent(), "m").await;
    reject(&mut peer, "a", false).await;
    peer.close().await;

    let world = world.restart(dir.path(), Duration::from_secs(1)).await;
    let mut peer = world.broker.peer().await;
    reject(&mut peer, "b", false).await;
    let again = take(&mut peer, "a").await.unwrap();
    assert_eq!(again.died(), [death("rejected", "b", 1), death("rejected", "a", 1)]);
}
