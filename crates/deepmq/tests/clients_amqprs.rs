//! What a broker must do for amqprs. Owns only expectations; must not know which broker answers.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

#[path = "broker/url.rs"]
mod broker;

use std::time::Duration;

use amqprs::channel::{
    BasicAckArguments, BasicConsumeArguments, BasicGetArguments, BasicNackArguments, BasicPublishArguments,
    BasicQosArguments, Channel, ConfirmSelectArguments, ConsumerMessage, ExchangeBindArguments,
    ExchangeDeclareArguments, QueueBindArguments, QueueDeclareArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::{BasicProperties, FieldTable, FieldValue};
use tokio::sync::mpsc::UnboundedReceiver;

/// Reads `amqp://user:password@host:port/...`; the vhost is the default one.
fn arguments(url: &str) -> OpenConnectionArguments {
    let rest = url.strip_prefix("amqp://").expect("an amqp URL");
    let (login, place) = rest.split_once('@').expect("a URL with a login");
    let (user, password) = login.split_once(':').expect("a login with a password");
    let (host, port) = place.split('/').next().unwrap().split_once(':').expect("a URL with a port");
    OpenConnectionArguments::new(host, port.parse().unwrap(), user, password)
}

/// Runs `body` with a connection of its own, in bounded time, if there is a broker.
async fn check(heartbeat: u16, body: impl AsyncFnOnce(&Connection)) {
    let url = broker::url();
    let run = async {
        let connection = Connection::open(arguments(&url).heartbeat(heartbeat)).await.unwrap();
        body(&connection).await;
        // A test may have made the broker close it already.
        let _ = connection.close().await;
    };
    tokio::time::timeout(Duration::from_secs(20), run).await.expect("the check took too long");
}

async fn open(connection: &Connection) -> Channel {
    connection.open_channel(None).await.unwrap()
}

async fn exclusive_queue(channel: &Channel) -> String {
    let arguments = QueueDeclareArguments::new(&broker::unique("queue")).exclusive(true).finish();
    channel.queue_declare(arguments).await.unwrap().unwrap().0
}

async fn ready(channel: &Channel, queue: &str) -> u32 {
    let arguments = QueueDeclareArguments::new(queue).passive(true).finish();
    channel.queue_declare(arguments).await.unwrap().unwrap().1
}

async fn exchange(channel: &Channel, kind: &str) -> String {
    let name = broker::unique(kind);
    channel
        .exchange_declare(ExchangeDeclareArguments::new(&name, kind).auto_delete(true).finish())
        .await
        .unwrap();
    name
}

async fn publish(channel: &Channel, to: &str, key: &str, properties: BasicProperties, body: &[u8]) {
    channel.basic_publish(properties, body.to_vec(), BasicPublishArguments::new(to, key)).await.unwrap();
}

async fn get(channel: &Channel, queue: &str) -> Option<(u64, bool, BasicProperties, Vec<u8>)> {
    let (ok, properties, body) = channel.basic_get(BasicGetArguments::new(queue)).await.unwrap()?;
    Some((ok.delivery_tag(), ok.redelivered(), properties, body))
}

async fn drain(channel: &Channel, queue: &str) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some((tag, _, _, body)) = get(channel, queue).await {
        channel.basic_ack(BasicAckArguments::new(tag, false)).await.unwrap();
        bodies.push(String::from_utf8(body).unwrap());
    }
    bodies
}

async fn take(messages: &mut UnboundedReceiver<ConsumerMessage>, count: usize) -> Vec<u64> {
    let mut tags = Vec::new();
    while tags.len() < count {
        tags.push(messages.recv().await.unwrap().deliver.unwrap().delivery_tag());
    }
    tags
}

#[tokio::test(flavor = "multi_thread")]
async fn message_is_routed_and_taken_once() {
    check(60, async |connection| {
        let channel = open(connection).await;
        channel.confirm_select(ConfirmSelectArguments::default()).await.unwrap();
        let (source, queue) = (exchange(&channel, "topic").await, exclusive_queue(&channel).await);
        channel.queue_bind(QueueBindArguments::new(&queue, &source, "a.#")).await.unwrap();
        for key in ["a", "b", "a.b.c"] {
            publish(&channel, &source, key, BasicProperties::default(), key.as_bytes()).await;
        }
        assert_eq!(drain(&channel, &queue).await, ["a", "a.b.c"]);
        assert!(get(&channel, &queue).await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_binds_to_exchange() {
    check(60, async |connection| {
        let channel = open(connection).await;
        let (source, target) = (exchange(&channel, "direct").await, exchange(&channel, "fanout").await);
        let queue = exclusive_queue(&channel).await;
        channel.queue_bind(QueueBindArguments::new(&queue, &target, "")).await.unwrap();
        channel.exchange_bind(ExchangeBindArguments::new(&target, &source, "key")).await.unwrap();
        publish(&channel, &source, "key", BasicProperties::default(), b"through").await;
        assert_eq!(drain(&channel, &queue).await, ["through"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefetch_bounds_unacknowledged_deliveries() {
    check(60, async |connection| {
        let channel = open(connection).await;
        let queue = exclusive_queue(&channel).await;
        for _ in 0..10 {
            publish(&channel, "", &queue, BasicProperties::default(), b"x").await;
        }
        channel.basic_qos(BasicQosArguments::new(0, 3, false)).await.unwrap();
        let arguments = BasicConsumeArguments::new(&queue, "mine");
        let (_tag, mut messages) = channel.basic_consume_rx(arguments).await.unwrap();
        let tags = take(&mut messages, 3).await;
        assert_eq!(ready(&channel, &queue).await, 7);
        channel.basic_ack(BasicAckArguments::new(tags[2], true)).await.unwrap();
        take(&mut messages, 3).await;
        assert_eq!(ready(&channel, &queue).await, 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requeued_and_recovered_messages_return_to_their_place() {
    check(60, async |connection| {
        let channel = open(connection).await;
        let queue = exclusive_queue(&channel).await;
        for body in [b"1", b"2"] {
            publish(&channel, "", &queue, BasicProperties::default(), body).await;
        }
        let (tag, redelivered, _, _) = get(&channel, &queue).await.unwrap();
        assert!(!redelivered);
        channel.basic_nack(BasicNackArguments::new(tag, false, true)).await.unwrap();
        let (_, redelivered, _, body) = get(&channel, &queue).await.unwrap();
        assert_eq!((redelivered, body.as_slice()), (true, &b"1"[..]));
        channel.basic_recover(true).await.unwrap();
        assert_eq!(drain(&channel, &queue).await, ["1", "2"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn soft_error_closes_only_its_channel() {
    check(60, async |connection| {
        let (doomed, witness) = (open(connection).await, open(connection).await);
        let missing = broker::unique("missing");
        let passive = QueueDeclareArguments::new(&missing).passive(true).finish();
        assert!(doomed.queue_declare(passive).await.is_err());
        let queue = exclusive_queue(&witness).await;
        publish(&witness, "", &queue, BasicProperties::default(), b"x").await;
        assert_eq!(drain(&witness, &queue).await, ["x"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_any_size_come_back_whole() {
    check(60, async |connection| {
        let channel = open(connection).await;
        let queue = exclusive_queue(&channel).await;
        for size in [0, 1, 131_064, 131_065, 1 << 20] {
            let sent: Vec<u8> = (0..=250).cycle().take(size).collect();
            publish(&channel, "", &queue, BasicProperties::default(), &sent).await;
            let (_, _, _, body) = get(&channel, &queue).await.unwrap();
            assert!(body == sent, "body of {size} bytes");
        }
    })
    .await;
}

/// One header of most types amqprs can write.
fn headers() -> FieldTable {
    let mut table = FieldTable::new();
    let values = [
        ("bool", FieldValue::t(true)),
        ("i8", FieldValue::b(-8)),
        ("u8", FieldValue::B(200)),
        ("i16", FieldValue::s(-300)),
        ("u16", FieldValue::u(60_000)),
        ("i32", FieldValue::I(-70_000)),
        ("u32", FieldValue::i(4_000_000_000)),
        ("i64", FieldValue::l(-(1 << 40))),
        ("float", FieldValue::f(0.5)),
        ("double", FieldValue::d(1.5)),
        ("string", FieldValue::S("größe".try_into().unwrap())),
        ("time", FieldValue::T(1_700_000_000)),
        ("table", FieldValue::F(FieldTable::new())),
        ("void", FieldValue::V),
    ];
    for (name, value) in values {
        table.insert(name.try_into().unwrap(), value);
    }
    table
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_and_header_types_round_trip() {
    check(60, async |connection| {
        let channel = open(connection).await;
        let queue = exclusive_queue(&channel).await;
        let sent = BasicProperties::default()
            .with_content_type("text/plain")
            .with_headers(headers())
            .with_persistence(true)
            .with_priority(5)
            .with_correlation_id("c")
            .with_message_id("m")
            .with_timestamp(1_700_000_000)
            .finish();
        publish(&channel, "", &queue, sent.clone(), b"x").await;
        let (_, _, got, _) = get(&channel, &queue).await.unwrap();
        assert_eq!(got.headers(), sent.headers());
        assert_eq!(
            (got.content_type(), got.delivery_mode(), got.priority(), got.correlation_id(), got.timestamp()),
            (
                sent.content_type(),
                sent.delivery_mode(),
                sent.priority(),
                sent.correlation_id(),
                sent.timestamp()
            )
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_commits_and_rolls_back() {
    check(60, async |connection| {
        let (tx, observer) = (open(connection).await, open(connection).await);
        let queue = exclusive_queue(&observer).await;
        tx.tx_select().await.unwrap();
        publish(&tx, "", &queue, BasicProperties::default(), b"undone").await;
        tx.tx_rollback().await.unwrap();
        publish(&tx, "", &queue, BasicProperties::default(), b"done").await;
        tx.tx_commit().await.unwrap();
        assert_eq!(drain(&observer, &queue).await, ["done"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connection_survives_on_heartbeats() {
    check(1, async |connection| {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let channel = open(connection).await;
        let queue = exclusive_queue(&channel).await;
        publish(&channel, "", &queue, BasicProperties::default(), b"still here").await;
        assert_eq!(drain(&channel, &queue).await, ["still here"]);
    })
    .await;
}
