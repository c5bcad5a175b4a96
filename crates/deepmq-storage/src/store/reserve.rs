//! A little space that is kept for the worst: on a full disk, what gives files up must write a little first.
//!
//! Owns the file that takes it. Must not know what it is used for.

use super::Store;
use crate::failure::StorageFailure;
use crate::seam::OpenMode;

/// Enough for a snapshot or a checkpoint, which are written before what they replace goes.
const RESERVE_BYTES: u64 = 1024 * 1024;

impl Store {
    /// Takes the space, if it is not taken. Without enough for it there is none to keep, which is no failure.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn keep_reserve(&self) -> Result<(), StorageFailure> {
        let path = self.dir.layout.reserve();
        if self.dir.disk.open(&path, OpenMode::Read).and_then(|file| file.size()).is_ok() {
            return Ok(());
        }
        let allocate = |file: &crate::data_dir::Handle| {
            self.dir.latch.run("allocate", &path, || file.file.preallocate(RESERVE_BYTES))
        };
        match self.dir.open(path.clone(), OpenMode::Create).and_then(|file| allocate(&file)) {
            Err(failure) if failure.is_out_of_space() => self.use_reserve(),
            kept => kept,
        }
    }

    /// Gives the space up, for what is about to be written.
    ///
    /// # Errors
    /// The failure after which nothing is written any more.
    pub fn use_reserve(&self) -> Result<(), StorageFailure> {
        let path = self.dir.layout.reserve();
        match self.dir.disk.open(&path, OpenMode::Read) {
            Ok(_) => self.dir.remove(&path),
            Err(_) => Ok(()),
        }
    }
}
