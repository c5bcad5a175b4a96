//! Methods against bytes that another implementation of the protocol wrote, and against themselves.

use deepmq_model::{Table, Value};
use proptest::prelude::*;

use super::sample::Sample;
use super::*;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// `payload` in hex, without the frame around it.
fn check(payload: &str, method: impl Into<Method<'static>>) {
    let method = method.into();
    let payload = unhex(payload);
    assert_eq!(Method::decode(&payload), Ok(method.clone()));
    let mut out = Vec::new();
    method.encode(7, &mut out);
    let (frame, consumed) = frame::parse(&out, 4096).unwrap().unwrap();
    assert_eq!((frame.kind, frame.channel, consumed), (Kind::Method, 7, out.len()));
    assert_eq!(frame.payload, payload, "{method:?}");
}

#[test]
fn the_handshake_is_written_as_others_write_it() {
    use connection::{Open, OpenOk, Secure, SecureOk, Start, StartOk, Tune, TuneOk};
    check(
        "000a000a00090000000e0770726f647563745300000001500000000e504c41494e20414d51504c41494e00000005656e5f5553",
        Start {
            version_major: 0,
            version_minor: 9,
            server_properties: [("product", Value::str("P"))].into_iter().collect(),
            mechanisms: LongStr(b"PLAIN AMQPLAIN"),
            locales: LongStr(b"en_US"),
        },
    );
    check(
        "000a000b0000000005504c41494e0000000c00677565737400677565737405656e5f5553",
        StartOk {
            client_properties: Table::new(),
            mechanism: "PLAIN",
            response: LongStr(b"\0guest\0guest"),
            locale: "en_US",
        },
    );
    check("000a001400000003616263", Secure { challenge: LongStr(b"abc") });
    check("000a001500000003616263", SecureOk { response: LongStr(b"abc") });
    check("000a001e07ff00020000003c", Tune { channel_max: 2047, frame_max: 131_072, heartbeat: 60 });
    check("000a001f07ff00020000003c", TuneOk { channel_max: 2047, frame_max: 131_072, heartbeat: 60 });
    check("000a0028012f0000", Open { vhost: "/", ..Open::default() });
    check("000a002900", OpenOk::default());
}

#[test]
fn closing_and_blocking_are_written_as_others_write_them() {
    use connection::{Blocked, Close, CloseOk, Unblocked, UpdateSecret, UpdateSecretOk};
    check(
        "000a0032014017434f4e4e454354494f4e5f464f52434544202d2062796500000000",
        Close { reply_code: 320, reply_text: "CONNECTION_FORCED - bye", class_id: 0, method_id: 0 },
    );
    check("000a0033", CloseOk {});
    check("000a003c0d6c6f77206f6e206d656d6f7279", Blocked { reason: "low on memory" });
    check("000a003d", Unblocked {});
    check(
        "000a00460000000273330772656e6577616c",
        UpdateSecret { new_secret: LongStr(b"s3"), reason: "renewal" },
    );
    check("000a0047", UpdateSecretOk {});
}

#[test]
fn channels_confirms_and_transactions_are_written_as_others_write_them() {
    use channel::{Close, CloseOk, Flow, Open, OpenOk};
    check("0014000a0130", Open { out_of_band: "0" });
    check("0014000b0000000130", OpenOk { channel_id: LongStr(b"0") });
    check("0014001401", Flow { active: true });
    check(
        "001400280194254e4f545f464f554e44202d206e6f2071756575652027712720696e2076686f737420272f270032000a",
        Close {
            reply_code: 404,
            reply_text: "NOT_FOUND - no queue 'q' in vhost '/'",
            class_id: 50,
            method_id: 10,
        },
    );
    check("00140029", CloseOk {});
    check("0055000a01", confirm::Select { no_wait: true });
    check("0055000b", confirm::SelectOk {});
    check("005a0014", tx::Commit {});
    check("001e000b0001", access::RequestOk { ticket: 1 });
}

#[test]
fn exchanges_are_written_as_others_write_them() {
    use exchange::{Bind, Declare, Delete, Unbind, UnbindOk};
    check(
        "0028000a0000046c6f677305746f7069630a00000000",
        Declare { exchange: "logs", kind: "topic", durable: true, internal: true, ..Declare::default() },
    );
    check("002800140000046c6f677301", Delete { exchange: "logs", if_unused: true, ..Delete::default() });
    check(
        "0028001e000001640173016b0100000000",
        Bind { destination: "d", source: "s", routing_key: b"k", no_wait: true, ..Bind::default() },
    );
    check(
        "00280028000001640173016b0000000000",
        Unbind { destination: "d", source: "s", routing_key: b"k", ..Unbind::default() },
    );
    check("00280033", UnbindOk {});
}

#[test]
fn queues_are_written_as_others_write_them() {
    use queue::{Bind, Declare, DeclareOk, Delete, DeleteOk, Purge, Unbind};
    let arguments: Table = [("x-max-length", Value::I8(10))].into_iter().collect();
    check(
        "0032000a00000171120000000f0c782d6d61782d6c656e677468620a",
        Declare { queue: "q", durable: true, no_wait: true, arguments, ..Declare::default() },
    );
    check("0032000b01710000000300000002", DeclareOk { queue: "q", message_count: 3, consumer_count: 2 });
    check(
        "0032001400000171046c6f677303612e2a0000000000",
        Bind { queue: "q", exchange: "logs", routing_key: b"a.*", ..Bind::default() },
    );
    check(
        "0032003200000171046c6f677303612e2a00000000",
        Unbind { queue: "q", exchange: "logs", routing_key: b"a.*", ..Unbind::default() },
    );
    check("0032001e0000017100", Purge { queue: "q", ..Purge::default() });
    check("003200280000017106", Delete { queue: "q", if_empty: true, no_wait: true, ..Delete::default() });
    check("0032002900000007", DeleteOk { message_count: 7 });
}

#[test]
fn messages_are_written_as_others_write_them() {
    use basic::{Consume, Deliver, Get, GetEmpty, GetOk, Publish, Qos, Return};
    let (exchange, routing_key) = ("logs", b"a.b".as_slice());
    check("003c000a00000000006401", Qos { prefetch_size: 0, prefetch_count: 100, global: true });
    check(
        "003c0014000001710263740a00000000",
        Consume { queue: "q", consumer_tag: "ct", no_ack: true, no_wait: true, ..Consume::default() },
    );
    check("003c001e02637401", basic::Cancel { consumer_tag: "ct", no_wait: true });
    check(
        "003c00280000046c6f677303612e6201",
        Publish { exchange, routing_key, mandatory: true, ..Publish::default() },
    );
    check(
        "003c00320138084e4f5f524f555445046c6f677303612e62",
        Return { reply_code: 312, reply_text: "NO_ROUTE", exchange, routing_key },
    );
    check(
        "003c003c026374000000000000010201046c6f677303612e62",
        Deliver { consumer_tag: "ct", delivery_tag: 258, redelivered: true, exchange, routing_key },
    );
    check("003c00460000017101", Get { queue: "q", no_ack: true, ..Get::default() });
    check(
        "003c0047000000000000000100046c6f677303612e6200000009",
        GetOk { delivery_tag: 1, redelivered: false, exchange, routing_key, message_count: 9 },
    );
    check("003c004800", GetEmpty::default());
}

#[test]
fn settlements_are_written_as_others_write_them() {
    check("003c0050000000000000000501", basic::Ack { delivery_tag: 5, multiple: true });
    check("003c005a000000000000000501", basic::Reject { delivery_tag: 5, requeue: true });
    check("003c0078000000000000000502", basic::Nack { delivery_tag: 5, multiple: false, requeue: true });
    check("003c006e01", basic::Recover { requeue: true });
    check("003c006401", basic::RecoverAsync { requeue: true });
    check("003c006f", basic::RecoverOk {});
}

#[test]
fn what_cannot_be_decoded_names_the_method_if_it_can() {
    let malformed = |payload: &str| match Method::decode(&unhex(payload)) {
        Err(MethodError::Malformed { id, .. }) => (id.class, id.method),
        other => panic!("{other:?}"),
    };
    let unknown = |class, method| Err(MethodError::Unknown(MethodId { class, method }));
    assert_eq!(malformed("0032"), (0, 0));
    assert_eq!(malformed("0032001e0000017100ff"), (50, 30), "an octet too many");
    assert_eq!(malformed("0032001e00000171"), (50, 30), "an octet too few");
    assert_eq!(malformed("0032001e000001ff00"), (50, 30), "a name that is not UTF-8");
    assert_eq!(Method::decode(&unhex("0032ffff")), unknown(50, 0xffff));
    assert_eq!(Method::decode(&unhex("00460000")), unknown(70, 0));
}

#[test]
fn a_routing_key_may_be_any_bytes() {
    let payload = unhex("003c0028000000 02ff00 00".replace(' ', "").as_str());
    let publish = basic::Publish { routing_key: b"\xff\0", ..basic::Publish::default() };
    assert_eq!(Method::decode(&payload), Ok(publish.into()));
}

fn tables() -> Vec<Table> {
    let inner: Table =
        [("void", Value::Void), ("list", Value::Array(vec![Value::I32(1)]))].into_iter().collect();
    vec![
        Table::new(),
        [("t", Value::Table(inner.clone())), ("n", Value::I64(-1))].into_iter().collect(),
        inner,
    ]
}

proptest! {
    #[test]
    fn every_method_is_decoded_as_it_was_encoded(
        bytes in proptest::collection::vec(any::<u8>(), 0..2048),
        texts in proptest::collection::vec(".{0,60}", 1..5),
        channel in any::<u16>(),
    ) {
        let tables = tables();
        let sample = &mut Sample { bytes: Reader::new(&bytes), texts: &texts, tables: &tables };
        let methods = Method::sample_each(sample);
        prop_assert_eq!(methods.len(), 66);
        let mut out = Vec::new();
        for method in &methods {
            out.clear();
            method.encode(channel, &mut out);
            let (frame, consumed) = frame::parse(&out, 0).unwrap().unwrap();
            prop_assert_eq!((frame.kind, frame.channel, consumed), (Kind::Method, channel, out.len()));
            prop_assert_eq!(&Method::decode(frame.payload).unwrap(), method);
            for end in 0..frame.payload.len() {
                prop_assert!(Method::decode(&frame.payload[..end]).is_err(), "{:?} cut at {}", method, end);
            }
        }
    }

    #[test]
    fn arbitrary_arguments_never_do_more_than_fail(
        class in prop_oneof![Just(10_u16), Just(20), Just(30), Just(40), Just(50), Just(60), Just(85), Just(90)],
        method in 0_u16..125,
        arguments in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let payload = [&class.to_be_bytes()[..], &method.to_be_bytes(), &arguments].concat();
        if let Ok(decoded) = Method::decode(&payload) {
            prop_assert_eq!(decoded.id(), MethodId { class, method });
        }
    }
}
