//! What a user may do here is what it may do over AMQP.

use crate::rig::{Answer, Rig};
use reqwest::Method;
use serde_json::{Value, json};

/// A broker on which `manager` may do what these patterns say in the vhost `mine`.
async fn rig(configure: &str, write: &str, read: &str) -> Rig {
    let rig = Rig::start().await;
    let permission = json!({"configure": configure, "write": write, "read": read});
    rig.put("/permissions/mine/manager", permission).await;
    rig
}

async fn ask(rig: &Rig, method: Method, path: &str, body: Value) -> Answer {
    rig.ask("manager", method, path, body).await
}

fn refused(answer: &Answer) -> &str {
    let (status, error, reason) = answer.refusal();
    assert_eq!((status, error), (401, "not_authorized"));
    reason
}

#[tokio::test]
async fn routing_keys_of_a_topic_exchange_are_free_only_by_the_rule_there_is_for_it() {
    let rig = rig(".*", ".*", ".*").await;
    let rule = json!({"exchange": "amq.topic", "write": "^a\\.", "read": "^b\\."});
    assert_eq!(rig.put("/topic-permissions/mine/manager", rule).await.status, 201);
    ask(&rig, Method::PUT, "/queues/mine/q", json!({})).await;
    let publish = async |exchange: &str, key: &str| {
        let path = format!("/exchanges/mine/{exchange}/publish");
        ask(&rig, Method::POST, &path, json!({"routing_key": key, "payload": ""})).await
    };
    assert_eq!(publish("amq.topic", "a.x").await.status, 200);
    assert_eq!(publish("amq.direct", "b.x").await.status, 200, "the rule is not for it");
    assert_eq!(
        refused(&publish("amq.topic", "b.x").await),
        "ACCESS_REFUSED - write access to topic 'b.x' in exchange 'amq.topic' in vhost 'mine' refused for user 'manager'"
    );
    let further = json!({"routing_key": "a.x", "payload": "", "properties": {"headers": {"CC": ["b.x"]}}});
    let refusal = ask(&rig, Method::POST, "/exchanges/mine/amq.topic/publish", further).await;
    assert!(refused(&refusal).contains("write access to topic 'b.x'"), "each of its keys counts");
    let bind = async |key: &str| {
        ask(&rig, Method::POST, "/bindings/mine/e/amq.topic/q/q", json!({"routing_key": key})).await
    };
    assert_eq!(bind("b.*").await.status, 201);
    assert!(refused(&bind("a.*").await).contains("read access to topic 'a.*'"));
    assert_eq!(rig.post("/bindings/mine/e/amq.topic/q/q", json!({"routing_key": "a.*"})).await.status, 201);
    let unbind = ask(&rig, Method::DELETE, "/bindings/mine/e/amq.topic/q/q/a.%252A", Value::Null).await;
    assert!(refused(&unbind).contains("read access to topic 'a.*'"));
}

#[tokio::test]
async fn what_a_queue_or_exchange_sends_on_takes_the_permission_to_read_it_and_to_write_there() {
    let rig = rig(".*", "^allowed$", "^readable").await;
    let queue = async |name: &str, dead_letters: &str| {
        let arguments = json!({"arguments": {"x-dead-letter-exchange": dead_letters}});
        ask(&rig, Method::PUT, &format!("/queues/mine/{name}"), arguments).await
    };
    assert_eq!(queue("readable", "allowed").await.status, 201);
    assert!(refused(&queue("readable2", "other").await).contains("write access to exchange 'other'"));
    assert!(refused(&queue("q", "allowed").await).contains("read access to queue 'q'"));
    assert_eq!(queue("readable", "allowed").await.status, 204, "declared again");
    let exchange = async |name: &str, alternate: &str| {
        let declaration = json!({"type": "direct", "arguments": {"alternate-exchange": alternate}});
        ask(&rig, Method::PUT, &format!("/exchanges/mine/{name}"), declaration).await
    };
    assert_eq!(exchange("readable", "allowed").await.status, 201);
    assert!(refused(&exchange("readable2", "other").await).contains("write access to exchange 'other'"));
    assert!(refused(&exchange("x", "allowed").await).contains("read access to exchange 'x'"));
}
