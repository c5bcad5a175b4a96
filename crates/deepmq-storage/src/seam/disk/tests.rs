//! What both disks must do alike, run against each.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn fresh_dir() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("deepmq-disk-{}-{count}", std::process::id()))
}

fn on_both_disks(check: impl Fn(&dyn Disk, &Path)) {
    let real = fresh_dir();
    check(&RealDisk, &real);
    std::fs::remove_dir_all(&real).unwrap();
    check(&SimDisk::new(), Path::new("data"));
}

#[test]
fn directories_are_created_with_their_parents_and_may_exist() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(&root.join("a/b")).unwrap();
        disk.create_dir_all(&root.join("a/b")).unwrap();
        drop(disk.lock(&root.join("a/b/lock")).unwrap());
    });
}

#[test]
fn a_held_lock_is_refused_naming_its_holder_and_free_again_after_the_drop() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(root).unwrap();
        let path = root.join("lock");
        let guard = disk.lock(&path).unwrap();
        let refused = disk.lock(&path).unwrap_err();
        assert!(matches!(&refused, LockError::Held { pid: Some(_), .. }), "{refused:?}");
        assert!(refused.to_string().contains("is locked by process "), "{refused}");
        drop(guard);
        drop(disk.lock(&path).unwrap());
    });
}

#[test]
fn a_lock_in_a_missing_directory_is_an_error_of_the_disk() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(root).unwrap();
        let refused = disk.lock(&root.join("missing/lock")).unwrap_err();
        assert!(matches!(refused, LockError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
    });
}

#[test]
fn a_directory_can_not_be_made_below_a_file() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(root).unwrap();
        let _guard = disk.lock(&root.join("lock")).unwrap();
        let refused = disk.create_dir_all(&root.join("lock/below")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotADirectory);
    });
}

#[test]
fn the_lock_file_holds_the_process_id_and_outlives_the_lock() {
    let root = fresh_dir();
    RealDisk.create_dir_all(&root).unwrap();
    let path = root.join("lock");
    std::fs::write(&path, "4294967295 and more of a stale file\n").unwrap();
    drop(RealDisk.lock(&path).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn files_are_written_and_read_by_position_and_grow_as_needed() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(root).unwrap();
        let file = disk.open(&root.join("a"), OpenMode::Create).unwrap();
        file.write_at(&[b"", b"cd", b"", b"ef"], 2).unwrap();
        file.write_at(&[b"ab"], 0).unwrap();
        let mut buffer = [0; 10];
        assert_eq!(file.read_at(&mut buffer, 1).unwrap(), 5);
        assert_eq!(&buffer[..5], b"bcdef");
        assert_eq!(file.read_at(&mut buffer, 100).unwrap(), 0);
        file.preallocate(9).unwrap();
        assert_eq!(file.size().unwrap(), 9);
        file.preallocate(4).unwrap();
        assert_eq!(file.size().unwrap(), 9);
        file.truncate(3).unwrap();
        file.sync_data().unwrap();
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 3);
        disk.open(&root.join("a"), OpenMode::Read).unwrap().write_at(&[b"x"], 0).unwrap_err();
    });
}

/// Whole pages, and where in them they start.
fn pages(byte: u8) -> (Vec<u8>, usize) {
    let memory = vec![byte; 3 * PAGE_BYTES];
    let start = memory.as_ptr().align_offset(PAGE_BYTES);
    (memory, start)
}

#[test]
fn whole_pages_written_past_the_cache_are_what_others_read() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(root).unwrap();
        let path = root.join("a");
        disk.open(&path, OpenMode::Direct).unwrap_err();
        disk.open(&path, OpenMode::Create).unwrap().write_at(&[&[1; 3 * PAGE_BYTES]], 0).unwrap();
        let (memory, start) = pages(2);
        let file = disk.open(&path, OpenMode::Direct).unwrap();
        file.write_at(&[&memory[start..start + PAGE_BYTES]], PAGE_BYTES as u64).unwrap();
        file.sync_data().unwrap();
        let mut read = vec![0; 3 * PAGE_BYTES];
        assert_eq!(disk.open(&path, OpenMode::Read).unwrap().read_at(&mut read, 0).unwrap(), read.len());
        let expected: Vec<u8> = [1, 2, 1].iter().flat_map(|&byte| [byte; PAGE_BYTES]).collect();
        assert!(read == expected);
    });
}

#[test]
fn what_a_disk_does_not_take_past_the_cache_goes_through_it() {
    let root = fresh_dir();
    std::fs::create_dir_all(&root).unwrap();
    let path = root.join("a");
    RealDisk.open(&path, OpenMode::Create).unwrap();
    let file = RealDisk.open(&path, OpenMode::Direct).unwrap();
    file.write_at(&[b"no page"], 3).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0no page");
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn the_simulated_disk_takes_nothing_but_whole_pages_past_the_cache() {
    let disk = SimDisk::new();
    let path = Path::new("data/a");
    disk.create_dir_all(Path::new("data")).unwrap();
    disk.open(path, OpenMode::Create).unwrap();
    let file = disk.open(path, OpenMode::Direct).unwrap();
    let (memory, start) = pages(3);
    let refused = [(start, PAGE_BYTES, 1), (start + 1, PAGE_BYTES, 0), (start, PAGE_BYTES - 1, 0)];
    for (from, bytes, offset) in refused {
        let error = file.write_at(&[&memory[from..from + bytes]], offset).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
    file.write_at(&[&memory[start..start + PAGE_BYTES]], PAGE_BYTES as u64).unwrap();
}

#[test]
fn names_are_listed_renamed_and_removed() {
    on_both_disks(|disk, root| {
        disk.create_dir_all(&root.join("d/inner")).unwrap();
        for name in ["b", "a"] {
            disk.open(&root.join(name), OpenMode::Create).unwrap().write_at(&[name.as_bytes()], 0).unwrap();
        }
        disk.rename(&root.join("b"), &root.join("a")).unwrap();
        let entry = |name: &str, is_dir| Entry { name: name.to_owned(), is_dir };
        assert_eq!(disk.list(root).unwrap(), [entry("a", false), entry("d", true)]);
        let mut content = [0; 2];
        let read = disk.open(&root.join("a"), OpenMode::Read).unwrap().read_at(&mut content, 0).unwrap();
        assert_eq!(&content[..read], b"b");
        disk.sync_dir(root).unwrap();
        assert_eq!(disk.remove_dir(&root.join("d")).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        disk.remove_dir(&root.join("d/inner")).unwrap();
        disk.remove(&root.join("a")).unwrap();
        assert_eq!(disk.remove(&root.join("a")).unwrap_err().kind(), io::ErrorKind::NotFound);
        let missing = disk.open(&root.join("a"), OpenMode::Write).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(disk.free_bytes(root).unwrap() > 0);
    });
}

/// A synced file `/kept` of 1,024 bytes of 1, then un-synced: 2 written over it, and a file `/new`.
fn half_synced() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/")).unwrap();
    let file = disk.open(Path::new("/kept"), OpenMode::Create).unwrap();
    file.write_at(&[&[1; 1024]], 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_at(&[&[2; 1024]], 0).unwrap();
    disk.open(Path::new("/new"), OpenMode::Create).unwrap();
    disk
}

fn sectors(disk: &SimDisk) -> Vec<u8> {
    let mut bytes = [0; 1024];
    assert_eq!(disk.open(Path::new("/kept"), OpenMode::Read).unwrap().read_at(&mut bytes, 0).unwrap(), 1024);
    bytes.chunks(512).map(|sector| *sector.iter().max().unwrap()).collect()
}

#[test]
fn a_crash_keeps_what_was_synced_and_any_sectors_of_the_rest() {
    let disk = half_synced();
    let named = |seed| disk.crash(seed).list(Path::new("/")).unwrap().len();
    assert_eq!([0, 1, 2, 3].map(|kind| named(kind << 2)).map(|names| (1..=2).contains(&names)), [true; 4]);
    assert_eq!((named(0), named(0b0100)), (1, 2));
    let outcomes: std::collections::BTreeSet<_> =
        (0..256).filter(|seed| seed >> 2 & 3 == 1).map(|seed| sectors(&disk.crash(seed))).collect();
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [[1, 1], [1, 2], [2, 1], [2, 2]]);
    assert_eq!(sectors(&disk.crash(0b0100)), [1, 1]);
    assert_eq!(sectors(&disk.image()), [2, 2]);
}

#[test]
fn the_asked_operation_fails_and_after_a_crash_all_do() {
    let disk = half_synced();
    let done = disk.operations();
    disk.fail_at(done + 2, 28);
    let file = disk.open(Path::new("/kept"), OpenMode::Write).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(28));
    file.sync_data().unwrap();
    disk.crash_at(disk.operations());
    file.sync_data().unwrap_err();
    disk.remove(Path::new("/kept")).unwrap_err();
    assert_eq!(sectors(&disk), [2, 2]);
}

#[test]
fn the_disk_is_kept_as_it_was_before_each_operation() {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/")).unwrap();
    assert!(disk.keep_moments(true).is_empty());
    let file = disk.open(Path::new("/file"), OpenMode::Create).unwrap();
    file.write_at(&[b"one"], 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_at(&[b"two"], 0).unwrap();
    let content = |disk: &SimDisk| {
        let file = disk.open(Path::new("/file"), OpenMode::Read).ok()?;
        let mut bytes = [0; 3];
        let read = file.read_at(&mut bytes, 0).unwrap();
        Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
    };
    let moments = disk.keep_moments(false);
    let live: Vec<_> = moments.iter().map(|moment| content(&moment.image())).collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(live, [None, text(""), text("one"), text("one"), text("one")]);
    let crashed: Vec<_> = moments.iter().map(|moment| content(&moment.crash(0))).collect();
    assert_eq!(crashed, [None, None, None, None, text("one")]);
    file.sync_data().unwrap();
    assert!(disk.keep_moments(false).is_empty(), "nothing is kept any more");
}
