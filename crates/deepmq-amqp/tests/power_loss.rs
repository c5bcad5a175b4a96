//! The machine stops at any moment: what was confirmed is there, what was settled durably is not, in order, in every queue.
//!
//! The disk is simulated and forgets what was not synced. Files and memory are so small that paging, checkpoints and the reuse of
//! journal files go on all the time.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::message::Properties;
use deepmq_storage::seam::{Seam, SimDisk};
use deepmq_storage::{Durability, verify};
use deepmq_testkit::{RawPeer, TestBroker};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const QUEUES: [&str; 3] = ["hot", "deep", "slow"];
const STEPS: u64 = 60;
const BURST: u64 = 40;

/// Messages by queue, as their numbers.
type Numbers = BTreeMap<&'static str, BTreeSet<u64>>;

/// What the client knows.
#[derive(Debug, Default, Clone)]
struct Known {
    confirmed: Numbers,
    acknowledged: Numbers,
    durably_acknowledged: Numbers,
}

#[derive(Debug, Default, Clone)]
struct Shared(Arc<Mutex<Known>>);

impl Shared {
    fn with<R>(&self, with: impl FnOnce(&mut Known) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn seam(disk: &SimDisk) -> Seam {
    Seam { disk: Arc::new(disk.clone()), ..Seam::real() }
}

async fn start(disk: &SimDisk) -> TestBroker {
    TestBroker::start_on(seam(disk), |config| {
        config.data_dir = Some("/data".into());
        config.storage.journal_file_bytes = 32 * 1024;
        config.storage.segment_bytes = 64 * 1024;
        config.limits.message_pool_bytes = 128 * 1024;
    })
    .await
}

/// A stream of numbers that is the same for the same seed.
struct Numbered(u64);

impl Numbered {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        let at = self.below(N as u64);
        *(0..).zip(&choices).find(|(index, _)| *index == at).expect("there is a choice").1
    }
}

async fn publish(peer: &mut RawPeer, queue: &str, number: u64, len: usize) {
    let mut properties = Vec::new();
    Properties { delivery_mode: Some(2), ..Properties::default() }.encode(&mut properties);
    let publish = basic::Publish { routing_key: queue.as_bytes(), ..Default::default() };
    peer.publish_with(1, &publish, &properties, format!("{number:0len$}").as_bytes()).await;
}

fn number(body: &[u8]) -> u64 {
    std::str::from_utf8(body).ok().and_then(|text| text.parse().ok()).expect("the test published a number")
}

/// Publishes and acknowledges, and keeps account of it.
async fn work(broker: &TestBroker, shared: &Shared, seed: u64) {
    let mut random = Numbered(seed);
    let mut peer = broker.peer().await;
    for queue in QUEUES {
        peer.declare_with(1, queue::Declare { queue, durable: true, ..Default::default() }).await;
    }
    peer.select_confirms(1).await;
    let journal = broker.broker().durable().expect("it has a data directory").journal().clone();
    let mut next = 0;
    for _ in 0..STEPS {
        let (mut sent, confirmed) = (Vec::new(), next);
        for _ in 0..random.below(BURST) {
            let queue = random.one_of(QUEUES);
            let len = if random.below(20) == 0 { 9000 } else { random.one_of([10, 100, 300, 800]) };
            publish(&mut peer, queue, next, len).await;
            sent.push((queue, next));
            next += 1;
        }
        peer.expect_confirmed(1, confirmed, next).await;
        shared.with(|known| {
            sent.iter().for_each(|(queue, number)| {
                known.confirmed.entry(queue).or_default().insert(*number);
            });
        });
        // `deep` is hardly consumed, `slow` out of order.
        let gets = [random.below(BURST / 2), random.below(3), random.below(10)];
        for (queue, gets) in QUEUES.into_iter().zip(gets) {
            let mut got = Vec::new();
            for _ in 0..gets {
                let Some(message) = peer.get(1, queue, false).await else { break };
                got.push((message.get_ok.delivery_tag, number(&message.content.body)));
            }
            for (at, (tag, number)) in got.into_iter().enumerate() {
                if queue == "slow" && at % 2 == 0 {
                    peer.send(1, basic::Nack { delivery_tag: tag, requeue: true, ..Default::default() })
                        .await;
                } else {
                    shared.with(|known| known.acknowledged.entry(queue).or_default().insert(number));
                    peer.ack(1, tag, false).await;
                }
            }
        }
        peer.expect_quiet(1).await;
        if random.below(3) == 0 {
            let settled = shared.with(|known| known.acknowledged.clone());
            let last = journal.appended();
            journal.request_sync();
            let waited = journal.clone();
            tokio::task::spawn_blocking(move || waited.wait(last, Durability::Fsync))
                .await
                .expect("waiting does not panic")
                .expect("the simulated disk works");
            shared.with(|known| known.durably_acknowledged = settled);
        }
    }
    peer.close().await;
}

/// Starts a broker on what a crash left, and compares.
async fn check(disk: &SimDisk, before: &Known, after: &Known, seed: u64) {
    let report = verify(&seam(disk), Path::new("/data")).expect("it can be read");
    assert!(report.damage.is_empty(), "seed {seed}: {:?}", report.damage);
    let broker = start(disk).await;
    let mut peer = broker.peer().await;
    for queue in QUEUES {
        let declare = queue::Declare { queue, durable: true, ..Default::default() };
        peer.declare_with(1, declare).await;
        let mut seen = Vec::new();
        while let Some(got) = peer.get(1, queue, true).await {
            assert!(
                got.get_ok.redelivered || report.clean,
                "after a crash anything may have been handed out"
            );
            seen.push(number(&got.content.body));
        }
        assert!(seen.is_sorted_by(|one, next| one < next), "seed {seed}, {queue}: {seen:?}");
        let seen: BTreeSet<u64> = seen.into_iter().collect();
        let of = |numbers: &Numbers| numbers.get(queue).cloned().unwrap_or_default();
        let lost = &(&of(&before.confirmed) - &of(&after.acknowledged)) - &seen;
        assert!(lost.is_empty(), "seed {seed}, {queue}: confirmed and lost: {lost:?}");
        let again: Vec<_> = of(&before.durably_acknowledged).intersection(&seen).copied().collect();
        assert!(again.is_empty(), "seed {seed}, {queue}: acknowledged and back: {again:?}");
    }
    peer.close().await;
    broker.stop().await;
}

/// Slow: ten seconds or so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_loss_at_any_moment_loses_nothing_confirmed_and_brings_nothing_settled_back() {
    for seed in 0..4 {
        let disk = SimDisk::new();
        let shared = Shared::default();
        let broker = start(&disk).await;
        let (working, crashes) = (shared.clone(), shared.clone());
        let sampled = disk.clone();
        let sampler = tokio::task::spawn_blocking(move || {
            let mut samples = Vec::new();
            let mut random = Numbered(seed);
            let mut at = 0;
            while Arc::strong_count(&crashes.0) > 2 {
                // By the disk's own time: every few operations, whatever they are.
                at += 1 + random.below(500);
                while sampled.operations() < at && Arc::strong_count(&crashes.0) > 2 {
                    std::thread::yield_now();
                }
                let before = crashes.with(|known| known.clone());
                let survivor = sampled.crash(random.below(1 << 20));
                samples.push((survivor, before, crashes.with(|known| known.clone())));
                at = at.max(sampled.operations());
            }
            samples
        });
        work(&broker, &working, seed).await;
        drop(working);
        let samples = sampler.await.expect("sampling does not panic");
        assert!(samples.len() > 3, "the disk was hardly used");
        for (disk, before, after) in &samples {
            check(disk, before, after, seed).await;
        }
        broker.stop().await;
        let (before, after) = shared.with(|known| (known.clone(), known.clone()));
        check(&disk.image(), &before, &after, seed).await;
    }
}
