//! Frames: golden bytes, every limit from both sides, and streams cut anywhere.

use proptest::prelude::*;

use super::*;

const MAX: u32 = 4096;

fn frame_of(kind: Kind, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(kind, channel, &mut out, |writer| writer.raw(payload));
    out
}

fn text(buf: &[u8]) -> String {
    parse(buf, MAX).unwrap_err().to_string()
}

#[test]
fn frames_are_written_as_others_write_them() {
    let mut out = Vec::new();
    write_heartbeat(&mut out);
    write_body(1, b"hello", MAX, &mut out);
    assert_eq!(out, b"\x08\0\0\0\0\0\0\xce\x03\0\x01\0\0\0\x05hello\xce");
    let (first, consumed) = parse(&out, MAX).unwrap().unwrap();
    assert_eq!(first, Frame { kind: Kind::Heartbeat, channel: 0, payload: b"" });
    assert_eq!(consumed, 8);
    let (second, _) = parse(&out[consumed..], MAX).unwrap().unwrap();
    assert_eq!(second, Frame { kind: Kind::Body, channel: 1, payload: b"hello" });
}

#[test]
fn a_payload_may_be_as_long_as_frame_max_and_no_longer() {
    for len in [MAX - 8, MAX - 1, MAX] {
        let whole = frame_of(Kind::Body, 1, &vec![0; len as usize]);
        assert_eq!(parse(&whole, MAX).unwrap().unwrap().1, whole.len());
    }
    let start = [3, 0, 1, 0, 0, 0x10, 0x01];
    assert_eq!(text(&start), "type 3, all octets = <<>>: {frame_too_large,4097,4088}");
}

#[test]
fn without_an_agreed_limit_there_is_still_one() {
    let start = |size: u32| header(Kind::Body, 1, size);
    assert_eq!(parse(&start(UNLIMITED_PAYLOAD_BYTES_MAX), 0), Ok(None));
    assert!(parse(&start(UNLIMITED_PAYLOAD_BYTES_MAX + 1), 0).is_err());
    assert!(parse(&start(u32::MAX), u32::MAX).unwrap().is_none());
}

#[test]
fn what_cannot_be_followed_is_named_in_rabbitmqs_words() {
    assert_eq!(
        text(b"\x01\0\0\0\0\0\x02ab\0"),
        "type 1, all octets = <<97,98>>: {invalid_frame_end_marker,0}"
    );
    assert_eq!(text(b"\x05\0\0\0\0\0\0\xce"), "type 5, all octets = <<>>: unknown_frame");
    let long = [&[9, 0, 0, 0, 0, 0, 17][..], &[1; 17], &[END]].concat();
    let sixteen = vec!["1"; 16].join(",");
    assert_eq!(text(&long), format!("type 9, first 16 octets = <<{sixteen}>>: unknown_frame"));
}

#[test]
fn a_body_is_split_so_that_whole_frames_fit() {
    for (len, frames) in [(0, 0), (1, 1), (4088, 1), (4089, 2), (8176, 2), (8177, 3)] {
        let mut out = Vec::new();
        write_body(1, &vec![7; len], MAX, &mut out);
        assert_eq!(out.len(), len + frames * EMPTY_FRAME_BYTES);
        assert_eq!(out.len(), body_frames_bytes(len, MAX));
        assert!(parse(&out, MAX - 8).is_ok());
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Method), Just(Kind::Header), Just(Kind::Body), Just(Kind::Heartbeat)]
}

type Owned = (Kind, u16, Vec<u8>);

/// The frames of a stream that arrives in pieces of these sizes, over and over.
fn read_in_pieces(stream: &[u8], sizes: &[usize]) -> Vec<Owned> {
    let (mut frames, mut buffer, mut rest) = (Vec::new(), Vec::new(), stream);
    for &size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        buffer.extend_from_slice(piece);
        rest = after;
        while let Some((frame, consumed)) = parse(&buffer, MAX).unwrap() {
            frames.push((frame.kind, frame.channel, frame.payload.to_vec()));
            buffer.drain(..consumed);
        }
        if rest.is_empty() {
            break;
        }
    }
    assert!(buffer.is_empty());
    frames
}

proptest! {
    #[test]
    fn a_stream_gives_the_same_frames_however_it_is_cut(
        frames in proptest::collection::vec((kind(), any::<u16>(), proptest::collection::vec(any::<u8>(), 0..50)), 0..8),
        sizes in proptest::collection::vec(1_usize..40, 1..8),
    ) {
        let stream: Vec<u8> = frames.iter().flat_map(|(kind, channel, payload)| frame_of(*kind, *channel, payload)).collect();
        prop_assert_eq!(read_in_pieces(&stream, &sizes), frames);
    }

    #[test]
    fn arbitrary_bytes_never_do_more_than_fail(bytes in proptest::collection::vec(any::<u8>(), 0..64), max in 0_u32..64) {
        if let Ok(Some((frame, consumed))) = parse(&bytes, max) {
            prop_assert_eq!(frame.payload, &bytes[HEADER_BYTES..consumed - TRAILER_BYTES]);
        }
    }
}
