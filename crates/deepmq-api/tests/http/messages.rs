//! Publishing a message, and looking at the first of a queue.

use crate::rig::Rig;
use serde_json::{Value, json};

async fn publish(rig: &Rig, exchange: &str, message: Value) -> Value {
    rig.post(&format!("/exchanges/%2F/{exchange}/publish"), message).await.json
}

async fn get(rig: &Rig, body: Value) -> Vec<Value> {
    let answer = rig.post("/queues/%2F/q/get", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json.as_array().unwrap().clone()
}

#[tokio::test]
async fn a_message_comes_back_as_it_was_published() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    let properties = json!({
        "content_type": "text/plain", "headers": {"h": [1, "x"]}, "delivery_mode": 2, "priority": 3,
        "correlation_id": "c", "reply_to": "r", "expiration": "60000", "message_id": "m", "timestamp": 7,
        "type": "t", "user_id": "guest", "app_id": "a",
    });
    let message = json!({"properties": properties, "routing_key": "q", "payload": "grüezi", "payload_encoding": "string"});
    assert_eq!(publish(&rig, "amq.default", message).await, json!({"routed": true}));
    let got = get(&rig, json!({"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"})).await;
    assert_eq!(
        got,
        [json!({
            "payload_bytes": 7, "redelivered": false, "exchange": "", "routing_key": "q", "message_count": 0,
            "properties": properties, "payload": "grüezi", "payload_encoding": "string",
        })]
    );
    assert!(
        get(&rig, json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})).await.is_empty()
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_come_as_base64_and_long_ones_may_be_cut() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    let raw = json!({"properties": [], "routing_key": "q", "payload": "/wD+", "payload_encoding": "base64"});
    publish(&rig, "amq.default", raw).await;
    publish(&rig, "amq.default", json!({"routing_key": "q", "payload": "abcdef"})).await;
    let wanted = json!({"count": 2, "ackmode": "reject_requeue_true", "encoding": "auto", "truncate": 3});
    let got = get(&rig, wanted).await;
    assert_eq!((&got[0]["payload"], &got[0]["payload_encoding"]), (&json!("/wD+"), &json!("base64")));
    assert_eq!((&got[1]["payload"], &got[1]["payload_bytes"]), (&json!("abc"), &json!(6)));
    let got = get(&rig, json!({"count": 2, "ackmode": "reject_requeue_false", "encoding": "base64"})).await;
    assert_eq!((&got[1]["payload"], &got[1]["redelivered"]), (&json!("YWJjZGVm"), &json!(true)));
    assert_eq!(rig.json("/queues/%2F/q").await["messages"], 0);
}

#[tokio::test]
async fn messages_that_are_put_back_keep_their_order() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    for body in ["a", "b", "c"] {
        publish(&rig, "amq.default", json!({"routing_key": "q", "payload": body})).await;
    }
    for _ in 0..2 {
        let got = get(&rig, json!({"count": 2, "ackmode": "ack_requeue_true"})).await;
        let bodies: Vec<_> = got.iter().map(|message| message["payload"].as_str().unwrap()).collect();
        assert_eq!(bodies, ["a", "b"]);
    }
}

#[tokio::test]
async fn a_message_nobody_wants_is_not_routed_and_a_wrong_one_is_refused() {
    let rig = Rig::start().await;
    let message = |properties: Value| json!({"properties": properties, "routing_key": "k", "payload": "p"});
    assert_eq!(publish(&rig, "amq.direct", message(json!({}))).await, json!({"routed": false}));
    assert_eq!(rig.post("/exchanges/%2F/absent/publish", message(json!({}))).await.status, 404);
    let refused = async |body: Value| {
        let answer = rig.post("/exchanges/%2F/amq.direct/publish", body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        answer.refusal().2.to_owned()
    };
    assert!(refused(message(json!({"user_id": "else"}))).await.contains("authenticated user was 'guest'"));
    assert!(refused(message(json!({"expiration": "soon"}))).await.contains("invalid expiration"));
    assert!(refused(message(json!({"message_id": "m".repeat(256)}))).await.contains("255"));
    assert!(refused(json!({"routing_key": "k".repeat(256), "payload": ""})).await.contains("255"));
    assert!(
        refused(json!({"routing_key": "k", "payload": "%", "payload_encoding": "base64"}))
            .await
            .contains("base64")
    );
    assert!(refused(json!({"payload": "p"})).await.contains("routing_key"));
    for (wrong, said) in [
        (json!({"priority": 300}), "integer `300`, expected u8"),
        (json!({"expiration": 5}), "integer `5`, expected a string"),
        (json!({"delivery_mode": "2"}), "string \"2\", expected u8"),
        (json!(["delivery_mode"]), "expected an object of properties"),
    ] {
        let reason = refused(message(wrong)).await;
        assert!(reason.contains(said), "{reason}");
    }
    let get = rig.post("/queues/%2F/q/get", json!({"count": 10_001, "ackmode": "ack_requeue_true"})).await;
    assert!(get.refusal().2.contains("at most"));
    let get = rig.post("/queues/%2F/q/get", json!({"count": 10_000, "ackmode": "ack_requeue_true"})).await;
    assert_eq!(get.status, 404);
}

#[tokio::test]
async fn a_message_published_here_is_consumed_over_amqp() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.bind(1, "q", "amq.topic", "a.#").await;
    peer.consume(1, "q", "tag").await;
    publish(&rig, "amq.topic", json!({"routing_key": "a.b", "payload": "x".repeat(10_000)})).await;
    assert_eq!(peer.delivery(1).await.content.body.len(), 10_000);
}

#[tokio::test]
async fn of_several_consumers_a_single_active_one_gets_all_and_is_shown_to_and_nobody_else_looks() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({"arguments": {"x-single-active-consumer": true}})).await;
    rig.put("/queues/%2F/plain", json!({})).await;
    let mut peer = rig.broker.peer().await;
    for (queue, tag) in [("q", "first"), ("q", "second"), ("plain", "third")] {
        peer.consume(1, queue, tag).await;
    }
    let consumers = rig.json("/consumers").await;
    let shown = |tag| {
        let consumer = consumers.as_array()?.iter().find(|consumer| consumer["consumer_tag"] == tag)?;
        Some((consumer["active"].as_bool()?, consumer["activity_status"].as_str()?))
    };
    assert_eq!(shown("first"), Some((true, "single_active")));
    assert_eq!(shown("second"), Some((false, "waiting")));
    assert_eq!(shown("third"), Some((true, "up")));
    let wanted = json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"});
    assert_eq!(rig.post("/queues/%2F/q/get", wanted).await.status, 400);
}
