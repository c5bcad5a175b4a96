//! Health checks, the overview, and what tools ask at first.

use crate::rig::Rig;
use deepmq_broker::BrokerConfig;
use serde_json::{Value, json};

/// What Kubernetes asks a pod: is it there, does it serve, is it well.
const PROBES: [&str; 12] = [
    "/health/checks/alarms",
    "/health/checks/local-alarms",
    "/health/checks/virtual-hosts",
    "/health/checks/is-in-service",
    "/health/checks/ready-to-serve-clients",
    "/health/checks/below-node-connection-limit",
    "/health/checks/reached-target-cluster-size",
    "/health/checks/node-is-quorum-critical",
    "/health/checks/metadata-store/initialized",
    "/health/checks/metadata-store/initialized/with-data",
    "/health/checks/certificate-expiration/1/months",
    "/health/checks/quorum-queues-without-elected-leaders/vhost/%2F/pattern/.*",
];

#[tokio::test]
async fn a_healthy_broker_passes_every_check() {
    let rig = Rig::start().await;
    for probe in PROBES {
        assert_eq!(rig.json(probe).await["status"], "ok", "{probe}");
    }
    assert_eq!(rig.json("/aliveness-test/%2F").await["status"], "ok");
    let node = rig.json("/nodes").await[0]["name"].as_str().unwrap().to_owned();
    for old in ["/healthchecks/node".to_owned(), format!("/healthchecks/node/{node}")] {
        assert_eq!(rig.json(&old).await["status"], "ok", "{old}");
    }
    assert_eq!(rig.get("/healthchecks/node/other").await.status, 404);
    let port = rig.address.port();
    assert_eq!(rig.json(&format!("/health/checks/port-listener/{port}")).await["port"], port);
    assert_eq!(rig.json("/health/checks/protocol-listener/amqp,http").await["status"], "ok");
}

#[tokio::test]
async fn a_check_that_fails_is_503_with_a_reason() {
    let rig = Rig::start().await;
    for (path, missing) in [
        ("/health/checks/port-listener/1", json!(1)),
        ("/health/checks/protocol-listener/amqp,mqtt", json!(["mqtt"])),
    ] {
        let answer = rig.get(path).await;
        assert_eq!((answer.status.as_u16(), &answer.json["status"]), (503, &json!("failed")), "{path}");
        assert_eq!(
            (&answer.json["missing"], &answer.json["reason"]),
            (&missing, &json!("No active listener"))
        );
    }
    assert_eq!(rig.get("/health/checks/port-listener/x").await.status, 400);
    assert_eq!(rig.get("/health/checks/certificate-expiration/x/days").await.status, 400);
}

#[tokio::test]
async fn full_memory_is_an_alarm_and_publishers_are_told() {
    let small = |config: &mut BrokerConfig| config.limits.ready_memory_bytes_max = 1000;
    let rig = Rig::start_with(small, |_| {}).await;
    rig.put("/queues/%2F/q", json!({})).await;
    let message = json!({"routing_key": "q", "payload": "x".repeat(2000)});
    assert_eq!(rig.post("/exchanges/%2F/amq.default/publish", message.clone()).await.status, 200);
    let answer = rig.get("/health/checks/alarms").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json["alarms"][0]["resource"], "memory");
    assert!(rig.post("/exchanges/%2F/amq.default/publish", message).await.refusal().2.contains("memory"));
    assert_eq!(rig.json("/nodes").await[0]["mem_alarm"], true);
}

#[tokio::test]
async fn probes_need_no_login_if_they_are_open_and_all_else_does() {
    let open = Rig::start_with(|_| {}, |config| config.open_probes = true).await;
    let status = async |path: &str| open.client().get(open.url(path)).send().await.unwrap().status();
    for probe in PROBES {
        assert_eq!(status(probe).await, 200, "{probe}");
    }
    assert_eq!(status("/overview").await, 401);
    assert_eq!(status("/health/checks/../../overview").await, 401);
    let closed = Rig::start().await;
    assert_eq!(closed.client().get(closed.url(PROBES[0])).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn the_overview_counts_what_there_is_and_tells_where_to_connect() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish(1, "", "q", "m").await;
    deepmq_testkit::until(|| rig.broker.depth("q").ready == 1).await;
    let overview = rig.json("/overview").await;
    let totals = &overview["object_totals"];
    let count = |kind: &str| totals[kind].as_u64().unwrap();
    assert_eq!((count("connections"), count("channels"), count("queues"), count("exchanges")), (1, 1, 1, 12));
    assert_eq!(overview["queue_totals"]["messages"], 1);
    assert_eq!(overview["message_stats"]["publish"], 1);
    assert_eq!(overview["churn_rates"]["connection_created"], 1);
    let ports: Vec<_> =
        overview["listeners"].as_array().unwrap().iter().map(|on| on["port"].as_u64().unwrap()).collect();
    assert_eq!(ports, [u64::from(rig.broker.address().port()), u64::from(rig.address.port())]);
    assert_eq!(
        rig.json("/whoami").await,
        json!({"name": "guest", "tags": ["administrator"], "is_internal_user": true})
    );
    for path in ["/feature-flags", "/deprecated-features", "/extensions"] {
        assert_eq!(rig.json(path).await, json!([]), "{path}");
    }
    let node = rig.json("/nodes").await[0].clone();
    let name = node["name"].as_str().unwrap();
    assert_eq!(rig.json(&format!("/nodes/{name}")).await["type"], "disc");
    assert!(node["mem_used"].as_u64().unwrap() > 1 << 20);
    assert!(rig.json(&format!("/nodes/{name}/memory")).await["memory"]["total"]["rss"].is_number());
    assert_eq!(rig.get("/nodes/other").await.status, 404);
}

#[tokio::test]
async fn connections_and_channels_are_shown_and_closed_with_a_reason() {
    let rig = Rig::start().await;
    let mut peer = rig.broker.peer().await;
    peer.select_confirms(1).await;
    let connection = rig.json("/connections").await[0].clone();
    let name = connection["name"].as_str().unwrap();
    assert!(name.ends_with(&format!(" -> {}", rig.broker.address())), "{name}");
    assert_eq!((&connection["user"], &connection["channels"]), (&json!("guest"), &json!(1)));
    assert_eq!(connection["peer_host"], "127.0.0.1");
    let path = format!("/connections/{}", name.replace(' ', "%20").replace('>', "%3E"));
    let channel = rig.json(&format!("{path}/channels")).await[0].clone();
    assert_eq!((&channel["confirm"], &channel["number"]), (&json!(true), &json!(1)));
    assert_eq!(rig.json("/vhosts/%2F/channels").await.as_array().unwrap().len(), 1);
    assert_eq!(rig.json("/vhosts/mine/connections").await, json!([]));
    let one = format!("/channels/{}%20(1)", path.strip_prefix("/connections/").unwrap());
    assert_eq!(rig.json(&one).await["name"], channel["name"]);
    let asked = rig
        .client()
        .delete(rig.url(&path))
        .basic_auth("guest", Some("guest"))
        .header("x-reason", "maintenance");
    assert_eq!(asked.send().await.unwrap().status(), 204);
    peer.expect_connection_close(
        320,
        "CONNECTION_FORCED - maintenance",
        deepmq_amqp::codec::MethodId { class: 0, method: 0 },
    )
    .await;
    assert_eq!(rig.get(&path).await.status, 404);
    assert_eq!(
        rig.ask("guest", reqwest::Method::DELETE, "/connections/username/guest", Value::Null).await.status,
        204
    );
}
