//! Policies that take effect, on queues that are there and on those to come.

use super::rig::{bodies, declare, number, policy, ready, take, text, until};
use deepmq_amqp::codec::method::basic;
use deepmq_model::policy::PolicyRank::{Operator, User};
use deepmq_testkit::TestBroker;

#[tokio::test]
async fn a_policy_shortens_a_queue_that_is_there_and_its_end_lets_it_grow() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[]).await;
    peer.publish_all(1, "q", (0..10).map(|n| n.to_string())).await;
    peer.expect_quiet(1).await;
    policy(&broker, User, "q", r#"{"max-length": 4}"#);
    ready(&broker, "q", 4).await;
    policy(&broker, Operator, "q", r#"{"max-length": 2}"#);
    ready(&broker, "q", 2).await;
    policy(&broker, Operator, "q", "");
    peer.publish_all(1, "q", ["10", "11", "12"].map(String::from)).await;
    assert_eq!(bodies(&mut peer, "q").await, ["9", "10", "11", "12"]);
    policy(&broker, User, "q", "");
    peer.publish_all(1, "q", (0..10).map(|n| n.to_string())).await;
    assert_eq!(bodies(&mut peer, "q").await.len(), 10);
}

#[tokio::test]
async fn bytes_are_counted_from_when_a_policy_limits_them() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[]).await;
    peer.publish_all(1, "q", ["1", "22", "333", "4444", "55555"].map(String::from)).await;
    peer.get(1, "q", false).await.unwrap();
    policy(&broker, User, "q", r#"{"max-length-bytes": 9}"#);
    ready(&broker, "q", 2).await;
    peer.publish(1, "", "q", "x").await;
    assert_eq!(bodies(&mut peer, "q").await, ["55555", "x"]);
}

#[tokio::test]
async fn a_policy_holds_for_queues_declared_later_and_merges_with_arguments() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    policy(
        &broker,
        User,
        "q",
        r#"{"max-length": 3, "dead-letter-exchange": "", "dead-letter-routing-key": "dead"}"#,
    );
    declare(&mut peer, "dead", false, &[]).await;
    declare(&mut peer, "q", false, &[("x-max-length", number(2))]).await;
    peer.publish_all(1, "q", ["1", "2", "3"].map(String::from)).await;
    assert_eq!(bodies(&mut peer, "q").await, ["2", "3"]);
    assert_eq!(take(&mut peer, "dead").await.unwrap().header("x-first-death-reason"), Some(&text("maxlen")));
}

#[tokio::test]
async fn a_policy_that_refuses_leaves_what_is_there() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    declare(&mut peer, "q", false, &[]).await;
    peer.publish_all(1, "q", ["1", "2", "3"].map(String::from)).await;
    peer.select_confirms(1).await;
    policy(&broker, User, "q", r#"{"max-length": 1, "overflow": "reject-publish"}"#);
    until("the policy holds", || broker.queue("q").is_some_and(|queue| queue.settings().refuses())).await;
    peer.publish(1, "", "q", "4").await;
    peer.expect(1, basic::Nack { delivery_tag: 1, multiple: false, requeue: false }).await;
    assert_eq!(bodies(&mut peer, "q").await, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_policy_reaches_ten_thousand_queues_at_once() {
    let broker = TestBroker::start().await;
    let vhost = broker.broker().vhost("/").unwrap();
    for n in 0..10_000 {
        let spec = deepmq_model::topology::QueueSpec::default();
        vhost.declare_queue(&format!("q{n}"), spec, deepmq_broker::connection::ConnectionId(1)).unwrap();
    }
    let record = r#"{"vhost":"/","name":"all","pattern":"^q","definition":{"max-length":7}}"#;
    broker.broker().put_policy(User, serde_json::from_str(record).unwrap()).unwrap();
    for n in 0..10_000 {
        assert_eq!(broker.queue(&format!("q{n}")).unwrap().settings().max_length, Some(7));
    }
}
