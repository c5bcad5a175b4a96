//! Open segment files, a bounded number of them.
//!
//! Owns which stay open. Must not know what is read from them.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::seam::{Disk, DiskFile, OpenMode};

/// The files used last.
#[derive(Debug)]
pub(crate) struct FileCache {
    files_max: usize,
    mode: OpenMode,
    /// Queue, segment and file, the one used last at the end.
    files: Mutex<Vec<Cached>>,
}

type Cached = ((u64, u64), Arc<dyn DiskFile>);

impl FileCache {
    /// A cache of files that are opened to read and write, or only to read.
    pub(crate) fn new(files_max: usize, mode: OpenMode) -> Self {
        Self { files_max, mode, files: Mutex::default() }
    }

    /// The open file.
    pub(crate) fn open(
        &self,
        key: (u64, u64),
        disk: &dyn Disk,
        path: &Path,
    ) -> io::Result<Arc<dyn DiskFile>> {
        let found = self.with(|files| {
            let index = files.iter().rposition(|(held, _)| *held == key)?;
            let cached = files.remove(index);
            let file = Arc::clone(&cached.1);
            files.push(cached);
            Some(file)
        });
        if let Some(file) = found {
            return Ok(file);
        }
        let file = disk.open(path, self.mode)?;
        self.put(key, &file);
        Ok(file)
    }

    pub(crate) fn put(&self, key: (u64, u64), file: &Arc<dyn DiskFile>) {
        self.with(|files| {
            files.retain(|(held, _)| *held != key);
            if files.len() >= self.files_max {
                files.remove(0);
            }
            files.push((key, Arc::clone(file)));
        });
    }

    pub(crate) fn close(&self, key: (u64, u64)) {
        self.with(|files| files.retain(|(held, _)| *held != key));
    }

    #[cfg(test)]
    pub(crate) fn open_count(&self) -> usize {
        self.with(|files| files.len())
    }

    fn with<T>(&self, run: impl FnOnce(&mut Vec<Cached>) -> T) -> T {
        run(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
