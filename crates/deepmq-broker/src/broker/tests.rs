//! What is administered: kept, taken back, and taken away with what it belongs to.

use super::*;
use crate::registry::*;
use crate::traffic::Traffic;
use crate::users::{Password, PasswordHash, Secret};
use crate::vhost::DeleteIf;
use deepmq_model::Value;
use deepmq_model::policy::PolicyRank;
use deepmq_model::topology::{ExchangeKind, ExchangeSpec, QueueSpec};
use parking_lot::Mutex;
use serde_json::json;
use std::time::SystemTime;
use tempfile::TempDir;

/// `pw` under the cheapest parameters there are.
fn password() -> Password {
    let hash =
        "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$SornS97CWQAPZ7UfK109tPDtWqbyf1Q+e/2wp2iDOcg";
    Password::Hash(PasswordHash::parse(hash).unwrap())
}

fn user(name: &str) -> UserPut {
    UserPut { name: name.into(), password: Some(password()), tags: Vec::new(), loopback_only: None }
}

fn vhost(name: &str) -> VhostRecord {
    VhostRecord { name: name.into(), ..VhostRecord::default() }
}

fn policy(vhost: &str, name: &str, max_length: i64) -> PolicyRecord {
    serde_json::from_value(json!({
        "vhost": vhost, "name": name, "pattern": "^q", "definition": {"max-length": max_length},
    }))
    .unwrap()
}

fn parameter(vhost: &str, component: &str, name: &str, value: serde_json::Value) -> Parameter {
    Parameter { component: component.into(), vhost: vhost.into(), name: name.into(), value }
}

fn start(dir: &TempDir, configure: impl FnOnce(&mut BrokerConfig)) -> Broker {
    let mut config = BrokerConfig { data_dir: Some(dir.path().join("data")), ..BrokerConfig::default() };
    configure(&mut config);
    Broker::start(config, Seam::real()).unwrap()
}

fn in_memory() -> Broker {
    Broker::start(BrokerConfig::default(), Seam::simulated(1)).unwrap()
}

/// All there is, as text.
fn all(broker: &Broker) -> Vec<String> {
    let text = |edit: &Edit| String::from_utf8(edit.encode()).unwrap();
    broker.0.registry.read(|state| state.tell().iter().map(text).collect())
}

fn fill(broker: &Broker) -> Done {
    broker.put_vhost(VhostRecord { description: "of ann".into(), ..vhost("v") }).unwrap();
    broker.put_user(UserPut { tags: vec!["monitoring".into()], ..user("ann") }).unwrap();
    broker.put_permission(PermissionRecord::full("ann", "v")).unwrap();
    let topic =
        json!({"user": "ann", "vhost": "v", "exchange": "amq.topic", "write": "^{username}", "read": ".*"});
    broker.put_topic_permission(serde_json::from_value(topic).unwrap()).unwrap();
    broker.put_policy(PolicyRank::User, policy("v", "p", 5)).unwrap();
    broker.put_policy(PolicyRank::Operator, policy("v", "p", 3)).unwrap();
    broker.put_vhost_limits("v", VhostLimits { max_connections: Some(3), max_queues: Some(1) }).unwrap();
    broker.put_user_limits("ann", UserLimits { max_connections: Some(3), max_channels: None }).unwrap();
    broker.put_parameter(parameter("v", "federation-upstream", "u", json!({"uri": "amqp://"}))).unwrap();
    broker.put_global_parameter(GlobalParameter { name: "cluster_name".into(), value: json!("c") }).unwrap()
}

#[test]
fn everything_administered_survives_a_crash_and_a_stop() {
    let dir = TempDir::new().unwrap();
    let first = start(&dir, |_| {});
    let last = fill(&first);
    first.wait_durable(last.lsn).unwrap();
    let told = all(&first);
    drop(first);
    for _ in 0..2 {
        let again = start(&dir, |_| {});
        assert_eq!(all(&again), told);
        assert!(again.users().authenticate_slow("ann", b"guest", true).unwrap().has_tag("monitoring"));
        assert_eq!(again.access("ann", "v").unwrap().topics.len(), 1);
        assert_eq!(again.vhost("v").unwrap().policy_of_queue("q").policy, None, "there is no such queue");
        again.close().unwrap();
    }
}

#[test]
fn what_is_deleted_stays_away_also_from_the_configuration_of_the_first_start() {
    let dir = TempDir::new().unwrap();
    let first = start(&dir, |_| {});
    fill(&first);
    first.delete_user("guest").unwrap();
    first.delete_user("ann").unwrap();
    let last = first.delete_vhost("v").unwrap();
    first.wait_durable(last.lsn).unwrap();
    drop(first);
    let again = start(&dir, |_| {});
    assert_eq!(again.list_users(), []);
    assert_eq!(again.list_vhosts(), [vhost("/")]);
    assert_eq!(again.list_permissions(), []);
    assert_eq!(again.list_topic_permissions(), []);
    assert_eq!(again.list_policies(PolicyRank::Operator), []);
    assert_eq!(again.list_parameters(), []);
    assert_eq!(again.list_global_parameters().len(), 1);
}

#[test]
fn later_starts_add_what_is_configured_and_missing_and_change_nothing_else() {
    let dir = TempDir::new().unwrap();
    let first = start(&dir, |_| {});
    first.put_user(UserPut { tags: vec!["policymaker".into()], ..user("ann") }).unwrap();
    first.close().unwrap();
    drop(first);
    let again = start(&dir, |config| {
        config.vhosts.push("blue".into());
        config.users = vec![UserSpec::new("ann", password()), UserSpec::new("bob", password())];
    });
    assert_eq!(again.get_user("ann").unwrap().tags, ["policymaker".into()]);
    assert_eq!(again.get_permission("/", "ann"), None, "a user that was there gets nothing new");
    assert_eq!(again.get_permission("blue", "bob"), Some(PermissionRecord::full("bob", "blue")));
    assert!(again.vhost("blue").is_some());
    assert!(again.get_user("guest").is_some());
}

#[test]
fn a_vhost_goes_with_its_queues_and_comes_back_empty() {
    let dir = TempDir::new().unwrap();
    let first = start(&dir, |_| {});
    first.put_vhost(vhost("v")).unwrap();
    let running = first.vhost("v").unwrap();
    let durable = QueueSpec { durable: true, ..QueueSpec::default() };
    running.declare_exchange("x", ExchangeSpec::durable(ExchangeKind::Fanout)).unwrap();
    let (queue, _) = running.declare_queue("q", durable.clone(), ConnectionId(1)).unwrap();
    first.delete_vhost("v").unwrap();
    assert!(first.vhost("v").is_none());
    assert_eq!(queue.depth().ready, 0);
    // Who still holds it can go on, but nothing of that is kept.
    running.declare_queue("late", durable.clone(), ConnectionId(1)).unwrap();
    first.put_vhost(vhost("v")).unwrap();
    let (_, declared) = first.vhost("v").unwrap().declare_queue("new", durable, ConnectionId(1)).unwrap();
    assert_eq!(declared, deepmq_model::topology::Declared::Created);
    first.wait_durable(first.vhost("v").unwrap().last_change()).unwrap();
    drop((first, running, queue));
    let again = start(&dir, |_| {});
    let names: Vec<_> = again.vhost("v").unwrap().queues().into_iter().map(|queue| queue.name).collect();
    assert_eq!(names, ["new".into()]);
    assert!(again.vhost("v").unwrap().check_exchange("x").is_err());
}

#[test]
fn queues_of_every_type_come_back_also_beyond_a_limit_that_is_new() {
    let dir = TempDir::new().unwrap();
    let first = start(&dir, |_| {});
    let root = first.vhost("/").unwrap();
    let quorum: deepmq_model::Table = [("x-queue-type", Value::str("quorum"))].into_iter().collect();
    for (name, server_named, arguments) in [
        ("plain", false, deepmq_model::Table::new()),
        ("amq.gen-1", true, deepmq_model::Table::new()),
        ("quorum", false, quorum),
    ] {
        let spec = QueueSpec { durable: true, server_named, arguments, ..QueueSpec::default() };
        root.declare_queue(name, spec, ConnectionId(1)).unwrap();
    }
    first.put_vhost_limits("/", VhostLimits { max_queues: Some(1), max_connections: None }).unwrap();
    first.close().unwrap();
    drop((first, root));
    let again = start(&dir, |config| config.limits.queues_per_vhost_max = 2);
    let root = again.vhost("/").unwrap();
    assert_eq!(root.queue_count(), 3);
    assert!(root.declare_queue("new", QueueSpec::default(), ConnectionId(1)).is_err());
}

#[derive(Debug, Default)]
struct Control(Mutex<Option<String>>);

impl ConnectionControl for Control {
    fn close(&self, reason: &str) {
        *self.0.lock() = Some(reason.to_owned());
    }

    fn channels(&self) -> Vec<ChannelInfo> {
        Vec::new()
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

fn enter(broker: &Broker, id: u64, user: &str, vhost: &str) -> Result<Arc<Control>, EnterRefused> {
    let control = Arc::new(Control::default());
    let info = ConnectionInfo {
        id: ConnectionId(id),
        protocol: "test",
        peer: String::new(),
        user: user.into(),
        vhost: vhost.into(),
        client_properties: deepmq_model::Table::new(),
        connected_at: SystemTime::UNIX_EPOCH,
    };
    broker.enter(info, control.clone()).map(|_| control)
}

#[test]
fn a_deleted_user_or_vhost_takes_its_connections_along() {
    let broker = in_memory();
    fill(&broker);
    let ann = enter(&broker, 1, "ann", "v").unwrap();
    let guest = enter(&broker, 2, "guest", "/").unwrap();
    broker.delete_vhost("v").unwrap();
    assert_eq!(ann.0.lock().as_deref(), Some("vhost 'v' is deleted"));
    assert_eq!(*guest.0.lock(), None);
    broker.delete_user("guest").unwrap();
    assert_eq!(guest.0.lock().as_deref(), Some("user 'guest' is deleted"));
    assert_eq!(
        enter(&broker, 3, "guest", "/").unwrap_err().to_string(),
        "access to vhost '/' refused for user 'guest'"
    );
    assert_eq!(enter(&broker, 3, "ann", "v").unwrap_err().to_string(), "vhost v not found");
}

#[test]
fn connections_and_channels_are_counted_and_limited() {
    let broker = in_memory();
    fill(&broker);
    broker.put_permission(PermissionRecord::full("guest", "v")).unwrap();
    broker.put_user_limits("ann", UserLimits { max_connections: Some(1), max_channels: Some(2) }).unwrap();
    broker.put_vhost_limits("v", VhostLimits { max_connections: Some(2), max_queues: None }).unwrap();
    enter(&broker, 1, "ann", "v").unwrap();
    let refused = |id, user| enter(&broker, id, user, "v").unwrap_err().to_string();
    assert_eq!(refused(2, "ann"), "connection refused for user 'ann': user connection limit (1) is reached");
    enter(&broker, 3, "guest", "v").unwrap();
    assert_eq!(
        refused(4, "guest"),
        "access to vhost 'v' refused for user 'guest': connection limit (2) is reached"
    );
    let slots = [broker.admit_channel("ann").unwrap(), broker.admit_channel("ann").unwrap()];
    assert_eq!(
        broker.admit_channel("ann").unwrap_err().to_string(),
        "number of channels opened for user 'ann' has reached the maximum allowed user limit of 2"
    );
    drop(slots);
    assert!(broker.admit_channel("ann").is_ok());
    broker.close_connection(ConnectionId(1), &broker.vhost("v").unwrap(), "");
    enter(&broker, 5, "ann", "v").unwrap();
    let none = UserLimits { max_connections: Some(-1), max_channels: Some(-1) };
    broker.put_user_limits("ann", none).unwrap();
    broker.put_vhost_limits("v", VhostLimits::default()).unwrap();
    enter(&broker, 6, "ann", "v").unwrap();
}

#[test]
fn a_vhost_limits_its_queues_and_says_their_type() {
    let broker = in_memory();
    fill(&broker);
    let v = broker.vhost("v").unwrap();
    let durable = || QueueSpec { durable: true, ..QueueSpec::default() };
    broker.put_vhost(VhostRecord { default_queue_type: Some("quorum".into()), ..vhost("v") }).unwrap();
    let (queue, _) = v.declare_queue("q1", durable(), ConnectionId(1)).unwrap();
    assert!(v.declare_queue("q2", durable(), ConnectionId(1)).is_err());
    assert!(v.declare_queue("q1", durable(), ConnectionId(1)).is_ok());
    let [info] = v.queues().try_into().unwrap();
    assert_eq!(info.arguments.get("x-queue-type"), Some(&Value::str("quorum")));
    assert_eq!(
        (info.policy.policy.as_deref(), info.policy.operator_policy.as_deref()),
        (Some("p"), Some("p"))
    );
    assert_eq!(info.policy.definition.get("max-length"), Some(&Value::I64(3)));
    v.delete_queue(queue.name(), ConnectionId(1), DeleteIf::default(), |_| {}).unwrap();
    let transient = QueueSpec { auto_delete: true, ..QueueSpec::default() };
    v.declare_queue("t", transient, ConnectionId(1)).unwrap();
    let [info] = v.queues().try_into().unwrap();
    assert!(info.arguments.is_empty(), "quorum goes with durable queues alone");
}

#[test]
fn parameters_of_some_components_stand_for_something_else() {
    let broker = in_memory();
    broker.put_parameter(parameter("/", "vhost-limits", "limits", json!({"max-queues": 7}))).unwrap();
    assert_eq!(broker.get_vhost_limits("/").max_queues, Some(7));
    let value = json!({"pattern": "^a", "definition": {"expires": 5}, "priority": 2, "apply-to": "queues"});
    broker.put_parameter(parameter("/", "operator_policy", "o", value.clone())).unwrap();
    assert_eq!(broker.get_policy(PolicyRank::Operator, "/", "o").unwrap().priority, 2);
    assert_eq!(broker.get_parameter("operator_policy", "/", "o").unwrap().value, value);
    assert_eq!(broker.list_parameters().len(), 2);
    broker.delete_parameter("operator_policy", "/", "o").unwrap();
    broker.delete_parameter("vhost-limits", "/", "limits").unwrap();
    assert_eq!(broker.list_parameters(), []);
    let wrong =
        broker.put_parameter(parameter("/", "vhost-limits", "limits", json!({"max": 7}))).unwrap_err();
    assert!(
        wrong.to_string().starts_with("the value of vhost-limits 'limits' is wrong: unknown field `max`")
    );
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let broker = in_memory();
    let before = all(&broker);
    let refused = |refused: Result<Done, RegistryError>, text: &str| {
        assert_eq!(refused.unwrap_err().to_string(), text);
    };
    let full = PermissionRecord::full;
    refused(broker.put_permission(full("nobody", "/")), "user 'nobody' does not exist");
    refused(broker.put_permission(full("guest", "v")), "vhost 'v' does not exist");
    refused(broker.delete_permission("/", "ann"), "permission 'ann in /' does not exist");
    refused(broker.put_user(user("")), "the name of a user must have 1 to 255 bytes");
    refused(broker.put_vhost(vhost(&"v".repeat(256))), "the name of a vhost must have 1 to 255 bytes");
    let empty = UserPut { password: Some(Password::Plain(Secret::new(""))), ..user("ann") };
    refused(broker.put_user(empty), "the password must not be empty");
    refused(broker.delete_policy(PolicyRank::User, "/", "p"), "policy 'p' does not exist");
    let stream = VhostRecord { default_queue_type: Some("stream".into()), ..vhost("v") };
    refused(broker.put_vhost(stream), "default_queue_type \"stream\" is none of classic, quorum");
    let wrong = PolicyRecord { pattern: "(".into(), ..policy("/", "p", 1) };
    let error = broker.put_policy(PolicyRank::User, wrong).unwrap_err().to_string();
    assert!(error.starts_with("pattern: not a regular expression"), "{error}");
    refused(
        broker.put_policy(PolicyRank::User, policy("/", "p", -1)),
        "definition: \"max-length\" must be a non-negative integer",
    );
    assert_eq!(all(&broker), before);
}

#[test]
fn the_registry_is_bounded_and_at_the_bound_what_is_there_can_change() {
    let limits = Limits { registry_entries_max: 4, ..Limits::default() };
    let broker =
        Broker::start(BrokerConfig { limits, ..BrokerConfig::default() }, Seam::simulated(1)).unwrap();
    assert_eq!(all(&broker).len(), 3, "a user, a vhost and a permission");
    broker.put_user(user("ann")).unwrap();
    assert_eq!(broker.put_user(user("bob")), Err(RegistryError::Full { max: 4 }));
    assert!(!broker.put_user(UserPut { tags: vec!["t".into()], ..user("ann") }).unwrap().created);
}

#[test]
fn a_user_keeps_what_a_change_does_not_name() {
    let broker = in_memory();
    let tags = vec!["administrator".into()];
    let guest = UserPut { name: "guest".into(), password: None, tags, loopback_only: None };
    broker.put_user(guest.clone()).unwrap();
    assert!(broker.users().authenticate_fast("guest", b"guest", true).is_some());
    assert!(broker.get_user("guest").unwrap().loopback_only);
    broker.put_user(UserPut { loopback_only: Some(false), ..guest }).unwrap();
    assert!(broker.users().authenticate_fast("guest", b"guest", false).is_some());
    broker.put_user(UserPut { password: None, ..user("new") }).unwrap();
    assert!(broker.users().authenticate_slow("new", b"new", true).is_err());
}

#[test]
fn each_edit_is_told_as_an_event() {
    let broker = in_memory();
    let mut events = broker.subscribe(Interest::Topology);
    broker.put_vhost(vhost("v")).unwrap();
    broker.put_vhost(vhost("v")).unwrap();
    broker.put_permission(PermissionRecord::full("guest", "v")).unwrap();
    broker.delete_vhost("v").unwrap();
    let seen: Vec<_> = std::iter::from_fn(|| events.try_next()).map(Result::unwrap).collect();
    let v: Name = "v".into();
    assert_eq!(
        seen,
        [
            Event::VhostCreated { vhost: v.clone() },
            Event::VhostChanged { vhost: v.clone() },
            Event::PermissionSet { vhost: v.clone(), user: "guest".into() },
            Event::VhostDeleted { vhost: v },
        ]
    );
}

#[test]
fn permissions_have_a_new_generation_with_every_change() {
    let broker = in_memory();
    let before = broker.access_generation();
    broker.put_global_parameter(GlobalParameter { name: "n".into(), value: json!(1) }).unwrap();
    assert_eq!(broker.access_generation(), before);
    broker
        .put_permission(PermissionRecord { read: "".into(), ..PermissionRecord::full("guest", "/") })
        .unwrap();
    assert!(broker.access_generation() > before);
}
