//! What each tag lets a user see and do.

use crate::rig::Rig;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_manager_sees_its_vhosts_alone() {
    let rig = Rig::start().await;
    for vhost in ["%2F", "mine"] {
        rig.put(&format!("/queues/{vhost}/q"), json!({})).await;
    }
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "held").await;
    let as_manager = async |path: &str| rig.ask("manager", Method::GET, path, Value::Null).await;
    let vhosts = as_manager("/vhosts").await.json;
    assert_eq!(vhosts.as_array().unwrap().iter().map(|v| &v["name"]).collect::<Vec<_>>(), ["mine"]);
    for kind in ["queues", "exchanges", "bindings"] {
        let items = as_manager(&format!("/{kind}")).await.json;
        assert!(!items.as_array().unwrap().is_empty(), "{kind}");
        assert!(items.as_array().unwrap().iter().all(|item| item["vhost"] == "mine"), "{kind}: {items}");
        let refused = as_manager(&format!("/{kind}/%2F")).await;
        assert_eq!(
            refused.refusal(),
            (401, "not_authorized", "User not authorised to access virtual host"),
            "{kind}"
        );
    }
    for path in [
        "/queues/%2F/q",
        "/exchanges/%2F/amq.topic",
        "/vhosts/%2F",
        "/consumers/%2F",
        "/topology",
        "/vhosts/%2F/connections",
        "/vhosts/%2F/channels",
        "/aliveness-test/%2F",
        "/queues/q",
    ] {
        assert_eq!(as_manager(path).await.status, 401, "{path}");
    }
    assert_eq!(as_manager("/connections").await.json, json!([]), "they are another user's");
    assert_eq!(as_manager("/overview").await.json["object_totals"]["queues"], 1);
    assert_eq!(as_manager("/overview").await.json["listeners"], json!([]));
}

#[tokio::test]
async fn who_may_not_see_a_vhost_does_not_learn_whether_it_exists() {
    let rig = Rig::start().await;
    let refused =
        async |path: &str| rig.ask("manager", Method::GET, path, Value::Null).await.refusal().2.to_owned();
    assert_eq!(refused("/queues/%2F/q").await, refused("/queues/no-such-vhost/q").await);
}

#[tokio::test]
async fn changes_take_access_to_the_vhost_and_lists_of_all_take_monitoring() {
    let rig = Rig::start().await;
    let ask = async |user: &str, method: Method, path: &str| {
        rig.ask(user, method, path, json!({})).await.status.as_u16()
    };
    assert_eq!(ask("manager", Method::PUT, "/queues/mine/q").await, 201);
    assert_eq!(ask("manager", Method::PUT, "/queues/%2F/q").await, 401);
    assert_eq!(ask("manager", Method::DELETE, "/queues/mine/q").await, 204);
    assert_eq!(ask("manager", Method::GET, "/nodes").await, 401);
    assert_eq!(ask("monitor", Method::GET, "/nodes").await, 200);
    assert_eq!(ask("monitor", Method::GET, "/queues").await, 200);
    assert_eq!(ask("monitor", Method::GET, "/feature-flags").await, 401);
    assert_eq!(ask("manager", Method::DELETE, "/connections/username/guest").await, 401);
}

#[tokio::test]
async fn a_connection_is_closed_by_an_administrator_or_its_own_user_and_not_by_who_monitors() {
    let rig = Rig::start().await;
    let _peer = rig.broker.peer().await;
    let name = rig.json("/connections").await[0]["name"].as_str().unwrap().to_owned();
    let one = format!("/connections/{}", name.replace(' ', "%20").replace('>', "%3E"));
    let ask =
        async |user: &str, method: Method, path: &str| rig.ask(user, method, path, Value::Null).await.status;
    assert_eq!(ask("monitor", Method::GET, &one).await, 200);
    for path in [one.as_str(), "/connections/username/guest"] {
        assert_eq!(ask("monitor", Method::DELETE, path).await, 401, "{path}");
    }
    assert_eq!(ask("monitor", Method::DELETE, "/connections/username/monitor").await, 204);
    assert_eq!(ask("manager", Method::DELETE, "/connections/username/manager").await, 204);
    assert_eq!(ask("monitor", Method::GET, &one).await, 200, "it is still open");
    assert_eq!(ask("guest", Method::DELETE, &one).await, 204);
}
