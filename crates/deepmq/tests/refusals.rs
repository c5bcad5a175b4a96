//! Data directories that a broker refuses: one sentence, exit code 1, and nothing changed.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use rustix::process::geteuid;
use tempfile::TempDir;

/// A user that is not root.
const NOBODY: u32 = 65534;

fn serve(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["serve", "--amqp", "127.0.0.1:0", "--http", "off", "--log", "error", "--data-dir"])
        .arg(dir);
    command.stdin(Stdio::null());
    command
}

fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("deepmq").to_owned()
}

/// A directory that a broker has used and left in order.
fn used(dir: &TempDir) -> PathBuf {
    let data = dir.path().join("data");
    let mut broker = serve(&program(), &data).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(broker.stdout.take().unwrap()), &mut line)
        .unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&broker), rustix::process::Signal::TERM)
        .unwrap();
    assert!(broker.wait().unwrap().success());
    data
}

/// Every path below a directory with all that a change would change.
fn seen(dir: &Path) -> BTreeMap<PathBuf, (u32, SystemTime, Option<Vec<u8>>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let facts = std::fs::symlink_metadata(&path).unwrap();
        let content = facts.is_file().then(|| std::fs::read(&path).unwrap());
        all.insert(path.clone(), (facts.mode(), facts.modified().unwrap(), content));
        if facts.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    all
}

/// Runs to the end; what is told, which must be one sentence that names `path`.
fn refusal(command: &mut Command, path: &Path) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with("deepmq: the data directory ") && stderr.lines().count() == 1, "{stderr}");
    assert!(stderr.contains(path.to_str().unwrap()), "{stderr}");
    stderr
}

#[test]
fn a_newer_format_is_refused_and_nothing_is_changed() {
    let dir = TempDir::new().unwrap();
    let data = used(&dir);
    std::fs::write(data.join("format"), "deepmq-data 2 and whatever it says\n").unwrap();
    let before = seen(dir.path());
    let told = refusal(&mut serve(&program(), &data), &data);
    assert!(told.contains("format version 2, this release knows 1"), "{told}");
    assert_eq!(seen(dir.path()), before);
}

#[test]
fn data_without_the_file_that_says_what_it_is_is_refused_and_nothing_is_changed() {
    let dir = TempDir::new().unwrap();
    let data = used(&dir);
    std::fs::remove_file(data.join("format")).unwrap();
    let before = seen(dir.path());
    let told = refusal(&mut serve(&program(), &data), &data);
    assert!(told.contains("format is missing or damaged"), "{told}");
    assert_eq!(seen(dir.path()), before);
}

#[test]
fn a_file_and_what_would_be_below_it_are_refused_and_nothing_is_changed() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let before = seen(dir.path());
    for path in [file.clone(), file.join("below")] {
        let told = refusal(&mut serve(&program(), &path), &path);
        assert!(told.contains(&format!("{} is not a directory", file.display())), "{told}");
    }
    assert_eq!(seen(dir.path()), before);
}

/// Whether other users can be played here; if not, why a test is skipped.
fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can give files to other users");
    }
    root
}

/// The program where everybody can run it.
fn program_for_all(dir: &TempDir) -> PathBuf {
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("deepmq");
    std::fs::copy(program(), &copy).unwrap();
    std::fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    copy
}

#[test]
fn a_directory_that_belongs_to_another_user_is_refused_naming_both_users() {
    if !is_root() {
        return;
    }
    let (dir, programs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let program = program_for_all(&programs);
    let data = used(&dir);
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let before = seen(dir.path());
    for path in [data.clone(), dir.path().join("new")] {
        let told = refusal(serve(&program, &path).uid(NOBODY).gid(NOBODY), &path);
        assert!(told.contains("not permitted to user 65534") && told.contains("belongs to user 0"), "{told}");
    }
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    let told = refusal(serve(&program, &data).uid(NOBODY).gid(NOBODY), &data);
    assert!(told.contains("not permitted to user 65534") && told.contains("belongs to user 0"), "{told}");
    std::fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(seen(dir.path()), before);
}

#[test]
fn root_is_refused_the_data_of_another_user_who_could_not_open_it_any_more() {
    if !is_root() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let data = used(&dir);
    for path in seen(&data).keys() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = seen(dir.path());
    let told = refusal(&mut serve(&program(), &data), &data);
    assert!(told.contains("not for user 0") && told.contains("belongs to user 65534"), "{told}");
    assert_eq!(seen(dir.path()), before);
}

#[test]
fn a_read_only_file_system_is_refused_and_nothing_is_changed() {
    let (dir, mounted) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let data = used(&dir);
    let Some(_mount) = ReadOnly::mount(dir.path(), mounted.path()) else { return };
    let before = seen(&data);
    for path in [mounted.path().join("data"), mounted.path().join("new")] {
        let told = refusal(&mut serve(&program(), &path), &path);
        assert!(told.contains("is read-only"), "{told}");
    }
    assert_eq!(seen(&data), before);
}

/// A directory mounted read-only at another place, until dropped.
struct ReadOnly(PathBuf);

impl ReadOnly {
    /// None, with a word, where mounting is not permitted.
    fn mount(from: &Path, at: &Path) -> Option<Self> {
        let run = |arguments: &[&str]| {
            let mut mount = Command::new("mount");
            mount.args(arguments).arg(at).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        if !run(&["--bind", from.to_str().unwrap()]) {
            eprintln!("skipped: mounting is not permitted here");
            return None;
        }
        let mounted = Self(at.to_owned());
        if !run(&["-o", "remount,bind,ro"]) {
            eprintln!("skipped: mounting read-only is not permitted here");
            return None;
        }
        Some(mounted)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        // The temporary directory can not be removed then, which the test run outlives.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
