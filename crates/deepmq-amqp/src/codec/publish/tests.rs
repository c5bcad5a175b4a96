//! The fast path agrees with the generic decoder.

use proptest::prelude::*;

use super::*;
use crate::codec::method::{Method, basic};

fn payload(publish: &basic::Publish<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    publish.encode(1, &mut out);
    out[7..out.len() - 1].to_vec()
}

#[test]
fn an_address_is_exchange_and_routing_key_with_their_lengths() {
    let publish = basic::Publish {
        exchange: "logs",
        routing_key: b"a.b",
        mandatory: true,
        ..basic::Publish::default()
    };
    let payload = payload(&publish);
    let args = PublishArgs::parse(&payload).unwrap();
    assert_eq!(args.address, b"\x04logs\x03a.b");
    assert_eq!((args.exchange, args.routing_key), (b"logs".as_slice(), b"a.b".as_slice()));
    assert_eq!((args.mandatory, args.immediate), (true, false));
    assert_eq!(split_address(args.address), Some((args.exchange, args.routing_key)));
}

#[test]
fn what_is_no_address_is_not_split() {
    for address in [b"".as_slice(), b"\0", b"\x01a", b"\x02a\0", b"\0\x01", b"\0\0\0"] {
        assert_eq!(split_address(address), None, "{address:?}");
    }
}

proptest! {
    #[test]
    fn every_publish_is_read_as_the_generic_decoder_reads_it(
        ticket in any::<u16>(),
        exchange in "[a-z.ä]{0,40}",
        routing_key in proptest::collection::vec(any::<u8>(), 0..256),
        mandatory in any::<bool>(),
        immediate in any::<bool>(),
    ) {
        let publish = basic::Publish { ticket, exchange: &exchange, routing_key: &routing_key, mandatory, immediate };
        let payload = payload(&publish);
        let args = PublishArgs::parse(&payload).unwrap();
        prop_assert_eq!((args.exchange, args.routing_key), (exchange.as_bytes(), routing_key.as_slice()));
        prop_assert_eq!((args.mandatory, args.immediate), (mandatory, immediate));
        for end in 0..payload.len() {
            prop_assert_eq!(PublishArgs::parse(&payload[..end]), None);
        }
    }

    #[test]
    fn what_the_generic_decoder_refuses_is_refused(arguments in proptest::collection::vec(0_u8..6, 0..20)) {
        let payload = [&[0, 60, 0, 40][..], &arguments].concat();
        prop_assert_eq!(PublishArgs::parse(&payload).is_some(), Method::decode(&payload).is_ok());
    }
}
