//! What KEDA and Kubernetes ask, as they ask it.

use crate::rig::Rig;
use deepmq_testkit::until;
use reqwest::StatusCode;
use serde_json::{Value, json};

/// The fields that KEDA's scaler reads of a queue, and what they hold.
fn scaled_by(queue: &Value) -> (u64, u64, u64, f64, f64) {
    let count = |name: &str| queue[name].as_u64().unwrap_or_else(|| panic!("{name}: {queue}"));
    let rate = |name: &str| queue["message_stats"][name]["rate"].as_f64().unwrap();
    (
        count("messages"),
        count("messages_ready"),
        count("messages_unacknowledged"),
        rate("publish_details"),
        rate("deliver_get_details"),
    )
}

#[tokio::test]
async fn a_scaler_reads_the_length_and_the_rates_of_one_queue_or_of_all_that_match() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    for name in ["orders-1", "orders-2", "other"] {
        peer.declare(1, name).await;
        peer.publish_all(1, name, (0..3).map(|n| n.to_string())).await;
    }
    until(|| rig.broker.depth("other").ready == 3).await;
    peer.get(1, "orders-1", false).await.unwrap();
    let (messages, ready, unacked, publish, deliver) = scaled_by(&rig.json("/queues/%2F/orders-1").await);
    assert_eq!((messages, ready, unacked), (3, 2, 1));
    assert!(publish >= 0.0 && deliver >= 0.0);
    let path = "/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Eorders&page_size=100";
    let page = rig.json(path).await;
    let items = page["items"].as_array().unwrap();
    assert_eq!((items.len(), &page["filtered_count"]), (2, &json!(2)));
    assert_eq!(items.iter().map(|queue| scaled_by(queue).0).sum::<u64>(), 6);
    assert_eq!(items[0]["name"], "orders-1");
    // Without a page, as another version of it asks.
    let list = rig.json("/queues/%2F?use_regex=true&pagination=false&name=%5Eorders").await;
    assert_eq!(list.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_pod_is_alive_and_ready_until_its_broker_is_full_and_alive_then_still() {
    let small = |config: &mut deepmq_broker::BrokerConfig| config.limits.ready_memory_bytes_max = 1000;
    let rig = Rig::start_with(small, |config| config.open_probes = true).await;
    let probe = async |check: &str| {
        rig.client().get(rig.url(&format!("/health/checks/{check}"))).send().await.unwrap().status()
    };
    let (startup, liveness, readiness) = ("virtual-hosts", "is-in-service", "ready-to-serve-clients");
    for check in [startup, liveness, readiness, "local-alarms"] {
        assert_eq!(probe(check).await, StatusCode::OK, "{check}");
    }
    rig.put("/queues/%2F/q", json!({})).await;
    rig.post("/exchanges/%2F/amq.default/publish", json!({"routing_key": "q", "payload": "x".repeat(2000)}))
        .await;
    assert_eq!(probe("local-alarms").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((probe(liveness).await, probe(readiness).await), (StatusCode::OK, StatusCode::OK));
    rig.delete("/queues/%2F/q").await;
    assert_eq!(probe("local-alarms").await, StatusCode::OK);
    rig.broker.broker().shutdown();
    // It does not listen any more, which is an answer too.
    until(|| std::net::TcpStream::connect(rig.address).is_err()).await;
}
