//! What must hold for any bytes a peer may send, decoder by decoder.
//!
//! Owns the properties; fuzz targets give it new bytes and the replay test of `deepmq-amqp` the ones kept in `corpus/`.

use deepmq_amqp::codec::ack::AckArgs;
use deepmq_amqp::codec::content::Header;
use deepmq_amqp::codec::frame::{self, EMPTY_FRAME_BYTES, Kind};
use deepmq_amqp::codec::method::basic;
use deepmq_amqp::codec::publish::{PublishArgs, split_address};
use deepmq_amqp::codec::{Method, Reader};
use deepmq_model::message::{Properties, properties, table};

/// Every frame of a stream, written again, gives the same bytes.
pub(crate) fn frame(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((parsed, consumed))) = frame::parse(rest, 4096) {
        assert_eq!(consumed, parsed.payload.len() + EMPTY_FRAME_BYTES);
        let mut again = Vec::new();
        frame::write(parsed.kind, parsed.channel, &mut again, |writer| writer.raw(parsed.payload));
        let (whole, after) = rest.split_at(consumed);
        assert_eq!(again, whole);
        rest = after;
    }
}

/// A decoded method, encoded again, is the same method; and the fast paths agree with the decoder.
pub(crate) fn method(bytes: &[u8]) {
    let decoded = Method::decode(bytes);
    if let Ok(method) = &decoded {
        let once = frame_of(method);
        let (parsed, _) = frame::parse(&once, 0).expect("a frame").expect("the whole of it");
        assert_eq!(parsed.kind, Kind::Method);
        // Bytes are compared, for a float in a table may be no number and differ from itself.
        assert_eq!(frame_of(&Method::decode(parsed.payload).expect("was encoded")), once);
    }
    if let Ok(Method::Basic(basic::Method::Publish(publish))) = &decoded {
        let args = PublishArgs::parse(bytes).expect("the decoder took it");
        assert_eq!(split_address(args.address), Some((publish.exchange.as_bytes(), publish.routing_key)));
        assert_eq!((args.mandatory, args.immediate), (publish.mandatory, publish.immediate));
    }
    if let Ok(Method::Basic(basic::Method::Ack(ack))) = decoded {
        let args = AckArgs::parse(bytes).expect("the decoder took it");
        assert_eq!((args.delivery_tag, args.multiple), (ack.delivery_tag, ack.multiple));
    } else {
        assert_eq!(AckArgs::parse(bytes), None);
    }
}

fn frame_of(method: &Method<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    method.encode(1, &mut out);
    out
}

/// Checking and decoding agree, and a decoded table, encoded again, passes both.
pub(crate) fn table(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let decoded = table::decode(&mut reader).and_then(|table| reader.finish().map(|()| table));
    assert_eq!(table::validate(bytes), decoded.as_ref().map(|_| ()).map_err(|what| *what));
    let Ok(decoded) = decoded else { return };
    let mut again = Vec::new();
    table::encode(&decoded, &mut again);
    assert_eq!(again.len(), bytes.len());
    assert_eq!(table::validate(&again), Ok(()));
    for (key, _) in decoded.iter() {
        assert!(table::find(bytes, key).is_some());
    }
}

/// Checking and decoding agree, and so do the look-ups of single properties.
pub(crate) fn properties(bytes: &[u8]) {
    let decoded = Properties::decode(bytes);
    assert_eq!(properties::validate(bytes), decoded.as_ref().map(|_| ()).map_err(|what| *what));
    let found = (properties::delivery_mode(bytes), properties::priority(bytes));
    let texts = [properties::expiration(bytes), properties::user_id(bytes), properties::reply_to(bytes)];
    let headers = properties::headers(bytes);
    let Ok(decoded) = decoded else { return };
    assert_eq!(found, (decoded.delivery_mode, decoded.priority));
    assert_eq!(texts, [&decoded.expiration, &decoded.user_id, &decoded.reply_to].map(|text| text.as_deref()));
    assert_eq!(headers.map(table::validate), decoded.headers.as_ref().map(|_| Ok(())));
    let mut again = Vec::new();
    decoded.encode(&mut again);
    assert_eq!(again.len(), bytes.len());
}

/// A decoded header, encoded again, is the same payload.
pub(crate) fn content_header(bytes: &[u8]) {
    let Ok(header) = Header::decode(bytes) else { return };
    let mut again = Vec::new();
    header.encode(1, &mut again);
    let (parsed, _) = frame::parse(&again, u32::MAX).expect("a frame").expect("the whole of it");
    assert_eq!((parsed.kind, parsed.payload), (Kind::Header, bytes));
}
