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
    let sound = Report { queues: 2, journal_messages: 2, blocks: 4, block_bytes: 256, ..Report::default() };
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
        "settled 2 0..3",
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
