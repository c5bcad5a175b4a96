//! Permissions: which operation needs which one on what, and the limits of vhosts and users.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, channel, connection, exchange, queue, tx};
use deepmq_broker::registry::{PermissionRecord, TopicPermissionRecord, UserLimits, VhostLimits};
use deepmq_model::message::properties::Properties;
use deepmq_model::{Table, Value};
use deepmq_testkit::{Handshake, RawPeer, TestBroker};

fn joe() -> Handshake {
    Handshake::default().login("joe", "guest")
}

fn permission(configure: &str, write: &str, read: &str) -> PermissionRecord {
    PermissionRecord {
        configure: configure.into(),
        write: write.into(),
        read: read.into(),
        ..PermissionRecord::full("joe", "/")
    }
}

/// A broker with the user joe, who has these permissions, and a connection of his.
async fn broker_and_joe(configure: &str, write: &str, read: &str) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start_with(|config| config.users.push(TestBroker::user("joe"))).await;
    broker.broker().put_permission(permission(configure, write, read)).expect("joe and the vhost are there");
    let peer = broker.peer_with(&joe()).await;
    (broker, peer)
}

fn table(key: &str, value: &str) -> Table {
    [(key, Value::str(value))].into_iter().collect()
}

fn refusal(permission: &str, resource: &str) -> String {
    format!("ACCESS_REFUSED - {permission} access to {resource} in vhost '/' refused for user 'joe'")
}

/// The one permission whose lack is told, of all that a method needs.
struct Need {
    method: Method<'static>,
    /// Permissions to configure, write and read: with them the method is taken.
    enough: [&'static str; 3],
    /// What is refused without any, and of what.
    first: (&'static str, &'static str),
}

fn queue_methods() -> Vec<Need> {
    let declare = || queue::Declare { queue: "q", ..Default::default() };
    let dead_letters =
        queue::Declare { queue: "dl", arguments: table("x-dead-letter-exchange", "dlx"), ..declare() };
    let bind = queue::Bind { queue: "q", exchange: "amq.topic", ..Default::default() };
    let unbind = queue::Unbind { queue: "q", exchange: "amq.topic", ..Default::default() };
    let configure_q = ("configure", "queue 'q'");
    let read_q = ("read", "queue 'q'");
    let write_q = ("write", "queue 'q'");
    vec![
        Need { method: declare().into(), enough: ["^q$", "", ""], first: configure_q },
        Need {
            method: queue::Declare { passive: true, ..declare() }.into(),
            enough: ["", "", "^q$"],
            first: configure_q,
        },
        Need {
            method: dead_letters.into(),
            enough: ["^dl$", "^dlx$", "^dl$"],
            first: ("configure", "queue 'dl'"),
        },
        Need { method: bind.into(), enough: ["", "^q$", "^amq.topic$"], first: write_q },
        Need { method: unbind.into(), enough: ["", "^q$", "^amq.topic$"], first: write_q },
        Need {
            method: queue::Purge { queue: "q", ..Default::default() }.into(),
            enough: ["", "", "q"],
            first: read_q,
        },
        Need {
            method: basic::Get { queue: "q", ..Default::default() }.into(),
            enough: ["", "", "q"],
            first: read_q,
        },
        Need {
            method: basic::Consume { queue: "q", consumer_tag: "c", ..Default::default() }.into(),
            enough: ["", "", "q"],
            first: read_q,
        },
        Need {
            method: queue::Delete { queue: "q", ..Default::default() }.into(),
            enough: ["q", "", ""],
            first: configure_q,
        },
    ]
}

fn exchange_methods() -> Vec<Need> {
    let declare = || exchange::Declare { exchange: "x", kind: "fanout", ..Default::default() };
    let alternate =
        exchange::Declare { exchange: "xa", arguments: table("alternate-exchange", "ae"), ..declare() };
    let bind = exchange::Bind { destination: "x", source: "amq.topic", ..Default::default() };
    let unbind = exchange::Unbind { destination: "x", source: "amq.topic", ..Default::default() };
    let configure_x = ("configure", "exchange 'x'");
    let write_x = ("write", "exchange 'x'");
    vec![
        Need { method: declare().into(), enough: ["^x$", "", ""], first: configure_x },
        Need {
            method: exchange::Declare { passive: true, ..declare() }.into(),
            enough: ["", "^x$", ""],
            first: configure_x,
        },
        Need {
            method: alternate.into(),
            enough: ["^xa$", "^ae$", "^xa$"],
            first: ("configure", "exchange 'xa'"),
        },
        Need { method: bind.into(), enough: ["", "^x$", "^amq.topic$"], first: write_x },
        Need { method: unbind.into(), enough: ["", "^x$", "^amq.topic$"], first: write_x },
        Need {
            method: exchange::Delete { exchange: "x", ..Default::default() }.into(),
            enough: ["x", "", ""],
            first: configure_x,
        },
    ]
}

#[tokio::test]
async fn each_method_needs_its_permissions_and_no_others() {
    let (broker, mut peer) = broker_and_joe("", "", "").await;
    let mut guest = broker.peer().await;
    guest.declare(1, "q").await;
    guest.declare_exchange(1, "x", "fanout").await;
    for Need { method, enough: [configure, write, read], first: (permission_name, resource) } in
        queue_methods().into_iter().chain(exchange_methods())
    {
        broker.broker().put_permission(permission("", "", "")).unwrap();
        peer.refused(method.clone(), 403, &refusal(permission_name, resource)).await;
        broker.broker().put_permission(permission(configure, write, read)).unwrap();
        let answer = peer.call(1, method.clone()).await;
        assert!(!matches!(answer, Method::Channel(_)), "{method:?} was answered with {answer:?}");
    }
}

#[tokio::test]
async fn what_is_sent_on_needs_permission_there_too() {
    let (_broker, mut peer) = broker_and_joe(".*", "^a$", "^dl$").await;
    let declare = |queue| queue::Declare {
        queue,
        arguments: table("x-dead-letter-exchange", "b"),
        ..Default::default()
    };
    peer.refused(declare("dl"), 403, &refusal("write", "exchange 'b'")).await;
    peer.refused(declare("other"), 403, &refusal("read", "queue 'other'")).await;
    let bind = queue::Bind { queue: "a", exchange: "amq.direct", ..Default::default() };
    peer.refused(bind, 403, &refusal("read", "exchange 'amq.direct'")).await;
}

#[tokio::test]
async fn a_publish_needs_to_write_to_its_exchange() {
    let (broker, mut peer) = broker_and_joe(".*", "^amq\\.fanout$", ".*").await;
    peer.declare(1, "q").await;
    for (exchange, resource) in
        [("", "exchange 'amq.default'"), ("amq.headers", "exchange 'amq.headers'"), ("no", "exchange 'no'")]
    {
        peer.publish(1, exchange, "q", "m").await;
        peer.expect_channel_close(1, 403, &refusal("write", resource), basic::Publish::ID).await;
        peer.open_channel(1).await;
    }
    peer.publish(1, "amq.fanout", "q", "m").await;
    peer.select_tx(1).await;
    peer.publish(1, "amq.fanout", "q", "m").await;
    peer.send(1, tx::Commit {}).await;
    peer.expect(1, tx::CommitOk {}).await;
    peer.publish(1, "", "q", "m").await;
    peer.expect_channel_close(1, 403, &refusal("write", "exchange 'amq.default'"), basic::Publish::ID).await;
    assert_eq!(broker.depth("q").ready, 0);
}

#[tokio::test]
async fn a_change_of_permissions_holds_for_open_connections_and_remembered_routes() {
    let (broker, mut peer) = broker_and_joe(".*", ".*", ".*").await;
    peer.declare(1, "q").await;
    peer.publish(1, "", "q", "first").await;
    peer.expect_quiet(1).await;
    broker.broker().put_permission(permission(".*", "", ".*")).unwrap();
    peer.publish(1, "", "q", "refused").await;
    let text = refusal("write", "exchange 'amq.default'");
    peer.expect_channel_close(1, 403, &text, basic::Publish::ID).await;
    peer.open_channel(1).await;
    broker.broker().put_permission(permission(".*", "amq.default", ".*")).unwrap();
    peer.publish(1, "", "q", "second").await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 2);
    broker.broker().delete_permission("/", "joe").unwrap();
    let get = basic::Get { queue: "q", ..Default::default() };
    peer.refused(get, 403, &refusal("read", "queue 'q'")).await;
}

#[tokio::test]
async fn routing_keys_of_a_topic_exchange_can_be_narrowed() {
    let (broker, mut peer) = broker_and_joe(".*", ".*", ".*").await;
    peer.declare(1, "q").await;
    let topic = |exchange: &str| TopicPermissionRecord {
        user: "joe".into(),
        vhost: "/".into(),
        exchange: exchange.into(),
        write: "^{username}\\.".into(),
        read: "^news".into(),
    };
    broker.broker().put_topic_permission(topic("amq.topic")).unwrap();
    broker.broker().put_topic_permission(topic("amq.direct")).unwrap();
    let refused = |permission: &str, key: &str| {
        format!(
            "ACCESS_REFUSED - {permission} access to topic '{key}' in exchange 'amq.topic' in vhost '/' refused for \
             user 'joe'"
        )
    };
    let bind =
        |exchange, routing_key| queue::Bind { queue: "q", exchange, routing_key, ..Default::default() };
    peer.refused(bind("amq.topic", b"#"), 403, &refused("read", "#")).await;
    peer.bind(1, "q", "amq.topic", "news.#").await;
    // It is for topic exchanges alone.
    peer.bind(1, "q", "amq.direct", "k").await;
    peer.publish(1, "amq.direct", "k", "m").await;
    peer.publish(1, "amq.topic", "joe.x", "m").await;
    peer.publish(1, "amq.topic", "ann.x", "m").await;
    peer.expect_channel_close(1, 403, &refused("write", "ann.x"), basic::Publish::ID).await;
    assert_eq!(broker.depth("q").ready, 1);
}

#[tokio::test]
async fn the_name_the_server_makes_up_needs_permission_too() {
    let (_broker, mut peer) = broker_and_joe("^mine", "", "").await;
    peer.send(1, queue::Declare::default()).await;
    let Method::Channel(channel::Method::Close(close)) = peer.method(1).await else {
        panic!("expected channel.close")
    };
    assert!(close.reply_text.starts_with("ACCESS_REFUSED - configure access to queue 'amq.gen-"));
    peer.send(1, channel::CloseOk {}).await;
    peer.open_channel(1).await;
    peer.declare(1, "mine").await;
}

#[tokio::test]
async fn an_impersonator_may_publish_under_another_name() {
    let (broker, mut peer) = broker_and_joe(".*", ".*", ".*").await;
    let mut user_id = Vec::new();
    Properties { user_id: Some(b"ann".to_vec().into()), ..Properties::default() }.encode(&mut user_id);
    peer.declare(1, "q").await;
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    peer.publish_with(1, &publish, &user_id, b"m").await;
    let text = "PRECONDITION_FAILED - user_id property set to 'ann' but authenticated user was 'joe'";
    peer.expect_channel_close(1, 406, text, basic::Publish::ID).await;
    let tags = vec!["impersonator".into()];
    let put =
        deepmq_broker::broker::UserPut { name: "joe".into(), password: None, tags, loopback_only: None };
    broker.broker().put_user(put).unwrap();
    let mut peer = broker.peer_with(&joe()).await;
    peer.publish_with(1, &publish, &user_id, b"m").await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 1);
}

async fn refused_to_open(broker: &TestBroker, text: &str) {
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&joe()).await;
    peer.tune(&joe()).await;
    peer.send(0, connection::Open { vhost: "/", ..Default::default() }).await;
    peer.expect_connection_close(530, text, connection::Open::ID).await;
}

#[tokio::test]
async fn limits_of_vhosts_and_users_are_told_with_530_and_406() {
    let (broker, mut peer) = broker_and_joe(".*", ".*", ".*").await;
    let vhost = |max_connections, max_queues| {
        broker.broker().put_vhost_limits("/", VhostLimits { max_connections, max_queues }).unwrap();
    };
    let user = |max_connections, max_channels| {
        broker.broker().put_user_limits("joe", UserLimits { max_connections, max_channels }).unwrap();
    };
    vhost(Some(1), Some(1));
    let text = "NOT_ALLOWED - access to vhost '/' refused for user 'joe': connection limit (1) is reached";
    refused_to_open(&broker, text).await;
    peer.declare(1, "q").await;
    let text = "PRECONDITION_FAILED - cannot declare queue 'r': queue limit in vhost '/' (1) is reached";
    peer.refused(queue::Declare { queue: "r", ..Default::default() }, 406, text).await;
    vhost(None, None);
    user(Some(1), Some(2));
    let text = "NOT_ALLOWED - connection refused for user 'joe': user connection limit (1) is reached";
    refused_to_open(&broker, text).await;
    peer.open_channel(2).await;
    peer.close_channel(2).await;
    peer.open_channel(3).await;
    let text = "NOT_ALLOWED - number of channels opened for user 'joe' has reached the maximum allowed user limit of 2";
    peer.fatal(4, channel::Open::default(), 530, text).await;
    RawPeer::open(broker.address(), &joe()).await.close().await;
}

#[tokio::test]
async fn deleting_a_user_or_a_vhost_closes_its_connections_and_cancels_its_consumers() {
    let (broker, mut peer) = broker_and_joe(".*", ".*", ".*").await;
    let mut guest = broker.peer().await;
    guest.declare(1, "q").await;
    guest.consume(1, "q", "c").await;
    broker.broker().delete_user("joe").unwrap();
    peer.expect_connection_close(320, "CONNECTION_FORCED - user 'joe' is deleted", RawPeer::NO_METHOD).await;
    broker.broker().delete_vhost("/").unwrap();
    guest.expect(1, basic::Cancel { consumer_tag: "c", no_wait: true }).await;
    guest.expect_connection_close(320, "CONNECTION_FORCED - vhost '/' is deleted", RawPeer::NO_METHOD).await;
}
