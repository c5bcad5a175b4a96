//! Queues: declared, listed, purged, deleted.

use crate::rig::Rig;

use serde_json::{Value, json};

#[tokio::test]
async fn a_queue_is_created_once_shown_and_deleted() {
    let rig = Rig::start().await;
    let path = "/queues/%2F/a%2Fb%20ü";
    let declaration = json!({"durable": false, "arguments": {"x-max-length": 5}});
    assert_eq!(rig.put(path, declaration.clone()).await.status, 201);
    assert_eq!(rig.put(path, declaration).await.status, 204);
    let queue = rig.json(path).await;
    assert_eq!((&queue["name"], &queue["vhost"]), (&json!("a/b ü"), &json!("/")));
    assert_eq!((&queue["durable"], &queue["arguments"]), (&json!(false), &json!({"x-max-length": 5})));
    assert_eq!(queue["type"], "classic");
    let (status, error, reason) =
        (rig.put(path, json!({})).await.refusal().0, "bad_request", "inequivalent arg 'durable'");
    assert_eq!(status, 400);
    let other = rig.put(path, json!({})).await;
    assert_eq!(other.refusal().1, error);
    assert!(other.refusal().2.starts_with(reason), "{other:?}");
    assert_eq!(rig.delete(path).await.status, 204);
    assert_eq!(rig.get(path).await.refusal(), (404, "Object Not Found", "Not Found"));
    assert_eq!(rig.delete(path).await.status, 404);
}

#[tokio::test]
async fn ready_unacked_and_consumers_are_counted() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    for body in ["a", "b", "c"] {
        peer.publish(1, "", "q", body).await;
    }
    peer.qos(1, 2, false).await;
    peer.consume(1, "q", "tag").await;
    peer.delivery(1).await;
    peer.delivery(1).await;
    let queue = rig.json("/queues/q").await;
    let count = |field: &str| queue[field].as_u64().unwrap();
    assert_eq!((count("messages"), count("messages_ready"), count("messages_unacknowledged")), (3, 1, 2));
    assert_eq!(count("consumers"), 1);
    assert_eq!(queue["message_stats"]["publish"], 3);
    assert_eq!(queue["message_stats"]["deliver_get"], 2);
    let consumer = &queue["consumer_details"][0];
    assert_eq!((&consumer["consumer_tag"], &consumer["prefetch_count"]), (&json!("tag"), &json!(2)));
    assert_eq!(consumer["channel_details"]["user"], "guest");
    assert_eq!(rig.delete("/queues/%2F/q/contents").await.status, 204);
    assert_eq!(rig.json("/queues/q").await["messages_ready"], 0);
    assert_eq!(rig.delete("/queues/%2F/q?if-unused=true").await.refusal().0, 400);
    assert_eq!(rig.delete("/queues/%2F/q?if-empty=true").await.status, 204);
}

#[tokio::test]
async fn a_list_has_filters_pages_sorting_and_columns() {
    let rig = Rig::start().await;
    for name in ["orders.eu", "orders.us", "mail"] {
        rig.put(&format!("/queues/%2F/{name}"), json!({})).await;
    }
    rig.put("/queues/mine/orders.eu", json!({})).await;
    let names = async |path: &str| -> Vec<String> {
        let shown = rig.json(path).await;
        let items = shown.get("items").unwrap_or(&shown).as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/queues/%2F").await, ["mail", "orders.eu", "orders.us"]);
    assert_eq!(names("/queues").await.len(), 4);
    // As KEDA asks.
    let keda = "/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Eorders&page_size=100";
    assert_eq!(names(keda).await, ["orders.eu", "orders.us"]);
    let page = rig.json(keda).await;
    assert_eq!((&page["filtered_count"], &page["total_count"]), (&json!(2), &json!(3)));
    for field in ["messages", "messages_ready", "messages_unacknowledged"] {
        assert_eq!(page["items"][0][field], 0, "{field}");
    }
    for rate in ["publish_details", "deliver_get_details"] {
        assert!(page["items"][0]["message_stats"][rate]["rate"].is_number(), "{rate}");
    }
    let columns = rig.json("/queues/%2F/mail?columns=name,message_stats.publish").await;
    assert_eq!(columns, json!({"name": "mail", "message_stats": {"publish": 0}}));
    assert_eq!(rig.get("/queues?page=9").await.refusal().1, "page_out_of_range");
    assert_eq!(rig.get("/queues?page=x").await.refusal().0, 400);
}

#[tokio::test]
async fn short_paths_lead_to_the_default_vhost_unless_there_is_a_vhost_of_that_name() {
    let rig = Rig::start().await;
    assert_eq!(rig.put("/queues/short", json!({"durable": true})).await.status, 201);
    assert_eq!(rig.json("/queues/%2F/short").await["name"], "short");
    assert_eq!(rig.json("/queues/short").await["messages_ready"], 0);
    assert_eq!(rig.put("/queues/mine", json!({})).await.status, 201);
    assert_eq!(rig.json("/queues/mine").await, json!([]), "the vhost wins");
    assert_eq!(rig.get("/queues/absent").await.status, 404);
    assert_eq!(rig.put("/exchanges/ex", json!({"type": "topic"})).await.status, 201);
    let binding = json!({"source": "ex", "destination": "short", "routing_key": "a.*", "arguments": {}});
    assert_eq!(rig.post("/bindings", binding).await.status, 201);
    let topology = rig.json("/topology").await;
    let names = |kind: &str| -> Vec<&Value> {
        topology[kind].as_array().unwrap().iter().map(|item| &item["name"]).collect()
    };
    assert!(names("exchanges").contains(&&json!("ex")));
    assert_eq!(names("queues"), ["mine", "short"]);
    let bindings = topology["bindings"].as_array().unwrap();
    assert!(bindings.iter().any(|binding| binding["source"] == "ex" && binding["routing_key"] == "a.*"));
    assert_eq!(rig.delete("/queues/short").await.status, 204);
    assert_eq!(rig.delete("/exchanges/ex").await.status, 204);
}

#[tokio::test]
async fn what_no_queue_can_be_is_refused_with_a_reason() {
    let rig = Rig::start().await;
    let refused = async |path: &str, body: Value| rig.put(path, body).await.refusal().2.to_owned();
    let status = rig.put("/queues/%2F/amq.x", json!({})).await.refusal().0;
    assert_eq!(status, 401);
    assert!(refused("/queues/%2F/q", json!({"exclusive": true})).await.contains("connection"));
    assert!(
        refused("/queues/%2F/q", json!({"arguments": {"x-max-length": -1}})).await.contains("x-max-length")
    );
    assert!(refused("/queues/%2F/q", json!({"arguments": 7})).await.contains("arguments are an object"));
    assert!(refused(&format!("/queues/%2F/{}", "q".repeat(256)), json!({})).await.contains("255"));
    assert_eq!(rig.put(&format!("/queues/%2F/{}", "q".repeat(255)), json!({})).await.status, 201);
    assert_eq!(rig.put("/queues/absent/q", json!({})).await.status, 404);
    let actions =
        async |action: &str| rig.post("/queues/%2F/absent/actions", json!({"action": action})).await.status;
    assert_eq!(actions("sync").await, 404);
}

#[tokio::test]
async fn rates_are_measured_between_two_looks() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    let rate = async || {
        rig.json("/queues/%2F/q").await["message_stats"]["publish_details"]["rate"].as_f64().unwrap()
    };
    assert!(rate().await.abs() < f64::EPSILON);
    peer.publish_all(1, "q", (0..1000).map(|n| n.to_string())).await;
    deepmq_testkit::until(|| rig.broker.depth("q").ready == 1000).await;
    assert!(rate().await > 100.0);
}

#[tokio::test]
async fn a_durable_queue_is_there_after_a_restart_and_its_answer_means_so() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::start_with(|config| config.data_dir = Some(dir.path().into()), |_| {}).await;
    assert_eq!(rig.put("/queues/%2F/kept", json!({})).await.status, 201);
    assert_eq!(rig.put("/queues/%2F/gone", json!({})).await.status, 201);
    assert_eq!(rig.delete("/queues/%2F/gone").await.status, 204);
    let message = json!({"properties": {"delivery_mode": 2}, "routing_key": "kept", "payload": "safe"});
    assert_eq!(rig.post("/exchanges/%2F/amq.default/publish", message).await.json, json!({"routed": true}));
    rig.stop().await;
    let again = Rig::start_with(|config| config.data_dir = Some(dir.path().into()), |_| {}).await;
    assert_eq!(again.json("/queues/%2F/kept").await["messages"], 1);
    assert_eq!(again.get("/queues/%2F/gone").await.status, 404);
    assert_eq!(again.delete("/queues/%2F/kept").await.status, 204);
}
