//! Queues that nobody uses.

use super::rig::{World, declare, number, policy, until};
use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::Value;
use deepmq_model::policy::PolicyRank::User;

const MISSING: &str = "NOT_FOUND - no queue 'q' in vhost '/'";

fn expires(milliseconds: i64) -> [(&'static str, Value); 1] {
    [("x-expires", number(milliseconds))]
}

#[tokio::test]
async fn an_unused_queue_goes_and_publishing_is_no_use() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &expires(1000)).await;
    world.pass(900);
    peer.publish(1, "", "q", "m").await;
    peer.expect_quiet(1).await;
    assert!(world.broker.queue("q").is_some());
    world.pass(200);
    peer.refused(queue::Declare { queue: "q", passive: true, ..Default::default() }, 404, MISSING).await;
}

#[tokio::test]
async fn fetching_declaring_and_consuming_are_use() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &expires(1000)).await;
    world.pass(900);
    assert!(peer.get(1, "q", true).await.is_none());
    world.pass(900);
    declare(&mut peer, "q", false, &expires(1000)).await;
    world.pass(900);
    peer.declare_with(1, queue::Declare { queue: "q", passive: true, ..Default::default() }).await;
    world.pass(900);
    peer.consume(1, "q", "c").await;
    world.pass(10_000);
    peer.call(1, basic::Cancel { consumer_tag: "c", no_wait: false }).await;
    world.pass(900);
    assert!(world.broker.queue("q").is_some());
    world.pass(200);
    assert!(world.broker.queue("q").is_none());
}

#[tokio::test]
async fn a_policy_lets_a_queue_expire_from_when_it_is_set() {
    let world = World::start().await;
    let mut peer = world.broker.peer().await;
    declare(&mut peer, "q", false, &[]).await;
    world.pass(5000);
    policy(&world.broker, User, "q", r#"{"expires": 1000}"#);
    world.pass(900);
    assert!(world.broker.queue("q").is_some());
    world.pass(200);
    until("the queue goes", || world.broker.queue("q").is_none()).await;
}
