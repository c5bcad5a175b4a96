//! `x-dead-letter-strategy: at-least-once`: a dead letter that nobody takes stays where it died.

use super::rig::{
    Arguments, World, bodies, dead_letters_to, death, declare, drain, number, persistent, policy, publish,
    ready, reject, take, text, until,
};
use deepmq_amqp::codec::method::{basic, exchange, queue};
use deepmq_broker::queue::Depth;
use deepmq_model::policy::PolicyRank::User;
use deepmq_model::{Table, Value};
use deepmq_storage::seam::SimClock;
use deepmq_testkit::{RawPeer, TestBroker};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A change is answered after so long, in milliseconds.
const SOON: u64 = 10;
/// What could not be placed is tried again after so long at the latest, in milliseconds.
const TRY_AGAIN: u64 = 30_000;

fn strategy() -> [(&'static str, Value); 2] {
    [("x-dead-letter-strategy", text("at-least-once")), ("x-overflow", text("reject-publish"))]
}

/// A queue that takes `max` messages, and no more.
async fn narrow(peer: &mut RawPeer, queue: &str, max: i64) {
    declare(peer, queue, true, &[("x-max-length", number(max)), ("x-overflow", text("reject-publish"))])
        .await;
}

async fn source(peer: &mut RawPeer, arguments: Arguments<'_>) {
    declare(peer, "q", true, &[&strategy(), arguments].concat()).await;
}

async fn publish_all(peer: &mut RawPeer, queue: &str, bodies: &[&str]) {
    for body in bodies {
        publish(peer, queue, &persistent(), body).await;
    }
    peer.expect_quiet(1).await;
}

/// The dead letters that are in the source, and their bytes.
fn held(broker: &TestBroker) -> (u64, u64) {
    let Depth { dead_letters, dead_letter_bytes, .. } = broker.depth("q");
    (dead_letters, dead_letter_bytes)
}

/// Waits until so many are. A little time passes, for the timers' thread may have been at it when the clock was moved.
async fn holds(world: &World, letters: (u64, u64)) {
    until("so many letters are held", || {
        world.pass(1);
        held(&world.broker) == letters
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_a_full_queue_refuses_stays_and_goes_once_there_is_room() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    narrow(&mut peer, "dead", 1).await;
    source(&mut peer, &dead_letters_to("dead")).await;
    publish_all(&mut peer, "q", &["one", "two", "three"]).await;
    for _ in 0..3 {
        reject(&mut peer, "q", false).await;
    }
    assert_eq!((world.broker.depth("dead").ready, held(&world.broker)), (1, (2, 8)));
    assert_eq!(take(&mut peer, "q").await, None, "what died is not ready");

    world.pass(TRY_AGAIN / 2);
    assert_eq!(held(&world.broker), (2, 8), "there is no room");
    for (body, left) in [("one", (1, 5)), ("two", (0, 0)), ("three", (0, 0))] {
        let dead = take(&mut peer, "dead").await.unwrap();
        assert_eq!((&*dead.body, dead.died()), (body, vec![death("rejected", "q", 1)]));
        world.pass(SOON);
        holds(&world, left).await;
    }
    assert_eq!(world.broker.depth("q").bytes, 0);
}

#[tokio::test]
async fn other_letters_pass_those_that_can_not_be_placed() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    peer.declare_exchange(1, "dlx", "fanout").await;
    source(&mut peer, &[("x-dead-letter-exchange", text("dlx"))]).await;
    narrow(&mut peer, "narrow", 1).await;
    declare(&mut peer, "wide", true, &[]).await;
    for queue in ["narrow", "wide"] {
        peer.bind(1, queue, "dlx", "").await;
    }
    publish_all(&mut peer, "q", &["one", "two", "three"]).await;
    for _ in 0..3 {
        reject(&mut peer, "q", false).await;
    }
    let wide = drain(&mut peer, "wide").await;
    assert_eq!(wide.iter().map(|dead| &*dead.body).collect::<Vec<_>>(), ["one", "two", "three"]);
    for body in ["one", "two", "three"] {
        world.ready("narrow", 1).await;
        assert_eq!(bodies(&mut peer, "narrow").await, [body]);
        world.pass(SOON);
    }
    holds(&world, (0, 0)).await;
    assert_eq!(bodies(&mut peer, "wide").await, [""; 0], "who has a letter does not get it again");
}

#[tokio::test]
async fn a_letter_that_is_routed_nowhere_goes_once_the_topology_lets_it() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    source(&mut peer, &[("x-dead-letter-exchange", text("later"))]).await;
    declare(&mut peer, "dead", true, &[]).await;
    publish_all(&mut peer, "q", &["m"]).await;
    reject(&mut peer, "q", false).await;
    assert_eq!(held(&world.broker), (1, 1), "there is no such exchange");
    peer.declare_exchange(1, "later", "direct").await;
    world.pass(SOON);
    assert_eq!(held(&world.broker), (1, 1), "there is no binding");
    peer.bind(1, "dead", "later", "q").await;
    world.pass(SOON);
    holds(&world, (0, 0)).await;
    assert_eq!(bodies(&mut peer, "dead").await, ["m"]);
}

#[tokio::test]
async fn a_deleted_queue_is_waited_for_no_more() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    peer.declare_exchange(1, "dlx", "fanout").await;
    source(&mut peer, &[("x-dead-letter-exchange", text("dlx"))]).await;
    narrow(&mut peer, "narrow", 0).await;
    declare(&mut peer, "wide", true, &[]).await;
    for queue in ["narrow", "wide"] {
        peer.bind(1, queue, "dlx", "").await;
    }
    publish_all(&mut peer, "q", &["m"]).await;
    reject(&mut peer, "q", false).await;
    assert_eq!((held(&world.broker), world.broker.depth("wide").ready), ((1, 1), 1));
    peer.call(1, queue::Delete { queue: "narrow", ..Default::default() }).await;
    world.pass(SOON);
    holds(&world, (0, 0)).await;
    assert_eq!(world.broker.depth("wide").ready, 1);
}

#[tokio::test]
async fn what_nobody_said_changed_is_tried_again_after_a_while() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    // It never fits, until the limit is another.
    declare(&mut peer, "dead", true, &[("x-overflow", text("reject-publish"))]).await;
    policy(&world.broker, User, "dead", r#"{"max-length-bytes": 3}"#);
    source(&mut peer, &dead_letters_to("dead")).await;
    publish_all(&mut peer, "q", &["too long", "fits"]).await;
    reject(&mut peer, "q", false).await;
    for _ in 0..3 {
        world.pass(TRY_AGAIN);
        assert_eq!(held(&world.broker), (1, 8));
    }
    policy(&world.broker, User, "dead", r#"{"max-length-bytes": 8}"#);
    world.pass(0);
    world.pass(SOON);
    holds(&world, (0, 0)).await;
    assert_eq!(bodies(&mut peer, "dead").await, ["too long"]);
}

#[tokio::test]
async fn what_stays_counts_against_the_limits_of_its_queue() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    peer.select_confirms(1).await;
    source(&mut peer, &[&[("x-max-length", number(2))], &dead_letters_to("missing")[..]].concat()).await;
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    for body in ["one", "two"] {
        peer.publish_with(1, &publish, &[0, 0], body.as_bytes()).await;
    }
    peer.expect_confirmed(1, 0, 2).await;
    reject(&mut peer, "q", false).await;
    assert_eq!((world.broker.depth("q").ready, held(&world.broker)), (1, (1, 3)));
    peer.publish_with(1, &publish, &[0, 0], b"three").await;
    peer.expect(1, basic::Nack { delivery_tag: 3, multiple: false, requeue: false }).await;
    declare(&mut peer, "missing", true, &[]).await;
    world.pass(SOON);
    holds(&world, (0, 0)).await;
    peer.publish_with(1, &publish, &[0, 0], b"four").await;
    peer.expect_confirmed(1, 3, 4).await;
}

#[tokio::test]
async fn without_reject_publish_or_with_at_most_once_what_is_refused_is_lost() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    narrow(&mut peer, "dead", 0).await;
    let [at_least_once, refuses] = strategy();
    let at_most_once = ("x-dead-letter-strategy", text("at-most-once"));
    for (queue, arguments) in [("a", vec![at_least_once]), ("b", vec![refuses, at_most_once])] {
        declare(&mut peer, queue, true, &[&arguments, &dead_letters_to("dead")[..]].concat()).await;
        publish_all(&mut peer, queue, &["m"]).await;
        reject(&mut peer, queue, false).await;
        assert_eq!(
            (world.broker.depth(queue).messages(), world.broker.depth(queue).bytes),
            (0, 0),
            "{queue}"
        );
    }
}

#[tokio::test]
async fn a_policy_says_it_too_and_takes_it_back() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", true, &dead_letters_to("missing")).await;
    policy(
        &world.broker,
        User,
        "q",
        r#"{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}"#,
    );
    publish_all(&mut peer, "q", &["m"]).await;
    reject(&mut peer, "q", false).await;
    assert_eq!(held(&world.broker), (1, 1));
    policy(&world.broker, User, "q", "");
    world.pass(0);
    holds(&world, (0, 0)).await;
    assert_eq!(world.broker.depth("q").bytes, 0);
}

#[tokio::test]
async fn a_purge_drops_what_stays_and_counts_it() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    source(&mut peer, &dead_letters_to("missing")).await;
    publish_all(&mut peer, "q", &["one", "two", "three"]).await;
    for _ in 0..2 {
        reject(&mut peer, "q", false).await;
    }
    let purged = peer.call(1, queue::Purge { queue: "q", ..Default::default() }).await;
    assert_eq!(purged, queue::PurgeOk { message_count: 3 }.into());
    assert_eq!((world.broker.depth("q").messages(), world.broker.depth("q").bytes), (0, 0));
    declare(&mut peer, "missing", true, &[]).await;
    world.pass(TRY_AGAIN);
    assert_eq!(bodies(&mut peer, "missing").await, [""; 0]);
}

#[tokio::test]
async fn a_letter_that_would_go_round_stays() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    source(&mut peer, &[&[("x-message-ttl", number(0))], &dead_letters_to("q")[..]].concat()).await;
    publish_all(&mut peer, "q", &["m"]).await;
    world.pass(TRY_AGAIN);
    holds(&world, (1, 1)).await;
    assert_eq!(world.broker.depth("q").ready, 0);
}

#[tokio::test]
async fn what_stays_stays_dead_over_restarts_and_tells_why() {
    let dir = TempDir::new().unwrap();
    let mut world = World::start_in(Some(dir.path()), Arc::new(SimClock::new())).await;
    let mut peer = world.broker.peer().await;
    let limits = [("x-delivery-limit", number(0)), ("x-message-ttl", number(1000))];
    source(&mut peer, &[&limits, &dead_letters_to("missing")[..]].concat()).await;
    publish_all(&mut peer, "q", &["rejected", "came back", "expired"]).await;
    reject(&mut peer, "q", false).await;
    reject(&mut peer, "q", true).await;
    world.pass(1000);
    ready(&world.broker, "q", 0).await;
    holds(&world, (3, 24)).await;
    peer.close().await;
    for _ in 0..2 {
        world = world.restart(dir.path(), Duration::from_secs(1)).await;
        holds(&world, (3, 24)).await;
        assert_eq!(world.broker.depth("q").ready, 0);
    }
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "missing", true, &[]).await;
    world.pass(SOON);
    world.ready("missing", 3).await;
    let dead = drain(&mut peer, "missing").await;
    let mut seen: Vec<_> = dead.iter().map(|dead| (&*dead.body, dead.died())).collect();
    seen.sort();
    let died = |reason| vec![death(reason, "q", 1)];
    let expected =
        [("came back", died("delivery_limit")), ("expired", died("expired")), ("rejected", died("rejected"))];
    assert_eq!(seen, expected);
    peer.close().await;
    let world = world.restart(dir.path(), Duration::from_secs(1)).await;
    assert_eq!(world.broker.depth("q").messages() + world.broker.depth("missing").messages(), 0);
}

/// With very many that can not be placed, others wait behind the first of them; no message is tried twice for nothing.
#[tokio::test]
async fn many_that_can_not_be_placed_are_tried_in_their_order_and_all_go_in_the_end() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    narrow(&mut peer, "dead", 100).await;
    source(&mut peer, &dead_letters_to("dead")).await;
    let numbers = |range: std::ops::Range<u32>| range.map(|n| n.to_string()).collect::<Vec<_>>();
    peer.publish_all(1, "q", numbers(0..1000)).await;
    peer.consume(1, "q", "c").await;
    peer.deliveries(1, 1000).await;
    peer.send(1, basic::Nack { delivery_tag: 0, multiple: true, requeue: false }).await;
    peer.expect_quiet(1).await;
    for round in 0..10 {
        until("a part of them goes", || world.broker.depth("q").dead_letters == 900 - u64::from(round) * 100)
            .await;
        world.ready("dead", 100).await;
        assert_eq!(bodies(&mut peer, "dead").await, numbers(round * 100..round * 100 + 100));
        world.pass(SOON);
    }
    holds(&world, (0, 0)).await;
}

#[tokio::test]
async fn by_headers_a_letter_finds_its_way_as_it_died() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    peer.call(1, exchange::Declare { exchange: "dlx", kind: "headers", ..Default::default() }).await;
    source(&mut peer, &[("x-dead-letter-exchange", text("dlx"))]).await;
    declare(&mut peer, "dead", true, &[]).await;
    publish_all(&mut peer, "q", &["m"]).await;
    reject(&mut peer, "q", false).await;
    let arguments: Table =
        [("x-first-death-reason", text("rejected")), ("x-match", text("all-with-x"))].into_iter().collect();
    peer.call(1, queue::Bind { queue: "dead", exchange: "dlx", arguments, ..Default::default() }).await;
    world.pass(SOON);
    holds(&world, (0, 0)).await;
    assert_eq!(bodies(&mut peer, "dead").await, ["m"]);
}
