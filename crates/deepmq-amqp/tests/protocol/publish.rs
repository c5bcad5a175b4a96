//! Publishing: what is taken, returned, refused, and carried unchanged.

use deepmq_amqp::codec::method::{basic, exchange, queue};
use deepmq_model::message::properties::Properties;
use deepmq_model::{Table, Value};
use deepmq_testkit::{Handshake, RawPeer, TestBroker};

fn to(routing_key: &[u8]) -> basic::Publish<'_> {
    basic::Publish { routing_key, ..Default::default() }
}

fn encoded(properties: &Properties) -> Vec<u8> {
    let mut bytes = Vec::new();
    properties.encode(&mut bytes);
    bytes
}

async fn refused(peer: &mut RawPeer, publish: &basic::Publish<'_>, properties: &[u8], code: u16, text: &str) {
    peer.publish_with(1, publish, properties, b"m").await;
    peer.expect_channel_close(1, code, text, basic::Publish::ID).await;
    peer.open_channel(1).await;
}

#[tokio::test]
async fn a_missing_exchange_costs_the_channel_and_what_follows_is_lost() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.select_confirms(1).await;
    peer.publish(1, "", "q", "kept").await;
    peer.expect_confirmed_up_to(1, 1).await;
    peer.publish(1, "absent", "q", "m").await;
    peer.publish(1, "", "q", "lost").await;
    let text = "NOT_FOUND - no exchange 'absent' in vhost '/'";
    peer.expect_channel_close(1, 404, text, basic::Publish::ID).await;
    peer.open_channel(1).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 1);
}

#[tokio::test]
async fn an_internal_exchange_takes_nothing_from_clients() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let declare = exchange::Declare { exchange: "x", kind: "fanout", internal: true, ..Default::default() };
    peer.send(1, declare).await;
    peer.expect(1, exchange::DeclareOk {}).await;
    let publish = basic::Publish { exchange: "x", ..Default::default() };
    let text = "ACCESS_REFUSED - cannot publish to internal exchange 'x' in vhost '/'";
    refused(&mut peer, &publish, &[0, 0], 403, text).await;
}

#[tokio::test]
async fn immediate_is_not_implemented() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.publish_with(1, &basic::Publish { immediate: true, ..to(b"q") }, &[0, 0], b"m").await;
    peer.expect_connection_close(540, "NOT_IMPLEMENTED - immediate=true", basic::Publish::ID).await;
}

#[tokio::test]
async fn what_is_mandatory_and_goes_nowhere_comes_back_whole() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let properties = encoded(&Properties { message_id: Some((*b"id").into()), ..Default::default() });
    let body = vec![b'x'; 200_000];
    let publish = basic::Publish {
        exchange: "amq.direct",
        routing_key: b"nowhere",
        mandatory: true,
        ..Default::default()
    };
    peer.publish_with(1, &publish, &properties, &body).await;
    let back = peer.returned(1).await;
    let expected = basic::Return {
        reply_code: 312,
        reply_text: "NO_ROUTE",
        exchange: "amq.direct",
        routing_key: b"nowhere",
    };
    assert_eq!(back.returned, expected);
    assert_eq!((back.content.properties, back.content.body), (properties, body));
}

#[tokio::test]
async fn what_is_not_mandatory_and_goes_nowhere_is_dropped_silently() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.publish(1, "", "nowhere", "m").await;
    peer.publish(1, "amq.fanout", "", "m").await;
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn what_is_mandatory_and_routed_does_not_come_back() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_with(1, &basic::Publish { mandatory: true, ..to(b"q") }, &[0, 0], b"m").await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 1);
}

#[tokio::test]
async fn a_claimed_user_must_be_the_own_one() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    let of =
        |user: &str| encoded(&Properties { user_id: Some(user.as_bytes().into()), ..Default::default() });
    let text = "PRECONDITION_FAILED - user_id property set to 'mallory' but authenticated user was 'guest'";
    refused(&mut peer, &to(b"q"), &of("mallory"), 406, text).await;
    peer.publish_with(1, &to(b"q"), &of("guest"), b"m").await;
    assert!(peer.get(1, "q", true).await.is_some());
}

#[tokio::test]
async fn an_expiration_must_be_a_number() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    for (expiration, why) in [
        ("abc", "no_integer"),
        ("", "no_integer"),
        ("12abc", "{leftover_string,\"abc\"}"),
        ("-1", "{value_negative,-1}"),
        ("315360000001", "{value_too_large,315360000001}"),
    ] {
        let properties =
            encoded(&Properties { expiration: Some(expiration.as_bytes().into()), ..Default::default() });
        let text = format!("PRECONDITION_FAILED - invalid expiration '{expiration}': {why}");
        refused(&mut peer, &to(b"q"), &properties, 406, &text).await;
    }
    let properties = encoded(&Properties { expiration: Some((*b"60000").into()), ..Default::default() });
    peer.publish_with(1, &to(b"q"), &properties, b"m").await;
    assert!(peer.get(1, "q", true).await.is_some());
}

#[tokio::test]
async fn properties_headers_keys_and_bodies_are_carried_byte_for_byte() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.bind(1, "q", "amq.fanout", "").await;
    let headers: Table = [
        (
            "nested",
            Value::Table([("k", Value::Array(vec![Value::Void, Value::F64(0.5)]))].into_iter().collect()),
        ),
        ("same", Value::U8(1)),
        ("same", Value::I16(-2)),
        ("bytes", Value::Bytes(vec![0, 255].into())),
    ]
    .into_iter()
    .collect();
    let properties = encoded(&Properties {
        headers: Some(headers),
        delivery_mode: Some(2),
        priority: Some(9),
        timestamp: Some(u64::MAX),
        ..Default::default()
    });
    let key = b"\xff\x00 not text";
    let publish = basic::Publish { exchange: "amq.fanout", routing_key: key, ..Default::default() };
    peer.publish_with(1, &publish, &properties, b"\x00\xce\xff").await;
    let got = peer.get(1, "q", false).await.unwrap();
    assert_eq!((got.get_ok.exchange, got.get_ok.routing_key), ("amq.fanout", &key[..]));
    assert_eq!((got.content.properties, got.content.body), (properties.clone(), b"\x00\xce\xff".to_vec()));
    peer.send(1, basic::Nack { delivery_tag: 1, multiple: false, requeue: true }).await;
    peer.consume(1, "q", "c").await;
    let delivery = peer.delivery(1).await;
    assert_eq!((delivery.deliver.exchange, delivery.deliver.routing_key), ("amq.fanout", &key[..]));
    assert_eq!(delivery.content.properties, properties);
}

#[tokio::test]
async fn bodies_of_any_size_go_through_frames_of_any_size() {
    let broker = TestBroker::start().await;
    for (own, other) in [(4096_u32, 131_072_u32), (131_072, 4096), (8192, 5000)] {
        let mut publisher = broker.peer_with(&Handshake::default().tune(10, own, 0)).await;
        let mut consumer = broker.peer_with(&Handshake::default().tune(10, other, 0)).await;
        let queue = consumer.declare_with(1, queue::Declare::default()).await.queue;
        consumer.consume(1, queue, "c").await;
        let edges = [own, other].map(|max| max as usize - 8);
        let sizes = edges.into_iter().flat_map(|edge| [edge - 1, edge, edge + 1]).chain([0, 1, 1 << 20]);
        for size in sizes {
            let body: Vec<u8> = (0..251_u8).cycle().take(size).collect();
            publisher.publish(1, "", queue, &body).await;
            let content = consumer.delivery(1).await.content;
            assert_eq!(content.body.len(), size);
            assert!(content.body == body, "a body of {size} bytes was changed");
            let max = other as usize;
            assert!(content.frame_sizes.iter().all(|&frame| frame <= max), "{:?}", content.frame_sizes);
            assert_eq!(content.frame_sizes.len(), size.div_ceil(max - 8));
        }
        publisher.close().await;
        consumer.close().await;
    }
}

#[tokio::test]
async fn a_body_may_come_in_any_pieces_even_empty_ones() {
    use deepmq_amqp::codec::content::Header;
    use deepmq_amqp::codec::frame::{self, Kind};
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.send(1, to(b"q")).await;
    let mut bytes = Vec::new();
    Header { class: 60, body_size: 6, properties: &[0, 0] }.encode(1, &mut bytes);
    for piece in ["a", "", "bcd", "", "ef"] {
        frame::write(Kind::Body, 1, &mut bytes, |writer| writer.raw(piece.as_bytes()));
    }
    peer.send_bytes(&bytes).await;
    assert_eq!(peer.get(1, "q", true).await.unwrap().content.body, b"abcdef");
}
