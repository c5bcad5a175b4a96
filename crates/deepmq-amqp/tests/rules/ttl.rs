//! Messages whose time is over.

use super::rig::{
    World, bodies, dead_letters_to, death, declare, drain, expiring, number, persistent, policy, publish,
    reject, take, until,
};
use deepmq_amqp::codec::method::basic;
use deepmq_model::Value;
use deepmq_model::policy::PolicyRank::{Operator, User};
use deepmq_storage::seam::SimClock;
use deepmq_testkit::TestBroker;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

fn ttl(milliseconds: i64) -> (&'static str, Value) {
    ("x-message-ttl", number(milliseconds))
}

#[tokio::test]
async fn messages_expire_with_nobody_there_and_are_dead_lettered_in_order() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "dead", false, &[]).await;
    declare(&mut peer, "q", false, &[&[ttl(1000)], &dead_letters_to("dead")[..]].concat()).await;
    peer.publish_all(1, "q", (0..100).map(|n| n.to_string())).await;
    peer.expect_quiet(1).await;
    world.pass(500);
    peer.publish(1, "", "q", "later").await;
    peer.expect_quiet(1).await;
    world.pass(499);
    assert_eq!(world.broker.depth("q").ready, 101);
    world.pass(11);
    assert_eq!(world.broker.depth("q").ready, 1);
    let dead = drain(&mut peer, "dead").await;
    let seen: Vec<_> = dead.iter().map(|message| message.body.clone()).collect();
    assert_eq!(seen, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(dead[0].died(), [death("expired", "q", 1)]);
    world.pass(500);
    assert_eq!(world.broker.depth("q").bytes, 0);
}

#[tokio::test]
async fn a_message_with_its_own_time_expires_wherever_it_is() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[]).await;
    peer.publish(1, "", "q", "for ever").await;
    for (time, body) in [(3000, "long"), (1000, "short"), (2000, "middle")] {
        publish(&mut peer, "q", &expiring(time), body).await;
    }
    peer.publish(1, "", "q", "for ever too").await;
    peer.expect_quiet(1).await;
    for left in [5, 4, 3, 2] {
        assert_eq!(world.broker.depth("q").ready, left);
        world.pass(1010);
    }
    assert_eq!(bodies(&mut peer, "q").await, ["for ever", "for ever too"]);
}

#[tokio::test]
async fn of_the_queues_and_the_messages_time_the_shorter_counts() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[ttl(1000)]).await;
    publish(&mut peer, "q", &expiring(5000), "a").await;
    publish(&mut peer, "q", &expiring(500), "b").await;
    peer.expect_quiet(1).await;
    world.pass(510);
    assert_eq!(world.broker.depth("q").ready, 1);
    world.pass(500);
    assert_eq!(world.broker.depth("q").ready, 0);
}

#[tokio::test]
async fn with_a_time_of_zero_a_message_is_delivered_at_once_or_never() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[ttl(0)]).await;
    declare(&mut peer, "p", false, &[]).await;
    peer.publish(1, "", "q", "nobody").await;
    publish(&mut peer, "p", &expiring(0), "nobody").await;
    for queue in ["q", "p"] {
        assert_eq!(take(&mut peer, queue).await, None, "{queue}");
    }
    peer.qos(1, 1, false).await;
    peer.consume(1, "q", "c").await;
    peer.publish_all(1, "q", ["1", "2"].map(String::from)).await;
    assert_eq!(peer.delivery(1).await.seen(), ("1", 1, false));
    peer.ack(1, 1, false).await;
    peer.expect_quiet(1).await;
    assert_eq!(world.broker.depth("q").bytes, 0, "the second found no consumer that could take it");
}

#[tokio::test]
async fn an_unacked_message_does_not_expire_and_one_that_comes_back_keeps_its_deadline() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[ttl(1000)]).await;
    for (pause, left) in [(500, 1), (2000, 0)] {
        peer.publish(1, "", "q", "m").await;
        let tag = peer.get(1, "q", false).await.unwrap().get_ok.delivery_tag;
        world.pass(pause);
        assert_eq!(world.broker.depth("q").unacked, 1);
        peer.send(1, basic::Nack { delivery_tag: tag, multiple: false, requeue: true }).await;
        peer.expect_quiet(1).await;
        assert_eq!(world.broker.depth("q").ready, left, "after {pause} ms");
        world.pass(510);
        assert_eq!(world.broker.depth("q").ready, 0);
    }
}

#[tokio::test]
async fn what_is_overdue_is_never_handed_out_even_before_the_timer_has_seen_it() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[ttl(1000)]).await;
    peer.publish(1, "", "q", "m").await;
    peer.expect_quiet(1).await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(take(&mut peer, "q").await, None);
}

#[tokio::test]
async fn a_policy_gives_messages_that_are_there_a_time_and_takes_it_away() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[]).await;
    peer.publish_all(1, "q", ["1", "2"].map(String::from)).await;
    peer.expect_quiet(1).await;
    let holds = |ttl| world.broker.queue("q").is_some_and(|queue| queue.settings().message_ttl == ttl);
    policy(&world.broker, User, "q", r#"{"message-ttl": 5000}"#);
    policy(&world.broker, Operator, "q", r#"{"message-ttl": 1000}"#);
    until("the policy holds", || holds(Some(1000))).await;
    world.pass(0);
    policy(&world.broker, User, "q", "");
    policy(&world.broker, Operator, "q", "");
    world.pass(2000);
    assert_eq!(world.broker.depth("q").ready, 2);
    policy(&world.broker, User, "q", r#"{"message-ttl": 1000}"#);
    world.pass(0);
    world.pass(1010);
    world.ready("q", 0).await;
}

#[tokio::test]
async fn deadlines_survive_a_restart_and_time_goes_on_meanwhile() {
    let dir = TempDir::new().unwrap();
    let world = World::start_in(Some(dir.path()), Arc::new(SimClock::new())).await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "dead", true, &[]).await;
    declare(&mut peer, "q", true, &[&[ttl(10_000)], &dead_letters_to("dead")[..]].concat()).await;
    policy(&world.broker, User, "p", r#"{"message-ttl": 10000}"#);
    declare(&mut peer, "p", true, &[]).await;
    for (time, body) in [(1000, "over"), (4000, "short")] {
        publish(&mut peer, "q", &expiring(time), body).await;
    }
    publish(&mut peer, "q", &persistent(), "long").await;
    publish(&mut peer, "p", &persistent(), "by policy").await;
    peer.close().await;

    let world = world.restart(dir.path(), Duration::from_secs(2)).await;
    world.pass(0);
    world.ready("q", 2).await;
    let world = world.restart(dir.path(), Duration::from_millis(2010)).await;
    world.pass(0);
    world.ready("q", 1).await;
    assert_eq!(world.broker.depth("p").ready, 1);
    world.pass(6000);
    world.ready("q", 0).await;
    world.ready("p", 0).await;
    let mut peer = world.broker.peer().await;
    assert_eq!(bodies(&mut peer, "dead").await, ["over", "short", "long"]);
}

#[tokio::test]
async fn messages_that_are_paged_out_expire_on_time_before_and_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let small = |config: &mut deepmq_broker::BrokerConfig| config.limits.message_pool_bytes = 1024 * 1024;
    let world = World::start_with(Some(dir.path()), Arc::new(SimClock::new()), small).await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "dead", true, &[]).await;
    declare(&mut peer, "q", true, &dead_letters_to("dead")).await;
    peer.select_confirms(1).await;
    let body = "x".repeat(4000);
    for at in 0..3000u64 {
        let time = [1000, 2000, 1_000_000][usize::try_from(at % 3).unwrap()];
        publish(&mut peer, "q", &expiring(time), &format!("{at} {body}")).await;
    }
    peer.expect_confirmed_up_to(1, 3000).await;
    let out = || world.broker.queue("q").map(|queue| queue.storage().paged_out_messages);
    until("most is paged out", || out() > Some(1000)).await;
    world.clock.advance(Duration::from_millis(1010));
    let expire = || {
        world.broker.broker().run_timers();
        world.clock.advance(Duration::from_millis(1));
        world.broker.depth("q").ready
    };
    until("a third expires", || expire() == 2000).await;
    until("they are dead letters", || world.broker.depth("dead").ready == 1000).await;
    peer.close().await;
    world.broker.stop().await;

    world.clock.advance(Duration::from_millis(1010));
    let world = World::start_with(Some(dir.path()), world.clock, small).await;
    let expire = || {
        world.broker.broker().run_timers();
        world.clock.advance(Duration::from_millis(1));
        world.broker.depth("q").ready
    };
    until("another third expires", || expire() == 1000).await;
    until("they are dead letters", || world.broker.depth("dead").ready == 2000).await;
    let mut peer = world.broker.peer().await;
    reject(&mut peer, "q", false).await;
    assert_eq!(world.broker.depth("q").ready, 999);
}

#[tokio::test]
async fn the_brokers_own_timer_expires_messages_without_being_asked() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[ttl(30)]).await;
    peer.publish_all(1, "q", (0..10).map(|n| n.to_string())).await;
    peer.expect_quiet(1).await;
    until("they expire", || broker.depth("q").bytes == 0).await;
}
