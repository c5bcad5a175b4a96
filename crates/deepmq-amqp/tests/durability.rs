//! What a confirm means: with `fsync` the message is on the disk, with `os` the operating system has it.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use deepmq_amqp::codec::method::{basic, queue, tx};
use deepmq_broker::BrokerConfig;
use deepmq_model::{Table, Value};
use deepmq_storage::seam::SimDisk;
use deepmq_storage::{Durability, Seam};
use deepmq_testkit::{RawPeer, TestBroker};
use std::sync::Arc;
use std::time::Duration;

const PERSISTENT: [u8; 3] = [0x10, 0, 2];

async fn start(disk: &SimDisk, durability: Durability) -> TestBroker {
    let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::real() };
    let configure = |config: &mut BrokerConfig| {
        config.data_dir = Some("/data".into());
        config.durability = durability;
        config.storage.journal_file_bytes = 1 << 20;
    };
    TestBroker::start_on(seam, configure).await
}

fn declared<'a>(queue: &'a str, durability: Option<&str>) -> queue::Declare<'a> {
    let arguments: Table = durability.map(|mode| ("x-durability", Value::str(mode))).into_iter().collect();
    queue::Declare { queue, durable: true, arguments, ..Default::default() }
}

/// Lets all that was said so far be synced, so that nothing is left to sync.
async fn settle(broker: &TestBroker) {
    let journal = broker.broker().durable().expect("it has a data directory").journal().clone();
    let synced = tokio::task::spawn_blocking(move || {
        journal.request_sync();
        journal.wait(journal.appended(), Durability::Fsync)
    });
    synced.await.unwrap().unwrap();
}

async fn publish(peer: &mut RawPeer, exchange: &str, key: &str) {
    let publish = basic::Publish { exchange, routing_key: key.as_bytes(), ..Default::default() };
    peer.publish_with(1, &publish, &PERSISTENT, b"body").await;
}

/// Publishes once with a disk that does not sync, and says whether it is confirmed; lets it sync then.
async fn is_confirmed_unsynced(disk: &SimDisk, broker: &TestBroker, exchange: &str, key: &str) -> bool {
    let mut peer = broker.peer().await;
    peer.select_confirms(1).await;
    settle(broker).await;
    disk.hold_syncs(true);
    let journal = broker.broker().durable().unwrap().journal().clone();
    let before = journal.appended();
    publish(&mut peer, exchange, key).await;
    deepmq_testkit::until(|| journal.mark(Durability::Os) > before).await;
    let confirm = basic::Ack { delivery_tag: 1, multiple: false };
    // A confirm of what is written comes before the answer to this.
    peer.send(1, basic::Qos { prefetch_count: 1, ..Default::default() }).await;
    let first = peer.method(1).await;
    assert!(journal.durable() <= before);
    disk.hold_syncs(false);
    let confirmed = first == confirm.clone().into();
    assert_eq!(peer.method(1).await, if confirmed { basic::QosOk {}.into() } else { confirm.into() });
    confirmed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_says_what_its_confirms_mean_and_else_the_broker_does() {
    for (broker_says, unsynced) in [(Durability::Fsync, false), (Durability::Os, true)] {
        let disk = SimDisk::new();
        let broker = start(&disk, broker_says).await;
        let mut peer = broker.peer().await;
        for (name, mode) in [("default", None), ("fsync", Some("fsync")), ("os", Some("os"))] {
            peer.declare_with(1, declared(name, mode)).await;
        }
        assert_eq!(is_confirmed_unsynced(&disk, &broker, "", "default").await, unsynced);
        assert!(!is_confirmed_unsynced(&disk, &broker, "", "fsync").await);
        assert!(is_confirmed_unsynced(&disk, &broker, "", "os").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_several_queues_is_confirmed_as_the_strictest_of_them_asks() {
    let disk = SimDisk::new();
    let broker = start(&disk, Durability::Os).await;
    let mut peer = broker.peer().await;
    for (name, mode) in [("a", "os"), ("b", "fsync"), ("c", "os")] {
        peer.declare_with(1, declared(name, Some(mode))).await;
        peer.bind(1, name, "amq.fanout", "").await;
    }
    assert!(!is_confirmed_unsynced(&disk, &broker, "amq.fanout", "").await);
    peer.call(1, queue::Delete { queue: "b", ..Default::default() }).await;
    assert!(is_confirmed_unsynced(&disk, &broker, "amq.fanout", "").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_kept_over_a_restart_and_shown_as_it_was_declared() {
    let disk = SimDisk::new();
    let broker = start(&disk, Durability::Fsync).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, declared("q", Some("os"))).await;
    peer.close().await;
    broker.stop().await;
    let broker = start(&disk, Durability::Fsync).await;
    assert!(is_confirmed_unsynced(&disk, &broker, "", "q").await);
    let queues = broker.broker().vhost("/").unwrap().queues();
    assert_eq!(queues[0].durability, Some(Durability::Os));
    assert_eq!(queues[0].arguments.get("x-durability"), Some(&Value::str("os")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_in_a_queue_of_os_needs_no_sync_but_a_declaration_does() {
    let disk = SimDisk::new();
    let broker = start(&disk, Durability::Os).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, declared("q", None)).await;
    peer.select_tx(1).await;
    settle(&broker).await;
    disk.hold_syncs(true);
    publish(&mut peer, "", "q").await;
    assert_eq!(peer.call(1, tx::Commit {}).await, tx::CommitOk {}.into());
    let mut other = broker.peer().await;
    other.send(1, declared("late", None)).await;
    let early = tokio::time::timeout(Duration::from_millis(100), other.next_frame()).await;
    assert!(early.is_err(), "{early:?} came before the declaration was synced");
    disk.hold_syncs(false);
    let declared = queue::DeclareOk { queue: "late", message_count: 0, consumer_count: 0 };
    other.expect(1, declared).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operating_system_has_outlives_the_broker_but_not_the_machine() {
    let disk = SimDisk::new();
    let broker = start(&disk, Durability::Os).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, declared("q", None)).await;
    assert!(is_confirmed_unsynced(&disk, &broker, "", "q").await);
    settle(&broker).await;
    disk.hold_syncs(true);
    peer.select_confirms(1).await;
    publish(&mut peer, "", "q").await;
    peer.expect(1, basic::Ack { delivery_tag: 1, multiple: false }).await;
    let (killed, lost_power) = (disk.image(), disk.crash(0));
    disk.hold_syncs(false);
    for (left, messages) in [(killed, 2), (lost_power, 1)] {
        let broker = start(&left, Durability::Os).await;
        assert_eq!(broker.depth("q").ready, messages);
    }
}

#[tokio::test]
async fn an_unknown_mode_is_refused_and_another_than_before_too() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let text = "PRECONDITION_FAILED - invalid arg 'x-durability' for queue 'q' in vhost '/': \
                \"expected 'fsync' or 'os', got 'disk'\"";
    peer.refused(declared("q", Some("disk")), 406, text).await;
    peer.declare_with(1, declared("q", Some("os"))).await;
    let text = "PRECONDITION_FAILED - inequivalent arg 'x-durability' for queue 'q' in vhost '/': \
                received the value 'fsync' of type 'longstr' but current is the value 'os' of type 'longstr'";
    peer.refused(declared("q", Some("fsync")), 406, text).await;
}
