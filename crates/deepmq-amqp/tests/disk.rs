//! What happens while the disk is full: publishers are blocked, consumers drain, and nothing that was confirmed is lost.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, connection, queue};
use deepmq_storage::Seam;
use deepmq_storage::seam::SimDisk;
use deepmq_testkit::{RawPeer, TestBroker, until};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

const PERSISTENT: [u8; 3] = [0x10, 0, 2];
const BLOCKED: connection::Blocked<'_> = connection::Blocked { reason: "low on disk" };
const MIB: u64 = 1 << 20;

/// Journal files of two MiB, so that a disk is full soon.
async fn start_in(seam: Seam, dir: &Path, free_bytes_min: u64, pool: u64) -> TestBroker {
    TestBroker::start_on(seam, |config| {
        config.data_dir = Some(dir.to_owned());
        config.limits.disk_free_bytes_min = free_bytes_min;
        config.storage.journal_file_bytes = 2 * MIB;
        config.storage.segment_bytes = MIB;
        config.limits.message_pool_bytes = usize::try_from(pool).unwrap();
    })
    .await
}

async fn start(disk: &SimDisk, free_bytes_min: u64) -> TestBroker {
    let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::real() };
    start_in(seam, Path::new("/data"), free_bytes_min, 128 * MIB).await
}

fn alarm(broker: &TestBroker) -> bool {
    broker.broker().status().disk.unwrap().alarm
}

/// A peer that confirms, with the durable queue `q`.
async fn publisher(broker: &TestBroker) -> RawPeer {
    let mut peer = broker.peer().await;
    peer.declare_with(1, queue::Declare { queue: "q", durable: true, ..Default::default() }).await;
    peer.select_confirms(1).await;
    peer
}

async fn publish(peer: &mut RawPeer, body: impl AsRef<[u8]>) {
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    peer.publish_with(1, &publish, &PERSISTENT, body.as_ref()).await;
}

fn confirm(delivery_tag: u64) -> basic::Ack {
    basic::Ack { delivery_tag, multiple: false }
}

/// Takes out and acknowledges all that is ready; returns how many that were.
async fn drain(peer: &mut RawPeer) -> usize {
    let mut count = 0;
    while let Some(got) = peer.get(1, "q", false).await {
        peer.ack(1, got.get_ok.delivery_tag, false).await;
        count += 1;
    }
    count
}

/// Publishes bodies of 16 KiB until the connection is blocked; returns how many were confirmed, which are all but the last.
async fn publish_until_blocked(peer: &mut RawPeer) -> usize {
    for sent in 1.. {
        publish(peer, vec![b'x'; 16 << 10]).await;
        match peer.next_frame().await.unwrap().method() {
            Method::Basic(basic::Method::Ack(ack)) => assert_eq!(ack.delivery_tag, sent),
            method => {
                assert_eq!(method, BLOCKED.into());
                return usize::try_from(sent - 1).unwrap();
            }
        }
    }
    unreachable!("the disk has an end")
}

#[tokio::test(flavor = "multi_thread")]
async fn below_the_least_publishers_are_blocked_consumers_drain_and_it_ends_by_itself() {
    let disk = SimDisk::new();
    let broker = start(&disk, 4 * MIB).await;
    let (mut peer, mut consumer) = (publisher(&broker).await, broker.peer().await);
    publish(&mut peer, "before").await;
    peer.expect(1, confirm(1)).await;
    disk.set_free_bytes(4 * MIB - 1);
    until(|| alarm(&broker)).await;
    publish(&mut peer, "late").await;
    peer.expect(0, BLOCKED).await;
    assert!(broker.broker().status().publishers_blocked);
    assert_eq!(drain(&mut consumer).await, 1);
    consumer.expect_quiet(1).await;
    disk.set_free_bytes(8 * MIB);
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect(1, confirm(2)).await;
    assert_eq!(drain(&mut consumer).await, 1);
    assert!(!broker.broker().status().publishers_blocked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_low_at_the_start_blocks_from_the_first_publish_on_but_declares() {
    let disk = SimDisk::new();
    disk.set_free_bytes(4 * MIB - 1);
    let broker = start(&disk, 4 * MIB).await;
    let mut peer = publisher(&broker).await;
    publish(&mut peer, "early").await;
    peer.expect(0, BLOCKED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_least_publishers_are_blocked_while_the_journal_still_has_room_for_acknowledgements() {
    let disk = SimDisk::new();
    let broker = start(&disk, 0).await;
    let (mut peer, mut consumer) = (publisher(&broker).await, broker.peer().await);
    disk.set_free_bytes(0);
    let confirmed = publish_until_blocked(&mut peer).await;
    assert!((50..128).contains(&confirmed), "{confirmed}");
    assert_eq!(drain(&mut consumer).await, confirmed);
    consumer.expect_quiet(1).await;
    let journal = broker.broker().durable().unwrap().journal().clone();
    until(|| journal.durable() == journal.appended()).await;
    let left = start(&disk.image(), 0).await;
    assert_eq!(left.depth("q").ready, 0, "what was acknowledged on the full disk is back");
    disk.set_free_bytes(16 * MIB);
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect(1, confirm(confirmed as u64 + 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_space_at_all_waits_and_is_confirmed_once_there_is() {
    let disk = SimDisk::new();
    let broker = start(&disk, 0).await;
    let (mut peer, mut other) = (publisher(&broker).await, publisher(&broker).await);
    disk.set_free_bytes(MIB / 2);
    publish(&mut peer, vec![b'x'; 3 << 20]).await;
    until(|| alarm(&broker)).await;
    publish(&mut other, "late").await;
    other.expect(0, BLOCKED).await;
    let journal = broker.broker().durable().unwrap().journal().clone();
    until(|| journal.is_short() && journal.durable() < journal.appended()).await;
    disk.set_free_bytes(16 * MIB);
    peer.expect(1, confirm(1)).await;
    other.expect(0, connection::Unblocked {}).await;
    other.expect(1, confirm(1)).await;
    assert_eq!(journal.failure().map(ToString::to_string), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_starts_on_a_full_disk_and_lets_consumers_drain_it() {
    let disk = SimDisk::new();
    let broker = start(&disk, 0).await;
    let mut peer = publisher(&broker).await;
    for n in 1..=5 {
        publish(&mut peer, "kept").await;
        peer.expect(1, confirm(n)).await;
    }
    let killed = disk.image();
    peer.close().await;
    broker.stop().await;
    for disk in [disk.image(), killed] {
        disk.set_free_bytes(0);
        let broker = start(&disk, MIB).await;
        let mut peer = broker.peer().await;
        assert_eq!(drain(&mut peer).await, 5);
        publish(&mut peer, "late").await;
        peer.expect(0, BLOCKED).await;
        drop(peer);
        broker.stop().await;
        let broker = start(&disk, MIB).await;
        assert_eq!(broker.depth("q").ready, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_that_fills_the_disk_is_drained_whole_and_that_is_the_space_to_go_on() {
    let disk = SimDisk::new();
    disk.set_free_bytes(40 * MIB);
    let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::real() };
    // With a pool that is soon full, so that messages are paged out.
    let broker = start_in(seam, Path::new("/data"), 4 * MIB, MIB).await;
    let (mut peer, mut consumer) = (publisher(&broker).await, broker.peer().await);
    let confirmed = publish_until_blocked(&mut peer).await;
    assert!(confirmed > 1000, "{confirmed}");
    // Somebody else takes the rest.
    disk.set_free_bytes(0);
    let drained = drain(&mut consumer).await;
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect(1, confirm(confirmed as u64 + 1)).await;
    assert_eq!(drained + drain(&mut consumer).await, confirmed + 1);
}

/// A file system in memory of its own, with 12 MiB; gone when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// None, with a word, where mounting is not permitted.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
    fn mount() -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"]).arg(dir.path()).stderr(Stdio::null());
        if !mount.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: mounting a small file system is not permitted here");
            return None;
        }
        Some(Self(dir))
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Takes all the space that is left.
    fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        while std::io::Write::write_all(&mut file, &vec![1; 65536]).is_ok() {}
        while std::io::Write::write_all(&mut file, &[1; 512]).is_ok() {}
        path
    }

    async fn broker(&self, free_bytes_min: u64) -> TestBroker {
        start_in(Seam::real(), &self.data(), free_bytes_min, 4 * MIB).await
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A broker that still has files open keeps it; it is gone with the process then.
        let _ = Command::new("umount").args(["-l"]).arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_real_small_disk_publishers_are_blocked_and_all_that_was_confirmed_is_drained_after_a_restart() {
    let Some(disk) = SmallDisk::mount() else { return };
    let broker = disk.broker(2 * MIB).await;
    let mut peer = publisher(&broker).await;
    let filler = disk.fill();
    until(|| alarm(&broker)).await;
    let mut other = publisher(&broker).await;
    publish(&mut other, "blocked").await;
    other.expect(0, BLOCKED).await;
    std::fs::remove_file(&filler).unwrap();
    other.expect(0, connection::Unblocked {}).await;
    other.expect(1, confirm(1)).await;
    let confirmed = publish_until_blocked(&mut peer).await;
    assert!(confirmed > 200 && confirmed < 750, "{confirmed}");
    disk.fill();
    drop((peer, other));
    broker.stop().await;

    let broker = disk.broker(2 * MIB).await;
    let mut peer = broker.peer().await;
    publish(&mut peer, "late").await;
    peer.expect(0, BLOCKED).await;
    let mut consumer = broker.peer().await;
    let drained = drain(&mut consumer).await;
    // What was drained is given up, and that is the space to go on.
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect_quiet(1).await;
    assert_eq!(drained + drain(&mut consumer).await, confirmed + 2);
    consumer.expect_quiet(1).await;
    drop((peer, consumer));
    broker.stop().await;
    let broker = disk.broker(2 * MIB).await;
    assert_eq!(broker.depth("q").ready, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_real_small_disk_without_a_least_no_space_is_no_failure() {
    let Some(disk) = SmallDisk::mount() else { return };
    let broker = disk.broker(0).await;
    let (mut peer, mut consumer) = (publisher(&broker).await, broker.peer().await);
    let filler = disk.fill();
    let confirmed = publish_until_blocked(&mut peer).await;
    let drained = drain(&mut consumer).await;
    std::fs::remove_file(filler).unwrap();
    peer.expect(0, connection::Unblocked {}).await;
    peer.expect(1, confirm(confirmed as u64 + 1)).await;
    assert_eq!(drained + drain(&mut consumer).await, confirmed + 1);
}
