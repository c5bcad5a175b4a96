//! The file system of the machine.
//!
//! Owns the calls to the operating system. Must not know what the files mean.

use std::fs::{self, File};
use std::io::{self, IoSlice, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock, statvfs};
#[cfg(target_os = "linux")]
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, pwritev};
use rustix::process::geteuid;

use super::{Disk, DiskFile, Entry, LockError, LockGuard, OpenMode, Owner};

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

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = File::options();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Direct => return Ok(Arc::new(open_direct(path)?)),
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true).truncate(true);
            }
        }
        Ok(Arc::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let is_dir = entry.file_type()?.is_dir();
            entries.extend(entry.file_name().into_string().ok().map(|name| Entry { name, is_dir }));
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let facts = statvfs(dir)?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    fn owner(&self, path: &Path) -> io::Result<Owner> {
        Ok(Owner { of_file: fs::metadata(path)?.uid(), of_process: geteuid().as_raw() })
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        if let [part] = parts {
            return match self.write_all_at(part, offset) {
                Err(error)
                    if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) && leave_direct(self)? =>
                {
                    self.write_all_at(part, offset)
                }
                written => written,
            };
        }
        let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let (mut rest, mut offset) = (slices.as_mut_slice(), offset);
        IoSlice::advance_slices(&mut rest, 0); // drops empty parts at the front
        while !rest.is_empty() {
            match pwritev(self, rest.get(..IOV_MAX).unwrap_or(rest), offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut rest, written);
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match rustix::fs::fallocate(self, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(errno.into()),
        }
        if self.metadata()?.len() < bytes { self.set_len(bytes) } else { Ok(()) }
    }

    fn punch_hole(&self, range: Range<u64>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{FallocateFlags, fallocate};
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(self, flags, range.start, range.end - range.start) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        }
        #[cfg(not(target_os = "linux"))]
        {
            // The room comes back with the file.
            let _ = range;
            Ok(())
        }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Opens a file for writes that do not go through the system's cache; through it, where the file system can do nothing else.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flag = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    match File::options().read(true).write(true).custom_flags(flag).open(path) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => open_cached(path),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_direct(path: &Path) -> io::Result<File> {
    open_cached(path)
}

fn open_cached(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Goes through the cache from here on, and says whether it did not before: there are disks that want more than whole pages.
#[cfg(target_os = "linux")]
fn leave_direct(file: &File) -> io::Result<bool> {
    let flags = fcntl_getfl(file)?;
    fcntl_setfl(file, flags - OFlags::DIRECT)?;
    Ok(flags.contains(OFlags::DIRECT))
}

#[cfg(not(target_os = "linux"))]
fn leave_direct(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// Slices the system takes in one call.
const IOV_MAX: usize = 1024;

/// The locked file, or the id of the process that holds it.
fn take_lock(path: &Path) -> io::Result<Result<File, Option<u32>>> {
    // Not truncated on open: until the lock is ours, the content is the holder's.
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Err(read_pid(&file))),
        Err(errno) => return Err(errno.into()),
    }
    // On a full disk there may be no space for it, and the lock holds without.
    let _ = write_pid(&mut file);
    Ok(Ok(file))
}

/// Over what is there, and only then cut: a block that is freed may not come back.
fn write_pid(file: &mut File) -> io::Result<()> {
    let line = format!("{}\n", std::process::id());
    file.write_all(line.as_bytes())?;
    file.set_len(line.len() as u64)
}

/// The id in a lock file; `None` in the instant between lock and write, or if anyone wrote something else into it.
fn read_pid(file: &File) -> Option<u32> {
    const PID_DIGITS_MAX: u64 = 10;
    let mut text = String::new();
    file.take(PID_DIGITS_MAX + 1).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
