//! Definitions as RabbitMQ 3.10.8 (of Debian 12) exported them: by its HTTP API, of the broker and of a vhost, and by `rabbitmqctl`.

use crate::rig::{Answer, Rig};
use deepmq_testkit::{Handshake, RawPeer};
use serde_json::{Value, json};

const OF_HTTP: &str = include_str!("fixtures/rabbitmq-3.10-http.json");
const OF_CTL: &str = include_str!("fixtures/rabbitmq-3.10-ctl.json");
const OF_VHOST: &str = include_str!("fixtures/rabbitmq-3.10-vhost.json");

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What both documents of the broker must lead to.
async fn expect_all_of_it(rig: &Rig) {
    let queues = rig.json("/queues/eu?columns=name,type,durable,policy,operator_policy").await;
    let short = queues.as_array().unwrap().iter().find(|queue| queue["name"] == "short-orders").unwrap();
    assert_eq!((&short["policy"], &short["operator_policy"]), (&json!("short"), &json!("cap")));
    let types: Vec<_> =
        queues.as_array().unwrap().iter().map(|queue| (&queue["name"], &queue["type"])).collect();
    assert!(
        types.contains(&(&json!("replicated"), &json!("quorum")))
            && types.contains(&(&json!("größe"), &json!("classic")))
    );
    let lazy = rig.json("/queues/eu/lazy").await;
    assert_eq!(
        lazy["arguments"],
        json!({"x-max-length": 7, "x-overflow": "reject-publish", "x-queue-mode": "lazy"})
    );
    assert_eq!(rig.json("/exchanges/eu/shop").await["arguments"], json!({"alternate-exchange": "lost"}));
    let bindings = rig.json("/bindings/eu/e/by-headers/q/replicated").await;
    assert_eq!(bindings[0]["arguments"], json!({"n": 1, "region": "eu", "x-match": "all"}));
    assert_eq!(rig.json("/bindings/eu/e/inner/q/gr%C3%B6%C3%9Fe").await[0]["routing_key"], "a b/c");
    assert_eq!(rig.json("/bindings/eu/e/shop/e/inner").await[0]["routing_key"], "deep.*");
    assert_eq!(rig.json("/policies/eu/short").await["definition"], json!({"max-length": 10}));
    assert_eq!(rig.json("/operator-policies/eu/cap").await["definition"], json!({"expires": 100_000}));
    assert_eq!(rig.json("/vhost-limits/eu").await[0]["value"], json!({"max-connections": 64}));
    assert_eq!(rig.json("/user-limits/mon").await[0]["value"], json!({"max-connections": 5}));
    let topic = rig.json("/topic-permissions/eu/ann").await;
    assert_eq!((&topic[0]["write"], &topic[0]["read"]), (&json!("^a"), &json!("^b")));
    let log_in = async |user: &str, password: &str| {
        let asked =
            rig.client().get(rig.url("/whoami")).basic_auth(user, Some(password)).send().await.unwrap();
        Answer::read(asked).await.status.as_u16()
    };
    assert_eq!((log_in("ann", "pass-of-ann").await, log_in("mon", "pass-of-mon").await), (200, 200));
    assert_eq!(log_in("ann", "pass-of-mon").await, 401);
    let handshake = Handshake { vhost: "eu", ..Handshake::default() }.login("ann", "pass-of-ann");
    let mut peer = RawPeer::open(rig.broker.address(), &handshake).await;
    peer.open_channel(1).await;
    peer.publish(1, "shop", "order.new", "m").await;
    assert!(peer.get(1, "short-orders", true).await.is_some());
}

#[tokio::test]
async fn what_its_http_api_exports_is_taken_and_comes_out_again_the_same() {
    let rig = Rig::start().await;
    let answer = rig.post("/definitions", read(OF_HTTP)).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    expect_all_of_it(&rig).await;
    let exported = rig.json("/definitions").await;
    let fresh = Rig::start().await;
    assert_eq!(fresh.post("/definitions", exported.clone()).await.status, 204);
    assert_eq!(fresh.json("/definitions").await.to_string(), exported.to_string());
}

#[tokio::test]
async fn what_rabbitmqctl_exports_is_taken_once_it_is_whole() {
    let rig = Rig::start().await;
    let mut document = read(OF_CTL);
    // It leaves internal exchanges out, and the bindings to them in.
    let refused = rig.post("/definitions", document.clone()).await;
    assert!(refused.refusal().2.contains("bindings[1]: no exchange 'inner'"), "{refused:?}");
    assert_eq!(rig.get("/vhosts/eu").await.status, 404, "nothing was taken");
    let inner = json!({"name": "inner", "vhost": "eu", "type": "direct", "durable": true, "auto_delete": true,
        "internal": true, "arguments": {}});
    document["exchanges"].as_array_mut().unwrap().push(inner);
    let answer = rig.post("/definitions", document).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    expect_all_of_it(&rig).await;
    assert_eq!(rig.json("/vhosts/eu").await["tags"], json!(["a", "b"]));
}

#[tokio::test]
async fn what_it_exports_of_a_vhost_is_taken_into_another() {
    let rig = Rig::start().await;
    let answer = rig.post("/definitions/mine", read(OF_VHOST)).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(rig.json("/queues/mine").await.as_array().unwrap().len(), 4);
    assert_eq!(rig.json("/vhost-limits/mine").await[0]["value"], json!({"max-connections": 64}));
}
