//! What this process takes of its machine.
//!
//! Owns what is asked of the operating system. Must not know the broker, beyond its data directory.

use rustix::process::{Resource, getpid, getrlimit};
use std::path::Path;

/// Memory, files and threads of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) resident_bytes: u64,
    pub(crate) virtual_bytes: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) threads: u64,
    pub(crate) open_files: u64,
    pub(crate) open_files_max: u64,
}

impl Process {
    /// As it is now; 0 for what the system does not tell.
    pub(crate) fn inspect() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let (user, system) = cpu_ticks().unwrap_or_default();
        Self {
            pid: getpid().as_raw_nonzero().get().unsigned_abs(),
            resident_bytes: kibibytes(&status, "VmRSS:"),
            virtual_bytes: kibibytes(&status, "VmSize:"),
            cpu_seconds: (user + system) / TICKS_PER_SECOND,
            threads: field(&status, "Threads:").unwrap_or_default(),
            open_files: std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
            open_files_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        }
    }
}

/// Every Linux counts hundredths of a second here, whatever its kernel does inside.
const TICKS_PER_SECOND: f64 = 100.0;

fn cpu_ticks() -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may hold blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kibibytes(status: &str, name: &str) -> u64 {
    field(status, name).unwrap_or_default() * 1024
}

/// The disk that a directory is on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Disk {
    pub(crate) free_bytes: u64,
    pub(crate) total_bytes: u64,
}

impl Disk {
    /// As it is now; none if it cannot be told.
    pub(crate) fn inspect(dir: &Path) -> Option<Self> {
        let told = rustix::fs::statvfs(dir).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
        Some(Self { free_bytes: bytes(told.f_bavail), total_bytes: bytes(told.f_blocks) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_threads_and_files() {
        let process = Process::inspect();
        assert_eq!(process.pid, std::process::id());
        assert!(process.resident_bytes > 1 << 20 && process.virtual_bytes >= process.resident_bytes);
        assert!(process.threads >= 1 && process.open_files >= 3 && process.open_files_max >= 3);
    }

    #[test]
    fn a_disk_has_room_and_one_that_is_not_there_has_not() {
        let disk = Disk::inspect(Path::new("/")).unwrap();
        assert!(disk.total_bytes >= disk.free_bytes && disk.total_bytes > 0);
        assert!(Disk::inspect(Path::new("/nonexistent")).is_none());
    }
}
