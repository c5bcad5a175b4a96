//! From the protocol header to connection.open-ok.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::frame::PROTOCOL_HEADER;
use deepmq_amqp::codec::method::{LongStr, channel, connection};
use deepmq_broker::config::Mechanism;
use deepmq_broker::users::{UserSpec, VhostAccess};
use deepmq_model::message::table;
use deepmq_model::{Table, Value};
use deepmq_testkit::{Handshake, RawPeer, TestBroker};
use std::time::{Duration, Instant};

const REFUSED: &str = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.";

#[tokio::test]
async fn another_protocol_is_answered_with_the_right_header_and_the_end() {
    let broker = TestBroker::start().await;
    for header in [
        &b"AMQP\0\x01\0\0"[..],
        b"AMQP\x03\x01\0\0",
        b"AMQP\0\0\x09\0",
        b"AMQP\0\0\x0a\0",
        b"AMQP\0\0\x08\0",
        b"AMQP\x01\x01\0\x0a",
        b"amqp\0\0\x09\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\0\xc2\x01\0\0",
        b"abcd",
    ] {
        let mut peer = RawPeer::connect(broker.address()).await;
        peer.send_bytes(header).await;
        assert_eq!(peer.receive_bytes().await, PROTOCOL_HEADER, "after {header:?}");
        peer.expect_eof().await;
    }
}

#[tokio::test]
async fn the_header_may_come_byte_by_byte_and_in_the_form_of_0_9() {
    let broker = TestBroker::start().await;
    for header in [PROTOCOL_HEADER, *b"AMQP\x01\x01\0\x09"] {
        let mut peer = RawPeer::connect(broker.address()).await;
        for byte in header {
            peer.send_bytes(&[byte]).await;
        }
        let start = peer.method(0).await;
        assert!(matches!(start, Method::Connection(connection::Method::Start(_))), "{start:?}");
    }
}

#[tokio::test]
async fn start_offers_mechanisms_capabilities_and_who_the_server_is() {
    let broker = TestBroker::start_with(|config| {
        config.product = "RabbitMQ".into();
        config.version = "3.13.0".into();
        config.node_name = "rabbit@test".into();
    })
    .await;
    let start = RawPeer::connect(broker.address()).await.start(&Handshake::default()).await;
    assert_eq!((start.version_major, start.version_minor), (0, 9));
    assert_eq!((start.mechanisms, start.locales), (LongStr(b"PLAIN AMQPLAIN"), LongStr(b"en_US")));
    let properties = start.server_properties;
    let keys: Vec<_> = properties.iter().map(|(key, _)| key.to_owned()).collect();
    assert_eq!(
        keys,
        ["capabilities", "cluster_name", "copyright", "information", "platform", "product", "version"]
    );
    assert_eq!(properties.get("product"), Some(&Value::str("RabbitMQ")));
    assert_eq!(properties.get("version"), Some(&Value::str("3.13.0")));
    assert_eq!(properties.get("cluster_name"), Some(&Value::str("rabbit@test")));
    let Some(Value::Table(capabilities)) = properties.get("capabilities") else { panic!("no capabilities") };
    for capability in [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
    ] {
        assert_eq!(capabilities.get(capability), Some(&Value::Bool(true)), "{capability}");
    }
}

#[tokio::test]
async fn plain_and_amqplain_log_in() {
    let broker = TestBroker::start().await;
    let login: Table =
        [("LOGIN", Value::str("guest")), ("PASSWORD", Value::str("guest"))].into_iter().collect();
    let mut encoded = Vec::new();
    table::encode(&login, &mut encoded);
    let amqplain =
        Handshake { mechanism: "AMQPLAIN", response: encoded.split_off(4), ..Handshake::default() };
    broker.peer_with(&amqplain).await.close().await;
    broker.peer_with(&Handshake::default()).await.close().await;
    assert_eq!(broker.broker().connections().len(), 0);
}

#[tokio::test]
async fn a_bad_login_is_closed_with_403_where_the_client_understands_it() {
    let broker = TestBroker::start().await;
    for (user, password) in [("guest", "wrong"), ("nobody", "guest"), ("", "")] {
        let mut peer = RawPeer::connect(broker.address()).await;
        peer.start(&Handshake::default().login(user, password)).await;
        peer.expect_connection_close(403, REFUSED, RawPeer::NO_METHOD).await;
    }
}

#[tokio::test]
async fn a_bad_login_is_dropped_silently_after_a_second_where_the_client_does_not() {
    let broker = TestBroker::start().await;
    let mut peer = RawPeer::connect(broker.address()).await;
    let before = Instant::now();
    peer.start(&Handshake::capable_of(&[]).login("guest", "wrong")).await;
    peer.expect_eof().await;
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
}

#[tokio::test]
async fn an_unknown_mechanism_and_a_malformed_response_are_refused() {
    let broker = TestBroker::start().await;
    let start_ok = connection::StartOk::ID;
    for (mechanism, response, code, text) in [
        ("SCRAM", &b""[..], 503, "COMMAND_INVALID - unknown authentication mechanism 'SCRAM'"),
        ("PLAIN", b"guest", 502, "SYNTAX_ERROR - the response of mechanism PLAIN is malformed"),
        ("AMQPLAIN", b"\x05LOGIN", 502, "SYNTAX_ERROR - the response of mechanism AMQPLAIN is malformed"),
    ] {
        let mut peer = RawPeer::connect(broker.address()).await;
        peer.start(&Handshake { mechanism, response: response.to_vec(), ..Handshake::default() }).await;
        peer.expect_connection_close(code, text, start_ok).await;
    }
}

#[tokio::test]
async fn mechanisms_that_are_not_set_are_neither_offered_nor_taken() {
    let broker = TestBroker::start_with(|config| config.auth_mechanisms = vec![Mechanism::AmqPlain]).await;
    let mut peer = RawPeer::connect(broker.address()).await;
    let start = peer.start(&Handshake::default()).await;
    assert_eq!(start.mechanisms, LongStr(b"AMQPLAIN"));
    let text = "COMMAND_INVALID - unknown authentication mechanism 'PLAIN'";
    peer.expect_connection_close(503, text, connection::StartOk::ID).await;

    let broker = TestBroker::start().await;
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake { mechanism: "RABBIT-CR-DEMO", ..Handshake::default() }).await;
    let text = "COMMAND_INVALID - unknown authentication mechanism 'RABBIT-CR-DEMO'";
    peer.expect_connection_close(503, text, connection::StartOk::ID).await;
}

/// A broker that asks for passwords, and a peer that was asked as this user.
async fn asked(user: &str) -> (TestBroker, RawPeer) {
    let broker = TestBroker::start_with(|config| config.auth_mechanisms = Mechanism::ALL.to_vec()).await;
    let mut peer = RawPeer::connect(broker.address()).await;
    let start = peer.start(&asking(user)).await;
    assert_eq!(start.mechanisms, LongStr(b"PLAIN AMQPLAIN RABBIT-CR-DEMO"));
    peer.expect(0, connection::Secure { challenge: LongStr(b"Please tell me your password") }).await;
    (broker, peer)
}

fn asking(user: &str) -> Handshake {
    Handshake { mechanism: "RABBIT-CR-DEMO", response: user.into(), ..Handshake::default() }
}

fn answer(response: &[u8]) -> connection::SecureOk<'_> {
    connection::SecureOk { response: LongStr(response) }
}

#[tokio::test]
async fn who_is_asked_for_the_password_is_let_in_with_it() {
    let (_broker, mut peer) = asked("guest").await;
    peer.send(0, answer(b"My password is guest")).await;
    peer.tune(&Handshake::default()).await;
    peer.send(0, connection::Open { vhost: "/", ..Default::default() }).await;
    peer.expect(0, connection::OpenOk::default()).await;
    peer.close().await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_asked_for_again() {
    let refused = REFUSED.replace("PLAIN", "RABBIT-CR-DEMO");
    for (user, response) in [("guest", &b"My password is wrong"[..]), ("nobody", b"My password is guest")] {
        let (broker, mut peer) = asked(user).await;
        let both = [answer(response), answer(b"My password is guest")];
        peer.send_bytes(&both.map(|answer| RawPeer::bytes_of(0, answer)).concat()).await;
        peer.expect_connection_close(403, &refused, RawPeer::NO_METHOD).await;
        let tries = broker.broker().users().attempts().by_protocol();
        assert_eq!(
            tries.iter().map(|(_, tally)| (tally.succeeded, tally.failed)).collect::<Vec<_>>(),
            [(0, 1)]
        );
    }
}

#[tokio::test]
async fn an_answer_of_another_form_is_malformed() {
    for response in [&b"guest"[..], b"", b"\0guest\0guest"] {
        let (_broker, mut peer) = asked("guest").await;
        peer.send(0, answer(response)).await;
        let text = "SYNTAX_ERROR - the response of mechanism RABBIT-CR-DEMO is malformed";
        peer.expect_connection_close(502, text, connection::SecureOk::ID).await;
    }
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_and_another_method_instead_are_out_of_turn() {
    let in_state = |state| format!("CHANNEL_ERROR - unexpected method in connection state {state}");
    let (broker, peer) = asked("guest").await;
    peer.fatal(0, connection::TuneOk::default(), 504, &in_state("securing")).await;
    let (_broker, peer) = asked("guest").await;
    let start_ok = connection::StartOk { mechanism: "PLAIN", ..Default::default() };
    peer.fatal(0, start_ok, 504, &in_state("securing")).await;

    let mut peer = RawPeer::connect(broker.address()).await;
    peer.send_bytes(&PROTOCOL_HEADER).await;
    peer.method(0).await;
    peer.fatal(0, answer(b"My password is guest"), 504, &in_state("starting")).await;
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake::default()).await;
    peer.method(0).await;
    peer.fatal(0, answer(b"My password is guest"), 504, &in_state("tuning")).await;
    let peer = broker.peer().await;
    peer.fatal(0, answer(b"My password is guest"), 504, &in_state("running")).await;
}

#[tokio::test]
async fn a_token_of_many_kilobytes_fits_the_login_but_not_without_bound() {
    let broker = TestBroker::start().await;
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake::default().login("guest", &"t".repeat(15_000))).await;
    peer.expect_connection_close(403, REFUSED, RawPeer::NO_METHOD).await;

    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake::default().login("guest", &"t".repeat(20_000))).await;
    let Method::Connection(connection::Method::Close(close)) = peer.method(0).await else {
        panic!("the frame is too large")
    };
    assert_eq!((close.reply_code, close.class_id, close.method_id), (501, 0, 0));
    assert!(close.reply_text.contains("{frame_too_large,"), "{}", close.reply_text);
    peer.expect_eof().await;
}

#[tokio::test]
async fn tune_offers_the_limits() {
    let broker = TestBroker::start().await;
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake::default()).await;
    let tune = peer.tune(&Handshake::default()).await;
    assert_eq!(tune, connection::Tune { channel_max: 2047, frame_max: 131_072, heartbeat: 60 });
}

#[tokio::test]
async fn limits_beyond_the_offer_are_refused() {
    let broker = TestBroker::start().await;
    for (channel_max, frame_max, text) in [
        (2048, 131_072, "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)"),
        (0, 131_072, "negotiated channel_max = 0 is higher than the maximum allowed value (2047)"),
        (2047, 131_073, "negotiated frame_max = 131073 is higher than the maximum allowed value (131072)"),
        (2047, 0, "negotiated frame_max = 0 is higher than the maximum allowed value (131072)"),
        (2047, 4095, "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)"),
    ] {
        let handshake = Handshake::default().tune(channel_max, frame_max, 60);
        let mut peer = RawPeer::connect(broker.address()).await;
        peer.start(&handshake).await;
        peer.tune(&handshake).await;
        let text = format!("NOT_ALLOWED - {text}");
        peer.expect_connection_close(530, &text, connection::Tune::ID).await;
    }
}

#[tokio::test]
async fn limits_within_the_offer_are_taken() {
    let broker = TestBroker::start().await;
    for (channel_max, frame_max, heartbeat) in [(1, 4096, 0), (2047, 131_072, 65_535), (100, 8192, 1)] {
        let handshake = Handshake::default().tune(channel_max, frame_max, heartbeat);
        broker.peer_with(&handshake).await.close().await;
    }
}

#[tokio::test]
async fn a_vhost_that_is_missing_or_forbidden_is_refused_with_530() {
    let broker = TestBroker::start_with(|config| {
        config.vhosts.push("/secret".into());
        config
            .users
            .push(UserSpec { vhosts: VhostAccess::Only(vec!["/".into()]), ..TestBroker::user("joe") });
    })
    .await;
    let joe = Handshake::default().login("joe", "guest");
    for (vhost, text) in [
        ("nope", "NOT_ALLOWED - vhost nope not found"),
        ("", "NOT_ALLOWED - vhost  not found"),
        ("/secret", "NOT_ALLOWED - access to vhost '/secret' refused for user 'joe'"),
    ] {
        let mut peer = RawPeer::connect(broker.address()).await;
        peer.start(&joe).await;
        peer.tune(&joe).await;
        peer.send(0, connection::Open { vhost, ..Default::default() }).await;
        peer.expect_connection_close(530, text, connection::Open::ID).await;
    }
    RawPeer::open(broker.address(), &joe).await.close().await;
}

#[tokio::test]
async fn a_method_out_of_turn_is_refused_with_the_state_by_name() {
    let broker = TestBroker::start().await;
    let in_state = |state| format!("CHANNEL_ERROR - unexpected method in connection state {state}");
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.send_bytes(&PROTOCOL_HEADER).await;
    peer.method(0).await;
    peer.fatal(0, connection::TuneOk::default(), 504, &in_state("starting")).await;

    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake::default()).await;
    peer.method(0).await;
    peer.fatal(0, connection::Open::default(), 504, &in_state("tuning")).await;

    let mut peer = RawPeer::connect(broker.address()).await;
    peer.start(&Handshake::default()).await;
    peer.tune(&Handshake::default()).await;
    peer.fatal(1, channel::Open::default(), 504, &in_state("opening")).await;

    let peer = broker.peer().await;
    peer.fatal(0, connection::Open { vhost: "/", ..Default::default() }, 504, &in_state("running")).await;
}

#[tokio::test]
async fn a_client_may_close_before_it_is_logged_in() {
    let broker = TestBroker::start().await;
    let mut peer = RawPeer::connect(broker.address()).await;
    peer.send_bytes(&PROTOCOL_HEADER).await;
    peer.method(0).await;
    peer.close().await;
}

#[tokio::test]
async fn who_does_not_finish_the_handshake_in_time_is_dropped() {
    let broker =
        TestBroker::start_with(|config| config.limits.handshake_timeout = Duration::from_millis(100)).await;
    let mut silent = RawPeer::connect(broker.address()).await;
    let mut half = RawPeer::connect(broker.address()).await;
    half.send_bytes(b"AMQP").await;
    let mut untuned = RawPeer::connect(broker.address()).await;
    untuned.start(&Handshake::default()).await;
    untuned.method(0).await;
    silent.expect_eof().await;
    half.expect_eof().await;
    untuned.expect_eof().await;
}
