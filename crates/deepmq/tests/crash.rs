//! The program killed at random moments: what was confirmed is there after, what was acknowledged and synced is not.
//!
//! Several publishers wait for confirms, a consumer acknowledges, queues are declared, purged and deleted meanwhile. Each time
//! what is left is verified, started, and compared with what the clients know.
//!
//! `CRASH_KILLS` says how often it is killed; ten times without it, which takes half a minute.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, PublisherConfirm};
use tempfile::TempDir;

const QUEUES: [&str; 3] = ["consumed", "ledger", "journal"];

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
struct Known {
    queue: &'static str,
    next: u64,
    /// Confirmed, and never acknowledged.
    owed: BTreeSet<u64>,
}

impl Known {
    fn of(queue: &'static str) -> Self {
        Self { queue, next: 0, owed: BTreeSet::new() }
    }
}

/// A channel in confirm mode with the queue declared; none if the broker is gone before that.
async fn confirming(broker: &Serving, queue: &str) -> Option<(Connection, Channel)> {
    let connection = Connection::connect(&broker.1, ConnectionProperties::default()).await.ok()?;
    let channel = connection.create_channel().await.ok()?;
    channel.confirm_select(ConfirmSelectOptions::default()).await.ok()?;
    declare(&channel, queue).await?;
    Some((connection, channel))
}

/// Declares a durable queue; none if the broker is gone before it answers.
async fn declare(channel: &Channel, queue: &str) -> Option<u32> {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(queue.into(), durable, FieldTable::default()).await.ok()?;
    Some(declared.message_count())
}

async fn send(channel: &Channel, queue: &str, body: &str) -> Option<PublisherConfirm> {
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), persistent).await.ok()
}

/// Publishes with confirms until the broker is gone; up to 50 messages are on their way at a time.
async fn publish_until_killed(broker: &Serving, known: &mut Known) {
    let Some((_connection, channel)) = confirming(broker, known.queue).await else { return };
    loop {
        let mut on_their_way = Vec::new();
        for _ in 0..50 {
            let (number, body) = (known.next, known.next.to_string());
            known.next += 1;
            let Some(confirm) = send(&channel, known.queue, &body).await else { return };
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

/// Takes messages and acknowledges them until the broker is gone; `taken` are those it acknowledged, heard or not.
async fn consume_until_killed(broker: &Serving, queue: &str, taken: &mut BTreeSet<u64>) {
    let Some((_connection, channel)) = confirming(broker, queue).await else { return };
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await;
    let Ok(mut consumer) = consumer else { return };
    while let Some(Ok(delivery)) = consumer.next().await {
        taken.insert(number(&delivery.data));
        if delivery.acker.ack(BasicAckOptions::default()).await.is_err() {
            break;
        }
    }
}

/// Declares, fills, purges and deletes queues until the broker is gone; `there` are those that are to be there.
async fn churn_until_killed(broker: &Serving, round: u64, there: &mut Vec<String>) {
    let Some((_connection, channel)) = confirming(broker, "churn").await else { return };
    for at in 0.. {
        let queue = format!("churn-{round}-{at}");
        let Some(0) = declare(&channel, &queue).await else { return };
        there.push(queue.clone());
        let filled = send(&channel, &queue, "filling").await.is_some();
        if !filled || channel.queue_purge(queue.as_str().into(), QueuePurgeOptions::default()).await.is_err()
        {
            return;
        }
        if at % 2 == 0 {
            // From here on it may be gone.
            there.pop();
            let deleted = channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await;
            if deleted.is_err() {
                return;
            }
        }
    }
}

fn number(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().parse().unwrap()
}

/// Takes everything out, in order, and acknowledges it; returns the numbers.
async fn drain(broker: &Serving, known: &Known) -> Vec<u64> {
    let connection = broker.connect().await;
    let channel = connection.create_channel().await.unwrap();
    let ready = declare(&channel, known.queue).await.unwrap();
    channel.basic_qos(500, BasicQosOptions::default()).await.unwrap();
    let options = BasicConsumeOptions::default();
    let mut consumer =
        channel.basic_consume(known.queue.into(), "".into(), options, FieldTable::default()).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..ready {
        let delivery = consumer.next().await.unwrap().unwrap();
        numbers.push(number(&delivery.data));
        delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
    }
    // The answer to this comes after everything before it was handled.
    channel.basic_qos(1, BasicQosOptions::default()).await.unwrap();
    numbers
}

/// Drains a queue, and compares with what its client knows.
async fn check(broker: &Serving, known: &mut Known, round: u64) {
    let numbers = drain(broker, known).await;
    let (queue, ordered) = (known.queue, numbers.is_sorted_by(|one, next| one < next));
    assert!(ordered, "round {round}, {queue}: out of order: {numbers:?}");
    let found: BTreeSet<u64> = numbers.iter().copied().collect();
    let lost: Vec<_> = known.owed.difference(&found).collect();
    assert!(lost.is_empty(), "round {round}, {queue}: {} confirmed messages are lost: {lost:?}", lost.len());
    known.owed.clear();
}

/// Every queue that was declared is there; removes them.
async fn check_declared(broker: &Serving, queues: &[String]) {
    let connection = broker.connect().await;
    let channel = connection.create_channel().await.unwrap();
    for queue in queues {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await.unwrap();
        channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await.unwrap();
    }
}

fn verify(dir: &Path) {
    let verify =
        Command::new(assert_cmd::cargo::cargo_bin!("deepmq")).args(["log", "verify"]).arg(dir).output();
    let output = verify.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_outlives_any_number_of_kills() {
    let kills: u64 = std::env::var("CRASH_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let (dir, mut clients, mut declared) = (TempDir::new().unwrap(), QUEUES.map(Known::of), Vec::new());
    for round in 0..kills {
        let broker = Serving::start(dir.path());
        for known in &mut clients {
            check(&broker, known, round).await;
        }
        check_declared(&broker, &declared).await;
        // Some rounds die with acknowledgements just said, some long after they were synced.
        let broker = if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(broker);
            let again = Serving::start(dir.path());
            for known in &mut clients {
                let repeated = drain(&again, known).await;
                assert!(
                    repeated.is_empty(),
                    "round {round}: acknowledged and synced, but back: {repeated:?}"
                );
            }
            again
        } else {
            broker
        };
        declared = kill_under_load(broker, &mut clients, round).await;
        verify(dir.path());
    }
}

/// Returns the queues that were declared and not deleted.
async fn kill_under_load(broker: Serving, clients: &mut [Known; 3], round: u64) -> Vec<String> {
    let [consumed, ledger, journal] = clients;
    let (mut taken, mut declared) = (BTreeSet::new(), Vec::new());
    let queue = consumed.queue;
    let load = async {
        tokio::join!(
            publish_until_killed(&broker, consumed),
            publish_until_killed(&broker, ledger),
            publish_until_killed(&broker, journal),
            consume_until_killed(&broker, queue, &mut taken),
            churn_until_killed(&broker, round, &mut declared),
        )
    };
    let killing = async {
        tokio::time::sleep(Duration::from_millis(20 + round * 37 % 300)).await;
        let pid = rustix::process::Pid::from_child(&broker.0);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        // A client that waits for an answer does not always notice. What it knows by then is all it ever will.
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    tokio::select! {
        _ = load => {}
        () = killing => {}
    }
    // What was acknowledged may be gone, and may be back.
    consumed.owed.retain(|number| !taken.contains(number));
    declared
}
