//! All pairs of a queue's features together, against a model of a queue that is slow and plain.
//!
//! Owns the pairs and the model. Each combination is a script of seeded steps on the real broker and on the model; after each step
//! both hold the same, in the queue and among the dead letters. The seed is printed with whatever fails.

use super::rig::{World, dead_letters_to, declare, expiring, number, persistent, publish, take, text, until};
use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::basic;
use deepmq_model::Value;
use deepmq_storage::seam::{Random, SeededRandom, SimClock};
use deepmq_testkit::RawPeer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const SEED: u64 = 20_260_101;
const STEPS: u64 = 40;

/// One combination: of each feature a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Features {
    ttl: Option<u64>,
    own_times: bool,
    max_length: Option<usize>,
    overflow: Option<&'static str>,
    dead_letters: bool,
    delivery_limit: Option<u32>,
    quorum: bool,
    restart: bool,
}

/// How many variants each feature has.
const VARIANTS: [usize; 8] = [3, 2, 3, 4, 2, 3, 2, 2];

impl Features {
    fn of(row: [usize; 8]) -> Self {
        let [ttl, own_times, max_length, overflow, dead_letters, delivery_limit, quorum, restart] = row;
        Self {
            ttl: [None, Some(0), Some(1000)].get(ttl).copied().flatten(),
            own_times: own_times == 1,
            max_length: [None, Some(1), Some(4)].get(max_length).copied().flatten(),
            overflow: [None, Some("drop-head"), Some("reject-publish"), Some("reject-publish-dlx")]
                .get(overflow)
                .copied()
                .flatten(),
            dead_letters: dead_letters == 1,
            delivery_limit: [None, Some(0), Some(2)].get(delivery_limit).copied().flatten(),
            quorum: quorum == 1,
            restart: restart == 1,
        }
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let mut arguments = Vec::new();
        let mut put = |key, value: Option<i64>| arguments.extend(value.map(|value| (key, number(value))));
        put("x-message-ttl", self.ttl.map(u64::cast_signed));
        put("x-max-length", self.max_length.map(|max| i64::try_from(max).expect("it is small")));
        put("x-delivery-limit", self.delivery_limit.map(i64::from));
        arguments.extend(self.overflow.map(|overflow| ("x-overflow", text(overflow))));
        if self.dead_letters {
            arguments.extend(dead_letters_to("dead"));
        }
        if self.quorum {
            arguments.push(("x-queue-type", text("quorum")));
        }
        arguments
    }
}

/// Rows such that any two variants of any two features are together in one of them: each row takes the pairs that are left, as
/// many as it can.
fn rows() -> Vec<[usize; 8]> {
    let features = || 0..VARIANTS.len();
    let variants = |feature: usize| 0..VARIANTS.get(feature).copied().unwrap_or(0);
    let mut left: Vec<((usize, usize), (usize, usize))> = Vec::new();
    for a in features() {
        for b in features().skip(a + 1) {
            left.extend(variants(a).flat_map(|x| variants(b).map(move |y| ((a, x), (b, y)))));
        }
    }
    let has = |row: &[Option<usize>; 8], (feature, variant)| {
        row.get(feature).is_some_and(|value| *value == Some(variant))
    };
    let mut rows = Vec::new();
    while let Some(&(first, second)) = left.first() {
        let mut row = [None; 8];
        for (feature, variant) in [first, second] {
            if let Some(slot) = row.get_mut(feature) {
                *slot = Some(variant);
            }
        }
        for feature in features() {
            if row.get(feature).is_none_or(Option::is_some) {
                continue;
            }
            let gain = |variant| {
                let with = |a, b| a == (feature, variant) && has(&row, b);
                left.iter().filter(|&&(a, b)| with(a, b) || with(b, a)).count()
            };
            let best = variants(feature).max_by_key(|&variant| gain(variant));
            if let Some(slot) = row.get_mut(feature) {
                *slot = best;
            }
        }
        left.retain(|&(a, b)| !(has(&row, a) && has(&row, b)));
        rows.push(row.map(Option::unwrap_or_default));
    }
    rows
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Message {
    body: String,
    deadline: u64,
    returns: u32,
}

/// What a queue with these features does, said as plainly as can be.
#[derive(Debug)]
struct Model {
    features: Features,
    now: u64,
    ready: VecDeque<Message>,
    dead: Vec<(String, &'static str)>,
}

impl Model {
    fn die(&mut self, message: Message, reason: &'static str) {
        if self.features.dead_letters {
            self.dead.push((message.body, reason));
        }
    }

    fn is_full(&self) -> bool {
        self.features.max_length.is_some_and(|max| self.ready.len() >= max)
    }

    /// Whether the message is taken.
    fn publish(&mut self, body: String, own: Option<u64>) -> bool {
        let time = own.into_iter().chain(self.features.ttl).min();
        let message = Message { body, deadline: time.map_or(u64::MAX, |time| self.now + time), returns: 0 };
        let overflow = self.features.overflow.unwrap_or("drop-head");
        if overflow != "drop-head" && self.is_full() {
            if overflow == "reject-publish-dlx" {
                self.die(message, "maxlen");
            }
            return false;
        }
        self.ready.push_back(message);
        self.shorten();
        self.expire();
        true
    }

    fn shorten(&mut self) {
        let refuses = self.features.overflow.is_some_and(|overflow| overflow != "drop-head");
        while !refuses && self.features.max_length.is_some_and(|max| self.ready.len() > max) {
            let Some(first) = self.ready.pop_front() else { return };
            self.die(first, "maxlen");
        }
    }

    fn expire(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        let (over, left): (VecDeque<_>, _) =
            ready.into_iter().partition(|message| message.deadline <= self.now);
        self.ready = left;
        over.into_iter().for_each(|message| self.die(message, "expired"));
    }

    /// The first comes back.
    fn requeue(&mut self, mut message: Message) {
        message.returns += 1;
        let limit = self.features.delivery_limit.or(self.features.quorum.then_some(20));
        if limit.is_some_and(|limit| message.returns > limit) {
            self.die(message, "delivery_limit");
            return;
        }
        self.ready.push_front(message);
        self.shorten();
        self.expire();
    }
}

struct Run {
    world: World,
    peer: RawPeer,
    model: Model,
    random: SeededRandom,
    published: u64,
    /// Publishes that were confirmed, on this channel.
    confirmed: u64,
}

impl Run {
    fn draw(&self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % below
    }

    async fn step(&mut self) {
        match self.draw(10) {
            0..=4 => self.publish().await,
            5 => self.settle(basic::Ack { delivery_tag: 0, multiple: false }.into()).await,
            6 | 7 => {
                self.settle(basic::Nack { delivery_tag: 0, multiple: false, requeue: true }.into()).await;
            }
            8 => self.settle(basic::Reject { delivery_tag: 0, requeue: false }.into()).await,
            _ => {
                let pause =
                    [10, 400, 700].get(usize::try_from(self.draw(3)).unwrap_or(0)).copied().unwrap_or(10);
                self.model.now += pause;
                self.world.clock.advance(Duration::from_millis(pause));
                self.model.expire();
                // Deadlines that are close together are looked at together, ten milliseconds late at most.
                self.look();
            }
        }
    }

    fn look(&self) {
        for _ in 0..2 {
            self.world.broker.broker().run_timers();
        }
    }

    async fn publish(&mut self) {
        let body = self.published.to_string();
        self.published += 1;
        let times = self.model.features.own_times && self.draw(2) == 0;
        let own = times.then(|| self.draw(4) * 500);
        let properties = own.map_or_else(persistent, expiring);
        publish(&mut self.peer, "q", &properties, &body).await;
        self.confirmed += 1;
        let taken = match self.peer.method(1).await {
            Method::Basic(basic::Method::Ack(ack)) => (ack.delivery_tag, true),
            Method::Basic(basic::Method::Nack(nack)) => (nack.delivery_tag, false),
            other => panic!("not a confirm: {other:?}"),
        };
        assert_eq!(taken, (self.confirmed, self.model.publish(body, own)));
    }

    /// Fetches the first message and does this to it.
    async fn settle(&mut self, verdict: Method<'static>) {
        self.model.expire();
        let got = self.peer.get(1, "q", false).await;
        let first = self.model.ready.pop_front();
        let body = got.as_ref().map(|got| String::from_utf8_lossy(&got.content.body).into_owned());
        assert_eq!(body, first.as_ref().map(|message| message.body.clone()));
        let (Some(got), Some(first)) = (got, first) else { return };
        let delivery_tag = got.get_ok.delivery_tag;
        match verdict {
            Method::Basic(basic::Method::Nack(nack)) => {
                self.peer.send(1, basic::Nack { delivery_tag, ..nack }).await;
                self.model.requeue(first);
            }
            Method::Basic(basic::Method::Reject(reject)) => {
                self.peer.send(1, basic::Reject { delivery_tag, ..reject }).await;
                self.model.die(first, "rejected");
            }
            _ => self.peer.ack(1, delivery_tag, false).await,
        }
        self.peer.expect_quiet(1).await;
    }

    async fn agree(&self) {
        let (ready, dead) = (self.model.ready.len() as u64, self.model.dead.len() as u64);
        let held = |queue| self.world.broker.depth(queue).ready;
        until(&format!("{ready} ready and {dead} dead, not {} and {}", held("q"), held("dead")), || {
            self.world.broker.broker().run_timers();
            (held("q"), held("dead")) == (ready, dead)
        })
        .await;
    }

    /// What is left at the end, in order, with why it died.
    async fn finish(mut self) {
        let mut dead = Vec::new();
        while let Some(message) = take(&mut self.peer, "dead").await {
            let (reason, queue, count) = message.died().remove(0);
            assert_eq!((&*queue, count), ("q", 1));
            dead.push((message.body, reason));
        }
        let told: Vec<_> =
            self.model.dead.iter().map(|(body, why)| (body.clone(), (*why).to_owned())).collect();
        assert_eq!(dead, told);
        let ready: Vec<_> = self.model.ready.iter().map(|message| message.body.clone()).collect();
        assert_eq!(super::rig::bodies(&mut self.peer, "q").await, ready);
    }
}

async fn peer_of(world: &World) -> RawPeer {
    let mut peer = world.broker.peer().await;
    peer.select_confirms(1).await;
    peer
}

async fn run(features: Features, seed: u64) {
    let dir = TempDir::new().expect("there is room for a directory");
    let world = World::start_in(Some(dir.path()), Arc::new(SimClock::new())).await;
    let mut peer = peer_of(&world).await;
    declare(&mut peer, "dead", true, &[]).await;
    declare(&mut peer, "q", true, &features.arguments()).await;
    let model = Model { features, now: 0, ready: VecDeque::new(), dead: Vec::new() };
    let random = SeededRandom::new(seed);
    let mut run = Run { world, peer, model, random, published: 0, confirmed: 0 };
    for step in 0..STEPS {
        if features.restart && step == STEPS / 2 {
            run.peer.close().await;
            run.world = run.world.restart(dir.path(), Duration::ZERO).await;
            run.peer = peer_of(&run.world).await;
            run.confirmed = 0;
        }
        run.step().await;
        run.agree().await;
    }
    run.finish().await;
}

#[tokio::test]
async fn any_two_features_go_together_as_the_plain_model_has_it() {
    let rows = rows();
    for (at, row) in (0..).zip(&rows) {
        let (features, seed) = (Features::of(*row), SEED + at);
        println!("{seed}: {features:?}");
        run(features, seed).await;
    }
    assert!((12..40).contains(&rows.len()), "{} combinations", rows.len());
}
