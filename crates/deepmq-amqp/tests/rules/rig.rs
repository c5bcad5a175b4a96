//! What the tests of rules share: declarations in one line, messages as they are read, a broker with a clock of its own.

use deepmq_amqp::codec::method::{basic, queue};
use deepmq_broker::BrokerConfig;
use deepmq_broker::registry::PolicyRecord;
use deepmq_model::message::Properties;
use deepmq_model::policy::PolicyRank;
use deepmq_model::{Table, Value};
use deepmq_storage::seam::{Seam, SimClock};
use deepmq_testkit::{RawPeer, TestBroker};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

pub(crate) type Arguments<'a> = &'a [(&'a str, Value)];

pub(crate) fn number(number: i64) -> Value {
    Value::I64(number)
}

pub(crate) fn text(text: &str) -> Value {
    Value::str(text)
}

/// Where dead letters go: with the default exchange, to the queue of this name.
pub(crate) fn dead_letters_to(queue: &str) -> [(&'static str, Value); 2] {
    [("x-dead-letter-exchange", text("")), ("x-dead-letter-routing-key", text(queue))]
}

/// A broker whose clock is moved by hand; what is kept is in `dir`.
pub(crate) struct World {
    pub(crate) broker: TestBroker,
    pub(crate) clock: Arc<SimClock>,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_in(None, Arc::new(SimClock::new())).await
    }

    pub(crate) async fn start_in(dir: Option<&Path>, clock: Arc<SimClock>) -> Self {
        Self::start_with(dir, clock, |_| {}).await
    }

    pub(crate) async fn start_with(
        dir: Option<&Path>,
        clock: Arc<SimClock>,
        configure: impl FnOnce(&mut BrokerConfig),
    ) -> Self {
        let seam = Seam { clock: clock.clone(), ..Seam::real() };
        let broker = TestBroker::start_on(seam, |config| {
            config.data_dir = dir.map(Path::to_path_buf);
            configure(config);
        })
        .await;
        Self { broker, clock }
    }

    /// Stops in order and starts again, `pause` later.
    pub(crate) async fn restart(self, dir: &Path, pause: Duration) -> Self {
        self.broker.stop().await;
        self.clock.advance(pause);
        Self::start_in(Some(dir), self.clock).await
    }

    /// Lets time pass, and does what is due then.
    pub(crate) fn pass(&self, milliseconds: u64) {
        self.clock.advance(Duration::from_millis(milliseconds));
        self.broker.broker().run_timers();
    }

    pub(crate) async fn ready(&self, queue: &str, count: u64) {
        ready(&self.broker, queue, count).await;
    }
}

/// Waits until a queue has so many ready messages.
pub(crate) async fn ready(broker: &TestBroker, queue: &str, count: u64) {
    until(queue, || broker.depth(queue).ready == count).await;
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("it never came: {what}"));
}

pub(crate) async fn declare(peer: &mut RawPeer, queue: &str, durable: bool, arguments: Arguments<'_>) {
    let arguments = arguments.iter().map(|(key, value)| (*key, value.clone())).collect();
    peer.declare_with(1, queue::Declare { queue, durable, arguments, ..Default::default() }).await;
}

/// Publishes to a queue, with these properties.
pub(crate) async fn publish(peer: &mut RawPeer, queue: &str, properties: &Properties, body: &str) {
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    let publish = basic::Publish { routing_key: queue.as_bytes(), ..Default::default() };
    peer.publish_with(1, &publish, &encoded, body.as_bytes()).await;
}

/// Properties with an expiration.
pub(crate) fn expiring(milliseconds: u64) -> Properties {
    Properties { expiration: Some(milliseconds.to_string().into_bytes().into()), ..persistent() }
}

pub(crate) fn persistent() -> Properties {
    Properties { delivery_mode: Some(2), ..Properties::default() }
}

/// A message that was fetched and acknowledged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) body: String,
    pub(crate) exchange: String,
    pub(crate) key: String,
    pub(crate) redelivered: bool,
    pub(crate) properties: Properties,
}

impl Seen {
    pub(crate) fn header(&self, key: &str) -> Option<&Value> {
        self.properties.headers.as_ref()?.get(key)
    }

    /// The deaths it tells of, the last first.
    pub(crate) fn deaths(&self) -> Vec<Table> {
        let Some(Value::Array(deaths)) = self.header("x-death") else { return Vec::new() };
        let table = |death: &Value| match death {
            Value::Table(table) => table.clone(),
            other => panic!("a death is a table, not {other:?}"),
        };
        deaths.iter().map(table).collect()
    }

    /// Reason, queue and count of each death, the last first.
    pub(crate) fn died(&self) -> Vec<(String, String, i64)> {
        let text = |death: &Table, key| {
            death.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("a death has a {key}")).to_owned()
        };
        let count = |death: &Table| death.get("count").and_then(Value::as_integer).unwrap_or_default();
        let deaths = self.deaths();
        deaths.iter().map(|death| (text(death, "reason"), text(death, "queue"), count(death))).collect()
    }
}

pub(crate) fn death(reason: &str, queue: &str, count: i64) -> (String, String, i64) {
    (reason.to_owned(), queue.to_owned(), count)
}

/// Takes the first message.
pub(crate) async fn take(peer: &mut RawPeer, queue: &str) -> Option<Seen> {
    let got = peer.get(1, queue, true).await?;
    Some(Seen {
        body: String::from_utf8(got.content.body).expect("the test published text"),
        exchange: got.get_ok.exchange.to_owned(),
        key: String::from_utf8_lossy(got.get_ok.routing_key).into_owned(),
        redelivered: got.get_ok.redelivered,
        properties: Properties::decode(&got.content.properties).expect("they are well-formed"),
    })
}

/// Takes all there is.
pub(crate) async fn drain(peer: &mut RawPeer, queue: &str) -> Vec<Seen> {
    let mut seen = Vec::new();
    while let Some(message) = take(peer, queue).await {
        seen.push(message);
    }
    seen
}

/// The bodies of all there is.
pub(crate) async fn bodies(peer: &mut RawPeer, queue: &str) -> Vec<String> {
    drain(peer, queue).await.into_iter().map(|message| message.body).collect()
}

/// Takes the first message and gives it back, or drops it.
pub(crate) async fn reject(peer: &mut RawPeer, queue: &str, requeue: bool) {
    let got = peer.get(1, queue, false).await.expect("there is a message");
    peer.send(1, basic::Reject { delivery_tag: got.get_ok.delivery_tag, requeue }).await;
    peer.expect_quiet(1).await;
}

/// Sets a policy for all queues of a name; without a definition, clears it.
pub(crate) fn policy(broker: &TestBroker, rank: PolicyRank, queue: &str, definition: &str) {
    let broker = broker.broker();
    if definition.is_empty() {
        broker.delete_policy(rank, "/", queue).expect("it was set");
        return;
    }
    let json = format!(
        r#"{{"vhost":"/","name":"{queue}","pattern":"^{queue}$","apply_to":"queues","definition":{definition}}}"#
    );
    let record: PolicyRecord = serde_json::from_str(&json).expect("the test wrote JSON");
    broker.put_policy(rank, record).expect("the definition is valid");
}
