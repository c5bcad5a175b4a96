//! Properties against bytes that another implementation wrote, and the look-ups against the decoder.

use proptest::prelude::*;

use super::*;
use crate::value::Value;

const GOLDEN: &[u8] =
    b"\xff\xf8\x0atext/plain\x04gzip\0\0\0\x04\x01kb\x01\x02\x05\x03cid\x02rt\x041000\x03mid\
    \0\0\0\0\x65\x53\xf1\0\x02ty\x05guest\x03app";

fn text(text: &str) -> Text {
    text.as_bytes().into()
}

fn encoded(properties: &Properties) -> Vec<u8> {
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

#[test]
fn all_properties_are_written_as_others_write_them() {
    let properties = Properties {
        content_type: Some(text("text/plain")),
        content_encoding: Some(text("gzip")),
        headers: Some([("k", Value::I8(1))].into_iter().collect()),
        delivery_mode: Some(2),
        priority: Some(5),
        correlation_id: Some(text("cid")),
        reply_to: Some(text("rt")),
        expiration: Some(text("1000")),
        message_id: Some(text("mid")),
        timestamp: Some(1_700_000_000),
        kind: Some(text("ty")),
        user_id: Some(text("guest")),
        app_id: Some(text("app")),
        cluster_id: None,
    };
    assert_eq!(encoded(&properties), GOLDEN);
    assert_eq!(Properties::decode(GOLDEN), Ok(properties));
    assert_eq!(validate(GOLDEN), Ok(()));
}

#[test]
fn single_properties_are_found_among_all() {
    assert_eq!(headers(GOLDEN), Some(b"\0\0\0\x04\x01kb\x01".as_slice()));
    assert_eq!(delivery_mode(GOLDEN), Some(2));
    assert_eq!(priority(GOLDEN), Some(5));
    assert_eq!(reply_to(GOLDEN), Some(b"rt".as_slice()));
    assert_eq!(expiration(GOLDEN), Some(b"1000".as_slice()));
    assert_eq!(user_id(GOLDEN), Some(b"guest".as_slice()));
    assert_eq!(flags(GOLDEN), 0xfff8);
}

#[test]
fn the_shortest_properties_pass() {
    for bytes in [b"\0\0".as_slice(), b"\x10\0\x02", b"\x90\0\x01a\x02"] {
        assert_eq!(validate(bytes), Ok(()));
    }
}

#[test]
fn flags_beyond_the_class_are_refused() {
    for bytes in [b"\0\x01".as_slice(), b"\0\x02", b"\x10\x01\x02", b"\0\x01\0\0"] {
        assert!(validate(bytes).is_err(), "{bytes:?}");
        assert!(Properties::decode(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn cut_or_left_over_bytes_are_refused() {
    for end in 0..GOLDEN.len() {
        assert!(validate(&GOLDEN[..end]).is_err());
    }
    assert!(validate(&[GOLDEN, b"\0"].concat()).is_err());
    assert!(validate(b"\0\0\0").is_err());
    assert!(validate(b"\x10\0").is_err());
    assert!(validate(b"\x20\0\0\0\0\x04\x01kz\x01").is_err(), "headers with a value of no known type");
}

fn optional_text() -> impl Strategy<Value = Option<Text>> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 0..30).prop_map(Vec::into_boxed_slice))
}

fn properties() -> impl Strategy<Value = Properties> {
    let headers =
        proptest::option::of(proptest::collection::vec((".{0,8}", any::<i64>().prop_map(Value::I64)), 0..3));
    let texts = proptest::array::uniform10(optional_text());
    let octets = any::<(Option<u8>, Option<u8>, Option<u64>)>();
    (headers, texts, octets).prop_map(|(headers, texts, (delivery_mode, priority, timestamp))| {
        let [
            content_type,
            content_encoding,
            correlation_id,
            reply_to,
            expiration,
            message_id,
            kind,
            user_id,
            app_id,
            cluster_id,
        ] = texts;
        let headers = headers.map(|entries| entries.into_iter().collect());
        Properties {
            content_type,
            content_encoding,
            headers,
            delivery_mode,
            priority,
            correlation_id,
            reply_to,
            expiration,
            message_id,
            timestamp,
            kind,
            user_id,
            app_id,
            cluster_id,
        }
    })
}

proptest! {
    #[test]
    fn properties_are_decoded_as_they_were_encoded(properties in properties()) {
        let bytes = encoded(&properties);
        prop_assert_eq!(validate(&bytes), Ok(()));
        prop_assert_eq!(delivery_mode(&bytes), properties.delivery_mode);
        prop_assert_eq!(priority(&bytes), properties.priority);
        prop_assert_eq!(expiration(&bytes), properties.expiration.as_deref());
        prop_assert_eq!(user_id(&bytes), properties.user_id.as_deref());
        prop_assert_eq!(reply_to(&bytes), properties.reply_to.as_deref());
        let headers = headers(&bytes).map(|raw| table::decode(&mut Reader::new(raw)).unwrap());
        prop_assert_eq!(&headers, &properties.headers);
        prop_assert_eq!(Properties::decode(&bytes), Ok(properties));
    }

    #[test]
    fn checking_and_decoding_agree_on_arbitrary_bytes(
        flags in any::<u16>(),
        values in proptest::collection::vec(0_u8..6, 0..40),
    ) {
        let bytes = [&(flags & !3).to_be_bytes()[..], &values].concat();
        prop_assert_eq!(validate(&bytes), Properties::decode(&bytes).map(drop));
    }

    #[test]
    fn looking_into_arbitrary_bytes_never_does_more_than_find_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let found = headers(&bytes).or_else(|| expiration(&bytes)).or_else(|| reply_to(&bytes)).or_else(|| user_id(&bytes));
        prop_assert!(found.is_none_or(|part| part.len() <= bytes.len()));
    }
}

#[test]
fn a_reply_to_is_replaced_where_it_stands() {
    let properties = |reply_to: Option<&[u8]>| {
        let mut encoded = Vec::new();
        Properties {
            correlation_id: Some(b"c"[..].into()),
            reply_to: reply_to.map(Text::from),
            message_id: Some(b"m"[..].into()),
            ..Properties::default()
        }
        .encode(&mut encoded);
        encoded
    };
    let longer = b"a longer one";
    assert_eq!(with_reply_to(&properties(Some(b"short")), longer), properties(Some(longer)));
    assert_eq!(with_reply_to(&properties(Some(longer)), b""), properties(Some(b"")));
    assert_eq!(with_reply_to(&properties(None), longer), properties(None));
}
