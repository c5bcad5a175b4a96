//! A broker inside another program: start it, watch it, open a door to it, look into it, stop it.
//!
//! Owns the order of these steps. Must not know anything that is not public: what works here works in any program.
//!
//! ```sh
//! cargo run --example embed
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::future::pending;
use std::time::Duration;

use anyhow::Context;
use deepmq_broker::events::{Event, EventError, EventStream, Events, Interest};
use deepmq_broker::{Broker, BrokerConfig, Vhost};
use deepmq_storage::Seam;
use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ExchangeKind};
use tokio::net::TcpListener;

/// The whole show takes a moment; a program that hangs would be a poor example.
const TIME_MAX: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tokio::time::timeout(TIME_MAX, run()).await.context("it took too long")?
}

async fn run() -> anyhow::Result<()> {
    // The broker. Who subscribes to the events before it starts misses none.
    let config = BrokerConfig::default();
    let events = Events::new(config.limits.events_buffered_max);
    let watching = tokio::spawn(print_events(events.subscribe(Interest::Everything)));
    let broker = Broker::start_observed(config, Seam::real(), events)?;

    // A door to it. As many as you like, or none.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("amqp://guest:guest@{}/%2f", listener.local_addr()?);
    let serving = tokio::spawn(deepmq_amqp::serve(listener, broker.clone(), pending()));

    // Somebody comes in.
    let client = Connection::connect(&url, ConnectionProperties::default()).await?;
    let channel = client.create_channel().await?;
    let mut consumer = declare_and_consume(&channel).await?;
    publish(&channel, b"one book").await?;
    let delivery = consumer.next().await.context("the consumer was cancelled")??;

    // The message is delivered and not acknowledged yet: that is to be seen.
    show(&broker);

    delivery.ack(BasicAckOptions::default()).await?;
    client.close(200, "done".into()).await?;

    // The end: `serve` closes the connections that are left, the last event is told, nothing goes on running.
    broker.shutdown();
    serving.await?;
    watching.await?;
    Ok(())
}

async fn print_events(mut events: EventStream) {
    loop {
        match events.next().await {
            Ok(event) => {
                println!("event  {event:?}");
                if event == Event::BrokerStopped {
                    return;
                }
            }
            Err(EventError::Missed(count)) => println!("event  {count} missed: this listener was too slow"),
            Err(EventError::Closed) => return,
        }
    }
}

async fn declare_and_consume(channel: &Channel) -> anyhow::Result<Consumer> {
    let nothing = FieldTable::default;
    let exchange = ExchangeDeclareOptions::default();
    channel.exchange_declare("shop".into(), ExchangeKind::Topic, exchange, nothing()).await?;
    channel.queue_declare("orders".into(), QueueDeclareOptions::default(), nothing()).await?;
    let binding = QueueBindOptions::default();
    channel.queue_bind("orders".into(), "shop".into(), "order.#".into(), binding, nothing()).await?;
    let consume = BasicConsumeOptions::default();
    Ok(channel.basic_consume("orders".into(), "packer".into(), consume, nothing()).await?)
}

async fn publish(channel: &Channel, body: &[u8]) -> anyhow::Result<()> {
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    channel.basic_publish("shop".into(), "order.new".into(), options, body, properties).await?.await?;
    Ok(())
}

/// Everything there is to see, as copies that hold nothing up.
fn show(broker: &Broker) {
    println!("status {:?}", broker.status());
    for connection in broker.connections() {
        println!("connection {} of {} at {}", connection.id.0, connection.user, connection.peer);
        for channel in broker.channels(connection.id) {
            println!("  {channel:?}");
        }
    }
    broker.vhosts().iter().for_each(|vhost| show_vhost(vhost));
}

fn show_vhost(vhost: &Vhost) {
    println!("vhost {}", vhost.name());
    for exchange in vhost.exchanges() {
        println!("  exchange {:?} of type {}", exchange.name, exchange.kind.name());
    }
    for queue in vhost.queues() {
        println!("  queue {:?} {:?} {:?}", queue.name, queue.depth, queue.counters);
        for consumer in queue.consumers {
            println!("    {consumer:?}");
        }
    }
    for binding in vhost.bindings().iter().filter(|binding| !binding.implicit) {
        let key = String::from_utf8_lossy(&binding.key);
        println!("  binding {:?} -> {:?} by {key:?}", binding.source, binding.destination);
    }
}
