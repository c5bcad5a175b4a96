//! Content headers: golden bytes and what is refused.

use super::*;
use crate::codec::frame::Frame;

const GOLDEN: &[u8] = b"\x02\0\x01\0\0\0\x1a\0\x3c\0\0\0\0\0\0\0\0\0\x05\x90\0\x0atext/plain\x02\xce";

#[test]
fn a_header_is_written_as_others_write_it() {
    let (Frame { kind, channel, payload }, _) = frame::parse(GOLDEN, 4096).unwrap().unwrap();
    assert_eq!((kind, channel), (Kind::Header, 1));
    let header = Header::decode(payload).unwrap();
    assert_eq!(header, Header { class: BASIC, body_size: 5, properties: b"\x90\0\x0atext/plain\x02" });
    let mut out = Vec::new();
    write(1, header.properties, b"hello", 4096, &mut out);
    assert_eq!(out, [GOLDEN, b"\x03\0\x01\0\0\0\x05hello\xce"].concat());
}

#[test]
fn an_empty_body_has_no_frame() {
    let mut out = Vec::new();
    write(1, &[0, 0], b"", 4096, &mut out);
    assert_eq!(out, b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\0\0\0\xce");
}

#[test]
fn a_weight_or_a_cut_is_malformed() {
    let payload = &GOLDEN[7..GOLDEN.len() - 1];
    for end in 0..12 {
        assert!(Header::decode(&payload[..end]).is_err());
    }
    let mut weighted = payload.to_vec();
    weighted[3] = 1;
    assert!(Header::decode(&weighted).is_err());
}
