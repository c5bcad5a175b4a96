//! Deliveries read back with the generic decoders.

use proptest::prelude::*;

use super::*;
use crate::codec::content::Header;
use crate::codec::method::{Method, basic};

const DELIVERY: Delivery<'_> = Delivery {
    channel: 1,
    consumer_tag: b"\x02ct",
    delivery_tag: 258,
    redelivered: true,
    address: b"\x04logs\x03a.b",
    properties: b"\x10\0\x02",
};

#[test]
fn a_delivery_is_written_as_others_write_it() {
    let mut out = Vec::new();
    DELIVERY.write(b"hello", 4096, &mut out);
    let method =
        b"\x01\0\x01\0\0\0\x19\0\x3c\0\x3c\x02ct\0\0\0\0\0\0\x01\x02\x01\x04logs\x03a.b\xce".as_slice();
    let header = b"\x02\0\x01\0\0\0\x0f\0\x3c\0\0\0\0\0\0\0\0\0\x05\x10\0\x02\xce";
    let body = b"\x03\0\x01\0\0\0\x05hello\xce";
    assert_eq!(out, [method, header, body].concat());
}

#[test]
fn the_head_is_all_but_the_body() {
    let (mut head, mut whole) = (b"before".to_vec(), b"before".to_vec());
    DELIVERY.write_head(3, &mut head);
    DELIVERY.write(b"abc", 4096, &mut whole);
    assert_eq!(head.len(), 6 + DELIVERY.head_bytes());
    assert_eq!(whole, [head.as_slice(), b"\x03\0\x01\0\0\0\x03abc\xce"].concat());
}

proptest! {
    #[test]
    fn any_body_arrives_whole_in_frames_that_respect_the_limit(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        frame_max in 9_u32..64,
    ) {
        let mut out = Vec::new();
        DELIVERY.write(&body, frame_max, &mut out);
        let (mut rest, mut frames) = (out.as_slice(), Vec::new());
        while let Some((frame, consumed)) = frame::parse(rest, 0).unwrap() {
            frames.push((frame.kind, frame.payload));
            rest = &rest[consumed..];
        }
        let deliver = basic::Deliver {
            consumer_tag: "ct",
            delivery_tag: 258,
            redelivered: true,
            exchange: "logs",
            routing_key: b"a.b",
        };
        prop_assert_eq!(Method::decode(frames[0].1).unwrap(), deliver.into());
        let header = Header { class: BASIC, body_size: body.len() as u64, properties: DELIVERY.properties };
        prop_assert_eq!(Header::decode(frames[1].1).unwrap(), header);
        let parts: Vec<_> = frames[2..].iter().map(|(_, part)| *part).collect();
        prop_assert!(parts.iter().all(|part| part.len() + EMPTY_FRAME_BYTES <= frame_max as usize));
        prop_assert_eq!(parts.concat(), body);
    }
}
