//! What a program sees of the broker it embeds: the events of a message's life in order, and the state in between.
//! Owns only expectations; uses nothing but what is public.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a function that helps a test fails with it")]

use std::future::pending;
use std::time::Duration;

use deepmq_broker::connection::{ChannelInfo, ConnectionId};
use deepmq_broker::events::{BindingTo, Event, EventStream, Events, Interest};
use deepmq_broker::{Broker, BrokerConfig};
use deepmq_model::queue::Position;
use deepmq_storage::Seam;
use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicRejectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ExchangeKind};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const TIME_MAX: Duration = Duration::from_secs(20);

/// A broker with one door, somebody who watches it, and a client.
struct Stage {
    broker: Broker,
    events: EventStream,
    serving: JoinHandle<()>,
    client: Connection,
    channel: Channel,
}

impl Stage {
    async fn set() -> Self {
        let config = BrokerConfig::default();
        let events = Events::new(config.limits.events_buffered_max);
        let stream = events.subscribe(Interest::Everything);
        let broker = Broker::start_observed(config, Seam::real(), events).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("amqp://guest:guest@{}/%2f", listener.local_addr().unwrap());
        let serving = tokio::spawn(deepmq_amqp::serve(listener, broker.clone(), pending()));
        let client = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
        let channel = client.create_channel().await.unwrap();
        Self { broker, events: stream, serving, client, channel }
    }

    async fn next(&mut self) -> Event {
        timeout(TIME_MAX, self.events.next()).await.expect("no event came").unwrap()
    }

    /// The events of opening a connection and a channel; answers the connection's number.
    async fn opened(&mut self) -> ConnectionId {
        assert_eq!(self.next().await, Event::BrokerStarted);
        let Event::ConnectionOpened { connection, user, vhost, peer } = self.next().await else {
            panic!("a connection is opened first");
        };
        assert_eq!((&*user, &*vhost), ("guest", "/"));
        assert!(peer.starts_with("127.0.0.1:"), "{peer}");
        assert_eq!(self.next().await, Event::ChannelOpened { connection, channel: 1 });
        connection
    }

    /// Exchange `shop`, exclusive queue `orders`, a binding, and consumer `packer`.
    async fn declare_and_consume(&self) -> Consumer {
        let (channel, nothing) = (&self.channel, FieldTable::default);
        let exchange = ExchangeDeclareOptions::default();
        channel.exchange_declare("shop".into(), ExchangeKind::Direct, exchange, nothing()).await.unwrap();
        let queue = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        channel.queue_declare("orders".into(), queue, nothing()).await.unwrap();
        let binding = QueueBindOptions::default();
        channel.queue_bind("orders".into(), "shop".into(), "new".into(), binding, nothing()).await.unwrap();
        let consume = BasicConsumeOptions::default();
        channel.basic_consume("orders".into(), "packer".into(), consume, nothing()).await.unwrap()
    }

    async fn declared(&mut self) {
        assert_eq!(
            self.next().await,
            Event::ExchangeCreated { vhost: "/".into(), exchange: "shop".into(), kind: "direct" }
        );
        assert_eq!(self.next().await, Event::QueueCreated { vhost: "/".into(), queue: "orders".into() });
        assert_eq!(
            self.next().await,
            Event::BindingCreated {
                vhost: "/".into(),
                source: "shop".into(),
                destination: BindingTo::Queue("orders".into()),
                key: (*b"new").into(),
            }
        );
        assert_eq!(
            self.next().await,
            Event::ConsumerCreated { vhost: "/".into(), queue: "orders".into(), tag: "packer".into() }
        );
    }

    /// Publishes `book` to exchange `shop`.
    async fn publish(&mut self, key: &str) {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let properties = BasicProperties::default();
        self.channel.basic_publish("shop".into(), key.into(), options, b"book", properties).await.unwrap();
        assert_eq!(
            self.next().await,
            Event::MessagePublished {
                vhost: "/".into(),
                exchange: (*b"shop").into(),
                routing_key: key.as_bytes().into(),
                bytes: 4,
            }
        );
    }

    /// A message that went to the one queue, up to the consumer.
    async fn arrives(&mut self, consumer: &mut Consumer) -> Delivery {
        assert_eq!(
            self.next().await,
            Event::MessageRouted {
                vhost: "/".into(),
                exchange: (*b"shop").into(),
                routing_key: (*b"new").into(),
                queues: 1,
            }
        );
        self.delivered(consumer, false).await
    }

    async fn delivered(&mut self, consumer: &mut Consumer, redelivered: bool) -> Delivery {
        assert_eq!(
            self.next().await,
            Event::MessageDelivered {
                vhost: "/".into(),
                queue: "orders".into(),
                routing_key: (*b"new").into(),
                bytes: 4,
                redelivered,
            }
        );
        timeout(TIME_MAX, consumer.next()).await.expect("nothing was delivered").unwrap().unwrap()
    }

    async fn ends(mut self, connection: ConnectionId) {
        self.client.close(200, "done".into()).await.unwrap();
        let (vhost, queue) = ("/".into(), "orders".into());
        assert_eq!(self.next().await, Event::ConsumerCancelled { vhost, queue, tag: "packer".into() });
        assert_eq!(self.next().await, Event::ChannelClosed { connection, channel: 1 });
        assert_eq!(
            self.next().await,
            Event::BindingDeleted {
                vhost: "/".into(),
                source: "shop".into(),
                destination: BindingTo::Queue("orders".into()),
                key: (*b"new").into(),
            }
        );
        assert_eq!(self.next().await, Event::QueueDeleted { vhost: "/".into(), queue: "orders".into() });
        let reason = "200 done".into();
        assert_eq!(self.next().await, Event::ConnectionClosed { connection, reason });
        self.broker.shutdown();
        assert_eq!(self.next().await, Event::BrokerStopped);
        timeout(TIME_MAX, self.serving).await.expect("the door stays open").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_a_messages_life_is_an_event_in_order() {
    let mut stage = Stage::set().await;
    let connection = stage.opened().await;
    let mut consumer = stage.declare_and_consume().await;
    stage.declared().await;
    let (vhost, queue) = (|| "/".into(), || "orders".into());

    stage.publish("new").await;
    let delivery = stage.arrives(&mut consumer).await;
    delivery.ack(BasicAckOptions::default()).await.unwrap();
    let position = Position(0);
    assert_eq!(stage.next().await, Event::MessageAcked { vhost: vhost(), queue: queue(), position });

    stage.publish("new").await;
    let delivery = stage.arrives(&mut consumer).await;
    delivery.nack(BasicNackOptions { requeue: true, multiple: false }).await.unwrap();
    let (position, requeue) = (Position(1), true);
    assert_eq!(
        stage.next().await,
        Event::MessageNacked { vhost: vhost(), queue: queue(), position, requeue }
    );
    let again = stage.delivered(&mut consumer, true).await;
    again.reject(BasicRejectOptions { requeue: false }).await.unwrap();
    let requeue = false;
    assert_eq!(
        stage.next().await,
        Event::MessageRejected { vhost: vhost(), queue: queue(), position, requeue }
    );

    stage.publish("nowhere").await;
    let (exchange, routing_key) = ((*b"shop").into(), (*b"nowhere").into());
    assert_eq!(stage.next().await, Event::MessageReturned { vhost: vhost(), exchange, routing_key });

    stage.ends(connection).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_holds_can_be_looked_at_down_to_each_consumer() {
    let mut stage = Stage::set().await;
    let id = stage.opened().await;
    let mut consumer = stage.declare_and_consume().await;
    stage.declared().await;
    stage.publish("new").await;
    let open = stage.arrives(&mut consumer).await;

    let broker = &stage.broker;
    let connections = broker.connections();
    let [connection] = connections.as_slice() else { panic!("one connection, not {connections:?}") };
    assert_eq!((connection.id, &*connection.user, &*connection.vhost), (id, "guest", "/"));
    assert_eq!(connection.protocol, "AMQP 0-9-1");
    let channels = broker.channels(id);
    let [ChannelInfo { number: 1, consumers: 1, unacked: 1, .. }] = channels[..] else {
        panic!("{channels:?}")
    };

    let vhost = broker.vhost("/").unwrap();
    let queues = vhost.queues();
    let [queue] = queues.as_slice() else { panic!("one queue, not {queues:?}") };
    assert_eq!((&*queue.name, queue.owner), ("orders", Some(id)));
    assert_eq!((queue.depth.ready, queue.depth.unacked, queue.depth.consumers), (0, 1, 1));
    assert_eq!((queue.counters.published, queue.counters.delivered, queue.counters.acked), (1, 1, 0));
    let consumers: Vec<_> =
        queue.consumers.iter().map(|c| (c.connection, c.channel, &*c.tag, c.in_flight)).collect();
    assert_eq!(consumers, [(id, 1, "packer", 1)]);

    let exchanges = vhost.exchanges();
    assert!(exchanges.iter().any(|exchange| &*exchange.name == "shop"));
    let bindings = vhost.bindings();
    let sources: Vec<_> = bindings.iter().map(|binding| (&*binding.source, binding.implicit)).collect();
    assert_eq!(sources, [("", true), ("shop", false)]);

    let status = broker.status();
    assert_eq!((status.connections, status.vhosts, status.queues), (1, 1, 1));
    assert_eq!(status.exchanges, exchanges.len());
    assert!(status.message_bytes > 0, "the message is held until it is settled");

    open.ack(BasicAckOptions::default()).await.unwrap();
    let (vhost, queue, position) = ("/".into(), "orders".into(), Position(0));
    assert_eq!(stage.next().await, Event::MessageAcked { vhost, queue, position });
    assert_eq!(stage.broker.status().message_bytes, 0);
    stage.ends(id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_can_be_closed_from_inside_and_the_client_learns_why() {
    let mut stage = Stage::set().await;
    let id = stage.opened().await;
    assert!(stage.broker.kill_connection(id, "closed for the night"));
    assert_eq!(stage.next().await, Event::ChannelClosed { connection: id, channel: 1 });
    let Event::ConnectionClosed { connection, reason } = stage.next().await else {
        panic!("a connection is closed");
    };
    assert_eq!(connection, id);
    assert!(reason.contains("closed for the night"), "{reason}");
    assert!(!stage.broker.kill_connection(id, "again"), "it is gone");
    assert_eq!(stage.broker.connections().len(), 0);
}
