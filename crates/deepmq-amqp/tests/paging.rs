//! Queues that hold more than memory does: nothing is lost, repeated or out of order, and memory stays bounded.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::Value;
use deepmq_model::message::Properties;
use deepmq_testkit::{RawPeer, TestBroker};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const POOL_BYTES: usize = 1024 * 1024;
const BODY_BYTES: usize = 1000;
/// Five times what the pool holds.
const MESSAGES: usize = 5000;
const PATIENCE: Duration = Duration::from_secs(20);

async fn start(dir: &Path) -> TestBroker {
    TestBroker::start_with(|config| {
        config.data_dir = Some(dir.to_owned());
        config.limits.message_pool_bytes = POOL_BYTES;
    })
    .await
}

fn properties(delivery_mode: u8) -> Vec<u8> {
    let mut encoded = Vec::new();
    Properties { delivery_mode: Some(delivery_mode), ..Properties::default() }.encode(&mut encoded);
    encoded
}

fn body(number: usize) -> Vec<u8> {
    // Every hundredth is long enough to be shared instead of copied.
    let len = if number % 100 == 7 { 20 * BODY_BYTES } else { BODY_BYTES };
    format!("{number:0len$}").into_bytes()
}

fn number(body: &[u8]) -> usize {
    std::str::from_utf8(body).ok().and_then(|text| text.parse().ok()).expect("the test published a number")
}

fn durable(queue: &str) -> queue::Declare<'_> {
    queue::Declare { queue, durable: true, ..Default::default() }
}

async fn publish(peer: &mut RawPeer, queue: &str, numbers: std::ops::Range<usize>, mode: fn(usize) -> u8) {
    let publish = basic::Publish { routing_key: queue.as_bytes(), ..Default::default() };
    for number in numbers {
        peer.publish_with(1, &publish, &properties(mode(number)), &body(number)).await;
    }
}

/// What a queue has in memory, once what is too much has been paged out.
async fn settled_bytes(broker: &TestBroker, queue: &str) -> usize {
    let eased = async {
        while broker.broker().memory().used() >= POOL_BYTES / 2 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, eased).await.expect("what is too much is paged out");
    broker.depth(queue).bytes
}

async fn get_all(peer: &mut RawPeer, queue: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    while let Some(got) = peer.get(1, queue, true).await {
        assert_eq!(got.content.body, body(number(&got.content.body)));
        numbers.push(number(&got.content.body));
    }
    numbers
}

fn segments(dir: &Path) -> usize {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries(&dir.join("queues")).map(|queue| entries(&queue.path()).count()).sum()
}

async fn until_no_segments(dir: &Path) {
    let gone = async {
        while segments(dir) > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("files without messages are removed");
}

#[tokio::test]
async fn a_queue_holds_more_than_memory_and_gives_it_back_in_order() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    for (queue, durable) in [("durable", true), ("transient", false)] {
        peer.declare_with(1, queue::Declare { queue, durable, ..Default::default() }).await;
        publish(&mut peer, queue, 0..MESSAGES, |number| 1 + u8::from(number % 3 == 0)).await;
        peer.expect_quiet(1).await;
        assert_eq!(broker.depth(queue).ready, MESSAGES as u64);
        assert!(settled_bytes(&broker, queue).await < POOL_BYTES);
    }
    assert_eq!(get_all(&mut peer, "durable").await, (0..MESSAGES).collect::<Vec<_>>());
    let consume = basic::Consume { queue: "transient", no_ack: true, ..Default::default() };
    peer.consume_with(1, consume).await;
    for expected in 0..MESSAGES {
        assert_eq!(number(&peer.delivery(1).await.content.body), expected);
    }
    assert_eq!((broker.depth("durable").bytes, broker.depth("transient").bytes), (0, 0));
}

#[tokio::test]
async fn what_is_returned_after_it_was_paged_out_is_delivered_again_where_it_was() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, durable("q")).await;
    publish(&mut peer, "q", 0..100, |_| 2).await;
    let mut tags = Vec::new();
    for _ in 0..100 {
        tags.push(peer.get(1, "q", false).await.unwrap().get_ok.delivery_tag);
    }
    publish(&mut peer, "q", 100..MESSAGES, |_| 2).await;
    peer.expect_quiet(1).await;
    settled_bytes(&broker, "q").await;
    for tag in tags.iter().step_by(2) {
        peer.send(1, basic::Nack { delivery_tag: *tag, requeue: true, ..Default::default() }).await;
    }
    let expected: Vec<usize> = (0..100).step_by(2).chain(100..MESSAGES).collect();
    assert_eq!(get_all(&mut peer, "q").await, expected);
    assert_eq!(broker.depth("q").unacked, 50);
}

#[tokio::test]
async fn dead_letters_that_stay_are_paged_out_too_and_go_once_there_is_a_way() {
    const LETTERS: usize = 600;
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    let argument = |(key, value)| (key, Value::str(value));
    let arguments = [
        ("x-dead-letter-exchange", "later"),
        ("x-dead-letter-strategy", "at-least-once"),
        ("x-overflow", "reject-publish"),
    ];
    let arguments = arguments.map(argument).into_iter().collect();
    peer.declare_with(1, queue::Declare { arguments, ..durable("q") }).await;
    publish(&mut peer, "q", 0..LETTERS, |_| 2).await;
    peer.consume(1, "q", "c").await;
    peer.deliveries(1, LETTERS).await;
    peer.send(1, basic::Nack { delivery_tag: 0, multiple: true, requeue: false }).await;
    for queue in ["other", "dead"] {
        peer.declare_with(1, durable(queue)).await;
    }
    publish(&mut peer, "other", 0..MESSAGES, |_| 2).await;
    peer.expect_quiet(1).await;
    settled_bytes(&broker, "other").await;
    let queue = broker.queue("q").unwrap();
    assert_eq!(queue.depth().dead_letters, LETTERS as u64);
    assert!(queue.storage().paged_out_messages > 0);
    peer.declare_exchange(1, "later", "fanout").await;
    peer.bind(1, "dead", "later", "").await;
    let arrived = async {
        while broker.depth("dead").ready < LETTERS as u64 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, arrived).await.expect("they are read and placed");
    let mut letters = get_all(&mut peer, "dead").await;
    letters.sort_unstable();
    assert_eq!((letters, queue.depth().messages()), ((0..LETTERS).collect(), 0));
}

/// Priorities from 0 to 4, so that each page has some of each.
fn priority(number: usize) -> u8 {
    u8::try_from(number % 5).expect("below 5")
}

#[tokio::test]
async fn priorities_hold_for_what_was_paged_out_and_outlive_restarts() {
    let dir = TempDir::new().unwrap();
    let mut broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    let arguments = [("x-max-priority", Value::I32(4))].into_iter().collect();
    peer.declare_with(1, queue::Declare { arguments, ..durable("q") }).await;
    let publish = basic::Publish { routing_key: b"q", ..Default::default() };
    for number in 0..MESSAGES {
        let mut encoded = Vec::new();
        Properties { delivery_mode: Some(2), priority: Some(priority(number)), ..Properties::default() }
            .encode(&mut encoded);
        peer.publish_with(1, &publish, &encoded, &body(number)).await;
    }
    peer.expect_quiet(1).await;
    settled_bytes(&broker, "q").await;
    let mut expected: Vec<usize> = (0..MESSAGES).collect();
    expected.sort_by_key(|&number| std::cmp::Reverse(priority(number)));
    let mut expected = expected.into_iter();
    for part in [1500, 1500, MESSAGES - 3000] {
        for _ in 0..part {
            let got = peer.get(1, "q", true).await.expect("it is not empty");
            assert_eq!(Some(number(&got.content.body)), expected.next());
        }
        drop(peer);
        broker.stop().await;
        broker = start(dir.path()).await;
        peer = broker.peer().await;
    }
    assert!(peer.get(1, "q", true).await.is_none());
}

#[tokio::test]
async fn a_paged_out_queue_survives_restarts_without_what_was_settled_or_transient() {
    let dir = TempDir::new().unwrap();
    let mode = |number| if number % 10 == 3 { 1 } else { 2 };
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, durable("q")).await;
    publish(&mut peer, "q", 0..MESSAGES, mode).await;
    peer.expect_quiet(1).await;
    settled_bytes(&broker, "q").await;
    for _ in 0..1000 {
        peer.get(1, "q", true).await.unwrap();
    }
    peer.close().await;
    broker.stop().await;

    let kept = |from| (from..2 * MESSAGES).filter(move |&number| mode(number) == 2);
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    assert_eq!(broker.depth("q").ready, kept(1000).filter(|number| *number < MESSAGES).count() as u64);
    publish(&mut peer, "q", MESSAGES..2 * MESSAGES, mode).await;
    for expected in kept(1000).take(10) {
        assert_eq!(number(&peer.get(1, "q", true).await.unwrap().content.body), expected);
    }
    settled_bytes(&broker, "q").await;
    peer.close().await;
    broker.stop().await;

    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    assert!(segments(dir.path()) > 0);
    assert_eq!(get_all(&mut peer, "q").await, kept(1000).skip(10).collect::<Vec<_>>());
    until_no_segments(dir.path()).await;
}

#[tokio::test]
async fn files_go_with_what_they_held() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    for queue in ["purged", "deleted", "drained"] {
        peer.declare_with(1, durable(queue)).await;
        publish(&mut peer, queue, 0..MESSAGES, |_| 2).await;
        peer.expect_quiet(1).await;
        settled_bytes(&broker, queue).await;
    }
    assert!(segments(dir.path()) >= 3);
    assert_eq!(
        peer.call(1, queue::Purge { queue: "purged", ..Default::default() }).await,
        queue::PurgeOk { message_count: 5000 }.into()
    );
    peer.call(1, queue::Delete { queue: "deleted", ..Default::default() }).await;
    assert_eq!(get_all(&mut peer, "drained").await.len(), MESSAGES);
    until_no_segments(dir.path()).await;
    peer.close().await;
    broker.stop().await;
    let broker = start(dir.path()).await;
    assert_eq!((broker.depth("purged").ready, broker.depth("drained").ready), (0, 0));
}

/// Flips a bit in the middle of every segment.
fn damage(dir: &Path) {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries(&dir.join("queues")).flat_map(|queue| entries(&queue.path()).collect::<Vec<_>>());
    for file in files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "seg"))
    {
        let mut bytes = std::fs::read(&file).expect("the test's own file");
        let middle = bytes.len() / 2;
        *bytes.get_mut(middle).expect("a segment is not empty") ^= 1;
        std::fs::write(&file, bytes).expect("the test's own file");
    }
}

#[tokio::test]
async fn what_is_damaged_on_disk_is_left_out_and_the_rest_is_delivered_in_order() {
    let dir = TempDir::new().unwrap();
    let broker = start(dir.path()).await;
    let mut peer = broker.peer().await;
    peer.declare_with(1, durable("q")).await;
    publish(&mut peer, "q", 0..MESSAGES, |_| 2).await;
    peer.expect_quiet(1).await;
    settled_bytes(&broker, "q").await;
    damage(dir.path());
    peer.consume_with(1, basic::Consume { queue: "q", ..Default::default() }).await;
    let mut got = Vec::new();
    while broker.depth("q").ready > 0 || (got.len() as u64) < broker.depth("q").unacked {
        let delivery = peer.delivery(1).await;
        let body = delivery.content.body;
        assert_eq!(body, self::body(number(&body)));
        got.push(number(&body));
    }
    assert!(got.is_sorted_by(|one, next| one < next));
    assert!(got.len() < MESSAGES && got.len() > MESSAGES / 2, "{} of {MESSAGES}", got.len());
    assert_eq!(broker.depth("q").unacked, got.len() as u64, "nothing lost is held by a consumer");
    let lost = broker.queue("q").unwrap().counters().lost;
    assert_eq!(lost, (MESSAGES - got.len()) as u64, "and the queue says how much that was");
}
