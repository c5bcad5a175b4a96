//! Records come back as they were drafted, have the bytes that are documented, and are never misread.

use super::*;
use proptest::prelude::*;
use std::ops::Range;

const STAMP: Stamp = Stamp { tag: 0x1122_3344_5566_7788, file: 7, lsn: 9 };

fn stamped(draft: Draft<'_>) -> Vec<u8> {
    let mut record = draft.bytes().to_vec();
    stamp(&mut record, STAMP);
    record
}

fn decoded(record: &[u8]) -> Option<Content<'_>> {
    let header = Header::parse(record)?;
    assert_eq!(header.record_bytes(), Some(record.len()));
    assert_eq!(header.stamp, STAMP);
    assert!(verify(record));
    Content::decode(&header, record.get(HEADER_BYTES..)?)
}

fn hex(bytes: &[u8]) -> String {
    let lines =
        bytes.chunks(8).map(|line| line.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")));
    lines.collect::<Vec<_>>().join(" ")
}

/// The example of docs/format/journal.md.
#[test]
fn a_batch_has_the_bytes_the_format_document_shows() {
    let mut batch = BatchBuilder::new();
    let index = batch.message(1, 0x0198_0000_0000, [b"q", b"", b"hi"]);
    batch.place(5, 16, [index]);
    batch.settle(5, std::iter::once(3..4));
    batch.count(5, 2, 1);
    let golden = include_str!("../../../../docs/format/journal.md");
    let bytes = hex(&stamped(batch.finish()));
    let shown: Vec<_> = golden.lines().filter_map(|line| line.strip_prefix("    hex: ")).collect();
    let shown: Vec<_> = shown.iter().flat_map(|line| line.split_whitespace().take(1)).collect();
    assert_eq!(shown.join(" "), bytes);
}

#[test]
fn marks_topologies_and_states_are_read_back() {
    let mark = Mark { durable: 8, closed: true, recycled: false };
    let record = mark.record(STAMP);
    assert_eq!(record.len(), MARK_BYTES);
    assert!(matches!(decoded(&record), Some(Content::Mark(read)) if read == mark));

    let mut buffer = Vec::new();
    let record = stamped(draft_topology(&mut buffer, &[4, 2], b"{}!"));
    let Some(Content::Topology(topology)) = decoded(&record) else { panic!("no topology") };
    assert_eq!((topology.deleted.as_slice(), topology.bytes), ([4, 2].as_slice(), b"{}!".as_slice()));

    let settled = [0..5, 7..9].into_iter().collect();
    let state = QueueState { queue: 3, next: 12, settled, counts: vec![(5..6, 2)] };
    let record = stamped(draft_state(&mut buffer, std::slice::from_ref(&state)));
    let Some(Content::State(states)) = decoded(&record) else { panic!("no state") };
    assert_eq!(states.queues, [state]);
}

type Parts = (u16, u64, [Vec<u8>; 3]);

fn parts() -> impl Strategy<Value = Parts> {
    let part = || prop::collection::vec(any::<u8>(), 0..20);
    (any::<u16>(), any::<u64>(), [part(), part(), part()])
}

fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::vec((any::<u32>(), 1_u64..9).prop_map(|(at, len)| at.into()..u64::from(at) + len), 0..4)
}

proptest! {
    #[test]
    fn what_is_put_into_a_batch_is_read_from_it(
        messages in prop::collection::vec(parts(), 1..20),
        placements in prop::collection::vec(
            (any::<u64>(), any::<u32>(), prop::collection::vec(any::<prop::sample::Index>(), 0..9)), 0..5),
        settlements in prop::collection::vec((any::<u64>(), ranges()), 0..5),
        counts in prop::collection::vec(any::<(u64, u64, u32)>(), 0..5),
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let mut batch = BatchBuilder::new();
        batch.message(1, 2, [b"of", b"an earlier", b"batch"]);
        batch.begin();
        for (flags, timestamp, [address, properties, body]) in &messages {
            batch.message(*flags, *timestamp, [address, properties, body]);
        }
        let placements: Vec<(u64, u64, Vec<u32>)> = placements
            .into_iter()
            .map(|(queue, first, indexes)| {
                let at = |index: prop::sample::Index| u32::try_from(index.index(messages.len())).unwrap();
                (queue, first.into(), indexes.into_iter().map(at).collect())
            })
            .collect();
        placements.iter().for_each(|(queue, first, indexes)| batch.place(*queue, *first, indexes.iter().copied()));
        settlements.iter().for_each(|(queue, ranges)| batch.settle(*queue, ranges.iter().cloned()));
        counts.iter().for_each(|&(queue, sequence, count)| batch.count(queue, sequence, count));
        let mut record = stamped(batch.finish());
        {
            let Some(Content::Batch(read)) = decoded(&record) else { panic!("no batch") };
            let own = |part: &[u8]| part.to_vec();
            let read_messages: Vec<Parts> = read
                .messages()
                .map(|m| (m.flags, m.timestamp, [own(m.address), own(m.properties), own(m.body)]))
                .collect();
            prop_assert_eq!(read_messages, messages);
            let read_placements: Vec<_> =
                read.placements().map(|p| (p.queue, p.first, p.indexes().collect::<Vec<_>>())).collect();
            prop_assert_eq!(read_placements, placements);
            let read_settlements: Vec<_> =
                read.settlements().map(|s| (s.queue, s.ranges().collect::<Vec<_>>())).collect();
            prop_assert_eq!(read_settlements, settlements);
            prop_assert_eq!(read.counts().collect::<Vec<_>>(), counts);
        }
        let (at, mask) = flip;
        let at = at.index(record.len());
        record[at] ^= mask;
        prop_assert_eq!(verify(&record), mask == 0, "a changed byte is noticed");
    }

    #[test]
    fn no_payload_is_misread_into_a_panic(kind in 0_u8..6, payload in prop::collection::vec(0_u8..40, 0..200)) {
        let mut draft = Vec::new();
        header::begin(&mut draft);
        draft.extend_from_slice(&payload);
        let record = stamped(header::finish(&mut draft, kind));
        let header = Header::parse(&record).unwrap();
        if let Some(Content::Batch(batch)) = Content::decode(&header, &record[HEADER_BYTES..]) {
            let messages = batch.messages().count();
            prop_assert!(batch.placements().flat_map(|p| p.indexes()).all(|index| (index as usize) < messages));
        }
    }
}
