//! The segments of one queue.
//!
//! Owns appending, sealing, finding and reading blocks. Must not know when a checkpoint is due.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::block::{BLOCK_HEADER_BYTES, BlockHeader, Kind, decode_index, encode_index};
use super::{BlockRef, FileCache, NewBlock, ReadBlock, ReadError, SegmentStats};
use crate::RangeSet;
use crate::bytes::{Input, length, size};
use crate::data_dir::{DataDir, Handle};
use crate::failure::StorageFailure;
use crate::recover::Damage;
use crate::seam::OpenMode;

/// File systems give room back in pieces of this.
const PAGE_BYTES: u64 = 4096;

/// One segment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    /// The end of what was written.
    pub(crate) bytes: u64,
    /// Where the footer is, once the segment is sealed.
    pub(crate) footer: Option<u64>,
    pub(crate) messages: u64,
    /// The sequences its blocks stand for.
    pub(crate) sequences: RangeSet,
    /// Its blocks by their first sequence; those of a sealed segment are read when first needed.
    pub(crate) blocks: Option<BTreeMap<u64, BlockRef>>,
    /// Something was written since the last sync.
    pub(crate) dirty: bool,
    /// How many of its sequences were settled when holes were made in it last.
    pub(crate) punched: u64,
    /// Bytes of these holes.
    pub(crate) holes: u64,
}

/// All of one queue.
#[derive(Debug)]
pub(crate) struct QueueSegments {
    dir: DataDir,
    cache: Arc<FileCache>,
    segment_bytes: u64,
    queue: u64,
    pub(crate) segments: BTreeMap<u64, Segment>,
    /// The segment that takes further blocks.
    open: Option<u64>,
    /// Segments of which nothing is needed, and whose files are still there.
    dead: Vec<u64>,
    /// The queue has a directory.
    pub(crate) has_dir: bool,
}

impl Segment {
    fn add(&mut self, block: &BlockRef) {
        self.bytes = block.end();
        self.messages += u64::from(block.messages);
        self.sequences.insert(block.sequences.clone());
        self.blocks.get_or_insert_default().insert(block.sequences.start, block.clone());
        self.dirty = true;
    }

    /// A segment of these blocks that takes no more.
    pub(crate) fn of_blocks(number: u64, blocks: impl Iterator<Item = BlockRef>) -> Self {
        let mut segment = Self { number, blocks: Some(BTreeMap::new()), ..Self::default() };
        blocks.for_each(|block| segment.add(&block));
        segment
    }
}

impl QueueSegments {
    pub(crate) fn new(dir: DataDir, cache: Arc<FileCache>, segment_bytes: u64, queue: u64) -> Self {
        Self {
            dir,
            cache,
            segment_bytes,
            queue,
            segments: BTreeMap::new(),
            open: None,
            dead: Vec::new(),
            has_dir: false,
        }
    }

    /// Takes up segments that were found; the last that is not sealed goes on.
    pub(crate) fn adopt(&mut self, segments: impl IntoIterator<Item = Segment>) {
        self.segments = segments.into_iter().map(|segment| (segment.number, segment)).collect();
        self.open = self.segments.values().rfind(|segment| segment.footer.is_none()).map(|open| open.number);
        self.has_dir = true;
    }

    /// Appends a block. It is durable with the next checkpoint.
    pub(crate) fn append(&mut self, block: &NewBlock<'_>) -> Result<BlockRef, StorageFailure> {
        let number = match self.open {
            Some(number) => number,
            None => self.create(block.sequences.start)?,
        };
        let offset = self.segments.get(&number).map_or(0, |segment| segment.bytes);
        let reference = BlockRef {
            segment: number,
            offset,
            bytes: length(block.bytes.iter().map(|part| part.len()).sum()),
            sequences: block.sequences.clone(),
            messages: block.messages,
            times: block.times,
        };
        self.write(Kind::Block, &reference, block.bytes)?;
        let segment = self.segments.entry(number).or_default();
        segment.add(&reference);
        if segment.bytes >= self.segment_bytes {
            match self.seal(number) {
                // The block is there. The footer comes with the next one.
                Err(failure) if failure.is_out_of_space() => {}
                sealed => sealed?,
            }
        }
        Ok(reference)
    }

    /// A new segment, named by the first sequence in it; by the next number where that is taken.
    fn create(&mut self, first: u64) -> Result<u64, StorageFailure> {
        if !self.has_dir {
            self.dir.create_dir(&self.dir.layout.queue_dir(self.queue))?;
            self.has_dir = true;
        }
        let number = (first..u64::MAX).find(|number| self.is_free(*number)).unwrap_or(first);
        let created = self.dir.open(self.dir.layout.segment(self.queue, number), OpenMode::Create)?;
        self.cache.put((self.queue, number), &created.file);
        self.segments.insert(number, Segment::of_blocks(number, std::iter::empty()));
        self.open = Some(number);
        Ok(number)
    }

    fn is_free(&self, number: u64) -> bool {
        !self.segments.contains_key(&number) && !self.dead.contains(&number)
    }

    fn seal(&mut self, number: u64) -> Result<(), StorageFailure> {
        let Some(segment) = self.segments.get_mut(&number) else { return Ok(()) };
        let blocks = segment.blocks.get_or_insert_default();
        let index = encode_index(blocks.values());
        let footer = BlockRef {
            segment: number,
            offset: segment.bytes,
            bytes: length(index.len()),
            sequences: blocks.keys().copied().min().unwrap_or(0)..segment.sequences.end(),
            messages: u32::try_from(segment.messages).unwrap_or(u32::MAX),
            times: blocks.values().fold((u64::MAX, 0), |(oldest, newest), block| {
                (oldest.min(block.times.0), newest.max(block.times.1))
            }),
        };
        self.write(Kind::Footer, &footer, &[&index])?;
        self.open = None;
        self.segments.entry(number).and_modify(|segment| {
            segment.footer = Some(footer.offset);
            segment.bytes = footer.end();
        });
        Ok(())
    }

    fn write(&self, kind: Kind, block: &BlockRef, content: &[&[u8]]) -> Result<(), StorageFailure> {
        let header = BlockHeader::new(self.dir.tag, self.queue, kind, block, content).encode();
        let padding = [0; 8];
        let pad = size(block.bytes).next_multiple_of(8) - size(block.bytes);
        let mut parts = vec![header.as_slice()];
        parts.extend_from_slice(content);
        parts.push(padding.get(..pad).unwrap_or_default());
        self.dir.write(&self.handle(block.segment)?, &parts, block.offset)
    }

    fn handle(&self, number: u64) -> Result<Handle, StorageFailure> {
        let path = self.dir.layout.segment(self.queue, number);
        let file = self
            .dir
            .latch
            .run("open", &path, || self.cache.open((self.queue, number), self.dir.disk.as_ref(), &path))?;
        Ok(Handle { path, file })
    }

    /// Makes all that was appended durable, but for the checkpoint that lists it.
    pub(crate) fn sync(&mut self) -> Result<(), StorageFailure> {
        let dirty: Vec<u64> =
            self.segments.values().filter(|segment| segment.dirty).map(|segment| segment.number).collect();
        for &number in &dirty {
            self.dir.sync(&self.handle(number)?)?;
            self.segments.entry(number).and_modify(|segment| segment.dirty = false);
        }
        if dirty.is_empty() { Ok(()) } else { self.dir.sync_dir(&self.dir.layout.queue_dir(self.queue)) }
    }

    /// Forgets the segments of which nothing is needed any more, and returns their numbers: their files may be removed
    /// once no checkpoint lists them.
    pub(crate) fn drop_settled(&mut self, settled: &RangeSet) -> Vec<u64> {
        let dead = |segment: &&Segment| segment.sequences.iter().all(|range| settled.covers(range));
        let dead: Vec<u64> = self.segments.values().filter(dead).map(|segment| segment.number).collect();
        for number in &dead {
            self.segments.remove(number);
            self.open = self.open.filter(|open| open != number);
        }
        dead
    }

    /// Gives back the room of blocks of which nothing is needed, in segments that are mostly settled. The checkpoint must tell
    /// what is settled.
    pub(crate) fn punch_holes(&mut self, settled: &RangeSet) -> Result<(), ReadError> {
        let mostly = |segment: &Segment| {
            let count = |ranges: &mut dyn Iterator<Item = Range<u64>>| -> u64 {
                ranges.map(|range| range.end - range.start).sum()
            };
            let all = count(&mut segment.sequences.iter());
            let needed = count(&mut segment.sequences.iter().flat_map(|range| settled.gaps(range)));
            let gone = all - needed;
            (gone * 2 > all && gone >= segment.punched + all / 8).then_some(gone)
        };
        let sealed = self.segments.values().filter(|segment| segment.footer.is_some());
        let worthwhile: Vec<_> =
            sealed.filter_map(|segment| Some((segment.number, mostly(segment)?))).collect();
        for (number, gone) in worthwhile {
            let holes = self.punch(number, settled)?;
            self.segments
                .entry(number)
                .and_modify(|segment| (segment.punched, segment.holes) = (gone, holes));
        }
        Ok(())
    }

    /// Makes holes in one segment; returns how many bytes they have.
    fn punch(&mut self, number: u64, settled: &RangeSet) -> Result<u64, ReadError> {
        let blocks = self.blocks(number)?.values();
        let dead = blocks.filter(|block| settled.covers(block.sequences.clone()));
        let dead: RangeSet = dead.map(|block| block.offset..block.end()).collect();
        let path = self.dir.layout.segment(self.queue, number);
        let file = self.cache.open((self.queue, number), self.dir.disk.as_ref(), &path);
        let file = file.map_err(|source| self.io(number, source))?;
        let mut bytes = 0;
        for range in dead.iter() {
            let hole = range.start.next_multiple_of(PAGE_BYTES)..range.end / PAGE_BYTES * PAGE_BYTES;
            if !hole.is_empty() {
                bytes += hole.end - hole.start;
                file.punch_hole(hole).map_err(|source| self.io(number, source))?;
            }
        }
        Ok(bytes)
    }

    /// Notes segments whose files are to be removed once no checkpoint lists them.
    pub(crate) fn keep_dead(&mut self, numbers: Vec<u64>) {
        self.dead.extend(numbers);
    }

    /// Removes the files of dead segments, which no checkpoint may list.
    pub(crate) fn remove_dead(&mut self) -> Result<(), StorageFailure> {
        for number in std::mem::take(&mut self.dead) {
            self.cache.close((self.queue, number));
            self.dir.remove(&self.dir.layout.segment(self.queue, number))?;
        }
        Ok(())
    }

    /// Forgets all segments, whose files are about to be removed.
    pub(crate) fn drop_all(&mut self) {
        let numbers = self.segments.keys().copied().chain(self.dead.drain(..));
        numbers.for_each(|number| self.cache.close((self.queue, number)));
        self.segments.clear();
        self.open = None;
    }

    pub(crate) fn queue(&self) -> u64 {
        self.queue
    }

    /// The first block that stands for a sequence at or above one.
    pub(crate) fn find_next(&mut self, sequence: u64) -> Result<Option<BlockRef>, ReadError> {
        let next = |segment: &Segment| {
            let start = |range: Range<u64>| (range.end > sequence).then(|| range.start.max(sequence));
            segment.sequences.iter().find_map(start)
        };
        let next = self.segments.values().filter_map(next).min();
        next.map_or(Ok(None), |sequence| self.find(sequence))
    }

    /// The block that stands for a sequence.
    pub(crate) fn find(&mut self, sequence: u64) -> Result<Option<BlockRef>, ReadError> {
        let holding = |segment: &&Segment| segment.sequences.contains(sequence);
        let numbers: Vec<u64> =
            self.segments.values().filter(holding).map(|segment| segment.number).collect();
        for number in numbers {
            let blocks = self.blocks(number)?;
            let found = blocks.range(..=sequence).rfind(|(_, block)| block.sequences.contains(&sequence));
            if let Some((_, block)) = found {
                return Ok(Some(block.clone()));
            }
        }
        Ok(None)
    }

    /// All blocks of a segment; of a sealed one they are read from its footer the first time.
    pub(crate) fn blocks(&mut self, number: u64) -> Result<&BTreeMap<u64, BlockRef>, ReadError> {
        let footer = self.segments.get(&number).filter(|segment| segment.blocks.is_none());
        if let Some(footer) = footer.map(|segment| segment.footer.unwrap_or(0)) {
            let blocks = self.read_footer(number, footer)?;
            self.segments.entry(number).and_modify(|segment| segment.blocks = Some(blocks));
        }
        Ok(self.segments.entry(number).or_default().blocks.get_or_insert_default())
    }

    /// The blocks a footer lists; those found by a search if it is damaged.
    fn read_footer(&self, number: u64, offset: u64) -> Result<BTreeMap<u64, BlockRef>, ReadError> {
        let blocks = match self.listed_in_footer(number, offset)? {
            Some(blocks) => blocks,
            None => {
                super::rebuild::scan(&self.dir, self.queue, number)
                    .map_err(|source| self.io(number, source))?
                    .0
            }
        };
        Ok(blocks.into_iter().map(|block| (block.sequences.start, block)).collect())
    }

    fn listed_in_footer(&self, number: u64, offset: u64) -> Result<Option<Vec<BlockRef>>, ReadError> {
        let header = self.read_at(number, offset, BLOCK_HEADER_BYTES)?;
        match BlockHeader::parse(&header).filter(|header| self.is_ours(header, Kind::Footer)) {
            Some(header) if u64::from(header.bytes) <= self.segment_size(number) => {
                let content = self.read_at(number, offset + BLOCK_HEADER_BYTES as u64, size(header.bytes))?;
                let listed = || decode_index(&mut Input::new(&content), number);
                Ok(header.verify(&content).then(listed).flatten())
            }
            _ => Ok(None),
        }
    }

    /// Damage to a segment's footer, if there is any.
    pub(crate) fn footer_damage(&self, number: u64) -> Result<Option<Damage>, ReadError> {
        let footer = self.segments.get(&number).filter(|segment| segment.blocks.is_none());
        let Some(offset) = footer.and_then(|segment| segment.footer) else { return Ok(None) };
        let damage =
            || Damage::Footer { file: self.dir.layout.segment(self.queue, number), queue: self.queue };
        Ok(self.listed_in_footer(number, offset)?.is_none().then(damage))
    }

    fn segment_size(&self, number: u64) -> u64 {
        self.segments.get(&number).map_or(0, |segment| segment.bytes)
    }

    fn is_ours(&self, header: &BlockHeader, kind: Kind) -> bool {
        header.tag == self.dir.tag && header.queue == self.queue && header.kind == kind as u8
    }

    /// The content of a block.
    pub(crate) fn read(&self, block: &BlockRef) -> Result<Vec<u8>, ReadError> {
        let mut bytes = self.read_at(block.segment, block.offset, BLOCK_HEADER_BYTES + size(block.bytes))?;
        if !self.is_intact(block, &bytes) {
            return Err(ReadError::Damaged(self.damage(block)));
        }
        bytes.drain(..BLOCK_HEADER_BYTES);
        Ok(bytes)
    }

    /// A block and those that follow it, both by their sequences and in its segment, in one read of at most `bytes_max` if that
    /// is enough for one.
    pub(crate) fn read_ahead(
        &mut self,
        block: &BlockRef,
        bytes_max: usize,
    ) -> Result<Vec<ReadBlock>, ReadError> {
        let following = self.blocks(block.segment)?.range(block.sequences.start..);
        let (mut end, limit) = (block.offset, block.offset + bytes_max as u64);
        let fits = |next: &&BlockRef| {
            let fits = next.offset == block.offset || (next.offset == end && next.end() <= limit);
            end = next.end();
            fits
        };
        let wanted: Vec<BlockRef> = following.map(|(_, next)| next).take_while(fits).cloned().collect();
        let end = wanted.last().map_or(block.end(), BlockRef::end);
        let bytes =
            self.read_at(block.segment, block.offset, usize::try_from(end - block.offset).unwrap_or(0))?;
        let content = |next: &BlockRef| {
            let from = usize::try_from(next.offset - block.offset).ok()?;
            let whole = bytes.get(from..)?;
            let whole = whole.get(..BLOCK_HEADER_BYTES + size(next.bytes))?;
            self.is_intact(next, whole).then(|| whole.get(BLOCK_HEADER_BYTES..).unwrap_or_default().to_vec())
        };
        let read = |next: BlockRef| {
            let content = content(&next).ok_or_else(|| self.damage(&next));
            ReadBlock { block: next, content }
        };
        Ok(wanted.into_iter().map(read).collect())
    }

    fn is_intact(&self, block: &BlockRef, bytes: &[u8]) -> bool {
        BlockHeader::parse(bytes).is_some_and(|header| {
            self.is_ours(&header, Kind::Block)
                && header.as_ref(block.segment, block.offset) == *block
                && header.verify(bytes.get(BLOCK_HEADER_BYTES..).unwrap_or_default())
        })
    }

    fn damage(&self, block: &BlockRef) -> Damage {
        Damage::Block {
            file: self.dir.layout.segment(self.queue, block.segment),
            bytes: block.offset..block.end(),
            queue: self.queue,
            sequences: block.sequences.clone(),
        }
    }

    /// Reads so many bytes, fewer where the file ends.
    fn read_at(&self, number: u64, offset: u64, count: usize) -> Result<Vec<u8>, ReadError> {
        let path = self.dir.layout.segment(self.queue, number);
        let read = || {
            let file = self.cache.open((self.queue, number), self.dir.disk.as_ref(), &path)?;
            let left = usize::try_from(file.size()?.saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut bytes = vec![0; count.min(left)];
            let read = file.read_at(&mut bytes, offset)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        read().map_err(|source| self.io(number, source))
    }

    fn io(&self, number: u64, source: std::io::Error) -> ReadError {
        ReadError::Io { path: self.dir.layout.segment(self.queue, number), source }
    }

    pub(crate) fn stats(&self) -> SegmentStats {
        let first = |segment: &Segment| segment.sequences.iter().next().map(|range| range.start);
        SegmentStats {
            segments: self.segments.len(),
            bytes: self.segments.values().map(|segment| segment.bytes - segment.holes).sum(),
            messages: self.segments.values().map(|segment| segment.messages).sum(),
            first: self.segments.values().filter_map(first).min(),
        }
    }
}
