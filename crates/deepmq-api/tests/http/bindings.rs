//! Bindings, and the keys that name them.

use crate::rig::Rig;
use serde_json::{Value, json};

#[tokio::test]
async fn a_binding_is_made_listed_from_either_end_and_removed_by_its_key() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    let path = "/bindings/%2F/e/amq.headers/q/q";
    for arguments in [json!({}), json!({"k": 1}), json!({"k": 2})] {
        let body = json!({"routing_key": "a/~b", "arguments": arguments});
        assert_eq!(rig.post(path, body).await.status, 201);
    }
    let between = rig.json(path).await;
    let keys: Vec<_> =
        between.as_array().unwrap().iter().map(|b| b["properties_key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.contains(&"a%2F%7Eb"), "{keys:?}");
    assert_eq!(rig.json("/exchanges/%2F/amq.headers/bindings/source").await, between);
    assert_eq!(rig.json("/queues/%2F/q/bindings").await.as_array().unwrap().len(), 4, "one is implicit");
    for key in keys {
        let one = format!("{path}/{}", key.replace('%', "%25"));
        assert_eq!(rig.json(&one).await["properties_key"], key);
        assert_eq!(rig.delete(&one).await.status, 204);
        assert_eq!(rig.delete(&one).await.status, 404);
    }
    assert_eq!(rig.json(path).await, json!([]));
}

#[tokio::test]
async fn exchanges_are_bound_to_exchanges() {
    let rig = Rig::start().await;
    let path = "/bindings/%2F/e/amq.topic/e/amq.fanout";
    assert_eq!(rig.post(path, Value::Null).await.status, 201);
    let shown = rig.json(&format!("{path}/~")).await;
    assert_eq!((&shown["source"], &shown["destination_type"]), (&json!("amq.topic"), &json!("exchange")));
    assert_eq!(rig.json("/exchanges/%2F/amq.fanout/bindings/destination").await, json!([shown]));
    assert_eq!(rig.delete(&format!("{path}/~")).await.status, 204);
}

#[tokio::test]
async fn a_new_binding_tells_where_it_is() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    let url = rig.url("/bindings/%2F/e/amq.direct/q/q");
    let asked = rig.client().post(url).basic_auth("guest", Some("guest")).body(r#"{"routing_key":"r k"}"#);
    let answer = asked.send().await.unwrap();
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    let binding = rig.json(location.strip_prefix("/api").unwrap()).await;
    assert_eq!(binding["routing_key"], "r k");
}

#[tokio::test]
async fn a_binding_without_its_ends_is_refused() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    assert_eq!(rig.post("/bindings/%2F/e/absent/q/q", json!({})).await.status, 404);
    assert_eq!(rig.post("/bindings/%2F/e/amq.topic/q/absent", json!({})).await.status, 404);
    assert_eq!(rig.post("/bindings/%2F/e/amq.default/q/q", json!({})).await.refusal().0, 401);
    assert_eq!(rig.get("/bindings/%2F/e/amq.topic/q/absent").await.status, 404);
    let hashes = json!({"routing_key": "#.#.#"});
    assert!(rig.post("/bindings/%2F/e/amq.topic/q/q", hashes).await.refusal().2.contains("wildcards"));
}

#[tokio::test]
async fn a_key_names_its_binding_if_a_client_did_not_quote_it_once_more_too() {
    let rig = Rig::start().await;
    rig.put("/queues/%2F/q", json!({})).await;
    let path = "/bindings/%2F/e/amq.topic/q/q";
    for body in [json!({"routing_key": "a b/~é"}), json!({"routing_key": "a b", "arguments": {"k": 1}})] {
        assert_eq!(rig.post(path, body).await.status, 201);
    }
    for binding in rig.json(path).await.as_array().unwrap() {
        let one = format!("{path}/{}", binding["properties_key"].as_str().unwrap());
        assert_eq!(rig.json(&one).await, *binding);
        assert_eq!(rig.delete(&one).await.status, 204);
    }
    assert_eq!(rig.json(path).await, json!([]));
    for routing_key in ["a%20b", "a b"] {
        rig.post(path, json!({ "routing_key": routing_key })).await;
    }
    assert_eq!(rig.delete(&format!("{path}/a%2520b")).await.status, 204);
    assert_eq!(rig.json(path).await[0]["routing_key"], "a%20b", "a key that is quoted properly counts first");
}
