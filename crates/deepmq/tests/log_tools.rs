//! `deepmq log verify` and `deepmq log dump` as their user sees them.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use serde_json::{Value, json};
use tempfile::TempDir;

fn deepmq() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("deepmq"))
}

/// A running broker with vhosts `/` and `blue`; killed when dropped.
struct Serving(Child, String);

impl Serving {
    fn start(dir: &TempDir) -> Self {
        Self::start_with(dir, &[])
    }

    fn start_with(dir: &TempDir, arguments: &[&str]) -> Self {
        let config = dir.path().join("deepmq.toml");
        std::fs::write(&config, "[[vhost]]\nname = '/'\n[[vhost]]\nname = 'blue'\n").unwrap();
        let mut child = deepmq()
            .args(["serve", "--amqp", "127.0.0.1:0", "--http", "off", "--log", "error", "--config"])
            .arg(config)
            .arg("--data-dir")
            .arg(data(dir))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening amqp ").expect(&line).to_owned();
        Self(child, address)
    }

    async fn channel(&self, vhost: &str) -> (Connection, Channel) {
        let url = format!("amqp://guest:guest@{}/{vhost}", self.1);
        let connection = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        (connection, channel)
    }

    fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Already gone if the test stopped it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}

async fn declare(channel: &Channel, queue: &str) {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), durable, FieldTable::default()).await.unwrap();
}

async fn publish(channel: &Channel, queue: &str, body: &[u8], properties: BasicProperties) {
    let options = BasicPublishOptions::default();
    let confirm = channel.basic_publish("".into(), queue.into(), options, body, properties).await.unwrap();
    assert!(confirm.await.unwrap().is_ack());
}

fn persistent() -> BasicProperties {
    BasicProperties::default().with_delivery_mode(2)
}

/// Exit code, standard output and standard error.
fn log(verb: &str, dir: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let output = deepmq().args(["log", verb]).arg(dir).args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn dump(dir: &Path, more: &[&str]) -> Vec<Value> {
    let (code, out, err) = log("dump", dir, more);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Puts four messages that are kept and one that is not into `orders` of `/`, the first of which is taken out, and one into `orders` of `blue`.
async fn fill(broker: &Serving) {
    let (_connection, channel) = broker.channel("%2f").await;
    declare(&channel, "orders").await;
    let mut headers = FieldTable::default();
    headers.insert("tries".into(), AMQPValue::LongInt(3));
    publish(&channel, "orders", b"first", persistent()).await;
    publish(&channel, "orders", b"hi", persistent().with_headers(headers)).await;
    publish(&channel, "orders", &vec![0xff; 20_000], persistent()).await;
    publish(&channel, "orders", b"transient", BasicProperties::default()).await;
    publish(&channel, "orders", b"last", persistent()).await;
    let got = channel.basic_get("orders".into(), BasicGetOptions { no_ack: true }).await.unwrap();
    assert_eq!(got.unwrap().data, b"first");
    declare(&channel, "deleted").await;
    publish(&channel, "deleted", b"gone", persistent()).await;
    channel.queue_delete("deleted".into(), QueueDeleteOptions::default()).await.unwrap();
    let (_connection, channel) = broker.channel("blue").await;
    declare(&channel, "orders").await;
    publish(&channel, "orders", b"in blue", persistent()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_has_a_line_of_json_per_message_of_a_running_and_of_a_stopped_broker() {
    let dir = TempDir::new().unwrap();
    let broker = Serving::start(&dir);
    fill(&broker).await;
    let expected_hi = json!({
        "type": "msg", "vhost": "/", "queue": "orders", "seq": 1, "exchange": "", "routing_key": "orders",
        "properties": { "delivery_mode": 2, "headers": { "tries": 3 } },
        "data": "aGk=", "checksum": "crc32c:f59dd9c2",
    });
    let check = |when: &str| {
        let lines = dump(&data(&dir), &["--queue", "orders", "--vhost", "/"]);
        let [del, hi, long, last] = &lines[..] else { panic!("{when}: {lines:?}") };
        assert_eq!(*del, json!({ "type": "del", "vhost": "/", "queue": "orders", "seq": 0 }), "{when}");
        assert_eq!(*hi, expected_hi, "{when}");
        assert_eq!((&long["seq"], long["data"].as_str().unwrap().len()), (&json!(2), 26668), "{when}");
        assert_eq!((&last["seq"], &last["data"]), (&json!(4), &json!("bGFzdA==")), "{when}");
        let all = dump(&data(&dir), &[]);
        assert_eq!(all.len(), 5, "{when}: {all:?}");
        assert!(all.iter().any(|line| line["vhost"] == "blue" && line["data"] == "aW4gYmx1ZQ=="), "{when}");
        assert_eq!(dump(&data(&dir), &["--queue", "orders"]).len(), 5, "{when}");
    };
    check("running");
    broker.stop();
    check("stopped");
    let (code, out, err) = log("dump", &data(&dir), &["--queue", "nothing"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.ends_with("knows no queue 'nothing'\n") && err.lines().count() == 1, "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_directory_is_verified_with_0_while_its_broker_runs_dies_and_stops() {
    let dir = TempDir::new().unwrap();
    let check = |told: &str| {
        let (code, out, err) = log("verify", &data(&dir), &[]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        let counted = "2 queues with 4 messages in the journal and 0 blocks of 0 bytes in segments";
        assert!(out.contains(counted) && out.contains(told), "{out}");
        assert!(!out.contains("damage"), "{out}");
    };
    let broker = Serving::start(&dir);
    fill(&broker).await;
    check("not closed");
    drop(broker);
    check("not closed");
    Serving::start(&dir).stop();
    check("closed in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_told_with_queue_sequences_and_file_and_exit_code_1_and_nothing_is_changed() {
    let dir = TempDir::new().unwrap();
    let broker = Serving::start(&dir);
    fill(&broker).await;
    broker.stop();
    let journal = data(&dir).join("journal/00000000000000000000.log");
    let mut bytes = std::fs::read(&journal).unwrap();
    let at = bytes.windows(4).position(|window| window == [0xff; 4]).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let (code, out, err) = log("verify", &data(&dir), &[]);
    assert_eq!(code, Some(1), "{out}");
    assert!(err.starts_with("deepmq: ") && err.contains("is damaged") && err.lines().count() == 1, "{err}");
    let damage: Vec<_> = out.lines().filter(|line| line.starts_with("damage: ")).collect();
    let [damage] = damage[..] else { panic!("{out}") };
    let path = journal.to_str().unwrap();
    assert!(damage.contains(path), "{damage}");
    assert!(damage.contains("queue 'orders' in vhost '/' may have lost 2..4"), "{damage}");
    assert_eq!(std::fs::read(&journal).unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_segments_are_checked_and_dumped_like_those_in_the_journal() {
    let dir = TempDir::new().unwrap();
    let broker = Serving::start_with(&dir, &["--message-pool-bytes", "1MiB"]);
    let (_connection, channel) = broker.channel("%2f").await;
    declare(&channel, "deep").await;
    for n in 0..40_u8 {
        publish(&channel, "deep", &vec![n; 100_000], persistent()).await;
    }
    for n in 0..3 {
        let got = channel.basic_get("deep".into(), BasicGetOptions { no_ack: true }).await.unwrap();
        assert_eq!(got.unwrap().data[0], n);
    }
    let check = |lines: &[Value]| {
        let live: Vec<_> =
            lines.iter().filter(|line| line["type"] == "msg").map(|line| &line["seq"]).collect();
        assert_eq!(live, (3..40).collect::<Vec<_>>(), "{} lines", lines.len());
        assert!(
            lines.iter().filter(|line| line["type"] == "del").all(|line| line["seq"].as_u64().unwrap() < 3)
        );
    };
    let mut lines = dump(&data(&dir), &["--queue", "deep"]);
    lines.sort_by_key(|line| line["seq"].as_u64());
    check(&lines);
    // The journal goes on to its second file; what is needed of the first moves to segments.
    declare(&channel, "bulk").await;
    for _ in 0..64 {
        publish(&channel, "bulk", &vec![0; 1 << 20], persistent()).await;
    }
    channel.queue_delete("bulk".into(), QueueDeleteOptions::default()).await.unwrap();
    broker.stop();
    let (code, out, err) = log("verify", &data(&dir), &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(!out.contains(" 0 blocks"), "{out}");
    let mut lines = dump(&data(&dir), &[]);
    lines.sort_by_key(|line| line["seq"].as_u64());
    check(&lines);
}

#[test]
fn what_is_no_data_directory_is_refused_with_2_and_a_sentence() {
    let dir = TempDir::new().unwrap();
    let newer = dir.path().join("newer");
    std::fs::create_dir(&newer).unwrap();
    std::fs::write(newer.join("format"), "deepmq-data 2 anything\n").unwrap();
    for (path, told) in [
        (dir.path().to_owned(), "no data directory"),
        (dir.path().join("missing"), "no data directory"),
        (newer, "format version 2"),
    ] {
        for verb in ["verify", "dump"] {
            let (code, out, err) = log(verb, &path, &[]);
            assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
            assert!(err.contains(path.to_str().unwrap()) && err.contains(told), "{err}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
    }
    let output = deepmq().args(["log", "dump"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
