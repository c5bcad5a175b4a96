//! A disk in memory.
//!
//! Owns the simulated directory tree and its locks. Must not know what the files mean.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, LockError, LockGuard};

/// A disk in memory: empty at first, gone with its last clone. Clones are handles to the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    tree: Arc<Mutex<Tree>>,
}

#[derive(Debug, Default)]
struct Tree {
    dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
}

impl SimDisk {
    /// The process id that holds every simulated lock: nothing in a simulation depends on the process it runs in.
    pub const PID: u32 = 1;

    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SimDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut tree = self.tree();
        if path.ancestors().any(|ancestor| tree.locked.contains(ancestor)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        tree.dirs.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<LockGuard, LockError> {
        let mut tree = self.tree();
        if !path.parent().is_some_and(|dir| tree.dirs.contains(dir)) {
            return Err(LockError::Io { path: path.to_owned(), source: io::ErrorKind::NotFound.into() });
        }
        if !tree.locked.insert(path.to_owned()) {
            return Err(LockError::Held { path: path.to_owned(), pid: Some(Self::PID) });
        }
        Ok(LockGuard::new(SimLock { disk: self.clone(), path: path.to_owned() }))
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.tree().locked.remove(&self.path);
    }
}
