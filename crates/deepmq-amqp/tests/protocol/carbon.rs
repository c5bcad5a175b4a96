//! Further routing keys in the headers CC and BCC.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::message::properties::Properties;
use deepmq_model::{Table, Value};
use deepmq_testkit::{RawPeer, TestBroker};

fn keys(keys: &[&str]) -> Value {
    Value::Array(keys.iter().map(Value::str).collect())
}

fn properties(headers: &[(&str, Value)]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let headers: Table = headers.iter().cloned().collect();
    Properties { headers: Some(headers), message_id: Some(b"id"[..].into()), ..Default::default() }
        .encode(&mut encoded);
    encoded
}

async fn publish(peer: &mut RawPeer, exchange: &str, key: &str, headers: &[(&str, Value)]) {
    let publish = basic::Publish { exchange, routing_key: key.as_bytes(), ..Default::default() };
    peer.publish_with(1, &publish, &properties(headers), b"m").await;
}

async fn broker_and_peer() -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    for queue in ["a", "b", "c"] {
        peer.declare(1, queue).await;
    }
    (broker, peer)
}

#[tokio::test]
async fn each_key_is_routed_each_queue_gets_one_and_nobody_sees_bcc() {
    let (broker, mut peer) = broker_and_peer().await;
    let cc = ("CC", keys(&["b", "a", "nowhere"]));
    publish(&mut peer, "", "a", &[cc.clone(), ("BCC", keys(&["c", "b"])), ("x", Value::I32(1))]).await;
    for queue in ["a", "b", "c"] {
        let got = peer.get(1, queue, true).await.unwrap();
        assert_eq!(got.get_ok.routing_key, b"a");
        assert_eq!(got.content.properties, properties(&[cc.clone(), ("x", Value::I32(1))]));
        assert_eq!(broker.depth(queue).ready, 0, "once");
    }
    // The route of the next message is its own again.
    publish(&mut peer, "", "a", &[("x", Value::I32(1))]).await;
    peer.expect_quiet(1).await;
    assert_eq!(["a", "b", "c"].map(|queue| broker.depth(queue).ready), [1, 0, 0]);
}

#[tokio::test]
async fn other_types_of_exchanges_know_them_too() {
    let (broker, mut peer) = broker_and_peer().await;
    peer.bind(1, "a", "amq.topic", "x.#").await;
    peer.bind(1, "b", "amq.topic", "*.y").await;
    peer.bind(1, "c", "amq.topic", "z").await;
    publish(&mut peer, "amq.topic", "none", &[("BCC", keys(&["x.y"]))]).await;
    peer.expect_quiet(1).await;
    assert_eq!(["a", "b", "c"].map(|queue| broker.depth(queue).ready), [1, 1, 0]);
}

#[tokio::test]
async fn what_is_no_array_of_strings_is_refused() {
    let (_broker, mut peer) = broker_and_peer().await;
    for (header, value, reason) in [
        ("CC", Value::str("b"), "{unacceptable_type_in_header,\"CC\",longstr}"),
        ("BCC", Value::I32(1), "{unacceptable_type_in_header,\"BCC\",signedint}"),
        ("CC", Value::Array(vec![Value::Bool(true)]), "{unacceptable_type_in_header,\"CC\",bool}"),
    ] {
        publish(&mut peer, "", "a", &[(header, value)]).await;
        let text = format!("PRECONDITION_FAILED - invalid message: {reason}");
        peer.expect_channel_close(1, 406, &text, basic::Publish::ID).await;
        peer.open_channel(1).await;
    }
    peer.send(1, queue::Purge { queue: "a", ..Default::default() }).await;
    peer.expect(1, queue::PurgeOk { message_count: 0 }).await;
}

#[tokio::test]
async fn a_transaction_carries_them() {
    let (broker, mut peer) = broker_and_peer().await;
    peer.select_tx(1).await;
    publish(&mut peer, "", "a", &[("CC", keys(&["b"]))]).await;
    peer.send(1, deepmq_amqp::codec::method::tx::Commit {}).await;
    peer.expect(1, deepmq_amqp::codec::method::tx::CommitOk {}).await;
    assert_eq!(["a", "b", "c"].map(|queue| broker.depth(queue).ready), [1, 1, 0]);
}
