//! What survives a stop: durable topology and persistent messages, and nothing else.

use deepmq_amqp::codec::method::{basic, exchange, queue, tx};
use deepmq_broker::message::Delivery;
use deepmq_broker::queue::Fetched;
use deepmq_broker::subscriber::Wakes;
use deepmq_model::message::Properties;
use deepmq_storage::seam::{Seam, SimDisk};
use deepmq_testkit::{RawPeer, TestBroker};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

async fn start(dir: &Path) -> TestBroker {
    TestBroker::start_with(|config| config.data_dir = Some(dir.to_owned())).await
}

fn properties(delivery_mode: u8) -> Vec<u8> {
    let mut encoded = Vec::new();
    Properties { delivery_mode: Some(delivery_mode), ..Properties::default() }.encode(&mut encoded);
    encoded
}

async fn publish(peer: &mut RawPeer, exchange: &str, key: &str, mode: u8, body: &str) {
    let publish = basic::Publish { exchange, routing_key: key.as_bytes(), ..Default::default() };
    peer.publish_with(1, &publish, &properties(mode), body.as_bytes()).await;
}

/// Everything ready in a queue, with whether it is marked as redelivered.
async fn drain(peer: &mut RawPeer, queue: &str) -> Vec<(String, bool)> {
    let mut messages = Vec::new();
    while let Some(got) = peer.get(1, queue, true).await {
        messages.push((
            String::from_utf8(got.content.body).expect("the test published text"),
            got.get_ok.redelivered,
        ));
    }
    messages
}

fn durable(queue: &str) -> queue::Declare<'_> {
    queue::Declare { queue, durable: true, ..Default::default() }
}

#[tokio::test]
async fn durable_topology_and_persistent_messages_survive_a_stop_in_order() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    let topic = exchange::Declare { exchange: "x", kind: "topic", durable: true, ..Default::default() };
    peer.call(1, topic).await;
    peer.declare_with(1, durable("d")).await;
    peer.declare_with(1, queue::Declare { queue: "t", ..Default::default() }).await;
    peer.bind(1, "d", "x", "a.#").await;
    for (mode, body) in [(2, "one"), (2, "two"), (1, "transient"), (2, "three"), (2, "four")] {
        publish(&mut peer, "x", "a.b", mode, body).await;
    }
    publish(&mut peer, "", "t", 2, "in a transient queue").await;
    peer.expect_confirmed_up_to(1, 6).await;
    let first = peer.get(1, "d", false).await.unwrap().get_ok.delivery_tag;
    peer.ack(1, first, false).await;
    assert_eq!(peer.get(1, "d", false).await.unwrap().content.body, b"two");
    peer.close().await;
    broker.stop().await;

    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    let seen = drain(&mut peer, "d").await;
    let seen: Vec<_> = seen.iter().map(|(body, again)| (body.as_str(), *again)).collect();
    assert_eq!(seen, [("two", true), ("three", false), ("four", false)]);
    publish(&mut peer, "x", "a.c", 1, "routed as before").await;
    assert_eq!(drain(&mut peer, "d").await, [("routed as before".to_owned(), false)]);
    let missing = queue::Declare { queue: "t", passive: true, ..Default::default() };
    peer.refused(missing, 404, "NOT_FOUND - no queue 't' in vhost '/'").await;
}

#[tokio::test]
async fn what_was_deleted_unbound_or_purged_stays_so() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    for name in ["gone", "unbound", "purged"] {
        peer.declare_with(1, durable(name)).await;
        peer.bind(1, name, "amq.direct", name).await;
        publish(&mut peer, "", name, 2, "kept until then").await;
    }
    peer.call(1, queue::Delete { queue: "gone", ..Default::default() }).await;
    peer.call(1, queue::Purge { queue: "purged", ..Default::default() }).await;
    let unbind = queue::Unbind {
        queue: "unbound",
        exchange: "amq.direct",
        routing_key: b"unbound",
        ..Default::default()
    };
    peer.call(1, unbind).await;
    peer.close().await;
    broker.stop().await;

    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    publish(&mut peer, "amq.direct", "unbound", 1, "goes nowhere").await;
    publish(&mut peer, "amq.direct", "purged", 1, "still bound").await;
    assert_eq!(drain(&mut peer, "unbound").await, [("kept until then".to_owned(), false)]);
    assert_eq!(drain(&mut peer, "purged").await, [("still bound".to_owned(), false)]);
    let missing = queue::Declare { queue: "gone", passive: true, ..Default::default() };
    peer.refused(missing, 404, "NOT_FOUND - no queue 'gone' in vhost '/'").await;
}

#[tokio::test]
async fn a_queue_of_a_deleted_ones_name_has_none_of_its_messages() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, durable("q")).await;
    publish(&mut peer, "", "q", 2, "old").await;
    peer.call(1, queue::Delete { queue: "q", ..Default::default() }).await;
    peer.declare_with(1, durable("q")).await;
    publish(&mut peer, "", "q", 2, "new").await;
    peer.expect_quiet(1).await;
    peer.close().await;
    broker.stop().await;
    let broker = start(dir.path()).await;
    assert_eq!(drain(&mut broker.peer().await, "q").await, [("new".to_owned(), false)]);
}

#[tokio::test]
async fn one_message_in_many_queues_comes_back_to_each_that_still_needs_it() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    let names: Vec<String> = (0..10).map(|n| format!("q{n}")).collect();
    for name in &names {
        peer.declare_with(1, durable(name)).await;
        peer.bind(1, name, "amq.fanout", "").await;
    }
    let long = "x".repeat(100_000);
    publish(&mut peer, "amq.fanout", "", 2, &long).await;
    publish(&mut peer, "amq.fanout", "", 2, "short").await;
    assert_eq!(drain(&mut peer, "q3").await.len(), 2);
    peer.close().await;
    broker.stop().await;
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    for name in &names {
        let bodies: Vec<_> = drain(&mut peer, name).await.into_iter().map(|(body, _)| body).collect();
        let expected = if name == "q3" { vec![] } else { vec![long.clone(), "short".to_owned()] };
        assert_eq!(bodies, expected, "in {name}");
    }
}

#[tokio::test]
async fn three_lives_in_a_row_lose_and_repeat_nothing() {
    let dir = TempDir::new().unwrap();
    for life in 0..3 {
        let broker = start(dir.path()).await;
        let mut peer = broker.peer().await;
        peer.declare_with(1, durable("q")).await;
        if life > 0 {
            let first = peer.get(1, "q", false).await.unwrap();
            assert_eq!(first.content.body, format!("{}-0", life - 1).into_bytes());
            peer.ack(1, first.get_ok.delivery_tag, false).await;
            assert_eq!(drain(&mut peer, "q").await.len(), 4);
        }
        for n in 0..5 {
            publish(&mut peer, "", "q", 2, &format!("{life}-{n}")).await;
        }
        peer.expect_quiet(1).await;
        peer.close().await;
        broker.stop().await;
    }
}

#[tokio::test]
async fn a_commit_is_answered_once_its_messages_are_synced() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, durable("q")).await;
    peer.select_tx(1).await;
    let journal = broker.broker().durable().unwrap().journal().clone();
    for _ in 0..20 {
        let before = journal.appended();
        publish(&mut peer, "", "q", 2, "all or nothing").await;
        assert_eq!(peer.call(1, tx::Commit {}).await, tx::CommitOk {}.into());
        assert!(journal.durable() > before, "the record of the commit is not synced");
    }
    peer.close().await;
    broker.stop().await;
}

async fn start_on(disk: &SimDisk) -> TestBroker {
    let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::real() };
    TestBroker::start_on(seam, |config| {
        config.data_dir = Some("/data".into());
        config.storage.journal_file_bytes = 256 * 1024;
    })
    .await
}

#[tokio::test]
async fn a_commit_is_all_or_nothing_wherever_the_machine_stops() {
    let disk = SimDisk::new();
    let broker = start_on(&disk).await;
    let mut peer = broker.peer().await;
    for name in ["from", "one", "other"] {
        peer.declare_with(1, durable(name)).await;
    }
    peer.select_tx(1).await;
    for body in ["1", "2", "3"] {
        publish(&mut peer, "", "from", 2, body).await;
    }
    peer.call(1, tx::Commit {}).await;
    for _ in 0..3 {
        let got = peer.get(1, "from", false).await.unwrap();
        peer.ack(1, got.get_ok.delivery_tag, false).await;
        publish(&mut peer, "", "one", 2, "moved").await;
        publish(&mut peer, "", "other", 2, &"moved".repeat(1000)).await;
    }
    peer.send(1, tx::Commit {}).await;
    let mut survivors: Vec<_> = (0..16).map(|seed| (disk.crash(seed), false)).collect();
    assert_eq!(peer.method(1).await, tx::CommitOk {}.into());
    survivors.extend((0..16).map(|seed| (disk.crash(seed), true)));
    for (survivor, answered) in &survivors {
        let broker = start_on(survivor).await;
        let ready = ["from", "one", "other"].map(|name| broker.depth(name).ready);
        assert!(
            ready == [0, 3, 3] || (ready == [3, 0, 0] && !answered),
            "{ready:?} after an answer: {answered}"
        );
    }
}

#[tokio::test]
async fn a_commit_that_fails_publishes_and_settles_nothing() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let (mut peer, mut other) = (broker.peer().await, broker.peer().await);
    peer.declare_with(1, durable("q")).await;
    peer.declare_exchange(1, "goes", "fanout").await;
    publish(&mut peer, "", "q", 2, "there").await;
    peer.select_tx(1).await;
    let got = peer.get(1, "q", false).await.unwrap();
    peer.ack(1, got.get_ok.delivery_tag, false).await;
    publish(&mut peer, "", "q", 2, "first").await;
    publish(&mut peer, "goes", "", 2, "nowhere").await;
    peer.expect_quiet(1).await;
    other.call(1, exchange::Delete { exchange: "goes", ..Default::default() }).await;
    peer.refused(tx::Commit {}, 404, "NOT_FOUND - no exchange 'goes' in vhost '/'").await;
    assert_eq!(drain(&mut other, "q").await, [("there".to_owned(), true)]);
}

#[tokio::test]
async fn how_often_a_message_came_back_is_known_after_a_stop_and_after_a_crash() {
    let disk = SimDisk::new();
    let broker = start_on(&disk).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, durable("q")).await;
    for body in ["often", "never"] {
        publish(&mut peer, "", "q", 2, body).await;
    }
    for _ in 0..3 {
        let got = peer.get(1, "q", false).await.unwrap();
        let nack = basic::Nack { delivery_tag: got.get_ok.delivery_tag, requeue: true, ..Default::default() };
        peer.send(1, nack).await;
    }
    peer.expect_quiet(1).await;
    let journal = broker.broker().durable().unwrap().journal().clone();
    let synced = async {
        while journal.durable() < journal.appended() {
            journal.request_sync();
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), synced).await.unwrap();
    let crashed = disk.image();
    peer.close().await;
    broker.stop().await;
    for (disk, redelivered) in [(&crashed, [true, true]), (&disk, [true, false])] {
        let queue = start_on(disk).await.queue("q").unwrap();
        let next = || {
            let take = |delivery: Delivery<'_>, _| (delivery.returns, delivery.redelivered);
            queue.fetch(true, take, &mut Wakes::default())
        };
        assert_eq!(
            [next(), next()],
            [Fetched::Message((3, redelivered[0])), Fetched::Message((0, redelivered[1]))]
        );
    }
}
