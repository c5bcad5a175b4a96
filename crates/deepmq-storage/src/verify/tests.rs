//! What is told of a directory, in order, damaged, and in use.

use std::path::Path;

use super::*;
use crate::seam::SimDisk;
use crate::*;

fn seam(disk: &SimDisk) -> Seam {
    Seam { disk: Arc::new(disk.clone()), ..Seam::simulated(3) }
}

fn directory() -> (SimDisk, Store) {
    let disk = SimDisk::new();
    let options = Options { segment_bytes: 200, journal_file_bytes: 4096, ..Options::default() };
    let (store, _) = Store::open(&seam(&disk), Path::new("/d"), options).unwrap();
    store.append_topology(&[], b"change").unwrap();
    let mut batch = BatchBuilder::new();
    let indexes = [b"m0", b"m1", b"m2"].map(|body| batch.message(0, 1, [b"to", b"", body]));
    batch.place(1, 0, indexes);
    batch.settle(1, std::iter::once(1..2));
    store.journal().append(batch.finish(), Durability::Fsync).unwrap();
    store.journal().run_once().unwrap();
    for at in 0..4 {
        let block =
            NewBlock { sequences: at * 2..at * 2 + 2, messages: 2, times: (1, 1), bytes: &[&[9; 64]] };
        store.append_block(2, &block).unwrap();
    }
    let settled = std::iter::once(0..3).collect();
    store.checkpoint(&[QueueState { queue: 2, next: 8, settled, counts: Vec::new() }], None).unwrap();
    (disk, store)
}

#[test]
fn a_sound_directory_is_reported_sound_even_while_it_is_in_use() {
    let (disk, store) = directory();
    let operations = disk.operations();
    let report = verify(&seam(&disk), Path::new("/d")).unwrap();
    let topology = vec![(Lsn(1), b"change".to_vec())];
    let sound =
        Report { queues: 2, journal_messages: 2, blocks: 4, block_bytes: 256, topology, ..Report::default() };
    assert_eq!(report, sound);
    assert_eq!(disk.operations(), operations, "nothing is changed");
    store.journal().close().unwrap();
    disk.set_read_only(true);
    assert_eq!(verify(&seam(&disk), Path::new("/d")).unwrap(), Report { clean: true, ..sound });
}

#[test]
fn damage_is_reported_with_queue_and_sequences_or_record() {
    let (disk, store) = directory();
    store.journal().close().unwrap();
    // Of the first segment nothing is needed below 3, so its first block may be anything.
    disk.flip(Path::new("/d/queues/0000000000000002/00000000000000000000.seg"), 100, 1);
    disk.flip(Path::new("/d/queues/0000000000000002/00000000000000000004.seg"), 100, 1);
    disk.flip(Path::new("/d/journal/00000000000000000000.log"), 70, 1);
    let damage = verify(&seam(&disk), Path::new("/d")).unwrap().damage;
    let text: Vec<_> = damage.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "/d/journal/00000000000000000000.log, bytes 56..112: not readable, records 1..2 are lost",
            "/d/queues/0000000000000002/00000000000000000004.seg, bytes 0..128: queue 0000000000000002 has lost 4..6",
        ]
    );
}

#[test]
fn a_lost_record_is_told_with_the_queues_that_miss_messages_around_it() {
    let disk = SimDisk::new();
    let (store, _) = Store::open(&seam(&disk), Path::new("/d"), Options::default()).unwrap();
    let journal = store.journal();
    for round in 0..4 {
        let mut batch = BatchBuilder::new();
        let index = batch.message(0, 1, [b"", b"", b"body"]);
        batch.place(1, round * 2, [index, index]);
        if round != 2 {
            batch.place(2, round, [index]);
        }
        batch.settle(3, std::iter::once(round..round + 1));
        journal.append(batch.finish(), Durability::Fsync).unwrap();
        journal.run_once().unwrap();
    }
    journal.close().unwrap();
    let sound = disk.image();
    let file = Path::new("/d/journal/00000000000000000000.log");
    let record_bytes = {
        let Damage::Journal { bytes, .. } = damage_at(&disk, file, 60) else { panic!("another damage") };
        assert_eq!(bytes.start, 56);
        bytes.end - bytes.start
    };
    let lost = |record: u64| {
        let disk = sound.image();
        let at = (record - 1) * (record_bytes + 56) + 60;
        let damage = damage_at(&disk, file, usize::try_from(at).unwrap());
        let Damage::Journal { records, lost, .. } = &damage else { panic!("{damage}") };
        assert_eq!(*records, record..record + 1);
        assert_eq!(damage.describe(|queue| format!("the {queue}")).matches("the ").count(), lost.len());
        lost.clone()
    };
    let of =
        |queue, first: u64, end| LostMessages { queue, sequences: std::iter::once(first..end).collect() };
    assert_eq!(lost(1), [of(1, 0, 2), of(2, 0, 1), of(3, 0, 1)]);
    // Of queue 2, sequence 2 was never journalled, as a message that is not to be kept.
    assert_eq!(lost(2), [of(1, 2, 4), of(2, 1, 3), of(3, 1, 2)]);
}

fn damage_at(disk: &SimDisk, file: &Path, offset: usize) -> Damage {
    disk.flip(file, offset, 1);
    let mut damage = verify(&seam(disk), Path::new("/d")).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    damage.remove(0)
}

#[test]
fn a_dump_has_the_topology_what_is_settled_the_messages_and_the_blocks() {
    let (disk, _store) = directory();
    let mut lines = Vec::new();
    dump(&seam(&disk), Path::new("/d"), |piece| {
        lines.push(match piece {
            Dumped::Snapshot(bytes) => format!("snapshot of {}", bytes.len()),
            Dumped::Topology(lsn, bytes) => format!("topology {} {}", lsn.0, String::from_utf8_lossy(bytes)),
            Dumped::Settled { queue, sequences } => format!("settled {queue} {sequences:?}"),
            Dumped::Message { queue, sequence, message } => {
                format!("message {queue}/{sequence} {}", String::from_utf8_lossy(message.body))
            }
            Dumped::Block { queue, block, content, needed } => {
                format!("block {queue} {:?} {} {needed:?}", block.sequences, content.unwrap().len())
            }
        });
    })
    .unwrap();
    let all = [
        "topology 1 change",
        "settled 1 1..2",
        "message 1/0 m0",
        "message 1/2 m2",
        "block 2 0..2 64 []",
        "block 2 2..4 64 [3..4]",
        "block 2 4..6 64 [4..6]",
        "block 2 6..8 64 [6..8]",
    ];
    assert_eq!(lines, all);
}

#[test]
fn what_is_no_data_directory_is_refused() {
    let refused = verify(&seam(&SimDisk::new()), Path::new("/d")).unwrap_err();
    assert!(matches!(refused, VerifyError::Unknown { .. }), "{refused}");
}
