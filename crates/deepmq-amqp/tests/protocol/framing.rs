//! Frames: their order, their bounds, and that it does not matter how they are cut.

use deepmq_amqp::codec::content::Header;
use deepmq_amqp::codec::frame::{self, Kind};
use deepmq_amqp::codec::method::{basic, channel, confirm, connection, queue};
use deepmq_amqp::codec::{Method, MethodId};
use deepmq_testkit::{Handshake, RawPeer, Received, TestBroker};

const NO_METHOD: MethodId = RawPeer::NO_METHOD;
const PUBLISH: MethodId = basic::Publish::ID;

fn method<'m>(method: impl Into<Method<'m>>) -> Vec<u8> {
    RawPeer::bytes_of(1, method)
}

fn publish() -> Vec<u8> {
    method(basic::Publish { routing_key: b"q", ..Default::default() })
}

fn header(class: u16, body_size: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { class, body_size, properties: &[0, 0] }.encode(1, &mut bytes);
    bytes
}

fn raw(kind: Kind, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(kind, channel, &mut bytes, |writer| writer.raw(payload));
    bytes
}

fn body(payload: &[u8]) -> Vec<u8> {
    raw(Kind::Body, 1, payload)
}

async fn closes(frames: &[Vec<u8>], code: u16, text: &str, cause: MethodId) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.send_bytes(&frames.concat()).await;
    peer.expect_connection_close(code, text, cause).await;
}

#[tokio::test]
async fn a_frame_out_of_order_costs_the_connection() {
    let no_method = "UNEXPECTED_FRAME - expected method frame, got non method frame instead";
    let no_header =
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead";
    let no_body = "UNEXPECTED_FRAME - expected content body, got non content body frame instead";
    let other = "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead";
    let overrun = "FRAME_ERROR - content body frame exceeds remaining content size";
    let declare = || method(queue::Declare { queue: "q", ..Default::default() });
    // What interrupts a publish is told as the publish's fault, as RabbitMQ has it.
    let cases: [(Vec<Vec<u8>>, u16, &str, MethodId); 11] = [
        (vec![header(60, 1)], 505, no_method, NO_METHOD),
        (vec![body(b"x")], 505, no_method, NO_METHOD),
        (vec![raw(Kind::Body, 7, b"x")], 505, no_method, NO_METHOD),
        (vec![publish(), header(60, 0), body(b"")], 505, no_method, NO_METHOD),
        (vec![publish(), declare()], 505, no_header, PUBLISH),
        (vec![publish(), body(b"x")], 505, no_header, PUBLISH),
        (vec![publish(), publish()], 505, no_header, PUBLISH),
        (vec![publish(), header(60, 1), declare()], 505, no_body, PUBLISH),
        (vec![publish(), header(60, 1), header(60, 1)], 505, no_body, PUBLISH),
        (vec![publish(), header(50, 1)], 505, other, PUBLISH),
        (vec![publish(), header(60, 3), body(b"12"), body(b"34")], 501, overrun, PUBLISH),
    ];
    for (frames, code, text, cause) in cases {
        closes(&frames, code, text, cause).await;
    }
}

#[tokio::test]
async fn closing_the_channel_is_allowed_in_the_middle_of_a_publish() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.send_bytes(&[publish(), header(60, 5), body(b"12")].concat()).await;
    peer.close_channel(1).await;
    peer.open_channel(1).await;
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn publishes_on_two_channels_may_be_interleaved() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.open_channel(2).await;
    let on_2 = |mut bytes: Vec<u8>| {
        bytes[2] = 2;
        bytes
    };
    let frames =
        [publish(), on_2(publish()), header(60, 1), on_2(header(60, 1)), on_2(body(b"2")), body(b"1")]
            .concat();
    peer.send_bytes(&frames).await;
    peer.expect_quiet(1).await;
    assert_eq!(peer.get(1, "q", true).await.unwrap().content.body, b"2");
    assert_eq!(peer.get(1, "q", true).await.unwrap().content.body, b"1");
}

#[tokio::test]
async fn a_payload_may_have_as_many_bytes_as_a_frame_and_no_more() {
    let broker = TestBroker::start().await;
    for (size, fits) in [(4088, true), (4095, true), (4096, true), (4097, false)] {
        let mut peer = broker.peer_with(&Handshake::default().tune(10, 4096, 0)).await;
        peer.declare(1, "q").await;
        let frames = [publish(), header(60, size as u64), body(&vec![b'x'; size])].concat();
        peer.send_bytes(&frames).await;
        if fits {
            assert_eq!(peer.get(1, "q", true).await.unwrap().content.body.len(), size);
            continue;
        }
        let Method::Connection(connection::Method::Close(close)) = peer.method(0).await else {
            panic!("the frame is too large")
        };
        assert_eq!((close.reply_code, close.class_id, close.method_id), (501, 0, 0));
        assert!(close.reply_text.starts_with("FRAME_ERROR - type 3, "), "{}", close.reply_text);
        assert!(close.reply_text.ends_with(": {frame_too_large,4097,4088}"), "{}", close.reply_text);
        // No answer is waited for: nothing after a bad frame means anything.
        peer.expect_eof().await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_frame_cost_the_connection_once() {
    let mut bad_end = raw(Kind::Heartbeat, 0, b"");
    *bad_end.last_mut().unwrap() = 0x41;
    let mut huge = frame::header(Kind::Method, 1, 1 << 30).to_vec();
    huge.push(0);
    let mut unknown = raw(Kind::Method, 1, b"abc");
    unknown[0] = 5;
    for (bytes, text) in [
        (bad_end, "FRAME_ERROR - type 8, all octets = <<>>: {invalid_frame_end_marker,65}"),
        (huge, "FRAME_ERROR - type 1, all octets = <<0>>: {frame_too_large,1073741824,131064}"),
        (unknown, "FRAME_ERROR - type 5, all octets = <<97,98,99>>: unknown_frame"),
    ] {
        let broker = TestBroker::start().await;
        let mut peer = broker.peer().await;
        peer.send_bytes(&bytes).await;
        peer.expect(0, connection::Close { reply_code: 501, reply_text: text, class_id: 0, method_id: 0 })
            .await;
        // More of the same is not told again.
        peer.try_send_bytes(&bytes).await;
        peer.expect_eof().await;
    }
}

#[tokio::test]
async fn malformed_arguments_are_told_with_the_method() {
    for (payload, what) in [
        (&[0_u8, 50, 0, 10, 0, 0, 5, b'a'][..], "cut"),
        (&[0, 50, 0, 30, 0, 0, 1, b'q', 0, 99], "too long"),
        (&[0, 50, 0, 30, 0, 0, 1, 0xff, 0], "not UTF-8"),
        (&[0, 50, 0, 10, 0, 0, 1, b'q', 0, 0, 0, 0, 3, 1, b'k', b'Z'], "an unknown type"),
    ] {
        let broker = TestBroker::start().await;
        let mut peer = broker.peer().await;
        peer.send_bytes(&raw(Kind::Method, 1, payload)).await;
        let Method::Connection(connection::Method::Close(close)) = peer.method(0).await else {
            panic!("{what}: expected connection.close")
        };
        assert_eq!((close.reply_code, close.class_id), (502, 50), "{what}");
        assert_eq!(close.method_id, u16::from(payload[3]), "{what}");
        assert!(close.reply_text.starts_with("SYNTAX_ERROR - "), "{}", close.reply_text);
        peer.send(0, connection::CloseOk {}).await;
        peer.expect_eof().await;
    }
}

#[tokio::test]
async fn a_malformed_header_is_told_with_the_publish() {
    let weighty = [0, 60, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let promising = [0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0];
    for payload in [&weighty[..], &promising, &[0, 60, 0], &[]] {
        let broker = TestBroker::start().await;
        let mut peer = broker.peer().await;
        peer.send_bytes(&[publish(), raw(Kind::Header, 1, payload)].concat()).await;
        let Method::Connection(connection::Method::Close(close)) = peer.method(0).await else {
            panic!("expected connection.close")
        };
        assert_eq!((close.reply_code, close.class_id, close.method_id), (502, 60, 40), "{payload:?}");
    }
}

/// One of everything, ended by the connection's close.
fn script() -> Vec<u8> {
    let mandatory = basic::Publish { routing_key: b"nowhere", mandatory: true, ..Default::default() };
    let consume = basic::Consume { queue: "q", consumer_tag: "c", ..Default::default() };
    [
        method(queue::Declare { queue: "q", exclusive: true, ..Default::default() }),
        method(confirm::Select::default()),
        method(mandatory),
        header(60, 2),
        body(b"hi"),
        raw(Kind::Heartbeat, 0, b""),
        publish(),
        header(60, 0),
        publish(),
        header(60, 4),
        body(b"fo"),
        body(b"ur"),
        method(basic::Get { queue: "q", ..Default::default() }),
        method(consume),
        method(basic::Nack { delivery_tag: 1, multiple: false, requeue: true }),
        method(basic::Ack { delivery_tag: 2, multiple: false }),
        method(basic::Ack { delivery_tag: 3, multiple: false }),
        method(channel::Flow { active: true }),
        method(basic::Ack { delivery_tag: 9, multiple: true }),
        RawPeer::bytes_of(0, connection::Close { reply_code: 200, ..Default::default() }),
    ]
    .concat()
}

async fn answers(broker: &TestBroker, pieces: impl Iterator<Item = &[u8]>) -> Vec<Received> {
    let mut peer = broker.peer().await;
    for piece in pieces {
        peer.send_bytes(piece).await;
        tokio::task::yield_now().await;
    }
    let mut answers = Vec::new();
    while let Some(frame) = peer.next_frame().await {
        answers.push(frame);
    }
    answers
}

#[tokio::test]
async fn the_answers_do_not_depend_on_how_the_bytes_are_cut() {
    let broker = TestBroker::start().await;
    let script = script();
    let whole = answers(&broker, std::iter::once(&script[..])).await;
    assert_eq!(whole.last().cloned().map(Received::method), Some(connection::CloseOk {}.into()));
    assert!(whole.len() > 15, "{whole:#?}");
    for size in [1, 2, 3, 7, 8, 9, 64] {
        let cut = answers(&broker, script.chunks(size)).await;
        assert_eq!(but_confirms(cut), but_confirms(whole.clone()), "in pieces of {size}");
    }
}

/// Confirms aside, which may be gathered or not.
fn but_confirms(answers: Vec<Received>) -> Vec<Received> {
    let confirm = |frame: &Received| frame.payload.starts_with(&[0, 60, 0, 80]);
    answers.into_iter().filter(|frame| !confirm(frame)).collect()
}
