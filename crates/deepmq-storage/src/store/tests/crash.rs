//! The store after a crash at every operation, and after every failure.

use super::workload::{Model, Step, Stopped, open, run, step};
use crate::seam::SimDisk;
use crate::{BatchBuilder, Durability, Lsn};
use proptest::prelude::*;

/// The kinds of a crash: of file contents, and of names.
const KINDS: std::ops::Range<u64> = 0..16;
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn publish(queues: &[u64], messages: u8, size: u16) -> Step {
    Step::Publish { queues: queues.to_vec(), messages, size, durability: Durability::Fsync }
}

/// Something of everything, with many files.
fn script() -> Vec<Step> {
    let mut steps = vec![Step::Topology { deletes: None }, publish(&[1, 2], 3, 40), Step::Run];
    for round in 0..3 {
        steps.extend([
            publish(&[1], 4, 150),
            Step::Publish { queues: vec![3], messages: 2, size: 10, durability: Durability::Os },
            Step::Run,
            Step::SettleFirst { queue: 2 },
            publish(&[2, 3], 5, 90),
            Step::Settle { queue: 1, every: 2 },
            Step::Run,
            Step::PageOut { queue: 1 },
            Step::Checkpoint { queue: 1 },
            Step::Topology { deletes: (round == 1).then_some(3) },
            Step::Reclaim { carry: round == 1 },
            publish(&[1, 2, 3], 3, 199),
            Step::Snapshot,
            Step::Purge { queue: 1 },
            Step::Checkpoint { queue: 1 },
            Step::Run,
            Step::Reclaim { carry: round == 0 },
            Step::Reopen { clean: round == 0 },
        ]);
    }
    steps
}

/// Opens what a crash left, checks it against the promise, goes on for a while, and checks again after another.
fn check(disk: &SimDisk, model: &Model, when: &str) {
    let (store, recovered) = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    model.check(&store, &recovered, when);
    let again = disk.image();
    drop(store);
    let (store, recovered) = open(&again).unwrap_or_else(|error| panic!("{when}, again: {error}"));
    model.check(&store, &recovered, &format!("{when}, opened again"));
    assert_eq!(recovered.torn_bytes, 0, "{when}: cut once");

    let mut batch = BatchBuilder::new();
    let index = batch.message(0, 5, [b"to", b"", b"later"]);
    batch.place(9, 0, [index]);
    let lsn = store.journal().append(batch.finish(), Durability::Fsync).unwrap().lsn;
    store.journal().run_once().unwrap();
    store.journal().wait(lsn, Durability::Fsync).unwrap();
    let after = again.crash(lsn.0 * 4);
    let (store, recovered) = open(&after).unwrap_or_else(|error| panic!("{when}, later: {error}"));
    let mut later = 0;
    recovered.replay(&store, |queue, _, _| later += u64::from(queue == 9)).unwrap();
    assert_eq!(later, 1, "{when}: what is written after the crash is found");
    let mut without = recovered;
    without.queues.remove(&9);
    without.placed.remove(&9);
    model.check(&store, &without, &format!("{when}, crashed again"));
}

fn operations(steps: &[Step]) -> u64 {
    let disk = SimDisk::new();
    let (_, outcome) = run(&disk, steps);
    outcome.expect("nothing fails on a sound disk");
    disk.operations()
}

fn crash_everywhere(steps: &[Step], every: usize, kinds: impl Fn(u64) -> Vec<u64>) {
    for stop in (0..=operations(steps)).step_by(every) {
        let disk = SimDisk::new();
        disk.crash_at(stop);
        let (model, _) = run(&disk, steps);
        for kind in kinds(stop) {
            let seed = kind + 16 * (stop + 1);
            check(&disk.crash(seed), &model, &format!("crash at operation {stop}, seed {seed}"));
        }
    }
}

#[test]
fn a_sound_disk_keeps_all_promises() {
    let disk = SimDisk::new();
    let (model, outcome) = run(&disk, &script());
    outcome.unwrap();
    assert!(model.durable > Lsn(20));
    check(&disk.image(), &model, "at the end");
}

#[test]
fn no_promise_is_broken_by_a_crash_at_any_operation() {
    crash_everywhere(&script(), 1, |_| KINDS.collect());
}

/// What a killed process left to the operating system is durable once the next one says so.
#[test]
fn what_is_found_at_the_start_is_durable_from_then_on() {
    let written = Step::Publish { queues: vec![1], messages: 3, size: 50, durability: Durability::Os };
    crash_everywhere(&[written, Step::Run, Step::Reopen { clean: false }, Step::Run], 1, |_| KINDS.collect());
}

/// The names of files that were removed may be back after a crash, when nothing tells any more that they had to go.
#[test]
fn a_deleted_queue_does_not_come_back_after_its_deletion_is_given_up() {
    let mut steps = vec![publish(&[1], 5, 100), Step::PageOut { queue: 1 }, Step::Checkpoint { queue: 1 }];
    steps.extend([Step::Topology { deletes: Some(1) }, Step::Snapshot]);
    for _ in 0..5 {
        steps.extend([publish(&[2], 5, 199), Step::Reclaim { carry: false }, Step::Purge { queue: 2 }]);
    }
    crash_everywhere(&steps, 1, |_| KINDS.collect());
}

#[test]
fn no_promise_is_broken_by_a_crash_while_opening_after_a_crash() {
    for stop in (0..=operations(&script())).step_by(3) {
        let disk = SimDisk::new();
        disk.crash_at(stop);
        let (model, _) = run(&disk, &script());
        let seed = ((stop * 7) % 16) | 2;
        let left = disk.crash(seed);
        let opened = left.image();
        drop(open(&opened).unwrap());
        for second in 0..opened.operations() {
            let again = left.image();
            again.crash_at(second);
            drop(open(&again));
            let when = format!("crash at operation {stop}, seed {seed}, and at {second} of opening");
            check(&again.crash(seed + second), &model, &when);
        }
    }
}

#[test]
fn a_failed_operation_is_the_last_and_what_was_promised_before_is_kept() {
    for at in 1..=operations(&script()) {
        let (disk, model, _) = run_failing(at, EIO);
        for seed in [at * 16, at * 16 + 15] {
            check(&disk.crash(seed), &model, &format!("operation {at} fails, seed {seed}"));
        }
    }
}

#[test]
fn what_finds_no_space_is_done_later_and_no_promise_is_broken() {
    let mut went_on = 0;
    for at in 1..=operations(&script()) {
        let (disk, model, outcome) = run_failing(at, ENOSPC);
        went_on += u64::from(outcome.is_ok());
        for (kind, left) in
            [("end", disk.image()), ("crash", disk.crash(at * 16)), ("crash", disk.crash(at * 16 + 15))]
        {
            check(&left, &model, &format!("no space for operation {at}, {kind}"));
        }
    }
    // All but syncs, names, and what the first start needs.
    assert!(went_on > operations(&script()) / 3, "{went_on} of {}", operations(&script()));
}

fn run_failing(at: u64, errno: i32) -> (SimDisk, Model, Result<(), Stopped>) {
    let disk = SimDisk::new();
    disk.fail_at(at, errno);
    let (model, outcome) = run(&disk, &script());
    (disk, model, outcome)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_promise_is_broken_whatever_was_done_before_the_crash(
        steps in prop::collection::vec(step(), 1..60),
        stops in prop::collection::vec(any::<(u16, u8)>(), 6),
    ) {
        let all = operations(&steps);
        for (stop, seed) in stops {
            let disk = SimDisk::new();
            disk.crash_at(u64::from(stop) % (all + 1));
            let (model, _) = run(&disk, &steps);
            check(&disk.crash(seed.into()), &model, &format!("crash at operation {stop} of {all}, seed {seed}"));
        }
    }
}
