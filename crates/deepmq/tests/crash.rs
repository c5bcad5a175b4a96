//! The program killed at random moments: what was confirmed is there after, what was acknowledged and synced is not.
//!
//! `CRASH_KILLS` says how often it is killed; ten times without it, which takes some seconds.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tempfile::TempDir;

const QUEUE: &str = "ledger";

struct Serving(Child, String);

impl Serving {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("deepmq"))
            .args(["serve", "--amqp", "127.0.0.1:0", "--http", "off", "--log", "error", "--data-dir"])
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening amqp ").expect(&line);
        let url = format!("amqp://guest:guest@{address}/%2f");
        Self(child, url)
    }

    async fn connect(&self) -> Connection {
        Connection::connect(&self.1, ConnectionProperties::default()).await.unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // SIGKILL: nothing is written or said any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a client knows of its messages, which are numbers.
#[derive(Default)]
struct Known {
    next: u64,
    /// Confirmed, and never acknowledged.
    owed: BTreeSet<u64>,
    /// Acknowledged, which the broker may not have heard.
    acknowledged: BTreeSet<u64>,
}

/// A channel in confirm mode with the queue declared; none if the broker is gone before that.
async fn confirming(broker: &Serving) -> Option<(Connection, Channel)> {
    let connection = Connection::connect(&broker.1, ConnectionProperties::default()).await.ok()?;
    let channel = connection.create_channel().await.ok()?;
    channel.confirm_select(ConfirmSelectOptions::default()).await.ok()?;
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(QUEUE.into(), durable, FieldTable::default()).await.ok()?;
    Some((connection, channel))
}

/// Publishes with confirms until the broker is gone; up to 50 messages are on their way at a time.
async fn publish_until_killed(broker: &Serving, known: &mut Known) {
    let Some((_connection, channel)) = confirming(broker).await else { return };
    loop {
        let mut on_their_way = Vec::new();
        for _ in 0..50 {
            let (number, body) = (known.next, known.next.to_string());
            known.next += 1;
            let persistent = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions::default();
            let sent =
                channel.basic_publish("".into(), QUEUE.into(), options, body.as_bytes(), persistent).await;
            let Ok(confirm) = sent else { return };
            on_their_way.push((number, confirm));
        }
        for (number, confirm) in on_their_way {
            match confirm.await {
                Ok(confirmation) if confirmation.is_ack() => known.owed.insert(number),
                _ => return,
            };
        }
    }
}

/// Takes everything out, in order, and acknowledges it; returns the numbers.
async fn drain(broker: &Serving, known: &mut Known) -> Vec<u64> {
    let connection = broker.connect().await;
    let channel = connection.create_channel().await.unwrap();
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare(QUEUE.into(), durable, FieldTable::default()).await.unwrap();
    channel.basic_qos(500, BasicQosOptions::default()).await.unwrap();
    let options = BasicConsumeOptions::default();
    let mut consumer =
        channel.basic_consume(QUEUE.into(), "".into(), options, FieldTable::default()).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..queue.message_count() {
        let delivery = consumer.next().await.unwrap().unwrap();
        numbers.push(std::str::from_utf8(&delivery.data).unwrap().parse().unwrap());
        delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
    }
    // The answer to this comes after everything before it was handled.
    channel.basic_qos(1, BasicQosOptions::default()).await.unwrap();
    known.acknowledged.extend(&numbers);
    numbers
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_outlives_any_number_of_kills() {
    let kills: u64 = std::env::var("CRASH_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let (dir, mut known) = (TempDir::new().unwrap(), Known::default());
    for round in 0..kills {
        let broker = Serving::start(dir.path());
        let numbers = drain(&broker, &mut known).await;
        let ordered = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ordered, "round {round}: out of order: {numbers:?}");
        let found: BTreeSet<u64> = numbers.iter().copied().collect();
        let lost: Vec<_> = known.owed.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: {} confirmed messages are lost: {lost:?}", lost.len());
        known.owed.clear();
        // Some rounds die with acknowledgements just said, some long after they were synced.
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            known.acknowledged.clear();
            drop(broker);
            let again = Serving::start(dir.path());
            let repeated = drain(&again, &mut known).await;
            assert!(repeated.is_empty(), "round {round}: acknowledged and synced, but back: {repeated:?}");
            kill_while_publishing(again, &mut known, round).await;
        } else {
            kill_while_publishing(broker, &mut known, round).await;
        }
    }
}

async fn kill_while_publishing(broker: Serving, known: &mut Known, round: u64) {
    let (publishing, killing) = (publish_until_killed(&broker, known), async {
        tokio::time::sleep(Duration::from_millis(20 + round * 37 % 300)).await;
        let pid = rustix::process::Pid::from_child(&broker.0);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(publishing, killing) }).await.unwrap();
}
