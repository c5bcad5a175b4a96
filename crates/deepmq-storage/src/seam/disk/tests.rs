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
