//! The machine stops around a death: after the next start each message is in its queue or where dead letters go, in one of them.
//!
//! The disk is simulated, and kept as it was before every operation from just before the deaths on; each of these moments is
//! crashed in several ways.

use super::rig::{
    Arguments, Seen, dead_letters_to, declare, drain, number, persistent, policy, publish, ready, reject,
    text, until,
};
use deepmq_amqp::codec::method::{basic, tx};
use deepmq_model::policy::PolicyRank::User;
use deepmq_storage::Durability;
use deepmq_storage::seam::{Seam, SimClock, SimDisk};
use deepmq_testkit::{RawPeer, TestBroker};
use std::sync::Arc;
use std::time::Duration;

/// The time of messages that expire.
const TTL: Duration = Duration::from_secs(1);

/// A broker on a simulated disk.
struct Rig {
    broker: TestBroker,
    clock: Arc<SimClock>,
}

impl Rig {
    async fn start(disk: &SimDisk, now: Duration) -> Self {
        let clock = Arc::new(SimClock::new());
        clock.advance(now);
        let seam = Seam { disk: Arc::new(disk.clone()), clock: clock.clone(), ..Seam::real() };
        let broker = TestBroker::start_on(seam, |config| {
            config.data_dir = Some("/data".into());
            config.storage.journal_file_bytes = 32 * 1024;
        })
        .await;
        Self { broker, clock }
    }

    /// Waits until all that was done is on the disk.
    async fn sync(&self) {
        let journal = self.broker.broker().durable().expect("it has a data directory").journal().clone();
        let wait = move || {
            let last = journal.appended();
            journal.request_sync();
            journal.wait(last, Durability::Fsync)
        };
        tokio::task::spawn_blocking(wait).await.expect("waiting does not panic").expect("the disk works");
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.broker.broker().run_timers();
    }

    /// Lets what died in a queue arrive where it goes, and takes all there is; returns what is left and what died.
    async fn take(&self, peer: &mut RawPeer, source: &str) -> (Vec<Seen>, Vec<Seen>) {
        until(source, || {
            self.pass(Duration::from_millis(10));
            self.broker.depth(source).dead_letters == 0
        })
        .await;
        (drain(peer, source).await, drain(peer, &dead(source)).await)
    }
}

fn dead(source: &str) -> String {
    format!("dead {source}")
}

/// Declares a queue, and another for its dead letters.
async fn source(peer: &mut RawPeer, name: &str, arguments: Arguments<'_>) {
    declare(peer, &dead(name), true, &[]).await;
    declare(peer, name, true, &[arguments, &dead_letters_to(&dead(name))[..]].concat()).await;
}

/// So long that a few of them fill a file of the journal.
async fn publish_all(peer: &mut RawPeer, queue: &str, bodies: &[&str]) {
    for body in bodies {
        publish(peer, queue, &persistent(), &format!("{body:0>9000}")).await;
    }
    peer.expect_quiet(1).await;
}

fn names(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.body.trim_start_matches('0')).collect()
}

/// Crashes of each moment and of the end: of file contents in all ways, of names in one after the other.
fn crashes(disk: &SimDisk) -> Vec<SimDisk> {
    let mut moments = disk.keep_moments(false);
    moments.push(disk.clone());
    let ways =
        |(at, moment): (u64, SimDisk)| (0..4).map(move |kind| moment.crash(16 * at + 4 * (at % 4) + kind));
    let crashes: Vec<_> = (0..).zip(moments).flat_map(ways).collect();
    assert!(crashes.len() > 80, "the disk was hardly used: {}", crashes.len());
    crashes
}

/// Checks that each of `bodies` is in one of the two, and died there of `reason`, once.
fn check_one_of_two(
    (source, reason): (&str, &str),
    bodies: &[&str],
    left: &[Seen],
    dead: &[Seen],
    when: &str,
) {
    let when = format!("{when}: {source}: {:?}, dead: {:?}", names(left), names(dead));
    let mut found = [names(left), names(dead)].concat();
    found.sort_unstable();
    assert_eq!(found, bodies, "{when}");
    assert!(left.iter().all(|seen| seen.died().is_empty()), "{when}");
    let died = [(reason.to_owned(), source.to_owned(), 1)];
    assert!(dead.iter().all(|seen| seen.died() == died), "{when}");
}

#[tokio::test]
async fn wherever_the_machine_stops_a_message_that_dies_is_in_one_queue() {
    let disk = SimDisk::new();
    let rig = Rig::start(&disk, Duration::ZERO).await;
    let mut peer = rig.broker.peer().await;
    let ttl = i64::try_from(TTL.as_millis()).expect("it is short");
    source(&mut peer, "rejected", &[]).await;
    source(&mut peer, "expired", &[("x-message-ttl", number(ttl))]).await;
    source(&mut peer, "too many", &[("x-max-length", number(2))]).await;
    source(&mut peer, "came back", &[("x-delivery-limit", number(0))]).await;
    for name in ["rejected", "expired", "too many", "came back"] {
        publish_all(&mut peer, name, &["1", "2"]).await;
    }
    rig.sync().await;
    disk.keep_moments(true);
    for body in ["3", "4"] {
        reject(&mut peer, "rejected", false).await;
        reject(&mut peer, "came back", true).await;
        publish_all(&mut peer, "too many", &[body]).await;
        rig.sync().await;
    }
    rig.pass(TTL);
    ready(&rig.broker, "expired", 0).await;
    rig.sync().await;
    peer.close().await;
    rig.broker.stop().await;
    for (at, crash) in crashes(&disk).iter().enumerate() {
        let when = format!("crash {at}");
        let rig = Rig::start(crash, TTL).await;
        let mut peer = rig.broker.peer().await;
        for (name, reason) in
            [("rejected", "rejected"), ("came back", "delivery_limit"), ("expired", "expired")]
        {
            let (left, dead) = rig.take(&mut peer, name).await;
            check_one_of_two((name, reason), &["1", "2"], &left, &dead, &when);
            assert!(name != "expired" || left.is_empty(), "{when}: its time was over before the start");
        }
        let (left, dead) = rig.take(&mut peer, "too many").await;
        let all = left.len() + dead.len();
        let expected = ["1", "2", "3", "4"].get(..all).unwrap_or_default();
        check_one_of_two(("too many", "maxlen"), expected, &left, &dead, &when);
        assert!(left.len() == 2 && all >= 2, "{when}");
    }
}

#[tokio::test]
async fn wherever_the_machine_stops_a_commit_and_the_deaths_in_it_are_there_or_not() {
    let disk = SimDisk::new();
    let rig = Rig::start(&disk, Duration::ZERO).await;
    let mut peer = rig.broker.peer().await;
    source(&mut peer, "from", &[]).await;
    source(&mut peer, "last", &[("x-max-length", number(1))]).await;
    for queue in ["one", "other"] {
        declare(&mut peer, queue, true, &[]).await;
    }
    publish_all(&mut peer, "from", &["1", "2", "3", "4", "5", "6"]).await;
    publish_all(&mut peer, "last", &["old"]).await;
    rig.sync().await;
    disk.keep_moments(true);
    peer.select_tx(1).await;
    for commit in ["1st", "2nd"] {
        let mut tags = Vec::new();
        for _ in 0..3 {
            tags.push(peer.get(1, "from", false).await.expect("there is a message").get_ok.delivery_tag);
        }
        for queue in ["one", "last", "other"] {
            publish_all(&mut peer, queue, &[commit]).await;
        }
        let [first, second, third] = tags[..] else { panic!("three were fetched") };
        peer.send(1, basic::Reject { delivery_tag: first, requeue: false }).await;
        peer.send(1, basic::Nack { delivery_tag: second, multiple: false, requeue: false }).await;
        peer.ack(1, third, false).await;
        assert_eq!(peer.call(1, tx::Commit {}).await, tx::CommitOk {}.into());
        assert_eq!(rig.broker.depth("from").dead_letters, 0, "it goes on at once");
        rig.sync().await;
    }
    peer.close().await;
    rig.broker.stop().await;
    for (at, crash) in crashes(&disk).iter().enumerate() {
        let rig = Rig::start(crash, Duration::ZERO).await;
        let mut peer = rig.broker.peer().await;
        let one = drain(&mut peer, "one").await;
        let commits = one.len();
        let when = format!("crash {at} after {commits} commits");
        assert_eq!(names(&one), ["1st", "2nd"][..commits], "{when}");
        assert_eq!(names(&drain(&mut peer, "other").await), ["1st", "2nd"][..commits], "{when}");
        let (left, dead) = rig.take(&mut peer, "from").await;
        assert_eq!(names(&left), ["1", "2", "3", "4", "5", "6"][3 * commits..], "{when}");
        assert_eq!(names(&dead), ["1", "2", "4", "5"][..2 * commits], "{when}");
        let bodies = [names(&left), names(&dead)].concat();
        check_one_of_two(("from", "rejected"), &sorted(bodies), &left, &dead, &when);
        let (left, dead) = rig.take(&mut peer, "last").await;
        assert_eq!(names(&dead), ["old", "1st"][..commits], "{when}");
        assert_eq!(names(&left), [["old", "1st", "2nd"][commits]], "{when}");
    }
}

fn sorted(mut bodies: Vec<&str>) -> Vec<&str> {
    bodies.sort_unstable();
    bodies
}

#[tokio::test]
async fn wherever_the_machine_stops_a_letter_that_must_arrive_is_in_one_queue() {
    let disk = SimDisk::new();
    let rig = Rig::start(&disk, Duration::ZERO).await;
    let mut peer = rig.broker.peer().await;
    let strategy =
        [("x-dead-letter-strategy", text("at-least-once")), ("x-overflow", text("reject-publish"))];
    source(&mut peer, "q", &strategy).await;
    policy(&rig.broker, User, "dead q", r#"{"max-length": 1, "overflow": "reject-publish"}"#);
    let bodies = ["1", "2", "3", "4"];
    publish_all(&mut peer, "q", &bodies).await;
    rig.sync().await;
    disk.keep_moments(true);
    for _ in 0..3 {
        reject(&mut peer, "q", false).await;
        rig.sync().await;
    }
    assert_eq!((rig.broker.depth("q").dead_letters, rig.broker.depth("dead q").ready), (2, 1));
    peer.close().await;
    rig.broker.stop().await;
    // The letters that are held outlive an orderly stop too, and arrive in another life.
    let rig = Rig::start(&disk, Duration::ZERO).await;
    until("they are held again", || rig.broker.depth("q").dead_letters == 2).await;
    policy(&rig.broker, User, "dead q", "");
    until("they arrive", || {
        rig.pass(Duration::from_millis(10));
        rig.broker.depth("dead q").ready == 3
    })
    .await;
    rig.sync().await;
    rig.broker.stop().await;
    for (at, crash) in crashes(&disk).iter().enumerate() {
        let rig = Rig::start(crash, Duration::ZERO).await;
        let mut peer = rig.broker.peer().await;
        if rig.broker.broker().delete_policy(User, "/", "dead q").is_ok() {
            rig.pass(Duration::from_millis(10));
        }
        let (left, dead) = rig.take(&mut peer, "q").await;
        check_one_of_two(("q", "rejected"), &bodies, &left, &dead, &format!("crash {at}"));
    }
}
