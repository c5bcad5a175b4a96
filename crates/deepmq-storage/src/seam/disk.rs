//! The disk: directories, files and the lock that keeps a data directory to one broker.
//!
//! Owns every call to the file system, and the rule of what survives a crash: file content after [`DiskFile::sync_data`],
//! names after [`Disk::sync_dir`] of the directory they are in, nothing else. Must not know what the files mean.

mod real;
mod sim;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use real::RealDisk;
pub use sim::SimDisk;

/// The file system as the broker uses it.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates the directory and its missing parents; one that exists is fine.
    ///
    /// # Errors
    /// What the file system says, e.g. that a parent is a file or may not be written to.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Takes the exclusive lock the file at `path` stands for and writes this process's id into it. The file is created
    /// if missing; its directory must exist. The lock holds until the guard is dropped or the process ends, however it
    /// ends, so a file left behind by a crash locks nobody out.
    ///
    /// # Errors
    /// [`LockError::Held`] at once, without waiting, if anyone holds the lock, this process included.
    /// [`LockError::Io`] if the file can not be opened or written.
    fn lock(&self, path: &Path) -> Result<LockGuard, LockError>;

    /// Opens a file.
    ///
    /// # Errors
    /// What the file system says: missing, not permitted, too many open, no space.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives the file at `from` the name `to`, at once and in place of a file of that name.
    ///
    /// # Errors
    /// What the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; who has it open can go on using it.
    ///
    /// # Errors
    /// What the file system says, also that it is missing.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// What the file system says, also that it is not empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// What is in a directory, in the order of names. Names that are not UTF-8 are left out: they are not ours.
    ///
    /// # Errors
    /// What the file system says, also that it is missing.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// Makes the names in a directory durable: those created, renamed and removed before.
    ///
    /// # Errors
    /// What the file system says. A name's fate is then unknown.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Bytes that can still be written to the file system `dir` is on.
    ///
    /// # Errors
    /// What the file system says.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Whose a file or directory is, and whose this process.
    ///
    /// # Errors
    /// What the file system says, also that it is missing.
    fn owner(&self, path: &Path) -> io::Result<Owner>;
}

/// Users by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Whom a file belongs to.
    pub of_file: u32,
    /// Whom this process belongs to.
    pub of_process: u32,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// To read; it must exist.
    Read,
    /// To read and write; it must exist.
    Write,
    /// To write multiples of [`PAGE_BYTES`], from memory and to places that are multiples of it, past the system's cache where
    /// it can do that; it must exist.
    Direct,
    /// To read and write; created, or emptied if it exists.
    Create,
}

/// What every disk takes as it is, in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the directory.
    pub name: String,
    /// Whether it is a directory itself.
    pub is_dir: bool,
}

/// An open file. There is no position: reads and writes say where.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads from `offset` until the buffer is full or the file ends, and says how many bytes that were.
    ///
    /// # Errors
    /// What the file system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all the parts, one after the other, from `offset` on; the file grows as needed.
    ///
    /// # Errors
    /// What the file system says. Any piece may have been written.
    fn write_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()>;

    /// Makes the content and the length durable.
    ///
    /// # Errors
    /// What the file system says. What was written since the last sync may be lost even if a later sync succeeds.
    fn sync_data(&self) -> io::Result<()>;

    /// Takes the room for `bytes` bytes from the start; a shorter file grows to that, reading zeros.
    ///
    /// # Errors
    /// What the file system says, most of all that there is no space.
    fn preallocate(&self, bytes: u64) -> io::Result<()>;

    /// Gives the room of a range back; it reads as zeros from then on. Where the file system can not do that, nothing happens.
    ///
    /// # Errors
    /// What the file system says.
    fn punch_hole(&self, range: Range<u64>) -> io::Result<()>;

    /// Cuts the file to `bytes` bytes, or lengthens it with zeros.
    ///
    /// # Errors
    /// What the file system says.
    fn truncate(&self, bytes: u64) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// What the file system says.
    fn size(&self) -> io::Result<u64>;
}

/// A lock that is held. Dropping it lets go.
#[must_use = "the lock is let go when the guard is dropped"]
pub struct LockGuard {
    _held: Box<dyn Send + Sync>,
}

impl LockGuard {
    fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockGuard")
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody holds it.
    #[error("{} is locked by {}", path.display(), holder(*pid))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The holder's process id, if the file tells it.
        pid: Option<u32>,
    },
    /// The file system refused.
    #[error("{} can not be locked: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

#[cfg(test)]
mod tests;
