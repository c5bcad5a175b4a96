//! The backlog against a plain one, and what it takes of memory.

use super::block::{BLOCK_BYTES, BLOCK_MESSAGES};
use super::*;
use crate::message::{Body, SHARED_BODY_BYTES_MIN};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A message that can be told from others by its content.
#[derive(Debug, Clone)]
struct Sample {
    address: Vec<u8>,
    properties: Vec<u8>,
    body: Bytes,
}

impl Sample {
    fn new(mark: u64, properties: usize, body: usize) -> Self {
        let mark = mark.to_be_bytes();
        let address = [&b"\x01e\x08"[..], &mark].concat();
        let fill = |len| mark.iter().copied().cycle().take(len);
        Self { address, properties: fill(properties).collect(), body: fill(body).collect() }
    }

    fn message(&self) -> MessageRef<'_> {
        let body = match self.body.len() {
            SHARED_BODY_BYTES_MIN.. => Body::Shared(&self.body),
            _ => Body::Inline(&self.body),
        };
        let persistent = self.body.len() % 3 != 1;
        let dead_letter = self.body.len() % 5 == 2;
        MessageRef { address: &self.address, properties: &self.properties, body, persistent, dead_letter }
    }

    fn is(&self, message: &MessageRef<'_>) -> bool {
        (message.address, message.properties, message.body.bytes())
            == (&self.address[..], &self.properties[..], &self.body[..])
    }
}

/// The real backlog, and all that was ever appended: none once completed.
struct Pair {
    memory: Arc<Memory>,
    backlog: Backlog,
    plain: Vec<Option<Sample>>,
    /// What was written, as a segment would have it.
    pages: BTreeMap<u64, (Range<u64>, Vec<u8>)>,
}

impl Pair {
    fn new() -> Self {
        let memory = Memory::new(usize::MAX);
        Self { backlog: Backlog::new(memory.clone()), memory, plain: Vec::new(), pages: BTreeMap::new() }
    }

    fn append(&mut self, sizes: &[(usize, usize)]) {
        let first = self.plain.len() as u64;
        let samples: Vec<_> = (first..)
            .zip(sizes)
            .map(|(mark, &(properties, body))| Sample::new(mark, properties, body))
            .collect();
        let bytes = samples.iter().map(|sample| sample.message().packed_bytes()).sum();
        let size = BatchSize { count: samples.len(), bytes, expiring: false };
        self.backlog.append(Position(first), size, samples.iter().map(Sample::message));
        self.plain.extend(samples.into_iter().map(Some));
    }

    /// Pages out as if the messages at `next` were the next ones.
    fn page_out(&mut self, next: usize, keep: usize, bytes: usize) {
        let before = self.memory.used();
        let (freed, pages) = self.backlog.page_out(Position(next as u64), keep, bytes);
        for page in pages {
            let positions = page.positions.clone();
            self.backlog.paged_out(&positions, true);
            self.pages.insert(positions.start, (positions, page.encode()));
        }
        assert_eq!(before - self.memory.used(), freed);
    }

    /// Reads back what is needed to read a message.
    fn page_in(&mut self, at: u64) {
        if self.backlog.at_hand(Position(at)) == 0 {
            let (_, (positions, page)) = self.pages.range(..=at).next_back().expect("it was written");
            let packed = Arc::new(Packed::decode(page).unwrap());
            self.backlog.page_in(positions, Some(&packed));
        }
    }

    /// The runs of what is left of a range.
    fn runs(&self, start: usize, count: usize) -> Vec<(Run, bool)> {
        let end = self.plain.len().min(start.saturating_add(count));
        let left: Vec<usize> = (start..end).filter(|&at| self.plain[at].is_some()).collect();
        let chunks = left.chunk_by(|a, b| a + 1 == *b);
        chunks
            .map(|run| {
                (Run { first: Position(run[0] as u64), count: u32::try_from(run.len()).unwrap() }, false)
            })
            .collect()
    }

    fn complete(&mut self, start: usize, count: usize, as_range: bool) {
        for (run, _) in self.runs(start, count) {
            if as_range {
                self.backlog.complete_range(run.first, run.end());
            } else {
                self.backlog.complete_run(run);
            }
            (run.first.0..run.end().0).for_each(|at| self.plain[usize::try_from(at).unwrap()] = None);
        }
    }

    fn check(&mut self, start: usize, count: usize) {
        let runs = self.runs(start, count);
        runs.iter().flat_map(|(run, _)| run.first.0..run.end().0).for_each(|at| self.page_in(at));
        let mut read = self.backlog.deliveries(&runs, false);
        for at in runs.iter().flat_map(|(run, _)| run.first.0..run.end().0) {
            let sample = self.plain[usize::try_from(at).unwrap()].as_ref().unwrap();
            let delivery = read.next().expect("what is needed is there");
            assert_eq!(delivery.position, Position(at));
            assert!(sample.is(&delivery.message));
            assert!(sample.is(&self.backlog.read(Position(at)).unwrap()));
        }
        assert!(read.next().is_none());
        drop(read);
        self.check_bytes();
        self.check_kept();
    }

    /// What is told to survive is what is needed and persistent.
    fn check_kept(&self) {
        let kept: Vec<u64> = self.backlog.kept_ranges().flatten().collect();
        let needed = self.plain.iter().enumerate().filter_map(|(at, sample)| {
            sample.as_ref().filter(|sample| sample.message().persistent).map(|_| at as u64)
        });
        assert_eq!(kept, needed.collect::<Vec<_>>());
    }

    fn check_bytes(&self) {
        let blocks: usize = self.backlog.blocks.iter().map(Block::bytes).sum();
        assert_eq!(self.backlog.bytes(), blocks, "what is counted is what the blocks hold");
        assert_eq!(self.memory.used(), blocks);
        let out = self.backlog.blocks.iter().filter(|block| !block.is_in_memory() && block.live > 0);
        let sums = out.fold((0, 0), |(blocks, live), block| (blocks + 1, live + block.live));
        assert_eq!((self.backlog.out, self.backlog.live_out), sums);
    }

    fn finish(mut self) {
        self.complete(0, usize::MAX, false);
        assert_eq!((self.backlog.bytes(), self.memory.used(), self.backlog.live), (0, 0, 0));
        let held: usize = self.backlog.blocks.iter().map(Block::capacity).sum();
        assert!(held <= KEEP_BYTES, "an empty backlog keeps {held} bytes");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<(usize, usize)>),
    Read(usize, usize),
    Complete(usize, usize, bool),
    PageOut(usize, usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let body = prop_oneof![
        6 => 0usize..100,
        2 => 4_000usize..SHARED_BODY_BYTES_MIN,
        1 => SHARED_BODY_BYTES_MIN..30_000,
    ];
    let small = (0usize..2_000).prop_map(|count| vec![(2, 16); count]);
    let range = || (any::<usize>(), 0usize..3_000);
    prop_oneof![
        3 => prop::collection::vec((2usize..40, body), 0..30).prop_map(Step::Append),
        1 => small.prop_map(Step::Append),
        1 => range().prop_map(|(start, count)| Step::Read(start, count)),
        3 => (range(), any::<bool>()).prop_map(|((start, count), range)| Step::Complete(start, count, range)),
        2 => any::<usize>().prop_map(|start| Step::Complete(start, 1, false)),
        2 => (any::<usize>(), prop_oneof![Just(0), Just(100_000)], 0usize..1_000_000)
            .prop_map(|(next, keep, bytes)| Step::PageOut(next, keep, bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_backlog_acts_as_a_plain_list(steps in prop::collection::vec(step(), 0..40)) {
        let mut pair = Pair::new();
        for step in steps {
            let len = pair.plain.len();
            let place = |any: usize| any.checked_rem(len).unwrap_or(0);
            match step {
                Step::Append(sizes) => pair.append(&sizes),
                Step::Read(start, count) => pair.check(place(start), count),
                Step::Complete(start, count, as_range) => pair.complete(place(start), count, as_range),
                Step::PageOut(next, keep, bytes) => pair.page_out(place(next), keep, bytes),
            }
            pair.check_bytes();
        }
        pair.check(0, usize::MAX);
        pair.finish();
    }
}

#[test]
fn a_range_over_block_borders_is_completed_as_a_whole() {
    let mut pair = Pair::new();
    pair.append(&vec![(2, 1); 3 * BLOCK_MESSAGES]);
    assert!(pair.backlog.blocks.len() > 2);
    pair.complete(1, 3 * BLOCK_MESSAGES - 2, true);
    pair.check(0, usize::MAX);
    assert_eq!(pair.backlog.live, 2);
    pair.finish();
}

#[test]
fn a_full_block_of_completed_messages_gives_its_memory_back_though_an_older_one_is_needed() {
    let mut pair = Pair::new();
    pair.append(&[(2, 16)]);
    for at in 1..=10 * BLOCK_MESSAGES {
        pair.append(&[(2, 16)]);
        pair.backlog.complete(Position(at as u64));
        pair.plain[at] = None;
    }
    let most = 2 * (BLOCK_BYTES + BLOCK_MESSAGES * 32);
    assert!(pair.memory.used() <= most, "{} bytes for one message", pair.memory.used());
    pair.check(0, usize::MAX);
    pair.finish();
}

#[test]
fn one_message_that_is_needed_keeps_few_long_bodies_of_others() {
    const BODY: usize = 1024 * 1024;
    let mut pair = Pair::new();
    for _ in 0..16 {
        pair.append(&[(2, BODY)]);
        let last = pair.plain.len() - 1;
        pair.complete(0, last, false);
        assert!(pair.memory.used() < 3 * BODY, "{} bytes for one message", pair.memory.used());
    }
    pair.finish();
}

#[test]
fn an_emptied_backlog_keeps_little_memory_and_goes_on() {
    let mut pair = Pair::new();
    for count in [1, 3, 5_000, 1] {
        let start = pair.plain.len();
        pair.append(&vec![(2, 100); count]);
        pair.check(start, usize::MAX);
        pair.complete(start, usize::MAX, true);
        let held: usize = pair.backlog.blocks.iter().map(Block::capacity).sum();
        assert!(held <= KEEP_BYTES && pair.memory.used() == 0);
    }
}

#[test]
fn what_is_cleared_or_dropped_leaves_the_sum() {
    let mut pair = Pair::new();
    pair.append(&[(2, 100), (2, 10_000)]);
    assert!(pair.memory.used() > 10_100);
    pair.backlog.clear();
    assert_eq!(pair.memory.used(), 0);

    let mut pair = Pair::new();
    pair.append(&[(2, 100)]);
    drop(pair.backlog);
    assert_eq!(pair.memory.used(), 0);
}

#[test]
fn messages_of_an_earlier_life_are_read_back_in_pages_wherever_these_begin() {
    let mut pair = Pair::new();
    pair.append(&vec![(2, 99); 5_000]);
    pair.page_out(0, 0, usize::MAX);
    let mut again = Pair::new();
    again.pages = pair.pages.clone();
    // What was settled between lies in the same pages.
    for range in [3..1_200, 1_300..1_301, 1_500..5_000] {
        again.backlog.restore_stored(range);
    }
    again.backlog.restored(Position(5_000));
    let needed = |at: &usize| (3..1_200).contains(at) || *at == 1_300 || *at >= 1_500;
    again.plain =
        pair.plain.iter().enumerate().map(|(at, sample)| sample.clone().filter(|_| needed(&at))).collect();
    again.check_bytes();
    again.complete(1_000, 10, false);
    again.complete(3_000, 2_000, true);
    again.check(0, usize::MAX);
    again.page_out(1_500, 100_000, usize::MAX);
    again.check(0, usize::MAX);
    again.finish();
}

#[test]
fn a_page_that_is_damaged_is_told_and_the_rest_is_read() {
    let mut pair = Pair::new();
    pair.append(&vec![(2, 100); 2_000]);
    pair.page_out(0, 0, usize::MAX);
    let damaged = pair.pages.values().next().unwrap().0.clone();
    pair.backlog.page_in(&damaged, None);
    assert_eq!(pair.backlog.lost_at(Position(7)), Some(damaged.clone()));
    assert_eq!((pair.backlog.at_hand(Position(0)), pair.backlog.lost_at(Position(damaged.end))), (0, None));
    pair.complete(0, usize::try_from(damaged.end).unwrap(), true);
    pair.check(0, usize::MAX);
    pair.finish();
}

#[test]
fn a_lost_page_is_never_at_hand_even_when_all_others_are() {
    let mut pair = Pair::new();
    pair.append(&vec![(2, 100); 2_000]);
    pair.page_out(0, 0, usize::MAX);
    let (lost, others): (Vec<_>, Vec<_>) =
        pair.pages.values().map(|(positions, _)| positions.clone()).partition(|range| range.contains(&1_000));
    others.iter().for_each(|positions| pair.page_in(positions.start));
    pair.backlog.page_in(&lost[0], None);
    let first = u32::try_from(lost[0].start).unwrap();
    assert_eq!(pair.backlog.at_hand(Position(0)), first);
    assert_eq!(pair.backlog.at_hand(Position(1_000)), 0);
    assert_eq!(pair.backlog.lost_at(Position(1_000)), Some(lost[0].clone()));
}

#[test]
fn the_average_size_is_that_of_what_is_needed() {
    let mut pair = Pair::new();
    assert_eq!(pair.backlog.average_bytes(), 0);
    pair.append(&[(2, 1_000); 10]);
    let average = pair.backlog.average_bytes();
    assert!((1_000..1_100).contains(&average), "{average}");
    pair.complete(0, 10, false);
    assert_eq!(pair.backlog.average_bytes(), 0);
}
