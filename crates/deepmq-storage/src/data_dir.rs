//! A data directory that is open for writing.
//!
//! Owns the way every change goes: through the latch, with the path in the error, and the order of steps that replaces a
//! file durably. Must not know what the files hold.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::failure::{Latch, StorageFailure};
use crate::layout::{self, Layout};
use crate::seam::{Disk, DiskFile, OpenMode};

/// Shared by all that read and write below one directory.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) latch: Latch,
    /// The directory's own random number, in the head of every record and block.
    pub(crate) tag: u64,
}

/// An open file and its path.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn DiskFile>,
}

impl DataDir {
    pub(crate) fn open(&self, path: PathBuf, mode: OpenMode) -> Result<Handle, StorageFailure> {
        let operation = if mode == OpenMode::Create { "create" } else { "open" };
        let file = self.latch.run(operation, &path, || self.disk.open(&path, mode))?;
        Ok(Handle { path, file })
    }

    pub(crate) fn write(&self, to: &Handle, parts: &[&[u8]], offset: u64) -> Result<(), StorageFailure> {
        self.latch.run("write", &to.path, || to.file.write_at(parts, offset))
    }

    /// Fills the buffer with what is in the file, which must be that long.
    pub(crate) fn read(&self, from: &Handle, buffer: &mut [u8], offset: u64) -> Result<(), StorageFailure> {
        self.latch.run("read", &from.path, || match from.file.read_at(buffer, offset)? {
            read if read == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        })
    }

    pub(crate) fn sync(&self, handle: &Handle) -> Result<(), StorageFailure> {
        self.latch.run("sync", &handle.path, || handle.file.sync_data())
    }

    pub(crate) fn truncate(&self, handle: &Handle, bytes: u64) -> Result<(), StorageFailure> {
        self.latch.run("truncate", &handle.path, || handle.file.truncate(bytes))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageFailure> {
        self.latch.run("rename", from, || self.disk.rename(from, to))
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), StorageFailure> {
        self.latch.run("remove", path, || self.disk.remove(path))
    }

    pub(crate) fn sync_dir(&self, dir: &Path) -> Result<(), StorageFailure> {
        self.latch.run("sync", dir, || self.disk.sync_dir(dir))
    }

    /// Creates a directory whose parent exists, durably.
    pub(crate) fn create_dir(&self, dir: &Path) -> Result<(), StorageFailure> {
        self.latch.run("create", dir, || self.disk.create_dir_all(dir))?;
        dir.parent().map_or(Ok(()), |parent| self.sync_dir(parent))
    }

    /// Puts a file of these bytes in the place of one that may exist: after a crash there is the one or the other.
    pub(crate) fn replace(&self, path: &Path, parts: &[&[u8]]) -> Result<(), StorageFailure> {
        let temporary = self.open(layout::temporary(path), OpenMode::Create)?;
        self.write(&temporary, parts, 0)?;
        self.sync(&temporary)?;
        self.rename(&temporary.path, path)?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))
    }

    /// Removes a queue's directory and all in it, the checkpoint last: while it is there, it is known what the files
    /// were.
    pub(crate) fn remove_queue(&self, queue: u64) -> Result<(), StorageFailure> {
        let path = self.layout.queue_dir(queue);
        let entries = self.latch.run("list", &path, || self.disk.list(&path))?;
        let checkpoint = self.layout.checkpoint(queue);
        let (last, first): (Vec<_>, Vec<_>) =
            entries.iter().map(|entry| path.join(&entry.name)).partition(|file| *file == checkpoint);
        for file in first.iter().chain(&last) {
            self.remove(file)?;
        }
        self.latch.run("remove", &path, || self.disk.remove_dir(&path))
    }
}
