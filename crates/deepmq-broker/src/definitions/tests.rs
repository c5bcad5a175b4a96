//! Definitions out of a broker, into another, and out again.

use super::*;
use crate::broker::UserPut;
use crate::registry::{PermissionRecord, VhostLimits, VhostRecord};
use crate::users::AuthError;
use crate::vhost::BindingRequest;
use crate::{Broker, BrokerConfig};
use deepmq_model::Table;
use deepmq_model::policy::PolicyRank;
use deepmq_model::topology::{ConnectionId, Destination, ExchangeKind, ExchangeSpec, QueueSpec};
use deepmq_storage::Seam;
use serde_json::json;

/// As RabbitMQ 3.10 writes it; the password of `ann` is `test12`.
const RABBITMQ: &str = r#"{
    "bindings": [{"arguments": {}, "destination": "orders", "destination_type": "queue", "routing_key": "order.#",
                  "source": "events", "vhost": "shop"}],
    "exchanges": [{"arguments": {"alternate-exchange": "lost"}, "auto_delete": false, "durable": true,
                   "internal": false, "name": "events", "type": "topic", "vhost": "shop"}],
    "global_parameters": [{"name": "cluster_name", "value": "rabbit@one"}],
    "parameters": [
        {"component": "vhost-limits", "name": "limits", "value": {"max-queues": 50}, "vhost": "shop"},
        {"component": "operator_policy", "name": "bound", "vhost": "shop", "value": {"pattern": ".*",
            "definition": {"max-length": 100}, "priority": 1, "apply-to": "queues"}},
        {"component": "shovel", "name": "s", "value": {"src-uri": "amqp://"}, "vhost": "shop"}],
    "permissions": [{"configure": "^$", "read": ".*", "user": "ann", "vhost": "shop", "write": ".*"}],
    "policies": [{"apply-to": "all", "definition": {"ha-mode": "all", "message-ttl": 60000}, "name": "ha",
                  "pattern": "^(?!amq\\.).*", "priority": 0, "vhost": "shop"}],
    "product_name": "RabbitMQ", "product_version": "3.10.8", "rabbit_version": "3.10.8",
    "rabbitmq_version": "3.10.8",
    "queues": [{"arguments": {"x-max-length": 5, "x-queue-type": "quorum"}, "auto_delete": false, "durable": true,
                "name": "orders", "type": "quorum", "vhost": "shop"}],
    "topic_permissions": [{"exchange": "events", "read": "^order", "user": "ann", "vhost": "shop",
                           "write": "^order"}],
    "users": [{"hashing_algorithm": "rabbit_password_hashing_sha256", "limits": {"max-channels": 9}, "name": "ann",
               "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ["management"]}],
    "vhosts": [{"limits": [], "metadata": {"description": "a shop", "tags": ["prod"]}, "name": "shop"}]
}"#;

fn broker() -> Broker {
    Broker::start(BrokerConfig::default(), Seam::simulated(1)).unwrap()
}

fn read(text: &str) -> Result<Definitions, DefinitionsError> {
    Definitions::read(text.as_bytes(), Scope::Broker)
}

fn exported(broker: &Broker) -> String {
    serde_json::to_string_pretty(&broker.export_definitions().to_json()).unwrap()
}

#[test]
fn what_rabbitmq_exported_is_there_after_the_import() {
    let broker = broker();
    let imported = broker.import_definitions(&read(RABBITMQ).unwrap()).unwrap();
    assert_eq!(imported.notes, [""; 0]);
    assert!(broker.users().authenticate_slow("ann", b"test12", true).unwrap().has_tag("management"));
    assert_eq!(broker.users().authenticate_slow("ann", b"test", true), Err(AuthError::WrongPassword));
    assert_eq!(broker.get_user_limits("ann").max_channels, Some(9));
    let shop = broker.get_vhost("shop").unwrap();
    assert_eq!((&*shop.description, &*shop.tags), ("a shop", &["prod".into()][..]));
    assert_eq!(broker.get_vhost_limits("shop").max_queues, Some(50));
    assert!(broker.access("ann", "shop").unwrap().narrows("events"));
    assert_eq!(broker.get_policy(PolicyRank::Operator, "shop", "bound").unwrap().priority, 1);
    assert_eq!(broker.list_parameters().len(), 3);
    let running = broker.vhost("shop").unwrap();
    let [queue] = running.queues().try_into().unwrap();
    assert_eq!(
        (queue.policy.policy.as_deref(), queue.policy.operator_policy.as_deref()),
        (Some("ha"), Some("bound"))
    );
    assert_eq!(running.exchange_kind("events"), Some(ExchangeKind::Topic));
    assert_eq!(running.bindings().iter().filter(|binding| !binding.implicit).count(), 1);
}

fn fill(broker: &Broker) {
    broker.import_definitions(&read(RABBITMQ).unwrap()).unwrap();
    let tags = vec!["administrator".into()];
    let bob = UserPut { name: "bob".into(), password: None, tags, loopback_only: Some(true) };
    broker.put_user(bob).unwrap();
    broker.put_permission(PermissionRecord::full("bob", "/")).unwrap();
    broker
        .put_vhost(VhostRecord {
            default_queue_type: Some("quorum".into()),
            ..broker.get_vhost("/").unwrap()
        })
        .unwrap();
    broker.put_vhost_limits("/", VhostLimits { max_connections: Some(-1), max_queues: None }).unwrap();
    let root = broker.vhost("/").unwrap();
    root.declare_exchange("b", ExchangeSpec::durable(ExchangeKind::Headers)).unwrap();
    root.declare_exchange("a", ExchangeSpec::durable(ExchangeKind::Fanout)).unwrap();
    let exclusive = QueueSpec { exclusive: true, ..QueueSpec::default() };
    root.declare_queue("mine", exclusive, ConnectionId(7)).unwrap();
    let transient = QueueSpec { auto_delete: true, ..QueueSpec::default() };
    root.declare_queue("z", transient.clone(), ConnectionId(7)).unwrap();
    root.declare_queue("y", transient, ConnectionId(7)).unwrap();
    let arguments: Table = [("x-match", deepmq_model::Value::str("any"))].into_iter().collect();
    for (source, destination) in [
        ("b", Destination::Queue("z")),
        ("a", Destination::Exchange("b")),
        ("a", Destination::Queue("mine")),
        ("amq.topic", Destination::Queue("y")),
    ] {
        let request = BindingRequest { source, destination, key: b"k", arguments: &arguments };
        root.bind(request, ConnectionId(7)).unwrap();
    }
}

#[test]
fn an_export_imported_elsewhere_exports_the_same_bytes() {
    let first = broker();
    fill(&first);
    let text = exported(&first);
    let second = broker();
    let imported = second.import_definitions(&read(&text).unwrap()).unwrap();
    assert_eq!(imported.notes, [""; 0]);
    assert_eq!(exported(&second), text);
    assert!(!text.contains("mine"), "an exclusive queue is nobody else's");
    assert_eq!(second.import_definitions(&read(&text).unwrap()).unwrap().lsn, None, "nothing is left to do");
}

#[test]
fn the_definitions_of_a_vhost_can_be_imported_into_another() {
    let first = broker();
    fill(&first);
    let text = first.export_vhost_definitions("shop").unwrap().to_json().to_string();
    assert!(!text.contains("\"vhost\"") && !text.contains("ann"));
    let into = |name: &str| Definitions::read(text.as_bytes(), Scope::Vhost(name.into())).unwrap();
    let second = broker();
    assert_eq!(second.import_definitions(&into("new")), Err(DefinitionsError::NoVhost("new".into())));
    second.put_vhost(VhostRecord { name: "new".into(), ..VhostRecord::default() }).unwrap();
    assert_eq!(second.import_definitions(&into("new")).unwrap().notes, [""; 0]);
    assert!(second.vhost("new").unwrap().has_queue("orders"));
    assert_eq!(second.get_vhost_limits("new").max_queues, Some(50));
    assert_eq!(second.list_policies(PolicyRank::User).len(), 1);
    assert!(first.export_vhost_definitions("none").is_none());
}

#[test]
fn a_wrong_entry_is_told_by_its_place_and_nothing_changes() {
    let broker = broker();
    let before = exported(&broker);
    let change = |pointer: &str, value: serde_json::Value| {
        let mut document: serde_json::Value = serde_json::from_str(RABBITMQ).unwrap();
        *document.pointer_mut(pointer).unwrap() = value;
        let read = Definitions::from_json(document, Scope::Broker);
        read.and_then(|definitions| broker.import_definitions(&definitions)).unwrap_err().to_string()
    };
    for (pointer, value, text) in [
        ("/users/0/password_hash", json!("AAAA"), "users[0]: password_hash: not the base64 of four bytes"),
        (
            "/users/0/hashing_algorithm",
            json!("md5"),
            "users[0]: password_hash: hashing_algorithm must be argon2id",
        ),
        ("/users/0/tags", json!(5), "users[0]: tags must be a list of texts"),
        ("/users/0", json!(5), "users[0]: not a JSON object"),
        ("/users", json!({}), "users: not a list"),
        ("/permissions/0/user", json!("bob"), "permissions[0]: user 'bob' does not exist"),
        ("/permissions/0/write", json!("("), "permissions[0]: write: not a regular expression"),
        (
            "/policies/0/definition",
            json!({"max-length": "5"}),
            "policies[0]: definition: \"max-length\" must be",
        ),
        ("/policies/0/apply-to", json!("things"), "policies[0]: apply-to \"things\" is none of"),
        ("/parameters/1/value/pattern", json!("("), "parameters[1]: pattern: not a regular expression"),
        ("/queues/0/vhost", json!("none"), "queues[0]: vhost 'none' does not exist"),
        ("/queues/0/durable", json!(false), "queues[0]: "),
        ("/queues/0/arguments", json!([1]), "queues[0]: arguments must be an object"),
        (
            "/exchanges/0/type",
            json!("x-delayed-message"),
            "exchanges[0]: unknown exchange type 'x-delayed-message'",
        ),
        ("/bindings/0/source", json!("none"), "bindings[0]: no exchange 'none'"),
        ("/bindings/0/destination_type", json!("topic"), "bindings[0]: unknown variant `topic`"),
    ] {
        let error = change(pointer, value);
        assert!(error.starts_with(text), "{error}");
        assert_eq!(exported(&broker), before, "{text}");
        assert!(broker.vhost("shop").is_none());
    }
    let error = read("{\n  \"users\": [}").unwrap_err().to_string();
    assert!(error.starts_with("line 2, column 13: "), "{error}");
}

#[test]
fn what_is_not_taken_is_noted() {
    let broker = broker();
    let text = r#"{"users": [{"name": "u", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha512",
        "tags": "a, b", "shoe_size": 43}],
        "vhosts": [{"name": "v", "default_queue_type": "rabbit_quorum_queue"}], "planets": [],
        "queues": [{"name": "q", "vhost": "v", "durable": true, "arguments": []}]}"#;
    let notes = broker.import_definitions(&read(text).unwrap()).unwrap().notes;
    assert_eq!(notes, ["users[0].shoe_size: an unknown key", "planets: an unknown key"]);
    assert_eq!(broker.get_user("u").unwrap().tags, ["a".into(), "b".into()]);
    assert_eq!(broker.get_vhost("v").unwrap().default_queue_type.as_deref(), Some("quorum"));
    let printed = format!("{:?} {:?}", read(RABBITMQ).unwrap(), broker.list_users());
    assert!(!printed.contains("kI3G") && !printed.contains("argon2id$"), "{printed}");
    let differs =
        r#"{"queues": [{"name": "q", "vhost": "v", "durable": true, "arguments": {"x-max-length": 1}}]}"#;
    let notes = broker.import_definitions(&read(differs).unwrap()).unwrap().notes;
    let [note] = notes.try_into().unwrap();
    assert!(note.starts_with("queues[0]: exists and stays as it is: "), "{note}");
}

#[test]
fn an_import_survives_as_a_whole() {
    let dir = tempfile::TempDir::new().unwrap();
    let start = || {
        let config = BrokerConfig { data_dir: Some(dir.path().join("data")), ..BrokerConfig::default() };
        Broker::start(config, Seam::real()).unwrap()
    };
    let first = start();
    let imported = first.import_definitions(&read(RABBITMQ).unwrap()).unwrap();
    first.wait_durable(imported.lsn).unwrap();
    let text = exported(&first);
    drop(first);
    assert_eq!(exported(&start()), text);
}
