//! What is refused, and that nothing is changed by it.

use std::path::Path;

use super::workload::{ROOT, open, seam, tiny};
use crate::seam::{Disk, OpenMode, Owner, SimDisk};
use crate::*;

fn refused(disk: &SimDisk) -> OpenError {
    open(disk).map(|_| ()).unwrap_err()
}

fn used() -> SimDisk {
    let disk = SimDisk::new();
    let (store, recovered) = open(&disk).unwrap();
    assert!(recovered.clean && recovered.queues.is_empty() && recovered.snapshot.is_none());
    store.append_topology(&[], b"change").unwrap();
    store.journal().close().unwrap();
    disk.image()
}

#[test]
fn a_directory_in_use_is_refused_naming_who_uses_it() {
    let disk = SimDisk::new();
    let _held = open(&disk).unwrap();
    assert_eq!(refused(&disk).to_string(), "/data is in use by process 1");
}

#[test]
fn a_read_only_directory_is_refused() {
    for disk in [SimDisk::new(), used()] {
        disk.set_read_only(true);
        assert!(matches!(refused(&disk), OpenError::ReadOnly { .. }));
    }
}

#[test]
fn the_data_of_another_user_is_refused_to_root_who_would_lock_its_owner_out() {
    let disk = used();
    let before = disk.operations();
    disk.set_owner(Owner { of_file: 7, of_process: 0 });
    let told = "/data is not for user 0, whom this broker runs as, for it belongs to user 7";
    assert_eq!(refused(&disk).to_string(), told);
    assert_eq!(disk.operations(), before);
    for allowed in [Owner { of_file: 7, of_process: 7 }, Owner { of_file: 0, of_process: 7 }] {
        disk.set_owner(allowed);
        open(&disk).unwrap();
    }
}

#[test]
fn what_is_no_directory_is_refused_by_its_name_and_nothing_is_changed() {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/")).unwrap();
    disk.open(Path::new(ROOT), OpenMode::Create).unwrap();
    let before = disk.operations();
    assert_eq!(refused(&disk).to_string(), "/data is not a directory");
    assert_eq!(disk.operations(), before);
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new(ROOT)).unwrap();
    disk.open(&Path::new(ROOT).join("journal"), OpenMode::Create).unwrap();
    let before = disk.operations();
    assert_eq!(refused(&disk).to_string(), "/data/journal is not a directory");
    assert_eq!(disk.operations(), before);
}

#[test]
fn a_newer_or_unknown_format_is_refused_and_nothing_is_changed() {
    let disk = used();
    let path = Path::new(ROOT).join("format");
    let write = |text: &[u8]| {
        let file = disk.open(&path, OpenMode::Create).unwrap();
        file.write_at(&[text], 0).unwrap();
        disk.operations()
    };
    let before = write(b"deepmq-data 2 and more\n");
    assert_eq!(refused(&disk).to_string(), "/data has format version 2, this release knows 1");
    assert_eq!(disk.operations(), before);
    let before = write(b"nonsense");
    assert!(matches!(refused(&disk), OpenError::UnknownFormat { .. }));
    disk.remove(&path).unwrap();
    assert!(matches!(refused(&disk), OpenError::UnknownFormat { .. }));
    assert_eq!(disk.operations(), before + 1);
}

#[test]
fn a_directory_is_opened_on_a_full_disk() {
    let disk = used();
    let image = disk.image();
    let before = image.operations();
    let (store, recovered) = open(&image).unwrap();
    assert_eq!(recovered.topology.len(), 1);
    assert_eq!(image.operations(), before, "a clean start writes nothing");
    drop((store, recovered));
}

#[test]
fn it_works_on_a_real_disk() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("data");
    let seam = Seam { disk: Seam::real().disk, ..seam(&SimDisk::new()) };
    {
        let (store, _) = Store::open(&seam, &root, tiny()).unwrap();
        let thread = JournalThread::start(std::sync::Arc::clone(store.journal())).unwrap();
        let mut batch = BatchBuilder::new();
        for sequence in 0..100 {
            batch.begin();
            let index = batch.message(0, 5, [b"a", b"p", b"body"]);
            batch.place(1, sequence, [index]);
            store.journal().append(batch.finish(), Durability::Fsync).unwrap();
        }
        let last = store.journal().appended();
        store.journal().wait(last, Durability::Fsync).unwrap();
        let block =
            NewBlock { sequences: 0..50, messages: 50, times: (5, 5), bytes: &[b"fifty", b" messages"] };
        store.append_block(1, &block).unwrap();
        let state = QueueState { queue: 1, next: 100, ..QueueState::default() };
        store.checkpoint(&[state], None).unwrap();
        thread.stop().unwrap();
        assert!(Store::open(&seam, &root, tiny()).is_err(), "in use");
    }
    let (store, recovered) = Store::open(&seam, &root, tiny()).unwrap();
    assert!(recovered.clean && recovered.damage.is_empty());
    let mut sequences = Vec::new();
    recovered
        .replay(&store, |_, sequence, message| {
            assert_eq!(message.body, b"body");
            sequences.push(sequence);
        })
        .unwrap();
    assert_eq!(sequences, (50..100).collect::<Vec<_>>());
    let block = store.find_block(1, 49).unwrap().unwrap();
    assert_eq!(store.read_block(1, &block).unwrap(), b"fifty messages");
}

#[test]
fn the_reserve_is_space_for_what_makes_room_on_a_full_disk() {
    let disk = SimDisk::new();
    let (store, _) = open(&disk).unwrap();
    store.keep_reserve().unwrap();
    disk.set_free_bytes(0);
    let full = store.write_snapshot(Lsn(0), b"all there is").unwrap_err();
    assert!(full.is_out_of_space(), "{full}");
    store.use_reserve().unwrap();
    store.write_snapshot(Lsn(0), b"all there is").unwrap();
    disk.set_free_bytes(1000);
    store.keep_reserve().unwrap();
    store.use_reserve().unwrap();
    assert_eq!(disk.free_bytes(Path::new(ROOT)).unwrap(), 1000, "too little to keep is left alone");
    assert!(store.journal().failure().is_none());
}
