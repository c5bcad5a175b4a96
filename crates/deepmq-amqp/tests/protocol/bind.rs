//! Bindings: which messages go where.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, exchange, queue};
use deepmq_broker::registry::PolicyRecord;
use deepmq_model::message::properties::Properties;
use deepmq_model::policy::PolicyRank;
use deepmq_model::{Table, Value};
use deepmq_testkit::{RawPeer, TestBroker};

async fn broker_and_peer(queues: &[&str]) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    for queue in queues {
        peer.declare(1, queue).await;
    }
    (broker, peer)
}

/// How many messages each queue has once a publish is through; then they have none.
async fn arrived(broker: &TestBroker, peer: &mut RawPeer, queues: &[&str]) -> Vec<u64> {
    peer.expect_quiet(1).await;
    let depths = queues.iter().map(|queue| broker.depth(queue).ready).collect();
    for queue in queues {
        broker.queue(queue).expect("it was declared").purge(&mut deepmq_broker::subscriber::Wakes::default());
    }
    depths
}

#[tokio::test]
async fn the_default_exchange_leads_to_the_queue_of_the_key() {
    let (broker, mut peer) = broker_and_peer(&["a", "b"]).await;
    peer.publish(1, "", "a", "m").await;
    peer.publish(1, "", "c", "m").await;
    assert_eq!(arrived(&broker, &mut peer, &["a", "b"]).await, [1, 0]);
}

#[tokio::test]
async fn direct_compares_fanout_ignores_and_topic_matches_the_key() {
    let queues = ["a", "b", "c"];
    let (broker, mut peer) = broker_and_peer(&queues).await;
    for (kind, keys, key, expected) in [
        ("direct", ["k", "k.x", "#"], "k", [1, 0, 0]),
        ("fanout", ["k", "k.x", "#"], "other", [1, 1, 1]),
        ("topic", ["k.*", "k.#", "#"], "k.x", [1, 1, 1]),
        ("topic", ["k.*", "k.#", "#"], "k", [0, 1, 1]),
        ("topic", ["*.x", "k.*.x", "*"], "k..x", [0, 1, 0]),
        ("topic", ["*", "", "#"], "", [0, 1, 1]),
    ] {
        peer.declare_exchange(1, "x", kind).await;
        for (queue, binding) in queues.iter().zip(keys) {
            peer.bind(1, queue, "x", binding).await;
        }
        peer.publish(1, "x", key, "m").await;
        assert_eq!(arrived(&broker, &mut peer, &queues).await, expected, "{kind} {keys:?} {key:?}");
        peer.send(1, exchange::Delete { exchange: "x", ..Default::default() }).await;
        peer.expect(1, exchange::DeleteOk {}).await;
    }
}

#[tokio::test]
async fn headers_are_matched_all_or_any() {
    let queues = ["all", "any"];
    let (broker, mut peer) = broker_and_peer(&queues).await;
    for queue in queues {
        let arguments: Table = [("x-match", Value::str(queue)), ("a", Value::I32(1)), ("b", Value::str("2"))]
            .into_iter()
            .collect();
        let bind = queue::Bind { queue, exchange: "amq.headers", arguments, ..Default::default() };
        peer.send(1, bind).await;
        peer.expect(1, queue::BindOk {}).await;
    }
    for (headers, expected) in [
        (vec![("a", Value::I64(1)), ("b", Value::str("2")), ("c", Value::Void)], [1, 1]),
        (vec![("a", Value::I32(1))], [0, 1]),
        (vec![("a", Value::str("1"))], [0, 0]),
        (vec![], [0, 0]),
    ] {
        let headers: Table = headers.into_iter().collect();
        let mut properties = Vec::new();
        Properties { headers: Some(headers.clone()), ..Default::default() }.encode(&mut properties);
        let publish = basic::Publish { exchange: "amq.headers", ..Default::default() };
        peer.publish_with(1, &publish, &properties, b"m").await;
        assert_eq!(arrived(&broker, &mut peer, &queues).await, expected, "{headers:?}");
    }
    let arguments = [("x-match", Value::str("some"))].into_iter().collect();
    peer.refused(
        queue::Bind { queue: "all", exchange: "amq.headers", arguments, ..Default::default() },
        406,
        "PRECONDITION_FAILED - Invalid x-match field value some; expected all, any, all-with-x, or any-with-x",
    )
    .await;
}

#[tokio::test]
async fn several_ways_to_a_queue_bring_one_copy() {
    let (broker, mut peer) = broker_and_peer(&["q"]).await;
    peer.declare_exchange(1, "from", "fanout").await;
    peer.declare_exchange(1, "to", "fanout").await;
    for (source, destination) in [("from", "to"), ("to", "from"), ("from", "from")] {
        peer.send(1, exchange::Bind { source, destination, ..Default::default() }).await;
        peer.expect(1, exchange::BindOk {}).await;
    }
    peer.bind(1, "q", "to", "a").await;
    peer.bind(1, "q", "to", "b").await;
    peer.bind(1, "q", "from", "").await;
    peer.publish(1, "from", "", "m").await;
    assert_eq!(arrived(&broker, &mut peer, &["q"]).await, [1]);
    for source in ["from", "to"] {
        peer.send(1, queue::Unbind { queue: "q", exchange: source, ..Default::default() }).await;
        peer.expect(1, queue::UnbindOk {}).await;
    }
    peer.send(1, exchange::Unbind { source: "from", destination: "to", ..Default::default() }).await;
    peer.expect(1, exchange::UnbindOk {}).await;
    peer.publish(1, "from", "", "m").await;
    assert_eq!(arrived(&broker, &mut peer, &["q"]).await, [0]);
}

#[tokio::test]
async fn binding_twice_is_fine_and_one_unbind_undoes_both() {
    let (broker, mut peer) = broker_and_peer(&["q"]).await;
    peer.bind(1, "q", "amq.direct", "k").await;
    peer.bind(1, "q", "amq.direct", "k").await;
    for _ in 0..2 {
        let unbind =
            queue::Unbind { queue: "q", exchange: "amq.direct", routing_key: b"k", ..Default::default() };
        peer.send(1, unbind).await;
        peer.expect(1, queue::UnbindOk {}).await;
        peer.publish(1, "amq.direct", "k", "m").await;
        assert_eq!(arrived(&broker, &mut peer, &["q"]).await, [0]);
    }
}

#[tokio::test]
async fn the_same_key_with_other_arguments_is_another_binding() {
    let (broker, mut peer) = broker_and_peer(&["q"]).await;
    let arguments: Table = [("note", Value::I32(1))].into_iter().collect();
    peer.bind(1, "q", "amq.direct", "k").await;
    let bind = queue::Bind {
        queue: "q",
        exchange: "amq.direct",
        routing_key: b"k",
        arguments: arguments.clone(),
        ..Default::default()
    };
    peer.send(1, bind).await;
    peer.expect(1, queue::BindOk {}).await;
    for (arguments, left) in [(Table::new(), 1), (arguments, 0)] {
        let unbind = queue::Unbind {
            queue: "q",
            exchange: "amq.direct",
            routing_key: b"k",
            arguments,
            ..Default::default()
        };
        peer.send(1, unbind).await;
        peer.expect(1, queue::UnbindOk {}).await;
        peer.publish(1, "amq.direct", "k", "m").await;
        assert_eq!(arrived(&broker, &mut peer, &["q"]).await, [left]);
    }
}

#[tokio::test]
async fn both_ends_of_a_binding_must_exist_but_not_of_an_unbinding() {
    let (_broker, mut peer) = broker_and_peer(&["q"]).await;
    let bind = |queue, exchange| queue::Bind { queue, exchange, ..Default::default() };
    let link = |source, destination| exchange::Bind { source, destination, ..Default::default() };
    let absent_queue = "NOT_FOUND - no queue 'absent' in vhost '/'";
    let absent_exchange = "NOT_FOUND - no exchange 'absent' in vhost '/'";
    let cases: [(Method<'_>, &str); 4] = [
        (bind("absent", "amq.direct").into(), absent_queue),
        (bind("q", "absent").into(), absent_exchange),
        (link("absent", "amq.direct").into(), absent_exchange),
        (link("amq.direct", "absent").into(), absent_exchange),
    ];
    for (method, text) in cases {
        peer.refused(method, 404, text).await;
    }
    for (queue, exchange) in [("absent", "amq.direct"), ("q", "absent"), ("q", "amq.direct")] {
        peer.send(1, queue::Unbind { queue, exchange, ..Default::default() }).await;
        peer.expect(1, queue::UnbindOk {}).await;
    }
    for (source, destination) in [("absent", "amq.direct"), ("amq.direct", "absent")] {
        peer.send(1, exchange::Unbind { source, destination, ..Default::default() }).await;
        peer.expect(1, exchange::UnbindOk {}).await;
    }
}

#[tokio::test]
async fn an_auto_delete_exchange_goes_with_its_last_binding() {
    let (_broker, mut peer) = broker_and_peer(&["q"]).await;
    let declare =
        exchange::Declare { exchange: "x", kind: "fanout", auto_delete: true, ..Default::default() };
    peer.send(1, declare).await;
    peer.expect(1, exchange::DeclareOk {}).await;
    let passive = exchange::Declare { exchange: "x", passive: true, ..Default::default() };
    peer.bind(1, "q", "x", "").await;
    peer.send(1, passive.clone()).await;
    peer.expect(1, exchange::DeclareOk {}).await;
    peer.send(1, queue::Delete { queue: "q", ..Default::default() }).await;
    peer.expect(1, queue::DeleteOk { message_count: 0 }).await;
    peer.refused(passive, 404, "NOT_FOUND - no exchange 'x' in vhost '/'").await;
}

#[tokio::test]
async fn what_no_queue_takes_goes_to_the_alternate_exchange() {
    let (broker, mut peer) = broker_and_peer(&["q", "rest"]).await;
    let arguments = [("alternate-exchange", Value::str("amq.fanout"))].into_iter().collect();
    let declare = exchange::Declare { exchange: "x", kind: "direct", arguments, ..Default::default() };
    peer.send(1, declare).await;
    peer.expect(1, exchange::DeclareOk {}).await;
    peer.bind(1, "q", "x", "k").await;
    peer.bind(1, "rest", "amq.fanout", "").await;
    for (key, expected) in [("k", [1, 0]), ("other", [0, 1])] {
        let publish = basic::Publish {
            exchange: "x",
            routing_key: key.as_bytes(),
            mandatory: true,
            ..Default::default()
        };
        peer.publish_with(1, &publish, &[0, 0], b"m").await;
        assert_eq!(arrived(&broker, &mut peer, &["q", "rest"]).await, expected);
    }
}

#[tokio::test]
async fn a_policy_names_an_alternate_exchange_where_the_declaration_does_not() {
    let (broker, mut peer) = broker_and_peer(&["rest", "own"]).await;
    peer.bind(1, "rest", "amq.fanout", "").await;
    peer.declare_exchange(1, "own-rest", "fanout").await;
    peer.bind(1, "own", "own-rest", "").await;
    peer.declare_exchange(1, "x.before", "direct").await;
    let arguments = [("alternate-exchange", Value::str("own-rest"))].into_iter().collect();
    let declare = exchange::Declare { exchange: "x.own", kind: "direct", arguments, ..Default::default() };
    peer.send(1, declare).await;
    peer.expect(1, exchange::DeclareOk {}).await;
    peer.publish(1, "x.before", "k", "remembered").await;
    assert_eq!(arrived(&broker, &mut peer, &["rest", "own"]).await, [0, 0]);
    let policy = PolicyRecord {
        vhost: "/".into(),
        name: "p".into(),
        pattern: "^x".into(),
        apply_to: "exchanges".into(),
        definition: [("alternate-exchange".to_owned(), "amq.fanout".into())].into_iter().collect(),
        priority: 0,
    };
    broker.broker().put_policy(PolicyRank::User, policy).unwrap();
    peer.declare_exchange(1, "x.after", "direct").await;
    for (exchange, expected) in [("x.before", [1, 0]), ("x.after", [1, 0]), ("x.own", [0, 1])] {
        peer.publish(1, exchange, "k", "m").await;
        assert_eq!(arrived(&broker, &mut peer, &["rest", "own"]).await, expected, "{exchange}");
    }
    broker.broker().delete_policy(PolicyRank::User, "/", "p").unwrap();
    peer.publish(1, "x.before", "k", "m").await;
    assert_eq!(arrived(&broker, &mut peer, &["rest", "own"]).await, [0, 0]);
}

#[tokio::test]
async fn a_route_changes_for_the_very_next_publish() {
    let (broker, mut peer) = broker_and_peer(&["a", "b"]).await;
    peer.bind(1, "a", "amq.direct", "k").await;
    peer.publish(1, "amq.direct", "k", "1").await;
    peer.bind(1, "b", "amq.direct", "k").await;
    peer.publish(1, "amq.direct", "k", "2").await;
    peer.send(1, queue::Delete { queue: "a", ..Default::default() }).await;
    peer.expect(1, queue::DeleteOk { message_count: 2 }).await;
    peer.publish(1, "amq.direct", "k", "3").await;
    assert_eq!(arrived(&broker, &mut peer, &["b"]).await, [2]);
}
