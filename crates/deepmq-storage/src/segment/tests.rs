//! Segments of one queue, and their bytes.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::RangeSet;
use crate::data_dir::DataDir;
use crate::failure::Latch;
use crate::layout::Layout;
use crate::record::QueueState;
use crate::seam::{Disk, OpenMode, SimDisk};

const QUEUE: u64 = 5;

fn queue(segment_bytes: u64) -> (SimDisk, Arc<FileCache>, QueueSegments) {
    let disk = SimDisk::new();
    let layout = Layout::new(Path::new("/d"));
    disk.create_dir_all(&layout.queues_dir()).unwrap();
    let dir =
        DataDir { disk: Arc::new(disk.clone()), layout, latch: Latch::default(), tag: 0x1122_3344_5566_7788 };
    let cache = Arc::new(FileCache::new(2, OpenMode::Write));
    (disk, Arc::clone(&cache), QueueSegments::new(dir, cache, segment_bytes, QUEUE))
}

fn append(queue: &mut QueueSegments, sequences: Range<u64>, content: &[u8]) -> BlockRef {
    let messages = u32::try_from(sequences.end - sequences.start).unwrap();
    let (one, other) = content.split_at(content.len() / 2);
    queue.append(&NewBlock { sequences, messages, times: (3, 4), bytes: &[one, other] }).unwrap()
}

fn path(segment: u64) -> PathBuf {
    Layout::new(Path::new("/d")).segment(QUEUE, segment)
}

#[test]
fn blocks_are_found_and_read_across_segments_with_few_open_files() {
    let (_, cache, mut queue) = queue(300);
    let blocks: Vec<_> = (0..12)
        .map(|at| append(&mut queue, at * 10..at * 10 + 9, &[u8::try_from(at).unwrap(); 50]))
        .collect();
    assert_eq!(
        queue.stats(),
        SegmentStats { segments: 4, bytes: queue.stats().bytes, messages: 108, first: Some(0) }
    );
    assert!(cache.open_count() <= 2);
    for (at, block) in (0..).zip(&blocks) {
        assert_eq!(queue.find(u64::from(at) * 10 + 8).unwrap().as_ref(), Some(block));
        assert_eq!(queue.read(block).unwrap(), [at; 50]);
        assert_eq!(queue.find_next(u64::from(at) * 10).unwrap().as_ref(), Some(block));
    }
    assert_eq!(queue.find(19).unwrap(), None, "between two blocks");
    assert_eq!(queue.find_next(19).unwrap().as_ref(), blocks.get(2));
    assert_eq!(queue.find_next(120).unwrap(), None);
}

#[test]
fn neighbouring_blocks_are_read_at_once_and_a_damaged_one_is_told_alone() {
    let (disk, _, mut queue) = queue(10_000);
    let blocks: Vec<_> = (0..5).map(|at| append(&mut queue, at..at + 1, b"0123456789abcdef")).collect();
    let two_blocks = 160;
    let read = queue.read_ahead(&blocks[1], two_blocks).unwrap();
    assert_eq!(read.iter().map(|read| &read.block).collect::<Vec<_>>(), [&blocks[1], &blocks[2]]);
    assert_eq!(queue.read_ahead(&blocks[4], 0).unwrap().len(), 1, "one in any case");
    disk.flip(&path(0), usize::try_from(blocks[3].offset).unwrap() + 70, 1);
    let read = queue.read_ahead(&blocks[2], 10_000).unwrap();
    assert_eq!(read.iter().map(|read| read.content.is_ok()).collect::<Vec<_>>(), [true, false, true]);
    let refused = queue.read(&blocks[3]).unwrap_err();
    let ReadError::Damaged(Damage::Block { queue, sequences, .. }) = refused else { panic!("{refused}") };
    assert_eq!((queue, sequences), (QUEUE, 3..4));
}

#[test]
fn a_sealed_segment_is_indexed_by_its_footer_or_by_a_search_if_that_is_damaged() {
    let (disk, _, mut queue) = queue(150);
    append(&mut queue, 0..5, &[1; 40]);
    append(&mut queue, 5..9, &[2; 40]);
    let sealed = queue.segments[&0].clone();
    let footer = sealed.footer.unwrap();
    for damaged in [None, Some(footer), Some(footer + 70)] {
        if let Some(offset) = damaged {
            disk.flip(&path(0), usize::try_from(offset).unwrap(), 0x40);
        }
        queue.adopt([Segment { blocks: None, ..sealed.clone() }]);
        assert_eq!(Some(queue.blocks(0).unwrap()), sealed.blocks.as_ref(), "{damaged:?}");
    }
}

#[test]
fn a_name_that_is_taken_is_not_used_again_while_its_file_is_there() {
    let (disk, _, mut queue) = queue(100);
    append(&mut queue, 7..8, &[1; 50]);
    let settled: RangeSet = std::iter::once(7..8).collect();
    let dead = queue.drop_settled(&settled);
    queue.keep_dead(dead);
    assert_eq!(append(&mut queue, 7..8, &[2; 50]).segment, 8);
    queue.remove_dead().unwrap();
    assert_eq!(disk.open(&path(7), OpenMode::Read).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(append(&mut queue, 7..8, &[3; 50]).segment, 7);
}

#[test]
fn a_segment_that_is_mostly_settled_gives_back_the_room_of_what_nobody_needs() {
    let (disk, _, mut queue) = queue(100_000);
    let blocks: Vec<_> = (0..12).map(|at| append(&mut queue, at * 10..at * 10 + 10, &[7; 10_000])).collect();
    let bytes = queue.stats().bytes;
    let settled = |ranges: &[Range<u64>]| ranges.iter().cloned().collect::<RangeSet>();
    queue.punch_holes(&settled(&[0..10, 10..20])).unwrap();
    assert_eq!(queue.stats().bytes, bytes, "not worthwhile yet");

    queue.punch_holes(&settled(&[0..31, 40..92])).unwrap();
    assert!(queue.stats().bytes < bytes - 60_000, "{} of {bytes}", queue.stats().bytes);
    let mut zeros = [1; 8192];
    disk.open(&path(0), OpenMode::Read).unwrap().read_at(&mut zeros, blocks[1].offset + 4096).unwrap();
    assert_eq!(zeros[..4096], [0; 4096]);
    for at in [3, 9, 10, 11] {
        assert_eq!(queue.read(&blocks[at]).unwrap(), [7; 10_000], "block {at} is needed");
    }
}

fn hex(bytes: &[u8]) -> Vec<String> {
    bytes
        .chunks(8)
        .map(|line| line.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")))
        .collect()
}

fn shown(document: &str) -> Vec<&str> {
    document.lines().filter_map(|line| line.strip_prefix("    hex: ")?.split_whitespace().next()).collect()
}

#[test]
fn a_segment_and_its_checkpoint_have_the_bytes_the_format_documents_show() {
    let (disk, _, mut queue) = queue(72);
    append(&mut queue, 16..18, b"content");
    let mut bytes = [0; 4096];
    let count = disk.open(&path(16), OpenMode::Read).unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(hex(&bytes[..count]), shown(include_str!("../../../../docs/format/segment.md")));

    let state = QueueState {
        queue: QUEUE,
        next: 18,
        settled: std::iter::once(0..16).collect(),
        counts: vec![(16..17, 1)],
    };
    let checkpoint = crate::checkpoint::encode(0x1122_3344_5566_7788, &state, queue.segments.values());
    assert_eq!(hex(&checkpoint), shown(include_str!("../../../../docs/format/checkpoint.md")));
}
