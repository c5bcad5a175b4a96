//! Exchanges: declared, listed, deleted.

use crate::rig::Rig;
use serde_json::json;

#[tokio::test]
async fn an_exchange_is_created_once_shown_and_deleted() {
    let rig = Rig::start().await;
    let path = "/exchanges/%2F/x";
    let declaration =
        json!({"type": "topic", "durable": true, "arguments": {"alternate-exchange": "amq.fanout"}});
    assert_eq!(rig.put(path, declaration.clone()).await.status, 201);
    assert_eq!(rig.put(path, declaration).await.status, 204);
    let shown = rig.json(path).await;
    assert_eq!(
        (&shown["type"], &shown["durable"], &shown["internal"]),
        (&json!("topic"), &json!(true), &json!(false))
    );
    assert_eq!(shown["arguments"], json!({"alternate-exchange": "amq.fanout"}));
    assert!(rig.put(path, json!({"type": "direct"})).await.refusal().2.contains("inequivalent arg 'type'"));
    rig.post("/bindings/%2F/e/x/e/amq.direct", json!({})).await;
    assert_eq!(rig.delete("/exchanges/%2F/x?if-unused=true").await.refusal().0, 400);
    assert_eq!(rig.delete(path).await.status, 204);
    assert_eq!(rig.get(path).await.status, 404);
    assert_eq!(rig.delete(path).await.status, 404);
}

#[tokio::test]
async fn the_predeclared_exchanges_are_listed_and_nobody_s_to_delete() {
    let rig = Rig::start().await;
    let all = rig.json("/exchanges/%2F").await;
    let names: Vec<_> =
        all.as_array().unwrap().iter().map(|exchange| exchange["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic"]);
    assert_eq!(rig.json("/exchanges/%2F/amq.default").await["name"], "");
    assert_eq!(rig.delete("/exchanges/%2F/amq.topic").await.refusal().0, 401);
    assert_eq!(rig.delete("/exchanges/%2F/amq.default").await.refusal().0, 401);
    assert_eq!(rig.put("/exchanges/%2F/amq.new", json!({"type": "direct"})).await.refusal().0, 401);
    assert!(rig.put("/exchanges/%2F/y", json!({"type": "odd"})).await.refusal().2.contains("odd"));
}
