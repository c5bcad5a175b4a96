//! Every byte of a small data directory, changed.

use std::collections::BTreeMap;

use super::workload::{open, present};
use crate::seam::SimDisk;
use crate::*;

type Messages = BTreeMap<(u64, u64), Vec<u8>>;

fn publish(store: &Store, queue: u64, first: u64, count: u32) {
    let mut batch = BatchBuilder::new();
    let indexes: Vec<_> =
        (0..count).map(|at| batch.message(0, 5, [b"to", b"", format!("{queue}/{at}").as_bytes()])).collect();
    batch.place(queue, first, indexes);
    batch.settle(queue, std::iter::once(first..first + 1));
    store.journal().append(batch.finish(), Durability::Fsync).unwrap();
    store.journal().run_once().unwrap();
}

/// A directory with something of everything, closed in order or killed.
fn directory(clean: bool) -> (SimDisk, Messages) {
    let disk = SimDisk::new();
    let (store, _) = open(&disk).unwrap();
    store.append_topology(&[], b"one").unwrap();
    publish(&store, 1, 0, 4);
    store.write_snapshot(store.journal().appended(), b"snapshot").unwrap();
    store.append_topology(&[], b"two").unwrap();
    for block in 0..3_u64 {
        let first = 10 * block;
        let mut bytes = Vec::new();
        for sequence in first..first + 9 {
            bytes.extend(sequence.to_le_bytes());
            bytes.extend(30_u16.to_le_bytes());
            bytes.extend([7; 30]);
        }
        let block = NewBlock { sequences: first..first + 9, messages: 9, times: (5, 5), bytes: &[&bytes] };
        store.append_block(2, &block).unwrap();
    }
    let settled = std::iter::once(0..2).collect();
    store.checkpoint(&[QueueState { queue: 2, next: 40, settled, counts: Vec::new() }], None).unwrap();
    for round in 0..12 {
        publish(&store, 3, 10 * round, 3);
    }
    if clean {
        store.journal().close().unwrap();
    }
    let image = disk.image();
    let (store, recovered) = open(&image).unwrap();
    assert_eq!(recovered.damage, []);
    assert!(store.journal_bytes() > 1536, "several files");
    assert_eq!(store.segment_stats(2).segments, 2);
    (disk, present(&store, &recovered, |_| panic!("nothing is damaged")))
}

/// What is served is right, and what is missing or back is reported.
fn check(disk: &SimDisk, all: &Messages, when: &str) -> bool {
    let (store, recovered) = match open(disk) {
        Ok(opened) => opened,
        Err(
            OpenError::SnapshotDamaged { .. }
            | OpenError::NewerFormat { .. }
            | OpenError::UnknownFormat { .. },
        ) => {
            return true;
        }
        Err(error) => panic!("{when}: {error}"),
    };
    let mut reported = !recovered.damage.is_empty() || recovered.torn_bytes > 0;
    let found = present(&store, &recovered, |_| reported = true);
    assert_eq!(recovered.snapshot.as_deref(), Some(b"snapshot".as_slice()), "{when}");
    assert!(recovered.topology.iter().all(|(_, bytes)| bytes == b"two"), "{when}");
    for (key, body) in &found {
        match all.get(key) {
            Some(right) => assert_eq!(body, right, "{when}: {key:?}"),
            None => assert!(reported, "{when}: {key:?} is back, and nothing says so"),
        }
    }
    let complete = found.len() >= all.len() && recovered.topology.len() == 1;
    assert!(complete || reported, "{when}: {} of {} are there, and nothing says so", found.len(), all.len());
    reported
}

#[test]
fn no_changed_byte_makes_a_wrong_message_or_goes_unnoticed_where_it_matters() {
    for clean in [true, false] {
        let (disk, all) = directory(clean);
        let mut reported = 0;
        for (path, bytes) in disk.image().files() {
            for at in 0..usize::try_from(bytes).unwrap() {
                let changed = disk.image();
                changed.flip(&path, at, if at % 2 == 0 { 0x01 } else { 0x80 });
                let when = format!("byte {at} of {}, clean {clean}", path.display());
                reported += usize::from(check(&changed, &all, &when));
            }
        }
        assert!(reported > 2000, "{reported} reported");
    }
}

#[test]
fn a_hole_of_zeros_is_damage_and_what_follows_it_is_served() {
    let (disk, all) = directory(true);
    let changed = disk.image();
    let first = changed
        .files()
        .into_iter()
        .map(|(path, _)| path)
        .find(|path| path.ends_with("00000000000000000000.log"));
    let first = first.unwrap();
    changed.zero(&first, 200..600);
    let (store, recovered) = open(&changed).unwrap();
    assert_eq!(recovered.torn_bytes, 0);
    let [Damage::Journal { file, bytes, records, lost }] = recovered.damage.as_slice() else {
        panic!("{:?}", recovered.damage)
    };
    assert_eq!(*file, first);
    assert!(bytes.start <= 200 && bytes.end >= 600, "{bytes:?}");
    assert!(!records.is_empty() && !lost.is_empty());
    let found = present(&store, &recovered, |_| panic!("no segment is damaged"));
    assert!(found.len() > all.len() / 2, "{} of {}", found.len(), all.len());
}
