//! Segments without a checkpoint or a footer that could be read.
//!
//! Owns finding blocks by a search through the whole file. Must not know why it is needed.

use std::io;
use std::ops::Range;

use super::block::{BLOCK_HEADER_BYTES, BlockHeader, Kind};
use super::{BlockRef, Segment};
use crate::bytes::size;
use crate::data_dir::DataDir;
use crate::journal::FileReader;
use crate::layout::segment_number;
use crate::recover::Damage;
use crate::seam::OpenMode;

/// The valid blocks of a segment, and what lies between them.
pub(crate) fn scan(dir: &DataDir, queue: u64, number: u64) -> io::Result<(Vec<BlockRef>, Vec<Range<u64>>)> {
    let mut reader = FileReader::new(dir.disk.open(&dir.layout.segment(queue, number), OpenMode::Read)?)?;
    let (mut blocks, mut bad, mut at) = (Vec::new(), Vec::<Range<u64>>::new(), 0);
    loop {
        if let Some(header) = valid_at(dir, queue, &mut reader, at)? {
            let block = header.as_ref(number, at);
            at = block.end();
            if header.kind == Kind::Block as u8 {
                blocks.push(block);
            }
            continue;
        }
        let Some(next) = find_valid(dir, queue, &mut reader, at)? else { return Ok((blocks, bad)) };
        bad.push(at..next);
        at = next;
    }
}

fn find_valid(dir: &DataDir, queue: u64, reader: &mut FileReader, at: u64) -> io::Result<Option<u64>> {
    let mut next = at;
    while let Some(candidate) = reader.find_tag(next + 8, dir.tag)? {
        if valid_at(dir, queue, reader, candidate)?.is_some() {
            return Ok(Some(candidate));
        }
        next = candidate;
    }
    Ok(None)
}

/// The header of the valid block, or footer, at an offset.
fn valid_at(dir: &DataDir, queue: u64, reader: &mut FileReader, at: u64) -> io::Result<Option<BlockHeader>> {
    let header = BlockHeader::parse(reader.get(at, BLOCK_HEADER_BYTES)?);
    let Some(header) = header.filter(|header| header.tag == dir.tag && header.queue == queue) else {
        return Ok(None);
    };
    let content = reader.get(at + BLOCK_HEADER_BYTES as u64, size(header.bytes))?;
    Ok(header.verify(content).then_some(header))
}

/// All segments of a queue whose checkpoint is lost.
pub(crate) fn rebuild(dir: &DataDir, queue: u64, damage: &mut Vec<Damage>) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in dir.disk.list(&dir.layout.queue_dir(queue))? {
        let Some(number) = segment_number(&entry.name) else { continue };
        let (blocks, bad) = scan(dir, queue, number)?;
        let file = dir.layout.segment(queue, number);
        damage.extend(bad.into_iter().map(|bytes| Damage::Segment { file: file.clone(), bytes, queue }));
        let mut segment = Segment::of_blocks(number, blocks.into_iter());
        // What may be unreadable at its end is left as it is: the segment takes no more.
        segment.footer = Some(u64::MAX);
        segments.push(segment);
    }
    Ok(segments)
}
