//! The journal as a crash, or a clean stop, left it.
//!
//! Owns telling apart what a crash may have torn from what must have been there. Records are numbered without a gap, and
//! every write begins with a mark that says what was durable: a missing record that was durable is damage, and what
//! follows it is good; a missing record that was not is where the journal ends. Must not know what records mean.

use std::io;
use std::ops::Range;

use super::JournalFile;
use super::scan::{Scanner, Step};
use crate::data_dir::{DataDir, Handle};
use crate::layout::journal_number;
use crate::record::{Content, HEADER_BYTES, Header, Lsn, MARK_BYTES, Mark};
use crate::seam::OpenMode;

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) file: u64,
    pub(crate) offset: u64,
    /// Bytes of the record, header included.
    pub(crate) bytes: usize,
}

/// Where the journal goes on.
#[derive(Debug)]
pub(crate) struct Resume {
    pub(crate) next_lsn: u64,
    pub(crate) file: u64,
    pub(crate) offset: u64,
    pub(crate) recycled: bool,
    /// The file, if it exists.
    pub(crate) current: Option<Handle>,
    /// What the page that the next write begins in holds before it.
    pub(crate) page: Vec<u8>,
    /// Those that come next, in order, as far as they exist.
    pub(crate) prepared: Vec<(u64, Handle)>,
}

/// Bytes in the journal that should have been records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) file: u64,
    pub(crate) bytes: Range<u64>,
    /// Numbers of the records that are missing; empty if none is.
    pub(crate) lsns: Range<u64>,
}

/// The journal at a glance.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// All files, in order.
    pub(crate) numbers: Vec<u64>,
    /// Where the valid records of each end, in the same order.
    ends: Vec<u64>,
    /// Where the journal ends: no record from here on counts.
    cut: Option<(u64, u64)>,
    /// The file with the last record, and the offset after it.
    pub(crate) tail: Option<(u64, u64)>,
    pub(crate) tail_recycled: bool,
    pub(crate) next_lsn: u64,
    /// The last record is the mark of a clean stop.
    pub(crate) closed: bool,
    /// Places of marks that are not readable, each with the number of the record that follows.
    pub(crate) lost_marks: Vec<(u64, u64, u64)>,
    /// Bytes that look like records a crash has torn.
    pub(crate) torn_bytes: u64,
    pub(crate) lost: Vec<Lost>,
}

#[derive(Debug, Default)]
struct Walk {
    expected: Option<u64>,
    durable: u64,
    closed: bool,
    recycled: bool,
    tail: Option<(u64, u64)>,
    suspects: Vec<Suspect>,
    ends: Vec<u64>,
    torn: u64,
}

#[derive(Debug)]
struct Suspect {
    place: (u64, u64),
    end: u64,
    lsns: Range<u64>,
    /// It is a valid record, but its content makes no sense.
    readable: bool,
    /// The tail and what was expected, had the journal ended before.
    before: (Option<(u64, u64)>, bool),
}

impl Suspect {
    /// The marks that lay here, if it was nothing else: all records before and after are there.
    fn marks(&self) -> impl ExactSizeIterator<Item = (u64, u64, u64)> + Clone + use<> {
        let ((file, offset), lsn) = (self.place, self.lsns.start);
        let bytes = self.end - offset;
        let whole = self.lsns.is_empty() && !self.readable && bytes.is_multiple_of(MARK_BYTES as u64);
        let count = if whole { usize::try_from(bytes).unwrap_or(0) / MARK_BYTES } else { 0 };
        (0..count).map(move |index| (file, offset + (index * MARK_BYTES) as u64, lsn))
    }
}

/// Looks through all files.
pub(crate) fn outline(dir: &DataDir) -> io::Result<Outline> {
    let mut numbers: Vec<u64> = dir
        .disk
        .list(&dir.layout.journal_dir())?
        .iter()
        .filter_map(|entry| journal_number(&entry.name))
        .collect();
    numbers.sort_unstable();
    let mut walk = Walk::default();
    for &number in &numbers {
        let path = dir.layout.journal(number);
        let mut scanner = Scanner::new(dir.disk.open(&path, OpenMode::Read)?, dir.tag, number)?;
        walk.file(number, &mut scanner)?;
    }
    Ok(walk.conclude(numbers))
}

impl Walk {
    fn file(&mut self, number: u64, scanner: &mut Scanner) -> io::Result<()> {
        let (mut gap, mut recycled, mut empty) = (None, false, true);
        loop {
            match scanner.step(recycled)? {
                Step::Gap(bytes) => gap = Some(bytes),
                Step::Record { at, header, record } => {
                    if empty {
                        self.recycled = false;
                    }
                    empty = false;
                    self.record(number, gap.take(), at, &header, record);
                    recycled = self.recycled;
                    self.tail = Some((number, at + record.len() as u64));
                }
                Step::End { at, torn } => {
                    self.ends.push(at);
                    // A file without a record is one that was prepared, and may be a recycled one.
                    self.torn = if empty { self.torn } else { torn };
                    return Ok(());
                }
            }
        }
    }

    fn record(&mut self, file: u64, gap: Option<Range<u64>>, at: u64, header: &Header, record: &[u8]) {
        let lsn = header.stamp.lsn;
        // The first record of the first file is number 1; that of a later file, when all before it were given up, any.
        let expected = self.expected.unwrap_or(if file == 0 { 1 } else { lsn });
        if lsn != expected || gap.is_some() {
            let start = gap.map_or(at, |gap| gap.start);
            let before = (self.tail, self.recycled);
            self.suspects.push(Suspect {
                place: (file, start),
                end: at,
                lsns: expected..lsn,
                readable: false,
                before,
            });
        }
        let payload = record.get(HEADER_BYTES..).unwrap_or_default();
        let content = Content::decode(header, payload);
        if content.is_none() {
            let before = (self.tail, self.recycled);
            let end = at + record.len() as u64;
            self.suspects.push(Suspect { place: (file, at), end, lsns: lsn..lsn, readable: true, before });
        }
        if let Some(Content::Mark(Mark { durable, closed, recycled })) = content {
            self.durable = self.durable.max(durable);
            self.closed = closed;
            self.recycled |= recycled;
            self.expected = Some(lsn.max(expected));
        } else {
            self.closed = false;
            self.expected = Some(lsn.max(expected) + 1);
        }
    }

    fn conclude(mut self, numbers: Vec<u64>) -> Outline {
        let durable = self.durable;
        let torn_from = self.suspects.iter().position(|s| !s.lsns.is_empty() && s.lsns.start > durable);
        let mut outline =
            Outline { numbers, ends: self.ends, tail_recycled: self.recycled, ..Outline::default() };
        outline.next_lsn = self.expected.unwrap_or(1);
        outline.tail = self.tail;
        outline.closed = self.closed;
        outline.torn_bytes = if self.closed { 0 } else { self.torn };
        if let Some(suspect) = torn_from.and_then(|index| self.suspects.drain(index..).next()) {
            outline.cut = Some(suspect.place);
            (outline.tail, outline.tail_recycled) = suspect.before;
            outline.next_lsn = suspect.lsns.start;
            outline.closed = false;
            outline.torn_bytes = outline.bytes_from(suspect.place);
        }
        self.suspects.retain(|suspect| {
            let marks = suspect.marks();
            outline.lost_marks.extend(marks.clone());
            // A mark that nothing says was durable may have been torn, and the record after it not.
            let torn = marks.len() > 0 && suspect.lsns.start > durable;
            if torn {
                outline.torn_bytes += suspect.end - suspect.place.1;
            }
            !torn
        });
        let lost = |s: Suspect| Lost { file: s.place.0, bytes: s.place.1..s.end, lsns: s.lsns };
        outline.lost = self.suspects.into_iter().map(lost).collect();
        if durable >= outline.next_lsn {
            let (file, offset) = outline.tail.unwrap_or_default();
            let lsns = outline.next_lsn..durable + 1;
            outline.lost.push(Lost { file, bytes: offset..offset, lsns });
            outline.next_lsn = durable + 1;
        }
        outline
    }
}

impl Outline {
    /// Bytes of files from a place on to the last record in each.
    fn bytes_from(&self, (file, offset): (u64, u64)) -> u64 {
        let ends = self.numbers.iter().zip(&self.ends).filter(|(number, _)| **number >= file);
        ends.map(|(number, end)| if *number == file { end.saturating_sub(offset) } else { *end }).sum()
    }

    /// The files that hold nothing that counts.
    pub(crate) fn files_after_tail(&self) -> impl Iterator<Item = u64> {
        let tail = self.tail.map(|(file, _)| file);
        self.numbers.iter().copied().filter(move |number| tail.is_none_or(|tail| *number > tail))
    }

    /// Whether a file holds a record, be it one that does not count.
    pub(crate) fn has_records(&self, number: u64) -> bool {
        self.numbers.iter().zip(&self.ends).any(|(held, end)| *held == number && *end > 0)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }
}

/// Hands every record that counts to `see`, in order, and returns the table of files.
pub(crate) fn replay(
    dir: &DataDir,
    outline: &Outline,
    mut see: impl FnMut(Location, Lsn, &Content<'_>),
) -> io::Result<Vec<JournalFile>> {
    let mut files = Vec::new();
    for &number in &outline.numbers {
        if outline.tail.is_none_or(|(tail, _)| number > tail) {
            break;
        }
        let file = dir.disk.open(&dir.layout.journal(number), OpenMode::Read)?;
        let mut scanner = Scanner::new(file, dir.tag, number)?;
        let mut table = JournalFile::new(number);
        loop {
            let (at, header, record) = match scanner.step(true)? {
                Step::Gap(_) => continue,
                Step::End { .. } => break,
                Step::Record { at, header, record } => (at, header, record),
            };
            if outline.cut.is_some_and(|cut| (number, at) >= cut) {
                break;
            }
            table.bytes = at + record.len() as u64;
            if let Some(content) = Content::decode(&header, record.get(HEADER_BYTES..).unwrap_or_default()) {
                let lsn = Lsn(header.stamp.lsn);
                for queue in table.note(lsn, &content) {
                    files
                        .iter_mut()
                        .chain([&mut table])
                        .for_each(|file: &mut JournalFile| file.forget(queue));
                }
                see(Location { file: number, offset: at, bytes: record.len() }, lsn, &content);
            }
        }
        files.push(table);
    }
    Ok(files)
}
