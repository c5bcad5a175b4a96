//! The part of the journal that is in memory: what was appended and not yet handed to the writer.
//!
//! Owns the numbering of records and their places in files; what is here is already stamped. Must not touch a disk.

use std::ops::Range;

use super::meter::Meter;
use super::pages::{Pages, into_page};
use super::{Appended, Durability, Resume};
use crate::record::{Draft, Lsn, MARK_BYTES, Stamp, stamp};
use crate::seam::Monotonic;

/// A buffer that has grown beyond this is given back after it is written.
const KEEP_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Active {
    tag: u64,
    meter: Meter,
    file_bytes: u64,
    group: Group,
    /// The file records go to, and the offset of the next.
    file: u64,
    offset: u64,
    pub(super) next_lsn: u64,
    /// A sync is wanted, whether or not anything was appended.
    pub(super) sync: bool,
    pub(super) closed: bool,
    /// The mark that says so is written.
    pub(super) ended: bool,
    /// The writer has nothing to do and wants to be woken.
    pub(super) writer_waits: bool,
}

/// What is written in one go.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) buffer: Pages,
    pub(super) chunks: Vec<Chunk>,
    pub(super) sync: bool,
    /// When the first record was appended.
    pub(super) since: Option<Monotonic>,
}

/// A piece of the buffer that goes to one file. It begins with room for a mark, as far into its page as in the file; what is
/// before it in its page is room for what is there in the file.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) bytes: Range<usize>,
    /// The records' numbers.
    pub(super) lsns: Range<u64>,
}

impl Active {
    pub(super) fn new(tag: u64, file_bytes: u64, resume: &Resume, meter: Meter) -> Self {
        Self {
            tag,
            meter,
            file_bytes,
            group: Group::default(),
            file: resume.file,
            offset: resume.offset,
            next_lsn: resume.next_lsn,
            sync: false,
            closed: false,
            ended: false,
            writer_waits: false,
        }
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.group.buffer.len()
    }

    pub(super) fn push(&mut self, draft: Draft<'_>, durability: Durability) -> Appended {
        self.group.since.get_or_insert_with(|| self.meter.now());
        self.find_room(draft.size());
        let lsn = Lsn(self.next_lsn);
        let start = self.group.buffer.len();
        self.group.buffer.extend_from_slice(draft.bytes());
        let place = Stamp { tag: self.tag, file: self.file, lsn: lsn.0 };
        stamp(self.group.buffer.get_mut(start..start + draft.size()), place);
        self.next_lsn += 1;
        self.offset += draft.size() as u64;
        if let Some(chunk) = self.group.chunks.last_mut() {
            chunk.bytes.end = self.group.buffer.len();
            chunk.lsns.end = self.next_lsn;
        }
        self.sync |= durability == Durability::Fsync;
        Appended { lsn, pending_bytes: self.pending_bytes() }
    }

    /// Goes on to the next file if the record does not fit, unless the file is empty: a record longer than a file gets
    /// one of its own.
    fn find_room(&mut self, record: usize) {
        let mark = if self.group.chunks.is_empty() { MARK_BYTES } else { 0 };
        let begins = if self.offset > 0 && self.offset + (mark + record) as u64 > self.file_bytes {
            self.file += 1;
            self.offset = 0;
            true
        } else {
            mark > 0
        };
        if begins {
            self.group.buffer.begin_page();
            let start = self.group.buffer.len() + into_page(self.offset);
            self.group.buffer.grow_to(start + MARK_BYTES);
            self.group.chunks.push(Chunk {
                file: self.file,
                offset: self.offset,
                bytes: start..start + MARK_BYTES,
                lsns: self.next_lsn..self.next_lsn,
            });
            self.offset += MARK_BYTES as u64;
        }
    }

    /// Everything appended so far, in exchange for an empty group; `None` if there is nothing to do.
    pub(super) fn take(&mut self, spare: &mut Group) -> Option<Group> {
        if self.is_idle() {
            return None;
        }
        self.group.sync = std::mem::take(&mut self.sync);
        Some(std::mem::replace(&mut self.group, std::mem::take(spare)))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.group.chunks.is_empty() && !self.sync
    }

    /// File, offset and number of a record that would come next.
    pub(super) fn end(&self) -> (u64, u64, u64) {
        (self.file, self.offset, self.next_lsn)
    }
}

impl Group {
    /// Empties the group for its next use.
    pub(super) fn clear(&mut self) {
        self.buffer.clear(KEEP_BYTES);
        self.chunks.clear();
        self.sync = false;
        self.since = None;
    }
}
