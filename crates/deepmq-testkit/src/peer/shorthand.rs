//! The most common lines, each with its right answer.
//!
//! Owns no behaviour beyond [`RawPeer::call`].

use super::expect::unexpected;
use super::{RawPeer, encoded};
use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, confirm, exchange, queue, tx};

/// The properties of a message that has none.
const NO_PROPERTIES: [u8; 2] = [0, 0];

impl RawPeer {
    /// Declares a plain queue.
    pub async fn declare(&mut self, channel: u16, queue: &str) {
        self.declare_with(channel, queue::Declare { queue, ..Default::default() }).await;
    }

    /// Declares a queue; its name, ready messages and consumers.
    pub async fn declare_with(
        &mut self,
        channel: u16,
        declare: queue::Declare<'_>,
    ) -> queue::DeclareOk<'static> {
        match self.call(channel, declare).await {
            Method::Queue(queue::Method::DeclareOk(ok)) => ok,
            other => unexpected("queue.declare-ok", &other),
        }
    }

    /// Declares an exchange.
    pub async fn declare_exchange(&mut self, channel: u16, exchange: &str, kind: &str) {
        self.send(channel, exchange::Declare { exchange, kind, ..Default::default() }).await;
        self.expect(channel, exchange::DeclareOk {}).await;
    }

    /// Binds a queue.
    pub async fn bind(&mut self, channel: u16, queue: &str, exchange: &str, routing_key: &str) {
        let routing_key = routing_key.as_bytes();
        self.send(channel, queue::Bind { queue, exchange, routing_key, ..Default::default() }).await;
        self.expect(channel, queue::BindOk {}).await;
    }

    /// Publishes a message without properties.
    pub async fn publish(&mut self, channel: u16, exchange: &str, key: &str, body: impl AsRef<[u8]>) {
        let publish = basic::Publish { exchange, routing_key: key.as_bytes(), ..Default::default() };
        self.publish_with(channel, &publish, &NO_PROPERTIES, body.as_ref()).await;
    }

    /// Publishes a message.
    pub async fn publish_with(
        &mut self,
        channel: u16,
        publish: &basic::Publish<'_>,
        properties: &[u8],
        body: &[u8],
    ) {
        let bytes = self.message(channel, publish, properties, body);
        self.send_bytes(&bytes).await;
    }

    /// Publishes texts to a queue, all in one write.
    pub async fn publish_all(&mut self, channel: u16, queue: &str, bodies: impl IntoIterator<Item = String>) {
        let publish = basic::Publish { routing_key: queue.as_bytes(), ..Default::default() };
        let bytes: Vec<u8> = bodies
            .into_iter()
            .flat_map(|body| self.message(channel, &publish, &NO_PROPERTIES, body.as_bytes()))
            .collect();
        self.send_bytes(&bytes).await;
    }

    /// The frames of a publish.
    pub fn message(
        &self,
        channel: u16,
        publish: &basic::Publish<'_>,
        properties: &[u8],
        body: &[u8],
    ) -> Vec<u8> {
        let mut bytes = encoded(channel, publish.clone());
        deepmq_amqp::codec::content::write(channel, properties, body, self.frame_max, &mut bytes);
        bytes
    }

    /// Consumes, with acknowledgements.
    pub async fn consume(&mut self, channel: u16, queue: &str, tag: &str) {
        self.consume_with(channel, basic::Consume { queue, consumer_tag: tag, ..Default::default() }).await;
    }

    /// Consumes; the consumer's tag.
    pub async fn consume_with(&mut self, channel: u16, consume: basic::Consume<'_>) -> &'static str {
        match self.call(channel, consume).await {
            Method::Basic(basic::Method::ConsumeOk(ok)) => ok.consumer_tag,
            other => unexpected("basic.consume-ok", &other),
        }
    }

    /// Limits unsettled deliveries.
    pub async fn qos(&mut self, channel: u16, prefetch_count: u16, global: bool) {
        self.send(channel, basic::Qos { prefetch_size: 0, prefetch_count, global }).await;
        self.expect(channel, basic::QosOk {}).await;
    }

    /// Acknowledges.
    pub async fn ack(&mut self, channel: u16, delivery_tag: u64, multiple: bool) {
        self.send(channel, basic::Ack { delivery_tag, multiple }).await;
    }

    /// Wants publishes confirmed.
    pub async fn select_confirms(&mut self, channel: u16) {
        self.send(channel, confirm::Select { no_wait: false }).await;
        self.expect(channel, confirm::SelectOk {}).await;
    }

    /// Wants transactions.
    pub async fn select_tx(&mut self, channel: u16) {
        self.send(channel, tx::Select {}).await;
        self.expect(channel, tx::SelectOk {}).await;
    }

    /// Takes confirms until `last` is confirmed; none may be negative.
    pub async fn expect_confirmed_up_to(&mut self, channel: u16, last: u64) {
        self.expect_confirmed(channel, 0, last).await;
    }

    /// As [`RawPeer::expect_confirmed_up_to`], where those up to `confirmed` were confirmed before.
    pub async fn expect_confirmed(&mut self, channel: u16, mut confirmed: u64, last: u64) {
        while confirmed < last {
            let Method::Basic(basic::Method::Ack(ack)) = self.method(channel).await else {
                unexpected("a confirm", &"something else")
            };
            let next = confirmed + 1;
            assert!(
                ack.delivery_tag == next || (ack.multiple && ack.delivery_tag > next),
                "{ack:?} after {confirmed}"
            );
            confirmed = ack.delivery_tag;
        }
        assert_eq!(confirmed, last);
    }
}
