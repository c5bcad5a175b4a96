//! The file system of the machine.
//!
//! Owns the calls to the operating system. Must not know what the files mean.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Disk, LockError, LockGuard};

/// The machine's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn lock(&self, path: &Path) -> Result<LockGuard, LockError> {
        take_lock(path).map_err(|source| LockError::Io { path: path.to_owned(), source })?.map_or_else(
            |pid| Err(LockError::Held { path: path.to_owned(), pid }),
            |file| Ok(LockGuard::new(file)),
        )
    }
}

/// The locked file, or the id of the process that holds it.
fn take_lock(path: &Path) -> io::Result<Result<File, Option<u32>>> {
    // Not truncated on open: until the lock is ours, the content is the holder's.
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Err(read_pid(&file))),
        Err(errno) => return Err(errno.into()),
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Ok(file))
}

/// The id in a lock file; `None` in the instant between lock and write, or if anyone wrote something else into it.
fn read_pid(file: &File) -> Option<u32> {
    const PID_DIGITS_MAX: u64 = 10;
    let mut text = String::new();
    file.take(PID_DIGITS_MAX + 1).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
