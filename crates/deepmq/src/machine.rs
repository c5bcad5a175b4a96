//! The machine the broker runs on.
//!
//! Owns what is asked of the operating system besides files and sockets. Must not know settings.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

/// What defaults depend on.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    /// What this process may use: the machine's memory, or less where a control group says so.
    pub(crate) memory_bytes: u64,
    pub(crate) host_name: String,
}

impl Machine {
    pub(crate) fn inspect() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            memory_bytes: memory_bytes(),
            host_name: uname().nodename().to_string_lossy().into_owned(),
        }
    }
}

fn memory_bytes() -> u64 {
    control_group_dirs().filter_map(|dir| memory_max(&dir)).fold(physical_bytes(), u64::min)
}

#[cfg(target_os = "linux")]
fn physical_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// As `sysctl` tells it; where it does not, as small a machine as is still sold.
#[cfg(not(target_os = "linux"))]
fn physical_bytes() -> u64 {
    const ASSUMED: u64 = 4 << 30;
    let told = std::process::Command::new("sysctl").args(["-n", "hw.memsize"]).output();
    told.ok().and_then(|told| String::from_utf8(told.stdout).ok()?.trim().parse().ok()).unwrap_or(ASSUMED)
}

/// The directories of this process's control group (version 2) and those it is nested in.
fn control_group_dirs() -> impl Iterator<Item = PathBuf> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = membership.lines().find_map(|line| line.strip_prefix("0::/")).map(str::to_owned);
    group.into_iter().flat_map(|group| {
        let ancestors: Vec<PathBuf> =
            Path::new(&group).ancestors().map(|path| Path::new("/sys/fs/cgroup").join(path)).collect();
        ancestors
    })
}

/// The group's limit; `None` where there is none (`max`) or no such file.
fn memory_max(group: &Path) -> Option<u64> {
    std::fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
}

/// Allows this process as many open files as it may have: every connection is one, and the usual soft limit of 1,024
/// is kept low only for programs that use `select`. Returns the new limit; `None` is no limit.
pub(crate) fn raise_open_files() -> std::io::Result<Option<u64>> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_cores_memory_and_a_name() {
        let machine = Machine::inspect();
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes >= 16 << 20, "{machine:?}");
        assert!(!machine.host_name.is_empty());
    }

    #[test]
    fn after_raising_the_open_files_the_soft_limit_is_the_hard_one() {
        let raised = raise_open_files().unwrap();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!((current, maximum), (raised, raised));
    }
}
