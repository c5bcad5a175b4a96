//! Checkpoints: what a queue has in segments, and where it stands.
//!
//! Owns the bytes of `checkpoint.dat`, drawn in `docs/format/checkpoint.md`. Must not know when one is written.

use crate::bytes::{Input, length};
use crate::record::{QueueState, read_state, write_state};
use crate::segment::{Segment, decode_index, encode_index};

const VERSION: u32 = 1;
const HEADER_BYTES: usize = 24;
const NO_FOOTER: u64 = u64::MAX;

/// A checkpoint of a queue.
pub(crate) fn encode<'a>(
    tag: u64,
    state: &QueueState,
    segments: impl ExactSizeIterator<Item = &'a Segment>,
) -> Vec<u8> {
    let mut body = Vec::new();
    write_state(&mut body, state);
    body.extend(length(segments.len()).to_le_bytes());
    for segment in segments {
        for number in [segment.number, segment.bytes, segment.footer.unwrap_or(NO_FOOTER), segment.messages] {
            body.extend(number.to_le_bytes());
        }
        body.extend(length(segment.sequences.iter().len()).to_le_bytes());
        for range in segment.sequences.iter() {
            body.extend(range.start.to_le_bytes());
            body.extend(range.end.to_le_bytes());
        }
        if !is_sealed(segment) {
            body.extend(encode_index(
                segment.blocks.iter().flatten().map(|(_, block)| block).collect::<Vec<_>>().into_iter(),
            ));
        }
    }
    let mut bytes = vec![0; 4];
    bytes.extend(length(body.len()).to_le_bytes());
    bytes.extend(tag.to_le_bytes());
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    let crc = crc32c::crc32c(bytes.get(4..).unwrap_or_default());
    if let Some(start) = bytes.first_chunk_mut() {
        *start = crc.to_le_bytes();
    }
    bytes
}

/// Whether the segment's own footer lists its blocks.
fn is_sealed(segment: &Segment) -> bool {
    segment.footer.is_some_and(|footer| footer != NO_FOOTER)
}

/// `None` if the bytes are not those of a checkpoint of this queue.
pub(crate) fn decode(bytes: &[u8], tag: u64, queue: u64) -> Option<(QueueState, Vec<Segment>)> {
    let mut input = Input::new(bytes);
    let crc = input.u32()?;
    let sound = crc32c::crc32c(input.rest()) == crc;
    let (body, own, version) = (input.u32()?, input.u64()?, input.u32()?);
    input.u32()?;
    let whole = usize::try_from(body).is_ok_and(|body| body + HEADER_BYTES == bytes.len());
    if !(sound && whole && own == tag && version == VERSION) {
        return None;
    }
    let state = read_state(&mut input).filter(|state| state.queue == queue)?;
    let count = input.count(36)?;
    let segments = (0..count).map(|_| decode_segment(&mut input)).collect::<Option<_>>()?;
    Some((state, segments))
}

fn decode_segment(input: &mut Input<'_>) -> Option<Segment> {
    let mut segment = Segment { number: input.u64()?, bytes: input.u64()?, ..Segment::default() };
    segment.footer = Some(input.u64()?).filter(|footer| *footer != NO_FOOTER);
    segment.messages = input.u64()?;
    let ranges = input.count(16)?;
    segment.sequences = (0..ranges).map(|_| Some(input.u64()?..input.u64()?)).collect::<Option<_>>()?;
    if segment.footer.is_none() {
        let blocks = decode_index(input, segment.number)?;
        segment.blocks = Some(blocks.into_iter().map(|block| (block.sequences.start, block)).collect());
    }
    Some(segment)
}
