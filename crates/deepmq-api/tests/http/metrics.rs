//! Metrics, as Prometheus reads them.

use crate::rig::Rig;
use deepmq_api::ApiConfig;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Samples by their name and labels. Fails where Prometheus' parser or its linter would.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut families: BTreeSet<String> = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            kinds.insert(name.to_owned(), kind.to_owned());
            name.clone_into(&mut current);
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| help.ends_with('.')), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let histogram = kinds[&current] == "histogram";
        let suffix = name.strip_prefix(&*current).expect("a sample stands in its family");
        assert!(suffix.is_empty() || histogram && ["_bucket", "_sum", "_count"].contains(&suffix), "{line}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':'), "{name}");
        assert_eq!(kinds[&current] == "counter", name.ends_with("_total"), "{name} is a {}", kinds[&current]);
        assert!(!name.starts_with("__"), "{name}");
        assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{series} comes twice");
    }
    samples
}

async fn scrape(rig: &Rig) -> BTreeMap<String, f64> {
    scrape_at(rig, "/metrics").await
}

async fn scrape_at(rig: &Rig, path: &str) -> BTreeMap<String, f64> {
    let url = format!("http://{}{path}", rig.address);
    let answer = rig.client().get(url).basic_auth("monitor", Some("guest")).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(answer.status().is_success());
    parse(&answer.text().await.unwrap())
}

/// What the common board reads.
const BOARD: [&str; 14] = [
    "rabbitmq_queue_messages",
    "rabbitmq_queue_messages_ready",
    "rabbitmq_queue_messages_unacked",
    "rabbitmq_connections",
    "rabbitmq_channels",
    "rabbitmq_consumers",
    "rabbitmq_queues",
    "rabbitmq_connections_opened_total",
    "rabbitmq_connections_closed_total",
    "rabbitmq_queues_declared_total",
    "rabbitmq_alarms_memory_used_watermark",
    "rabbitmq_process_resident_memory_bytes",
    "rabbitmq_resident_memory_limit_bytes",
    "rabbitmq_process_open_fds",
];

#[tokio::test]
async fn the_board_finds_its_names_and_messages_are_counted() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.select_confirms(1).await;
    peer.publish_all(1, "q", (0..10).map(|n| n.to_string())).await;
    peer.expect_confirmed_up_to(1, 10).await;
    peer.get(1, "q", true).await.unwrap();
    let metrics = scrape(&rig).await;
    for name in BOARD {
        assert!(metrics.contains_key(name), "{name}");
    }
    let at = |series: &str| metrics[series];
    let counted = [
        ("rabbitmq_global_messages_received_total{protocol=\"amqp091\"}", 10.0),
        ("rabbitmq_global_messages_confirmed_total{protocol=\"amqp091\"}", 10.0),
        ("rabbitmq_global_messages_routed_total{protocol=\"amqp091\"}", 10.0),
        ("deepmq_messages_delivered_total", 1.0),
        ("deepmq_messages_ready", 9.0),
        ("deepmq_connections", 1.0),
    ];
    for (series, value) in counted {
        assert!((at(series) - value).abs() < 0.5, "{series} is {}", at(series));
    }
    let identity = metrics.keys().find(|series| series.starts_with("rabbitmq_identity_info{")).unwrap();
    assert!(identity.contains("rabbitmq_node=\"deepmq@localhost\""), "{identity}");
}

#[tokio::test]
async fn counters_stay_when_connections_and_queues_go() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish(1, "", "q", "m").await;
    deepmq_testkit::until(|| rig.broker.depth("q").ready == 1).await;
    rig.delete("/queues/q").await;
    drop(peer);
    deepmq_testkit::until(|| rig.broker.broker().connections().is_empty()).await;
    let metrics = scrape(&rig).await;
    assert!(
        metrics["deepmq_messages_received_total"] > 0.5 && metrics["deepmq_received_bytes_total"] > 100.0
    );
}

#[tokio::test]
async fn queues_are_told_one_by_one_only_if_wanted_and_not_too_many() {
    let told = async |max: usize| {
        let rig = Rig::start_with(|_| {}, |config: &mut ApiConfig| config.metrics_queues_max = max).await;
        for name in ["a", "b%22"] {
            rig.put(&format!("/queues/%2F/{name}"), json!({})).await;
        }
        let metrics = scrape(&rig).await;
        metrics
            .keys()
            .filter(|series| series.starts_with("deepmq_queue_messages_ready{"))
            .cloned()
            .collect::<Vec<_>>()
    };
    let all = [
        "deepmq_queue_messages_ready{vhost=\"/\",queue=\"a\"}",
        "deepmq_queue_messages_ready{vhost=\"/\",queue=\"b\\\"\"}",
    ];
    assert_eq!(told(2).await, all);
    assert!(told(1).await.is_empty() && told(0).await.is_empty());
}

#[tokio::test]
async fn beside_the_api_metrics_need_a_login_that_may_monitor() {
    let rig = Rig::start().await;
    let url = format!("http://{}/metrics", rig.address);
    let status = async |user: &str| {
        rig.client().get(&url).basic_auth(user, Some("guest")).send().await.unwrap().status()
    };
    assert_eq!(rig.client().get(&url).send().await.unwrap().status(), 401);
    assert_eq!((status("manager").await.as_u16(), status("monitor").await.as_u16()), (401, 200));
}

#[tokio::test]
async fn each_object_has_its_series_where_they_are_asked_for() {
    let rig = Rig::start().await;
    rig.put("/queues/mine/other", json!({})).await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q\"\\").await;
    peer.publish(1, "", "q\"\\", "m").await;
    deepmq_testkit::until(|| rig.broker.depth("q\"\\").ready == 1).await;
    let all = scrape_at(&rig, "/metrics/per-object").await;
    let queue = r#"{vhost="/",queue="q\"\\"}"#;
    let is_1 = |series: &str| {
        let value = all.get(series).unwrap_or_else(|| panic!("{series} in {all:?}"));
        assert!((value - 1.0).abs() < 0.5, "{series} is {value}");
    };
    is_1(&format!("rabbitmq_queue_messages_ready{queue}"));
    is_1(&format!("rabbitmq_queue_messages_published_total{queue}"));
    is_1(r#"rabbitmq_exchange_messages_published_in_total{vhost="/",exchange=""}"#);
    assert!(all.keys().any(|series| series.starts_with("rabbitmq_channel_prefetch{connection=")));
    let some =
        scrape_at(&rig, "/metrics/detailed?family=queue_coarse_metrics&family=vhost_status&vhost=mine").await;
    let told: Vec<_> = some.keys().filter(|series| !series.contains("_info{")).map(String::as_str).collect();
    let labels = r#"{vhost="mine",queue="other"}"#;
    let expected = [
        r#"rabbitmq_cluster_vhost_status{vhost="mine"}"#.to_owned(),
        format!("rabbitmq_detailed_queue_messages{labels}"),
        format!("rabbitmq_detailed_queue_messages_ready{labels}"),
        format!("rabbitmq_detailed_queue_messages_unacked{labels}"),
    ];
    assert!(expected.iter().all(|series| told.contains(&series.as_str())), "{told:?}");
    assert!(
        !told.iter().any(|series| series.contains("consumers") || series.contains("vhost=\"/\"")),
        "{told:?}"
    );
    let none = scrape_at(&rig, "/metrics/detailed").await;
    assert!(!none.keys().any(|series| series.contains("queue")), "{none:?}");
}

#[tokio::test]
async fn waiting_for_the_disk_is_told_by_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let rig = Rig::start_with(|config| config.data_dir = Some(path), |_| {}).await;
    assert_eq!(rig.put("/queues/%2F/q", json!({"durable": true})).await.status, 201);
    let metrics = scrape(&rig).await;
    for name in ["deepmq_sync_seconds", "deepmq_confirm_seconds"] {
        assert!(metrics[&format!("{name}_count")] > 0.5, "{name}");
        let all = metrics[&format!("{name}_bucket{{le=\"+Inf\"}}")];
        assert!((all - metrics[&format!("{name}_count")]).abs() < 0.5, "{name}");
    }
    rig.stop().await;
}
