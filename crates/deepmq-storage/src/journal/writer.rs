//! The one who writes the journal's files.
//!
//! Owns the open file, the order of write, sync and mark, and the life of files: prepared ahead, filled, recycled under a
//! new number. Must not know who waits.

use std::collections::VecDeque;
use std::ops::Range;

use super::active::{Chunk, Group};
use super::files::Files;
use super::marks::Marks;
use super::meter::Meter;
use super::pages::{Pages, into_page};
use super::{Durability, JournalFile, Resume};
use crate::data_dir::{DataDir, Handle};
use crate::failure::StorageFailure;
use crate::record::{Content, HEADER_BYTES, Header, Lsn, MARK_BYTES, Mark, Stamp};
use crate::seam::OpenMode;
use crate::store::Options;

/// This many files are kept for their next use. One that is written again costs a fraction of a new one: its space is
/// allocated, its blocks are initialized, and its pages are still in the cache.
const SPARE_FILES_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Writer {
    dir: DataDir,
    meter: Meter,
    options: Options,
    current: Option<Current>,
    /// What was written to the page that the next write begins in.
    page: Vec<u8>,
    /// Files with room but no records, which will be the next, in order.
    prepared: VecDeque<Current>,
    files: Files,
    spare: Group,
    /// What could not be written for want of space, and why.
    rest: Option<(Group, StorageFailure)>,
    /// There was no space for the next file when it was last asked for.
    short: bool,
    /// The last record written, and the last synced.
    written: u64,
    synced: u64,
}

#[derive(Debug)]
struct Current {
    number: u64,
    handle: Handle,
    recycled: bool,
}

impl Writer {
    pub(super) fn new(
        dir: DataDir,
        meter: Meter,
        options: Options,
        resume: Resume,
        files: Vec<JournalFile>,
    ) -> Self {
        let current = |(number, handle, recycled)| Current { number, handle, recycled };
        Self {
            dir,
            meter,
            options,
            current: resume.current.map(|handle| current((resume.file, handle, resume.recycled))),
            page: resume.page,
            prepared: resume
                .prepared
                .into_iter()
                .map(|(number, handle)| current((number, handle, true)))
                .collect(),
            files: Files::new(files),
            spare: Group::default(),
            rest: None,
            short: false,
            written: resume.next_lsn - 1,
            synced: resume.next_lsn - 1,
        }
    }

    pub(super) fn spare(&mut self) -> &mut Group {
        &mut self.spare
    }

    pub(super) fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// What was to be written before and was not; it comes first.
    pub(super) fn take_rest(&mut self) -> Option<Group> {
        self.rest.take().map(|(group, _)| group)
    }

    /// Why something waits to be written again, if it does.
    pub(super) fn stalled(&self) -> Option<&StorageFailure> {
        self.rest.as_ref().map(|(_, failure)| failure)
    }

    /// Whether there was no space for something when it was last needed.
    pub(super) fn is_short(&self) -> bool {
        self.short || self.rest.is_some()
    }

    /// Writes a group, syncs it if that is asked for and moves the marks. Without space for it, the group is kept.
    pub(super) fn write(&mut self, mut group: Group, marks: &Marks) -> Result<(), StorageFailure> {
        let mut chunks = std::mem::take(&mut group.chunks);
        while let Some(chunk) = chunks.first() {
            if let Err(failure) = self.write_chunk(chunk, &mut group.buffer) {
                if failure.is_out_of_space() {
                    self.rest = Some((Group { chunks, ..group }, failure.clone()));
                }
                return Err(failure);
            }
            chunks.remove(0);
        }
        marks.advance(Durability::Os, Lsn(self.written));
        if group.sync {
            self.sync()?;
        }
        marks.advance(Durability::Fsync, Lsn(self.synced));
        if let Some(since) = group.since.filter(|_| group.sync) {
            self.meter.committed(since);
        }
        // Nobody waits for what follows.
        group.clear();
        self.spare = Group { chunks, ..group };
        if self.short { Ok(()) } else { self.prepare_next() }
    }

    fn write_chunk(&mut self, chunk: &Chunk, buffer: &mut Pages) -> Result<(), StorageFailure> {
        let recycled = self.change_to(chunk.file)?;
        let place = Stamp { tag: self.dir.tag, file: chunk.file, lsn: chunk.lsns.start };
        let mark = Mark { durable: self.synced, closed: false, recycled: recycled && chunk.offset == 0 };
        buffer
            .get_mut(chunk.bytes.start..chunk.bytes.start + MARK_BYTES)
            .copy_from_slice(&mark.record(place));
        self.write_pages(buffer, chunk.bytes.clone(), chunk.offset)?;
        self.written = chunk.lsns.end - 1;
        self.note(chunk, buffer.get(chunk.bytes.clone()));
        Ok(())
    }

    /// Writes a range of the buffer to the current file, in whole pages: the first has before it what it had, the last has
    /// zeros behind it, where nothing is needed.
    fn write_pages(
        &mut self,
        buffer: &mut Pages,
        range: Range<usize>,
        offset: u64,
    ) -> Result<(), StorageFailure> {
        let Some(current) = &self.current else { return Ok(()) };
        let before = into_page(offset);
        buffer.get_mut(range.start - before..range.start).copy_from_slice(&self.page);
        self.dir.write(&current.handle, &[buffer.whole(range.clone())], offset - before as u64)?;
        self.page.clear();
        self.page.extend_from_slice(buffer.get(range.end - into_page(range.end as u64)..range.end));
        Ok(())
    }

    /// Makes `number` the current file, and says whether it is a recycled one. What was written to the one before is
    /// synced first: a file holds records only if all before it are whole.
    fn change_to(&mut self, number: u64) -> Result<bool, StorageFailure> {
        if let Some(current) = self.current.as_ref().filter(|current| current.number == number) {
            return Ok(current.recycled);
        }
        self.sync()?;
        let next = match self.prepared.pop_front().filter(|prepared| prepared.number == number) {
            Some(prepared) => prepared,
            None => self.prepare(number)?,
        };
        let recycled = next.recycled;
        self.short = false;
        self.current = Some(next);
        self.page.clear();
        self.files.add(number);
        Ok(recycled)
    }

    fn sync(&mut self) -> Result<(), StorageFailure> {
        if self.synced < self.written
            && let Some(current) = &self.current
        {
            let began = self.meter.now();
            self.dir.sync(&current.handle)?;
            self.meter.synced(began);
            self.synced = self.written;
        }
        Ok(())
    }

    fn note(&mut self, chunk: &Chunk, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(header) = Header::parse(rest)
            && let Some((record, after)) =
                header.record_bytes().and_then(|bytes| rest.split_at_checked(bytes))
        {
            let payload = record.get(HEADER_BYTES..).unwrap_or_default();
            if let Some(content) = Content::decode(&header, payload) {
                self.files.note(Lsn(header.stamp.lsn), &content);
            }
            rest = after;
        }
        if let Some(file) = self.files.last() {
            file.bytes = chunk.offset + bytes.len() as u64;
        }
    }

    /// Has the next file ready before it is needed, once half of this one is used. That there is no space for it is no
    /// failure yet: the other half is for what makes some.
    pub(super) fn prepare_next(&mut self) -> Result<(), StorageFailure> {
        self.short = false;
        let used = self.files.last().map_or(0, |file| file.bytes);
        if !self.prepared.is_empty() || used < self.options.journal_file_bytes / 2 {
            return Ok(());
        }
        if let Some(next) = self.current.as_ref().map(|current| current.number + 1) {
            match self.prepare(next) {
                Ok(prepared) => self.prepared.push_back(prepared),
                Err(failure) if failure.is_out_of_space() => self.short = true,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn prepare(&self, number: u64) -> Result<Current, StorageFailure> {
        let handle = self.dir.open(self.dir.layout.journal(number), OpenMode::Create)?;
        let allocate = || handle.file.preallocate(self.options.journal_file_room());
        if let Err(failure) = self.dir.latch.run("allocate", &handle.path, allocate) {
            // It may have got a part of the space. If it stays, it is an empty file that the next start takes.
            let _ = self.dir.disk.remove(&handle.path);
            return Err(failure);
        }
        self.dir.sync(&handle)?;
        self.dir.sync_dir(&self.dir.layout.journal_dir())?;
        let handle = self.dir.open(handle.path, self.options.journal_mode())?;
        Ok(Current { number, handle, recycled: false })
    }

    /// Gives up the oldest file: it becomes one of the next to be used, or is removed.
    pub(super) fn recycle_oldest(&mut self) -> Result<bool, StorageFailure> {
        let (Some(current), Some(oldest)) = (&self.current, self.files.remove_oldest()) else {
            return Ok(false);
        };
        let path = self.dir.layout.journal(oldest.number);
        if self.prepared.len() >= SPARE_FILES_MAX || oldest.bytes > self.options.journal_file_bytes {
            self.dir.remove(&path)?;
        } else {
            let number = self.prepared.back().unwrap_or(current).number + 1;
            self.dir.rename(&path, &self.dir.layout.journal(number))?;
            let handle = self.dir.open(self.dir.layout.journal(number), self.options.journal_mode())?;
            self.prepared.push_back(Current { number, handle, recycled: true });
            self.short = false;
        }
        self.dir.sync_dir(&self.dir.layout.journal_dir())?;
        Ok(true)
    }

    /// Removes the files that are kept for their next use, but for the one that comes next.
    pub(super) fn remove_spares(&mut self) -> Result<(), StorageFailure> {
        if self.prepared.len() <= 1 {
            return Ok(());
        }
        for spare in self.prepared.drain(1..).rev() {
            self.dir.remove(&spare.handle.path)?;
        }
        self.dir.sync_dir(&self.dir.layout.journal_dir())
    }

    pub(super) fn write_closing_mark(
        &mut self,
        file: u64,
        offset: u64,
        lsn: u64,
    ) -> Result<(), StorageFailure> {
        let mark = Mark { durable: lsn - 1, closed: true, recycled: false };
        let start = into_page(offset);
        let mut buffer = Pages::default();
        buffer.grow_to(start);
        buffer.extend_from_slice(&mark.record(Stamp { tag: self.dir.tag, file, lsn }));
        self.write_pages(&mut buffer, start..start + MARK_BYTES, offset)?;
        self.current.as_ref().map_or(Ok(()), |current| self.dir.sync(&current.handle))
    }
}
