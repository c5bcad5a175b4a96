//! Marks, waiters, group commit and files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use crate::seam::{Disk, SimClock, SimDisk};
use crate::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn woken(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn open(disk: &SimDisk, journal_file_bytes: u64) -> Store {
    let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::simulated(1) };
    let options = Options { journal_file_bytes, ..Options::default() };
    Store::open(&seam, Path::new("/data"), options).unwrap().0
}

fn append(store: &Store, durability: Durability, body: &[u8]) -> Result<Appended, AppendError> {
    let mut batch = BatchBuilder::new();
    let index = batch.message(0, 0, [b"", b"", body]);
    batch.place(1, 0, [index]);
    store.journal().append(batch.finish(), durability)
}

#[test]
fn one_sync_serves_all_that_gathered_and_wakes_each_waiter_once() {
    let disk = SimDisk::new();
    let store = open(&disk, 1 << 20);
    let journal = store.journal();
    let count = Arc::new(Count::default());
    let wakers: Vec<Waker> = (0..10).map(|_| Waker::from(Arc::new(Count::default()))).collect();
    let counted = Waker::from(Arc::clone(&count));
    append(&store, Durability::Fsync, b"first").unwrap();
    journal.run_once().unwrap();
    let before = disk.operations();
    for waker in &wakers {
        let lsn = append(&store, Durability::Fsync, b"more").unwrap().lsn;
        assert!(journal.poll(lsn, Durability::Fsync, waker).is_pending());
        assert!(journal.poll(lsn, Durability::Fsync, &counted).is_pending());
        assert!(journal.poll(lsn, Durability::Fsync, &counted).is_pending());
    }
    assert!(journal.pending_bytes() > 10 * 4);
    assert!(journal.run_once().unwrap());
    assert_eq!(disk.operations() - before, 2, "one write, one sync");
    assert_eq!(count.woken(), 1);
    assert_eq!(journal.durable(), journal.appended());
    assert!(matches!(journal.poll(Lsn(11), Durability::Fsync, &counted), Poll::Ready(Ok(()))));
    assert!(!journal.run_once().unwrap(), "nothing is left");
}

#[test]
fn what_asked_for_no_sync_is_written_and_becomes_durable_with_a_later_one() {
    let disk = SimDisk::new();
    let store = open(&disk, 1 << 20);
    let journal = store.journal();
    let lsn = append(&store, Durability::Os, b"x").unwrap().lsn;
    journal.run_once().unwrap();
    journal.wait(lsn, Durability::Os).unwrap();
    assert_eq!(journal.durable(), Lsn(0));
    journal.request_sync();
    journal.run_once().unwrap();
    assert_eq!(journal.durable(), lsn);
}

#[test]
fn after_a_failed_sync_no_mark_moves_and_everyone_is_told_the_first_error() {
    let disk = SimDisk::new();
    let store = open(&disk, 1 << 20);
    let journal = store.journal();
    append(&store, Durability::Fsync, b"kept").unwrap();
    journal.run_once().unwrap();
    let durable = journal.durable();
    let lsn = append(&store, Durability::Fsync, b"lost").unwrap().lsn;
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert!(journal.poll(lsn, Durability::Fsync, &waker).is_pending());
    disk.fail_at(disk.operations() + 2, 5);
    assert_eq!(journal.run_once().unwrap_err().operation(), "sync");
    assert_eq!(count.woken(), 1);
    let Poll::Ready(Err(told)) = journal.poll(lsn, Durability::Fsync, &waker) else { panic!("not told") };
    assert_eq!(told.errno(), Some(5));
    assert_eq!(journal.wait(lsn, Durability::Fsync).unwrap_err().errno(), Some(5));
    assert!(matches!(append(&store, Durability::Os, b"late"), Err(AppendError::Failed(_))));
    let operations = disk.operations();
    assert_eq!(journal.close().unwrap_err().errno(), Some(5));
    assert_eq!(disk.operations(), operations, "a sync is not tried again");
    assert_eq!(journal.durable(), durable);
    assert_eq!(journal.failure().and_then(StorageFailure::errno), Some(5));
}

#[test]
fn a_record_longer_than_a_file_gets_one_of_its_own() {
    let disk = SimDisk::new();
    let store = open(&disk, 1024);
    for size in [10, 5000, 10, 10] {
        append(&store, Durability::Fsync, &vec![1; size]).unwrap();
    }
    store.journal().run_once().unwrap();
    let names = disk.list(Path::new("/data/journal")).unwrap();
    assert_eq!(names.len(), 3, "{names:?}");
    drop(store);
    let seam = Seam { disk: Arc::new(disk.image()), ..Seam::simulated(1) };
    let (store, recovered) = Store::open(&seam, Path::new("/data"), Options::default()).unwrap();
    assert_eq!((store.journal().durable(), recovered.damage), (Lsn(4), Vec::new()));
}

#[test]
fn files_are_recycled_so_that_a_queue_that_keeps_up_takes_no_more_of_them() {
    let disk = SimDisk::new();
    let store = open(&disk, 1024);
    for round in 0..200 {
        let mut batch = BatchBuilder::new();
        let index = batch.message(0, 0, [b"", b"", &[7; 100]]);
        batch.place(1, round, [index]);
        batch.settle(1, std::iter::once(round..round + 1));
        store.journal().append(batch.finish(), Durability::Fsync).unwrap();
        store.journal().run_once().unwrap();
        while let Some(reclaim) = store.oldest() {
            assert!(
                reclaim.queues.iter().all(|blocker| blocker.queue == 1 && blocker.placed_end <= round + 1)
            );
            let settled = std::iter::once(0..round + 1).collect();
            let state = QueueState { queue: 1, next: round + 1, settled, counts: Vec::new() };
            store.checkpoint(&[state], Some(reclaim.file)).unwrap();
            store.journal().run_once().unwrap();
            assert!(store.recycle_oldest().unwrap());
        }
    }
    assert!(disk.list(Path::new("/data/journal")).unwrap().len() <= 2);
    assert!(disk.list(Path::new("/data/queues")).unwrap().is_empty());
    drop(store);
    let seam = Seam { disk: Arc::new(disk.image()), ..Seam::simulated(1) };
    let (_, recovered) = Store::open(&seam, Path::new("/data"), Options::default()).unwrap();
    assert_eq!(recovered.damage, []);
    assert_eq!(recovered.queues[&1].state.next, 200);
    assert!(recovered.placed.is_empty());
}

#[test]
fn files_that_were_given_up_are_used_again_also_after_a_restart() {
    let journal_files = |disk: &SimDisk| {
        let entries = disk.list(Path::new("/data/journal")).unwrap();
        entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    let (disk, settle) = (SimDisk::new(), |store: &Store, sequences: std::ops::Range<u64>| {
        for sequence in sequences {
            let mut batch = BatchBuilder::new();
            let index = batch.message(0, 0, [b"", b"", &[7; 3000]]);
            batch.place(1, sequence, [index]);
            batch.settle(1, std::iter::once(sequence..sequence + 1));
            store.journal().append(batch.finish(), Durability::Fsync).unwrap();
            store.journal().run_once().unwrap();
        }
    });
    let store = open(&disk, 4096);
    settle(&store, 0..6);
    while let Some(reclaim) = store.oldest() {
        let settled = std::iter::once(0..6).collect();
        let state = QueueState { queue: 1, next: 6, settled, counts: Vec::new() };
        store.checkpoint(&[state], Some(reclaim.file)).unwrap();
        store.journal().run_once().unwrap();
        assert!(store.recycle_oldest().unwrap());
    }
    let kept = journal_files(&disk);
    assert!(kept.len() > 3, "{kept:?}");
    drop(store);
    let disk = disk.image();
    let store = open(&disk, 4096);
    assert_eq!(journal_files(&disk), kept);
    settle(&store, 6..8);
    assert_eq!(journal_files(&disk), kept, "no file is new");
    store.remove_spares().unwrap();
    assert!(journal_files(&disk).len() < kept.len());
    drop(store);
    let seam = Seam { disk: Arc::new(disk.image()), ..Seam::simulated(1) };
    let (_, recovered) = Store::open(&seam, Path::new("/data"), Options::default()).unwrap();
    assert_eq!((recovered.queues[&1].state.next, recovered.damage), (8, Vec::new()));
}

#[test]
fn many_threads_append_and_each_finds_its_record_durable() {
    let disk = SimDisk::new();
    let store = Arc::new(open(&disk, 4096));
    let thread = JournalThread::start(Arc::clone(store.journal())).unwrap();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let lsn = append(&store, Durability::Fsync, &[3; 60]).unwrap().lsn;
                    store.journal().wait(lsn, Durability::Fsync).unwrap();
                    assert!(store.journal().durable() >= lsn);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    thread.stop().unwrap();
    assert_eq!(store.journal().durable(), Lsn(200));
    assert!(matches!(append(&store, Durability::Fsync, b""), Err(AppendError::Closed)));
}

/// Fills a disk up to so many bytes left, with files of 4 KiB.
fn nearly_full(left: u64) -> (SimDisk, Store) {
    let disk = SimDisk::new();
    let store = open(&disk, 4096);
    append(&store, Durability::Fsync, b"first").unwrap();
    store.journal().run_once().unwrap();
    disk.set_free_bytes(left);
    (disk, store)
}

#[test]
fn without_space_for_the_next_file_this_one_is_used_up_and_then_records_wait_in_memory() {
    let (disk, store) = nearly_full(4095);
    let journal = store.journal();
    let mut written = 0;
    while !journal.stalled.load(Ordering::Relaxed) {
        append(&store, Durability::Fsync, &[1; 100]).unwrap();
        journal.run_once().unwrap();
        written += 1;
        assert_eq!(
            journal.is_short(),
            store.journal_bytes() >= 2048 || journal.stalled.load(Ordering::Relaxed)
        );
    }
    assert!(store.journal_bytes() > 3500, "{} bytes", store.journal_bytes());
    assert_eq!(journal.durable(), Lsn(written), "the last waits");
    assert_eq!(disk.list(Path::new("/data/journal")).unwrap().len(), 1, "nothing is left of the attempts");
    let waker = Waker::from(Arc::new(Count::default()));
    let late = append(&store, Durability::Fsync, b"late").unwrap().lsn;
    journal.run_once().unwrap();
    assert!(journal.poll(late, Durability::Fsync, &waker).is_pending());
    assert_eq!(journal.failure().map(ToString::to_string), None);
    disk.set_free_bytes(4096);
    while journal.run_once().unwrap() {}
    assert_eq!(journal.durable(), late);
    assert!(!journal.is_short());
    drop(store);
    let seam = Seam { disk: Arc::new(disk.image()), ..Seam::simulated(1) };
    let (store, recovered) = Store::open(&seam, Path::new("/data"), Options::default()).unwrap();
    assert_eq!((store.journal().durable(), recovered.damage), (late, Vec::new()));
}

#[test]
fn room_is_made_once_there_is_space_again_before_it_is_needed() {
    let (disk, store) = nearly_full(100);
    let journal = store.journal();
    for _ in 0..12 {
        append(&store, Durability::Fsync, &[1; 60]).unwrap();
        journal.run_once().unwrap();
    }
    assert!(journal.is_short());
    journal.make_room().unwrap();
    assert!(journal.is_short(), "there still is none");
    disk.set_free_bytes(5000);
    journal.make_room().unwrap();
    assert!(!journal.is_short());
    assert_eq!(disk.list(Path::new("/data/journal")).unwrap().len(), 2);
}

#[test]
fn an_old_file_that_is_given_up_is_room_for_what_waits() {
    let disk = SimDisk::new();
    let store = open(&disk, 2048);
    let journal = store.journal();
    let settle = |sequence: u64, size: usize| {
        let mut batch = BatchBuilder::new();
        let index = batch.message(0, 0, [b"", b"", &vec![7; size]]);
        batch.place(1, sequence, [index]);
        batch.settle(1, std::iter::once(sequence..sequence + 1));
        journal.append(batch.finish(), Durability::Fsync).unwrap();
        journal.run_once().unwrap();
    };
    (0..2).for_each(|sequence| settle(sequence, 1000));
    disk.set_free_bytes(0);
    let mut next = 2;
    while !journal.is_short() {
        settle(next, 200);
        next += 1;
    }
    let reclaim = store.oldest().unwrap();
    let settled = std::iter::once(0..next).collect();
    let state = QueueState { queue: 1, next, settled, counts: Vec::new() };
    store.checkpoint(&[state], Some(reclaim.file)).unwrap();
    journal.run_once().unwrap();
    while !journal.stalled.load(Ordering::Relaxed) {
        settle(next, 200);
        next += 1;
    }
    assert!(store.recycle_oldest().unwrap());
    while journal.run_once().unwrap() {}
    assert_eq!(journal.durable(), journal.appended());
}

#[test]
fn the_thread_tries_again_by_itself() {
    let (disk, store) = nearly_full(0);
    let thread = JournalThread::start(Arc::clone(store.journal())).unwrap();
    for _ in 0..50 {
        append(&store, Durability::Fsync, &[1; 100]).unwrap();
    }
    while !store.journal().is_short() {
        std::thread::yield_now();
    }
    disk.set_free_bytes(1 << 20);
    store.journal().wait(Lsn(51), Durability::Fsync).unwrap();
    thread.stop().unwrap();
}

#[test]
fn closing_without_space_says_so_and_can_be_tried_again() {
    let (disk, store) = nearly_full(0);
    let journal = store.journal();
    append(&store, Durability::Fsync, &[1; 5000]).unwrap();
    assert!(journal.close().unwrap_err().is_out_of_space());
    assert!(matches!(append(&store, Durability::Os, b"late"), Err(AppendError::Closed)));
    disk.set_free_bytes(1 << 20);
    journal.close().unwrap();
    drop(store);
    let seam = Seam { disk: Arc::new(disk.image()), ..Seam::simulated(1) };
    let (store, recovered) = Store::open(&seam, Path::new("/data"), Options::default()).unwrap();
    assert!(recovered.clean);
    assert_eq!(store.journal().durable(), Lsn(2));
}

#[test]
fn each_sync_and_each_group_that_was_waited_for_is_measured_once() {
    let clock = Arc::new(SimClock::new());
    let seam = Seam { clock: clock.clone(), ..Seam::simulated(1) };
    let store = Store::open(&seam, Path::new("/data"), Options::default()).unwrap().0;
    let journal = store.journal();
    append(&store, Durability::Os, b"nobody waits").unwrap();
    journal.run_once().unwrap();
    assert_eq!(journal.latencies().commits.counts.iter().sum::<u64>(), 0);
    append(&store, Durability::Fsync, b"first").unwrap();
    clock.advance(Duration::from_millis(7));
    append(&store, Durability::Fsync, b"second").unwrap();
    journal.run_once().unwrap();
    let JournalLatencies { syncs, commits } = journal.latencies();
    assert_eq!((commits.counts.iter().sum::<u64>(), commits.sum), (1, Duration::from_millis(7)));
    assert_eq!(commits.counts[LATENCY_BOUNDS.partition_point(|bound| bound.as_millis() < 7)], 1);
    assert_eq!(syncs.counts.iter().sum::<u64>(), 1);
}
