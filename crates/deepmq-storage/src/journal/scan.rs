//! One journal file, read from its start to its end.
//!
//! Owns finding the next valid record after bytes that are none. Must not know what damage means.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::record::{HEADER_BYTES, Header, verify};
use crate::seam::DiskFile;

/// Bytes read at once, at least.
const WINDOW_BYTES: usize = 256 * 1024;
const ALIGNMENT: u64 = 8;
/// The tag's place in a header.
const TAG_OFFSET: u64 = 8;

/// A file seen through a window that moves.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: Arc<dyn DiskFile>,
    size: u64,
    start: u64,
    window: Vec<u8>,
}

impl FileReader {
    pub(crate) fn new(file: Arc<dyn DiskFile>) -> io::Result<Self> {
        Ok(Self { size: file.size()?, file, start: 0, window: Vec::new() })
    }

    /// The bytes of a range; fewer where the file ends.
    pub(crate) fn get(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let count = count.min(usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX));
        let end = at + count as u64;
        if at < self.start || end > self.start + self.window.len() as u64 {
            self.window.resize(count.max(WINDOW_BYTES), 0);
            let read = self.file.read_at(&mut self.window, at)?;
            self.window.truncate(read);
            self.start = at;
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        let rest = self.window.get(from..).unwrap_or_default();
        Ok(rest.get(..count).unwrap_or(rest))
    }

    /// Header and length of the record of this file at an offset, if there is a valid one.
    pub(crate) fn record(&mut self, at: u64, tag: u64, file: u64) -> io::Result<Option<(Header, usize)>> {
        let Some(header) = Header::parse(self.get(at, HEADER_BYTES)?) else { return Ok(None) };
        let here = header.stamp.tag == tag && header.stamp.file == file;
        let Some(bytes) = header.record_bytes().filter(|_| here) else { return Ok(None) };
        if at.saturating_add(bytes as u64) > self.size {
            return Ok(None);
        }
        let record = self.get(at, bytes)?;
        Ok((record.len() == bytes && verify(record)).then_some((header, bytes)))
    }

    /// The next offset from `at` on at which a tag stands where a header has it.
    pub(crate) fn find_tag(&mut self, at: u64, tag: u64) -> io::Result<Option<u64>> {
        let mut at = at;
        loop {
            let words = self.get(at + TAG_OFFSET, WINDOW_BYTES)?;
            let mut chunks = words.chunks_exact(8);
            if let Some(index) = chunks.position(|word| word == tag.to_le_bytes()) {
                return Ok(Some(at + index as u64 * ALIGNMENT));
            }
            if words.len() < WINDOW_BYTES {
                return Ok(None);
            }
            at += WINDOW_BYTES as u64;
        }
    }

    /// The end of what is not zero, from `at` on.
    fn content_end(&mut self, at: u64) -> io::Result<u64> {
        let (mut from, mut end) = (at, at);
        while from < self.size {
            let bytes = self.get(from, WINDOW_BYTES)?;
            if let Some(last) = bytes.iter().rposition(|&byte| byte != 0) {
                end = from + last as u64 + 1;
            }
            from += WINDOW_BYTES as u64;
        }
        Ok(end)
    }
}

/// What comes next in a file.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A valid record, header included.
    Record { at: u64, header: Header, record: &'a [u8] },
    /// Bytes that are no record, before one that is.
    Gap(Range<u64>),
    /// No further record. So many bytes from here on look as if there was to be one.
    End { at: u64, torn: u64 },
}

/// Walks through one file.
#[derive(Debug)]
pub(super) struct Scanner {
    reader: FileReader,
    tag: u64,
    number: u64,
    at: u64,
}

impl Scanner {
    pub(super) fn new(file: Arc<dyn DiskFile>, tag: u64, number: u64) -> io::Result<Self> {
        Ok(Self { reader: FileReader::new(file)?, tag, number, at: 0 })
    }

    /// The next step; after the end, the end again. `recycled`: the file may hold bytes of a former life.
    pub(super) fn step(&mut self, recycled: bool) -> io::Result<Step<'_>> {
        let at = self.at;
        let Some((header, bytes)) = self.reader.record(at, self.tag, self.number)? else {
            return self.step_over(recycled);
        };
        self.at += bytes as u64;
        Ok(Step::Record { at, header, record: self.reader.get(at, bytes)? })
    }

    fn step_over(&mut self, recycled: bool) -> io::Result<Step<'_>> {
        let at = self.at;
        let mut next = at + ALIGNMENT;
        while let Some(candidate) = self.reader.find_tag(next, self.tag)? {
            if self.reader.record(candidate, self.tag, self.number)?.is_some() {
                self.at = candidate;
                return Ok(Step::Gap(at..candidate));
            }
            next = candidate + ALIGNMENT;
        }
        Ok(Step::End { at, torn: self.torn_bytes(recycled)? })
    }

    /// How many bytes look as if a record was to be here.
    fn torn_bytes(&mut self, recycled: bool) -> io::Result<u64> {
        let at = self.at;
        if !recycled {
            return Ok(self.reader.content_end(at)? - at);
        }
        let Some(header) = Header::parse(self.reader.get(at, HEADER_BYTES)?) else { return Ok(0) };
        let stamp = header.stamp;
        let left = self.reader.size - at;
        if stamp.tag == self.tag && stamp.file < self.number {
            let former = self.reader.record(at, self.tag, stamp.file)?.is_some();
            return Ok(if former { 0 } else { left.min(HEADER_BYTES as u64) });
        }
        if stamp.tag != self.tag && stamp.file != self.number {
            return Ok(0);
        }
        Ok(header.record_bytes().map_or(left, |bytes| left.min(bytes as u64)))
    }
}
