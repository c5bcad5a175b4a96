//! What a broker must do for lapin. Owns only expectations; must not know which broker answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a failed test")]

#[path = "broker/url.rs"]
mod broker;

use std::time::Duration;

use futures_util::StreamExt;
use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions,
    BasicQosOptions, BasicRecoverOptions, ConfirmSelectOptions, ExchangeBindOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable, ShortString};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, Error, ErrorKind,
    Event, ExchangeKind,
};

/// Runs `body` with a connection of its own, in bounded time.
async fn check(body: impl AsyncFnOnce(&Connection)) {
    let url = broker::url();
    let run = async {
        let connection = connect(&url).await;
        body(&connection).await;
        // A test may have made the broker close it already.
        let _ = connection.close(200, "done".into()).await;
    };
    tokio::time::timeout(Duration::from_secs(20), run).await.expect("the check took too long");
}

async fn connect(url: &str) -> Connection {
    Connection::connect(url, ConnectionProperties::default()).await.unwrap()
}

async fn confirming(connection: &Connection) -> Channel {
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    channel
}

async fn exclusive_queue(channel: &Channel) -> ShortString {
    let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    let name = broker::unique("queue").into();
    channel.queue_declare(name, options, FieldTable::default()).await.unwrap().name().clone()
}

async fn exchange(channel: &Channel, kind: ExchangeKind) -> ShortString {
    let name = ShortString::from(broker::unique("exchange"));
    let options = ExchangeDeclareOptions { auto_delete: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(name.clone(), kind, options, FieldTable::default()).await.unwrap();
    name
}

async fn bind(
    channel: &Channel,
    queue: &ShortString,
    source: &ShortString,
    key: &str,
    arguments: FieldTable,
) {
    let options = QueueBindOptions::default();
    channel.queue_bind(queue.clone(), source.clone(), key.into(), options, arguments).await.unwrap();
}

async fn publish_to(
    channel: &Channel,
    to: &str,
    key: &str,
    body: &[u8],
    properties: BasicProperties,
) -> Confirmation {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    channel.basic_publish(to.into(), key.into(), options, body, properties).await.unwrap().await.unwrap()
}

async fn publish(channel: &Channel, queue: &ShortString, bodies: &[&[u8]]) {
    for body in bodies {
        let answer = publish_to(channel, "", queue.as_str(), body, BasicProperties::default()).await;
        assert!(matches!(answer, Confirmation::Ack(None) | Confirmation::NotRequested), "{answer:?}");
    }
}

async fn get(channel: &Channel, queue: &ShortString) -> Option<BasicGetMessage> {
    channel.basic_get(queue.clone(), BasicGetOptions::default()).await.unwrap()
}

async fn drain(channel: &Channel, queue: &ShortString) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some(message) = get(channel, queue).await {
        message.ack(BasicAckOptions::default()).await.unwrap();
        bodies.push(String::from_utf8(message.data.clone()).unwrap());
    }
    bodies
}

async fn ready(channel: &Channel, queue: &ShortString) -> u32 {
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.clone(), options, FieldTable::default()).await.unwrap().message_count()
}

async fn consume(channel: &Channel, queue: &ShortString, tag: &str) -> Result<Consumer, Error> {
    let options = BasicConsumeOptions::default();
    channel.basic_consume(queue.clone(), tag.into(), options, FieldTable::default()).await
}

/// The code and text of the broker's refusal.
fn refusal(error: &Error) -> (u16, String) {
    let ErrorKind::ProtocolError(refusal) = error.kind() else { panic!("not the broker's refusal: {error}") };
    (refusal.get_id(), refusal.get_message().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_message_is_taken_once() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let (source, queue) =
            (exchange(&channel, ExchangeKind::Direct).await, exclusive_queue(&channel).await);
        bind(&channel, &queue, &source, "red", FieldTable::default()).await;
        let persistent = BasicProperties::default().with_delivery_mode(2);
        assert_eq!(
            publish_to(&channel, source.as_str(), "red", b"kept", persistent).await,
            Confirmation::Ack(None)
        );
        let message = get(&channel, &queue).await.unwrap();
        assert_eq!(
            (message.data.as_slice(), message.redelivered, message.message_count),
            (&b"kept"[..], false, 0)
        );
        message.ack(BasicAckOptions::default()).await.unwrap();
        assert!(get(&channel, &queue).await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unroutable_mandatory_message_is_returned_with_its_confirm() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let nowhere = broker::unique("nowhere");
        let answer = publish_to(&channel, "", &nowhere, b"lost", BasicProperties::default()).await;
        let Confirmation::Ack(Some(returned)) = answer else { panic!("{answer:?}") };
        assert_eq!((returned.reply_code, returned.reply_text.as_str()), (312, "NO_ROUTE"));
        assert_eq!(
            (returned.data.as_slice(), returned.routing_key.as_str()),
            (&b"lost"[..], nowhere.as_str())
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefetch_bounds_unacknowledged_deliveries() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let queue = exclusive_queue(&channel).await;
        publish(&channel, &queue, &[&b"x"[..]; 10]).await;
        channel.basic_qos(3, BasicQosOptions::default()).await.unwrap();
        let mut consumer = consume(&channel, &queue, "").await.unwrap();
        let mut last = None;
        for _ in 0..3 {
            last = consumer.next().await;
        }
        assert_eq!(ready(&channel, &queue).await, 7);
        last.unwrap().unwrap().ack(BasicAckOptions { multiple: true }).await.unwrap();
        for _ in 0..3 {
            consumer.next().await.unwrap().unwrap();
        }
        assert_eq!(ready(&channel, &queue).await, 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requeued_and_recovered_messages_return_to_their_place() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let queue = exclusive_queue(&channel).await;
        publish(&channel, &queue, &[b"1", b"2", b"3"]).await;
        let _first = get(&channel, &queue).await.unwrap();
        let second = get(&channel, &queue).await.unwrap();
        second.nack(BasicNackOptions { multiple: true, requeue: true }).await.unwrap();
        let first_again = get(&channel, &queue).await.unwrap();
        assert_eq!((first_again.data.as_slice(), first_again.redelivered), (&b"1"[..], true));
        channel.basic_recover(BasicRecoverOptions { requeue: true }).await.unwrap();
        assert_eq!(drain(&channel, &queue).await, ["1", "2", "3"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topic_and_headers_exchanges_route() {
    check(async |connection| {
        let channel = connection.create_channel().await.unwrap();
        let topic = exchange(&channel, ExchangeKind::Topic).await;
        let by_topic = exclusive_queue(&channel).await;
        bind(&channel, &by_topic, &topic, "*.b.#", FieldTable::default()).await;
        for key in ["a.b", "a.b.c", "a.c", "b"] {
            publish_to(&channel, topic.as_str(), key, key.as_bytes(), BasicProperties::default()).await;
        }
        assert_eq!(drain(&channel, &by_topic).await, ["a.b", "a.b.c"]);

        let headers = exchange(&channel, ExchangeKind::Headers).await;
        let (all, any) = (exclusive_queue(&channel).await, exclusive_queue(&channel).await);
        bind(&channel, &all, &headers, "", matching("all")).await;
        bind(&channel, &any, &headers, "", matching("any")).await;
        for (body, size) in [(&b"both"[..], 1), (b"one", 2)] {
            let properties = BasicProperties::default().with_headers(coloured("red", size));
            publish_to(&channel, headers.as_str(), "", body, properties).await;
        }
        assert_eq!(drain(&channel, &all).await, ["both"]);
        assert_eq!(drain(&channel, &any).await, ["both", "one"]);
    })
    .await;
}

fn coloured(colour: &str, size: i32) -> FieldTable {
    let mut table = FieldTable::default();
    table.insert("colour".into(), AMQPValue::LongString(colour.into()));
    table.insert("size".into(), AMQPValue::LongInt(size));
    table
}

fn matching(how: &str) -> FieldTable {
    let mut table = coloured("red", 1);
    table.insert("x-match".into(), AMQPValue::LongString(how.into()));
    table
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_binds_to_exchange() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let source = exchange(&channel, ExchangeKind::Direct).await;
        let target = exchange(&channel, ExchangeKind::Fanout).await;
        let queue = exclusive_queue(&channel).await;
        bind(&channel, &queue, &target, "", FieldTable::default()).await;
        let (options, none) = (ExchangeBindOptions::default(), FieldTable::default());
        channel.exchange_bind(target, source.clone(), "key".into(), options, none).await.unwrap();
        publish_to(&channel, source.as_str(), "key", b"through", BasicProperties::default()).await;
        assert_eq!(drain(&channel, &queue).await, ["through"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn soft_error_closes_only_its_channel() {
    check(async |connection| {
        let (doomed, witness) = (confirming(connection).await, confirming(connection).await);
        let name = ShortString::from(broker::unique("missing"));
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let error = doomed.queue_declare(name.clone(), passive, FieldTable::default()).await.unwrap_err();
        assert_eq!(refusal(&error), (404, format!("NOT_FOUND - no queue '{name}' in vhost '/'")));
        let queue = exclusive_queue(&witness).await;
        publish(&witness, &queue, &[b"x"]).await;

        let other = confirming(connection).await;
        let differing =
            QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
        let error = other.queue_declare(queue.clone(), differing, FieldTable::default()).await.unwrap_err();
        let text = format!(
            "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue '{queue}' in vhost '/': \
             received 'true' but current is 'false'"
        );
        assert_eq!(refusal(&error), (406, text));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusive_queue_is_locked_to_its_connection() {
    check(async |connection| {
        let queue = exclusive_queue(&confirming(connection).await).await;
        let stranger = connect(&broker::url()).await;
        let channel = stranger.create_channel().await.unwrap();
        let (code, text) = refusal(&consume(&channel, &queue, "").await.unwrap_err());
        assert_eq!(code, 405);
        assert!(
            text.starts_with("RESOURCE_LOCKED - cannot obtain exclusive access to locked queue"),
            "{text}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hard_error_closes_the_connection_and_a_new_one_works() {
    check(async |connection| {
        let mut events = connection.events_listener();
        let channel = connection.create_channel().await.unwrap();
        let options = BasicPublishOptions { immediate: true, ..BasicPublishOptions::default() };
        channel
            .basic_publish("".into(), "x".into(), options, b"x", BasicProperties::default())
            .await
            .unwrap();
        let error = loop {
            if let Event::Error(error) = events.next().await.unwrap() {
                break error;
            }
        };
        assert_eq!(refusal(&error), (540, "NOT_IMPLEMENTED - immediate=true".to_owned()));

        let again = connect(&broker::url()).await;
        let channel = confirming(&again).await;
        let queue = exclusive_queue(&channel).await;
        publish(&channel, &queue, &[b"after"]).await;
        assert_eq!(drain(&channel, &queue).await, ["after"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_any_size_come_back_whole() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let queue = exclusive_queue(&channel).await;
        for size in [0, 1, 131_064, 131_065, 1 << 20] {
            let body: Vec<u8> = (0..=250).cycle().take(size).collect();
            publish(&channel, &queue, &[&body]).await;
            let message = get(&channel, &queue).await.unwrap();
            assert!(message.data == body, "body of {size} bytes");
        }
    })
    .await;
}

/// One header of every type lapin can write.
fn every_header_type() -> FieldTable {
    let mut deep = FieldTable::default();
    deep.insert("deep".into(), AMQPValue::LongString("er".into()));
    let array: FieldArray = vec![AMQPValue::LongInt(1), AMQPValue::Void].into();
    let decimal = DecimalValue { scale: 2, value: 314 };
    let values = [
        ("bool", AMQPValue::Boolean(true)),
        ("i8", AMQPValue::ShortShortInt(-8)),
        ("u8", AMQPValue::ShortShortUInt(200)),
        ("i16", AMQPValue::ShortInt(-300)),
        ("u16", AMQPValue::ShortUInt(60_000)),
        ("i32", AMQPValue::LongInt(-70_000)),
        ("u32", AMQPValue::LongUInt(4_000_000_000)),
        ("i64", AMQPValue::LongLongInt(-(1 << 40))),
        ("float", AMQPValue::Float(0.5)),
        ("double", AMQPValue::Double(1.5)),
        ("decimal", AMQPValue::DecimalValue(decimal)),
        ("string", AMQPValue::LongString("größe".into())),
        ("time", AMQPValue::Timestamp(1_700_000_000)),
        ("bytes", AMQPValue::ByteArray(vec![0, 255].into())),
        ("array", AMQPValue::FieldArray(array)),
        ("table", AMQPValue::FieldTable(deep)),
        ("void", AMQPValue::Void),
    ];
    let mut table = FieldTable::default();
    for (name, value) in values {
        table.insert(name.into(), value);
    }
    table
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_and_every_header_type_round_trip() {
    check(async |connection| {
        let channel = confirming(connection).await;
        let queue = exclusive_queue(&channel).await;
        let sent = BasicProperties::default()
            .with_content_type("text/plain".into())
            .with_content_encoding("utf-8".into())
            .with_headers(every_header_type())
            .with_delivery_mode(2)
            .with_priority(5)
            .with_correlation_id("c".into())
            .with_reply_to("r".into())
            .with_expiration("60000".into())
            .with_message_id("m".into())
            .with_timestamp(1_700_000_000)
            .with_type("t".into())
            .with_app_id("a".into())
            .with_cluster_id("k".into());
        publish_to(&channel, "", queue.as_str(), b"x", sent.clone()).await;
        assert_eq!(get(&channel, &queue).await.unwrap().properties, sent);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_commits_and_rolls_back() {
    check(async |connection| {
        let (tx, observer) = (connection.create_channel().await.unwrap(), confirming(connection).await);
        let queue = exclusive_queue(&observer).await;
        tx.tx_select().await.unwrap();
        publish(&tx, &queue, &[b"undone"]).await;
        tx.tx_rollback().await.unwrap();
        publish(&tx, &queue, &[b"done"]).await;
        assert_eq!(ready(&observer, &queue).await, 0);
        tx.tx_commit().await.unwrap();
        assert_eq!(drain(&observer, &queue).await, ["done"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_ends_when_its_queue_is_deleted() {
    check(async |connection| {
        let (channel, other) = (confirming(connection).await, confirming(connection).await);
        let queue = exclusive_queue(&channel).await;
        let mut consumer = consume(&channel, &queue, "").await.unwrap();
        other.queue_delete(queue, QueueDeleteOptions::default()).await.unwrap();
        assert!(consumer.next().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connection_survives_on_heartbeats() {
    let url = broker::url();
    let connection = connect(&format!("{url}?heartbeat=1")).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let channel = confirming(&connection).await;
    let queue = exclusive_queue(&channel).await;
    publish(&channel, &queue, &[b"still here"]).await;
}
