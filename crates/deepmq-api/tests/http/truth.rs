//! What is shown is what is so.

use crate::rig::Rig;
use deepmq_storage::seam::{SimClock, SimDisk};
use deepmq_storage::{Durability, Seam};
use deepmq_testkit::until;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The number of EIO.
const INPUT_OUTPUT_ERROR: i32 = 5;

#[tokio::test]
async fn a_channel_with_a_transaction_shows_what_waits_for_the_commit() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish(1, "", "q", "m").await;
    until(|| rig.broker.depth("q").ready == 1).await;
    let channel = async || rig.json("/channels").await[0].clone();
    assert_eq!(channel().await["transactional"], false);
    peer.select_tx(1).await;
    peer.publish(1, "", "q", "later").await;
    let got = peer.get(1, "q", false).await.unwrap();
    peer.ack(1, got.get_ok.delivery_tag, false).await;
    // An answer to what comes after it says that it was taken.
    peer.declare(1, "q").await;
    let shown = channel().await;
    let fields =
        ["transactional", "messages_uncommitted", "acks_uncommitted"].map(|field| shown[field].clone());
    assert_eq!(fields, [json!(true), json!(1), json!(1)]);
}

#[tokio::test]
async fn a_failed_disk_is_told_by_every_check_that_depends_on_it() {
    let disk = SimDisk::new();
    let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::real() };
    let rig = Rig::start_on(seam, |config| config.data_dir = Some("/data".into()), |_| {}).await;
    let checks = ["virtual-hosts", "is-in-service", "ready-to-serve-clients", "metadata-store/initialized"];
    for check in checks {
        assert_eq!(rig.json(&format!("/health/checks/{check}")).await["status"], "ok", "{check}");
    }
    disk.fail_at(disk.operations() + 1, INPUT_OUTPUT_ERROR);
    assert_eq!(rig.put("/queues/%2F/q", json!({"durable": true})).await.status, 503);
    for check in checks {
        let answer = rig.get(&format!("/health/checks/{check}")).await;
        assert_eq!((answer.status.as_u16(), &answer.json["status"]), (503, &json!("failed")), "{check}");
        assert!(!answer.json["reason"].as_str().unwrap().is_empty());
    }
    let down = rig.get("/health/checks/virtual-hosts").await.json;
    assert_eq!(down["virtual-hosts"], json!(["/", "mine"]));
    assert_eq!(rig.json("/nodes").await[0]["running"], false);
}

#[tokio::test]
async fn without_a_listener_for_clients_the_node_is_not_ready() {
    let rig = Rig::start_with(|_| {}, |config| config.listeners.clear()).await;
    let answer = rig.get("/health/checks/ready-to-serve-clients").await;
    assert_eq!(
        (answer.status.as_u16(), answer.json["reason"].as_str().unwrap()),
        (503, "no listener for clients is on")
    );
}

#[tokio::test]
async fn a_queue_tells_how_durable_it_is_and_what_is_first_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let rig = Rig::start_with(
        |config| {
            config.data_dir = Some(path);
            config.durability = Durability::Os;
        },
        |_| {},
    )
    .await;
    for (name, declaration, durability) in [
        ("default", json!({}), json!("os")),
        ("synced", json!({"arguments": {"x-durability": "fsync"}}), json!("fsync")),
        ("transient", json!({"durable": false}), Value::Null),
    ] {
        rig.put(&format!("/queues/%2F/{name}"), declaration).await;
        assert_eq!(rig.json(&format!("/queues/%2F/{name}")).await["durability"], durability, "{name}");
    }
    let message =
        json!({"routing_key": "default", "payload": "m", "properties": {"timestamp": 1_700_000_000}});
    rig.post("/exchanges/%2F/amq.default/publish", message).await;
    let shown = rig.json("/queues/%2F/default").await;
    assert_eq!(shown["head_message_timestamp"], 1_700_000_000);
    assert_eq!((&shown["oldest_unacked_position"], &shown["messages_lost"]), (&Value::Null, &json!(0)));
    assert!(shown["message_bytes"].as_u64().unwrap() > 0);
    let mut peer = rig.broker.peer().await;
    peer.get(1, "default", false).await.unwrap();
    let shown = rig.json("/queues/%2F/default").await;
    assert_eq!(
        (&shown["oldest_unacked_position"], &shown["head_message_timestamp"]),
        (&json!(0), &Value::Null)
    );
    drop(peer);
    rig.stop().await;
}

#[tokio::test]
async fn deliveries_are_told_apart_by_whether_they_are_acknowledged() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    until(|| rig.broker.depth("q").ready == 3).await;
    peer.get(1, "q", true).await.unwrap();
    peer.consume(1, "q", "c").await;
    peer.deliveries(1, 2).await;
    let stats = rig.json("/queues/%2F/q").await["message_stats"].clone();
    let counts =
        ["get", "get_no_ack", "deliver", "deliver_no_ack", "deliver_get"].map(|name| stats[name].clone());
    assert_eq!(counts, [0, 1, 2, 0, 3].map(|count| json!(count)));
}

#[tokio::test]
async fn an_exchange_counts_what_passes_it_by_either_door_and_the_broker_does_too() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    for queue in ["a", "b"] {
        peer.declare(1, queue).await;
        peer.bind(1, queue, "amq.fanout", "").await;
    }
    for key in ["1", "2", "3"] {
        peer.publish(1, "amq.fanout", key, "m").await;
    }
    peer.publish(1, "", "a", "m").await;
    peer.publish(1, "amq.direct", "nowhere", "m").await;
    peer.declare(1, "a").await;
    let message = json!({"routing_key": "", "payload": "m"});
    rig.post("/exchanges/%2F/amq.fanout/publish", message).await;
    let passed = async |exchange: &str| {
        let stats = rig.json(&format!("/exchanges/%2F/{exchange}")).await["message_stats"].clone();
        (stats["publish_in"].as_u64().unwrap(), stats["publish_out"].as_u64().unwrap())
    };
    assert_eq!(passed("amq.fanout").await, (4, 8));
    assert_eq!((passed("amq.default").await, passed("amq.direct").await), ((1, 1), (1, 0)));
    rig.post("/queues/%2F/a/get", json!({"count": 2, "ackmode": "ack_requeue_false"})).await;
    let totals = rig.json("/overview").await["message_stats"].clone();
    let counts = ["publish", "drop_unroutable", "get", "ack"].map(|name| totals[name].clone());
    assert_eq!(counts, [6, 1, 2, 2].map(|count| json!(count)));
}

#[tokio::test]
async fn logins_are_counted_by_protocol_and_source_until_somebody_resets_that() {
    let rig = Rig::start().await;
    let node = rig.json("/nodes").await[0]["name"].as_str().unwrap().to_owned();
    drop(rig.broker.peer().await);
    rig.client().get(rig.url("/whoami")).basic_auth("guest", Some("wrong")).send().await.unwrap();
    let path = format!("/auth/attempts/{node}");
    let attempts = rig.json(&path).await;
    assert_eq!(
        attempts[0],
        json!({"protocol": "amqp091", "auth_attempts": 1, "auth_attempts_failed": 0, "auth_attempts_succeeded": 1})
    );
    assert_eq!((&attempts[1]["protocol"], &attempts[1]["auth_attempts_failed"]), (&json!("http"), &json!(1)));
    let sources = rig.json(&format!("{path}/source")).await;
    assert_eq!(sources[0]["remote_address"], "127.0.0.1");
    assert_eq!((&sources[0]["username"], &sources[0]["protocol"]), (&json!("guest"), &json!("amqp091")));
    assert_eq!(rig.ask("monitor", Method::DELETE, &path, Value::Null).await.status, 401);
    assert_eq!(rig.delete(&path).await.status, 204);
    assert_eq!(rig.json(&path).await.as_array().unwrap().len(), 1, "the request itself");
    assert_eq!(rig.get("/auth/attempts/other").await.status, 404);
}

#[tokio::test]
async fn the_oldest_message_ages_from_look_to_look_until_it_is_gone() {
    let clock = Arc::new(SimClock::new());
    let seam = Seam { clock: clock.clone(), ..Seam::real() };
    let rig = Rig::start_on(seam, |_| {}, |_| {}).await;
    rig.put("/queues/%2F/q", json!({})).await;
    let age = async || rig.json("/queues/%2F/q").await["oldest_message_age"].as_f64().map(f64::round);
    assert_eq!(age().await, None);
    let message = json!({"routing_key": "q", "payload": "m"});
    rig.post("/exchanges/%2F/amq.default/publish", message.clone()).await;
    assert_eq!(age().await, Some(0.0));
    clock.advance(Duration::from_secs(15));
    rig.post("/exchanges/%2F/amq.default/publish", message).await;
    assert_eq!(age().await, Some(15.0));
    clock.advance(Duration::from_secs(15));
    let take = json!({"count": 1, "ackmode": "ack_requeue_false"});
    rig.post("/queues/%2F/q/get", take.clone()).await;
    assert_eq!(age().await, Some(15.0), "of the second");
    rig.post("/queues/%2F/q/get", take).await;
    assert_eq!(age().await, None);
}
