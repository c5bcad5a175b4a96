//! Direct reply-to: answers that come back over the channel of the request.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, queue};
use deepmq_model::message::properties::Properties;
use deepmq_testkit::{RawPeer, TestBroker};

const REPLY_TO: &str = "amq.rabbitmq.reply-to";

fn replies(consumer_tag: &str) -> basic::Consume<'_> {
    basic::Consume { queue: REPLY_TO, consumer_tag, no_ack: true, ..Default::default() }
}

fn asking(correlation_id: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    Properties {
        reply_to: Some(REPLY_TO.as_bytes().into()),
        correlation_id: Some(correlation_id.into()),
        ..Default::default()
    }
    .encode(&mut encoded);
    encoded
}

fn to(routing_key: &str) -> basic::Publish<'_> {
    basic::Publish { routing_key: routing_key.as_bytes(), ..Default::default() }
}

/// A queue `q`, a client that has asked there, and the address it wants the reply at.
async fn asked(broker: &TestBroker) -> (RawPeer, String) {
    let mut client = broker.peer().await;
    client.declare(1, "q").await;
    client.consume_with(1, replies("r")).await;
    client.publish_with(1, &to("q"), &asking(b"7"), b"ping").await;
    let request = client.get(1, "q", true).await.expect("the request is there").content;
    let properties = Properties::decode(&request.properties).expect("the broker encodes well");
    let address =
        String::from_utf8(properties.reply_to.expect("it is asked for").into()).expect("it is text");
    assert_eq!(properties.correlation_id.as_deref(), Some(&b"7"[..]), "the rest is as it was");
    (client, address)
}

#[tokio::test]
async fn a_reply_from_another_connection_comes_to_the_channel_that_asked() {
    let broker = TestBroker::start().await;
    let (mut client, address) = asked(&broker).await;
    let secret = address.strip_prefix("amq.rabbitmq.reply-to.").expect("it says what it is");
    assert_eq!(secret.len(), 22, "nobody guesses it");
    let mut server = broker.peer().await;
    server.select_confirms(1).await;
    let mandatory = basic::Publish { mandatory: true, ..to(&address) };
    for body in [b"pong".to_vec(), vec![b'x'; 300_000]] {
        server.publish_with(1, &mandatory, &[0, 0], &body).await;
        let delivery = client.delivery(1).await;
        assert_eq!((delivery.deliver.consumer_tag, delivery.deliver.exchange), ("r", ""));
        assert_eq!(delivery.deliver.routing_key, address.as_bytes());
        assert!(delivery.content.body == body && !delivery.deliver.redelivered);
    }
    server.expect_confirmed_up_to(1, 2).await;
    assert_eq!(broker.broker().vhost("/").unwrap().queue_count(), 1, "there is no queue for it");
}

#[tokio::test]
async fn a_reply_can_be_given_on_the_same_channel_and_ask_for_one_itself() {
    let broker = TestBroker::start().await;
    let (mut client, address) = asked(&broker).await;
    client.publish_with(1, &to(&address), &asking(b"8"), b"self").await;
    let delivery = client.delivery(1).await;
    let properties = Properties::decode(&delivery.content.properties).unwrap();
    assert_eq!(properties.reply_to.as_deref(), Some(address.as_bytes()));
}

#[tokio::test]
async fn once_nobody_waits_a_reply_is_dropped_or_returned_if_it_is_mandatory() {
    let broker = TestBroker::start().await;
    let mut server = broker.peer().await;
    for end in 0..3 {
        let (mut client, address) = asked(&broker).await;
        match end {
            0 => {
                client.send(1, basic::Cancel { consumer_tag: "r", no_wait: false }).await;
                client.expect(1, basic::CancelOk { consumer_tag: "r" }).await;
            }
            1 => client.close_channel(1).await,
            _ => client.close().await,
        }
        server.publish_with(1, &to(&address), &[0, 0], b"late").await;
        server.expect_quiet(1).await;
        server.publish_with(1, &basic::Publish { mandatory: true, ..to(&address) }, &[0, 0], b"late").await;
        let returned = server.returned(1).await.returned;
        assert_eq!((returned.reply_code, returned.reply_text), (312, "NO_ROUTE"));
        assert_eq!(returned.routing_key, address.as_bytes());
    }
}

#[tokio::test]
async fn the_rules_of_asking_are_told() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    let acking = basic::Consume { no_ack: false, ..replies("r") };
    peer.refused(acking, 406, "PRECONDITION_FAILED - reply consumer cannot acknowledge").await;
    peer.publish_with(1, &to("q"), &asking(b"1"), b"m").await;
    let text = "PRECONDITION_FAILED - fast reply consumer does not exist";
    peer.expect_channel_close(1, 406, text, basic::Publish::ID).await;
    peer.open_channel(1).await;
    assert!(peer.consume_with(1, replies("")).await.starts_with("amq.ctag-"));
    peer.refused(replies("other"), 406, "PRECONDITION_FAILED - reply consumer already set").await;
    peer.consume_with(1, replies("r")).await;
    peer.fatal(
        1,
        basic::Consume { queue: "q", consumer_tag: "r", ..Default::default() },
        530,
        "NOT_ALLOWED - attempt to reuse consumer tag 'r'",
    )
    .await;
}

#[tokio::test]
async fn the_pseudo_queue_can_be_declared_while_its_channel_waits_and_never_bound() {
    let broker = TestBroker::start().await;
    let (client, address) = asked(&broker).await;
    let mut server = broker.peer().await;
    for (name, passive) in [(&*address, true), (&*address, false), (REPLY_TO, true)] {
        let declare = queue::Declare { queue: name, passive, ..Default::default() };
        let ok = server.declare_with(1, declare).await;
        assert_eq!(ok, queue::DeclareOk { queue: name, message_count: 0, consumer_count: 1 });
    }
    let text = "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue";
    let (exchange, queue) = ("amq.direct", &*address);
    let methods: [Method<'_>; 2] = [
        queue::Bind { queue, exchange, ..Default::default() }.into(),
        queue::Unbind { queue, exchange, ..Default::default() }.into(),
    ];
    for method in methods {
        server.refused(method, 403, text).await;
    }
    client.close().await;
    let passive = queue::Declare { queue, passive: true, ..Default::default() };
    server.refused(passive, 404, &format!("NOT_FOUND - no queue '{address}' in vhost '/'")).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_replies_loses_them_rather_than_the_brokers_memory() {
    let broker = TestBroker::start().await;
    let (client, address) = asked(&broker).await;
    let mut server = broker.peer().await;
    // Its socket and the buffer of its connection take some megabytes of these forty.
    for _ in 0..400 {
        server.publish(1, "", &address, vec![b'x'; 100_000]).await;
    }
    server.expect_quiet(1).await;
    let mandatory = basic::Publish { mandatory: true, ..to(&address) };
    server.publish_with(1, &mandatory, &[0, 0], b"one more").await;
    assert_eq!(server.returned(1).await.content.body, b"one more");
    drop(client);
}
