//! Users, vhosts, permissions, policies, parameters and limits, through RabbitMQ's own HTTP client where it has a call.

use crate::clients::{client, map};
use crate::rig::Rig;
use rabbitmq_http_client::commons::{PolicyTarget, UserLimitTarget, VirtualHostLimitTarget};
use rabbitmq_http_client::requests::{
    EnforcedLimitParams, GlobalRuntimeParameterDefinition, Permissions, PolicyParams,
    RuntimeParameterDefinition, TopicPermissions, UserParams, VirtualHostParams,
};
use reqwest::Method;
use serde_json::{Value, json};

/// `guest`, salted with `abcd` and hashed as RabbitMQ does.
async fn hash_of_guest(rig: &Rig) -> String {
    rig.json("/auth/hash_password/guest").await["ok"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_user_is_made_with_a_hash_logs_in_changes_and_goes() {
    let rig = Rig::start().await;
    let client = client(&rig);
    let hash = hash_of_guest(&rig).await;
    client.create_user(&UserParams::new("ann", &hash, "management,monitoring")).await.unwrap();
    let ann = client.get_user("ann").await.unwrap();
    assert_eq!(
        (ann.tags.0, ann.password_hash.is_some()),
        (vec!["management".to_owned(), "monitoring".to_owned()], true)
    );
    assert_eq!(rig.ask("ann", Method::GET, "/whoami", Value::Null).await.json["name"], "ann");
    assert_eq!(client.list_users_without_permissions().await.unwrap().len(), 1);
    assert_eq!(
        rig.put("/users/ann", json!({"password": "changed", "tags": ["administrator"]})).await.status,
        204
    );
    assert_eq!(rig.ask("ann", Method::GET, "/whoami", Value::Null).await.status, 401);
    assert_eq!(
        rig.put("/users/ann", json!({"tags": "management"})).await.status,
        204,
        "it keeps its password"
    );
    let asked = rig.client().get(rig.url("/whoami")).basic_auth("ann", Some("changed"));
    assert_eq!(asked.send().await.unwrap().status(), 200);
    client.delete_user("ann", false).await.unwrap();
    assert!(client.get_user("ann").await.is_err());
    assert_eq!(rig.delete("/users/ann").await.status, 404);
    client.create_user(&UserParams::new("bob", &hash, "")).await.unwrap();
    client.delete_users(vec!["bob", "absent"]).await.unwrap();
    assert_eq!(client.list_users().await.unwrap().len(), 4);
    assert_eq!(rig.put("/users/x", json!({"password_hash": "???"})).await.refusal().0, 400);
    assert_eq!(rig.put("/users/x", json!({"password": "p", "password_hash": hash})).await.refusal().0, 400);
}

#[tokio::test]
async fn a_vhost_is_made_with_full_permission_for_its_maker_and_goes_with_everything_in_it() {
    let rig = Rig::start().await;
    let client = client(&rig);
    client.create_vhost(&VirtualHostParams::named("new")).await.unwrap();
    assert_eq!(client.get_permissions("new", "guest").await.unwrap().configure, ".*");
    assert_eq!(rig.put("/queues/new/q", json!({})).await.status, 201);
    let changed = json!({"description": "for tests", "tags": "a, b", "default_queue_type": "quorum"});
    assert_eq!(rig.put("/vhosts/new", changed).await.status, 204);
    let shown = rig.json("/vhosts/new").await;
    assert_eq!((&shown["description"], &shown["tags"]), (&json!("for tests"), &json!(["a", "b"])));
    assert_eq!(shown["metadata"]["default_queue_type"], "quorum");
    client.delete_vhost("new", false).await.unwrap();
    assert!(client.get_vhost("new").await.is_err());
    assert_eq!(rig.get("/queues/new/q").await.status, 404);
}

#[tokio::test]
async fn permissions_hold_at_once_and_here_as_over_amqp() {
    let rig = Rig::start().await;
    let client = client(&rig);
    rig.put("/queues/mine/theirs", json!({})).await;
    let permissions =
        Permissions { user: "manager", vhost: "mine", configure: "^own", read: "^own|amq", write: "^own" };
    client.declare_permissions(&permissions).await.unwrap();
    let ask = async |method: Method, path: &str, body: Value| rig.ask("manager", method, path, body).await;
    assert_eq!(ask(Method::PUT, "/queues/mine/own", json!({})).await.status, 201);
    let refused = ask(Method::PUT, "/queues/mine/other", json!({})).await;
    assert_eq!(
        refused.refusal(),
        (
            401,
            "not_authorized",
            "ACCESS_REFUSED - configure access to queue 'other' in vhost 'mine' refused for user 'manager'"
        )
    );
    for (method, path) in [
        (Method::DELETE, "/queues/mine/theirs"),
        (Method::DELETE, "/queues/mine/theirs/contents"),
        (Method::PUT, "/exchanges/mine/x"),
        (Method::DELETE, "/exchanges/mine/amq.topic"),
        (Method::POST, "/bindings/mine/e/amq.topic/q/theirs"),
    ] {
        assert_eq!(ask(method, path, json!({})).await.status, 401, "{path}");
    }
    let get = json!({"count": 1, "ackmode": "ack_requeue_true"});
    assert_eq!(ask(Method::POST, "/queues/mine/theirs/get", get.clone()).await.status, 401);
    assert_eq!(ask(Method::POST, "/queues/mine/own/get", get).await.status, 200);
    assert_eq!(ask(Method::POST, "/bindings/mine/e/amq.topic/q/own", json!({})).await.status, 201);
    let message = json!({"routing_key": "own", "payload": ""});
    assert_eq!(ask(Method::POST, "/exchanges/mine/amq.default/publish", message).await.status, 401);
    assert_eq!(client.list_permissions_of("manager").await.unwrap().len(), 1);
    assert!(client.list_permissions_in("mine").await.unwrap().len() >= 2);
    client.clear_permissions("mine", "manager", false).await.unwrap();
    assert_eq!(ask(Method::GET, "/queues/mine", Value::Null).await.status, 401);
    let topics =
        TopicPermissions { user: "monitor", vhost: "mine", exchange: "amq.topic", read: "^a", write: "^b" };
    client.declare_topic_permissions(&topics).await.unwrap();
    assert_eq!(client.list_topic_permissions_of("monitor").await.unwrap()[0].write, "^b");
    client.clear_topic_permissions("mine", "monitor", false).await.unwrap();
    assert!(client.list_topic_permissions().await.unwrap().is_empty());
    assert_eq!(
        rig.put("/permissions/absent/guest", json!({"configure": "", "write": "", "read": ""})).await.status,
        400
    );
    let wrong = rig.put("/permissions/mine/guest", json!({"configure": "(", "write": "", "read": ""})).await;
    assert!(wrong.refusal().2.starts_with("configure"), "{wrong:?}");
}

#[tokio::test]
async fn policies_are_set_shown_at_their_queues_and_cleared() {
    let rig = Rig::start().await;
    let client = client(&rig);
    rig.put("/queues/%2F/orders", json!({})).await;
    let policy = |name| PolicyParams {
        vhost: "/",
        name,
        pattern: "^ord",
        apply_to: PolicyTarget::Queues,
        priority: 7,
        definition: map(json!({"max-length": 5})),
    };
    client.declare_policy(&policy("short")).await.unwrap();
    client.declare_operator_policy(&policy("op")).await.unwrap();
    let queue = rig.json("/queues/%2F/orders").await;
    assert_eq!((&queue["policy"], &queue["operator_policy"]), (&json!("short"), &json!("op")));
    assert_eq!(queue["effective_policy_definition"], json!({"max-length": 5}));
    assert_eq!(client.list_policies_in("/").await.unwrap()[0].priority, 7);
    assert_eq!(client.list_operator_policies().await.unwrap().len(), 1);
    client.get_policy("/", "short").await.unwrap();
    client.delete_policy("/", "short", false).await.unwrap();
    client.delete_operator_policy("/", "op", false).await.unwrap();
    assert_eq!(rig.json("/queues/%2F/orders").await["policy"], Value::Null);
    let wrong = json!({"pattern": ".*", "definition": {"no-such-key": 1}});
    assert_eq!(rig.put("/policies/%2F/p", wrong).await.refusal().0, 400);
    let by_manager =
        rig.ask("manager", Method::PUT, "/policies/mine/p", json!({"pattern": "", "definition": {}})).await;
    assert_eq!(by_manager.refusal().2, "Not policymaker user");
}

#[tokio::test]
async fn parameters_and_limits_are_set_and_cleared() {
    let rig = Rig::start().await;
    let client = client(&rig);
    let upstream = RuntimeParameterDefinition {
        name: "up",
        vhost: "/",
        component: "federation-upstream",
        value: map(json!({"uri": "amqp://"})),
    };
    client.upsert_runtime_parameter(&upstream).await.unwrap();
    assert_eq!(client.list_runtime_parameters_of_component("federation-upstream").await.unwrap().len(), 1);
    client.get_runtime_parameter("federation-upstream", "/", "up").await.unwrap();
    client.clear_runtime_parameter("federation-upstream", "/", "up", false).await.unwrap();
    let global = GlobalRuntimeParameterDefinition { name: "g", value: map(json!({"k": 1})) };
    client.upsert_global_runtime_parameter(&global).await.unwrap();
    assert_eq!(client.list_global_runtime_parameters().await.unwrap().len(), 1);
    client.clear_global_runtime_parameter("g").await.unwrap();
    client.set_cluster_name("east").await.unwrap();
    assert_eq!(client.get_cluster_name().await.unwrap().name, "east");

    let limit = EnforcedLimitParams::new(VirtualHostLimitTarget::MaxQueues, 1);
    client.set_vhost_limit("mine", limit).await.unwrap();
    assert_eq!(rig.put("/queues/mine/a", json!({})).await.status, 201);
    assert_eq!(rig.put("/queues/mine/b", json!({})).await.status, 400);
    assert_eq!(client.list_vhost_limits("mine").await.unwrap()[0].limits.0["max-queues"], 1);
    client.clear_vhost_limit("mine", VirtualHostLimitTarget::MaxQueues).await.unwrap();
    assert!(client.list_all_vhost_limits().await.unwrap().is_empty());
    client.set_user_limit("guest", EnforcedLimitParams::new(UserLimitTarget::MaxChannels, 9)).await.unwrap();
    assert_eq!(client.list_user_limits("guest").await.unwrap()[0].limits.0["max-channels"], 9);
    client.clear_user_limit("guest", UserLimitTarget::MaxChannels).await.unwrap();
    assert_eq!(rig.put("/user-limits/guest/max-fun", json!({"value": 1})).await.refusal().0, 400);
    assert_eq!(rig.put("/user-limits/absent/max-channels", json!({"value": 1})).await.refusal().0, 400);
}

#[tokio::test]
async fn an_export_goes_into_a_fresh_broker_and_comes_out_byte_for_byte() {
    let rig = Rig::start().await;
    for (path, body) in [
        ("/vhosts/shop", json!({"description": "for sale"})),
        ("/users/ann", json!({"password": "secret", "tags": "monitoring"})),
        ("/permissions/shop/ann", json!({"configure": "", "write": "^a", "read": ".*"})),
        ("/policies/shop/short", json!({"pattern": "^q", "definition": {"max-length": 5}})),
        ("/exchanges/shop/x", json!({"type": "topic"})),
        ("/queues/shop/q", json!({"arguments": {"x-max-length": 10}})),
    ] {
        assert_eq!(rig.put(path, body).await.status, 201, "{path}");
    }
    let binding = json!({"routing_key": "a.#"});
    assert_eq!(rig.post("/bindings/shop/e/x/q/q", binding).await.status, 201);
    let text = |document: &Value| serde_json::to_string(document).unwrap();
    let exported = rig.json("/definitions").await;

    let fresh = Rig::start().await;
    assert_eq!(fresh.post("/definitions", exported.clone()).await.status, 204);
    assert_eq!(text(&fresh.json("/definitions").await), text(&exported));
    let asked = fresh.client().get(fresh.url("/whoami")).basic_auth("ann", Some("secret"));
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let of_vhost = rig.json("/definitions/shop").await;
    assert_eq!(fresh.put("/vhosts/copy", json!({})).await.status, 201);
    assert_eq!(fresh.post("/definitions/copy", of_vhost).await.status, 204);
    assert_eq!(fresh.json("/queues/copy/q").await["name"], "q");
    assert_eq!(fresh.post("/definitions/absent", json!({})).await.status, 404);
}

#[tokio::test]
async fn definitions_that_are_wrong_somewhere_change_nothing_and_say_where() {
    let rig = Rig::start().await;
    let before = rig.json("/definitions").await;
    let wrong = json!({"vhosts": [{"name": "other"}, {"name": ""}]});
    let answer = rig.post("/definitions", wrong).await;
    let (status, _, reason) = answer.refusal();
    assert!(status == 400 && reason.contains("vhosts[1]"), "{status} {reason}");
    assert_eq!(rig.json("/definitions").await, before);
    assert_eq!(rig.ask("nobody", Method::GET, "/definitions", Value::Null).await.status, 401);
}

#[tokio::test]
async fn a_protected_vhost_is_not_deleted_until_that_is_taken_back() {
    let rig = Rig::start().await;
    assert_eq!(rig.post("/vhosts/mine/deletion/protection", Value::Null).await.status, 204);
    assert_eq!(rig.json("/vhosts/mine").await["protected_from_deletion"], true);
    let refused = rig.delete("/vhosts/mine").await;
    assert_eq!(
        refused.refusal(),
        (
            412,
            "precondition_failed",
            "Refusing to delete virtual host 'mine' because it is protected from deletion"
        )
    );
    rig.put("/vhosts/mine", json!({"description": "changed"})).await;
    assert_eq!(rig.json("/vhosts/mine").await["protected_from_deletion"], true, "not said, not changed");
    let exported = rig.json("/definitions").await["vhosts"].clone();
    let mine = exported.as_array().unwrap().iter().find(|vhost| vhost["name"] == "mine").unwrap();
    assert_eq!(mine["metadata"]["protected_from_deletion"], true);
    assert_eq!(rig.delete("/vhosts/mine/deletion/protection").await.status, 204);
    assert_eq!(rig.delete("/vhosts/mine").await.status, 204);
    assert_eq!(rig.post("/vhosts/mine/deletion/protection", Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_login_by_form_tells_who_it_is_and_gives_nothing_to_keep() {
    let rig = Rig::start().await;
    let login = async |form: &'static str| {
        let asked = rig.client().post(rig.url("/login")).body(form).send().await.unwrap();
        assert!(asked.headers().get("set-cookie").is_none());
        crate::rig::Answer::read(asked).await
    };
    let who = login("username=guest&password=guest").await;
    assert_eq!((who.status.as_u16(), &who.json["name"]), (200, &json!("guest")));
    for wrong in ["username=guest&password=x", "username=nobody&password=guest", "username=guest", ""] {
        assert_eq!(login(wrong).await.status, 401, "{wrong}");
    }
}

#[tokio::test]
async fn the_queues_of_a_user_are_those_it_may_do_something_with() {
    let rig = Rig::start().await;
    for queue in ["/queues/%2F/a", "/queues/mine/b", "/queues/mine/c"] {
        rig.put(queue, json!({})).await;
    }
    let permission = json!({"configure": "^$", "write": "^b$", "read": "^$"});
    rig.put("/permissions/mine/manager", permission).await;
    let queues = rig.json("/users/manager/queues").await;
    assert_eq!(queues.as_array().unwrap().iter().map(|queue| &queue["name"]).collect::<Vec<_>>(), ["b"]);
    assert_eq!(rig.get("/users/nobody-known/queues").await.status, 404);
}

#[tokio::test]
async fn older_names_of_paths_lead_to_the_same() {
    let rig = Rig::start().await;
    assert_eq!(rig.json("/all-configuration").await, rig.json("/definitions").await);
    let policy = json!({"policies": [
        {"vhost": "/", "name": "p", "pattern": ".", "apply-to": "queues", "definition": {"max-length": 1}}
    ]});
    assert_eq!(rig.post("/all-configuration", policy).await.status, 204);
    assert_eq!(rig.json("/policies/%2F/p").await["definition"]["max-length"], 1);
    assert_eq!(rig.delete("/reset").await.status, 204);
    let node = rig.json("/nodes").await[0]["name"].as_str().unwrap().to_owned();
    assert_eq!(rig.delete(&format!("/reset/{node}")).await.status, 204);
    assert_eq!(rig.delete("/reset/other").await.status, 404);
    let memory = rig.json(&format!("/nodes/{node}/memory/relative")).await["memory"].clone();
    assert!(memory["other_system"].as_u64().unwrap() > 50);
}

#[tokio::test]
async fn tags_that_are_no_words_are_refused_by_what_tags_are() {
    let rig = Rig::start().await;
    for path in ["/users/new", "/vhosts/new"] {
        let answer = rig.put(path, json!({"password": "p", "tags": 5})).await;
        let (status, _, reason) = answer.refusal();
        assert_eq!(status, 400, "{path}");
        assert!(reason.contains("a list of words, or words divided by commas"), "{reason}");
        assert_eq!(rig.get(path).await.status, 404, "{path}");
    }
}
