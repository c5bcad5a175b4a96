//! The disk: directories and the lock that keeps a data directory to one broker.
//!
//! Owns every call to the file system. Must not know what the files mean.

mod real;
mod sim;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
