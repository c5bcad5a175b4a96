//! The ledger against a plain map, and the memory it keeps.

use super::*;
use crate::events::Events;
use crate::memory::Memory;
use proptest::prelude::*;

fn queue(name: &str) -> Arc<Queue> {
    Queue::new("/".into(), name.into(), Memory::new(usize::MAX), Events::new(1), <_>::default())
}

/// A ledger with one source per queue, and beside it what should be open.
struct Pair {
    ledger: Ledger,
    sources: Vec<(Arc<Queue>, SourceId)>,
    last: u64,
    /// Tag -> which queue, and the position.
    open: BTreeMap<u64, (usize, u64)>,
}

impl Pair {
    fn new(queues: usize) -> Self {
        let mut ledger = Ledger::default();
        let sources = (0..queues).map(|at| {
            let queue = queue(&format!("q{at}"));
            (queue.clone(), ledger.add_source(queue, None))
        });
        Self { sources: sources.collect(), ledger, last: 0, open: BTreeMap::new() }
    }

    fn open(&mut self, from: usize) -> u64 {
        self.last += 1;
        let position = self.last * 10;
        assert_eq!(self.ledger.open_delivery(self.sources[from].1, Position(position)), self.last);
        self.open.insert(self.last, (from, position));
        self.last
    }

    fn settled_delivery(&mut self) {
        self.last += 1;
        assert_eq!(self.ledger.settled_delivery(), self.last);
    }

    fn settle(&mut self, tag: u64, multiple: bool) {
        let mut out = Settlements::default();
        let result = if multiple {
            self.ledger.settle_up_to(tag, Outcome::Ack, &mut out)
        } else {
            self.ledger.settle(tag, Outcome::Ack, &mut out)
        };
        let known = self.open.contains_key(&tag) || (multiple && tag == 0);
        assert_eq!(result, known.then_some(()).ok_or(UnknownTag(tag)));
        let first = if multiple { 0 } else { tag };
        let last = if multiple && tag == 0 { u64::MAX } else { tag };
        let mut settled = BTreeMap::new();
        if known {
            settled = self.open.extract_if(first..=last, |_, _| true).collect();
        }
        for (at, (queue, _)) in self.sources.iter().enumerate() {
            let expected: Vec<u64> =
                settled.values().filter(|(from, _)| *from == at).map(|&(_, position)| position).collect();
            assert_eq!(positions(&out, queue), expected, "in the order of the tags");
        }
        self.check(tag);
    }

    fn check(&self, tag: u64) {
        assert_eq!(self.ledger.is_open(tag), self.open.contains_key(&tag));
        assert_eq!(self.ledger.open(), self.open.len());
        assert_eq!(self.ledger.next_tag(), self.last + 1);
    }
}

fn positions(settlements: &Settlements, queue: &Arc<Queue>) -> Vec<u64> {
    settlements.of(queue).iter().map(|settlement| settlement.position.0).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Open(usize),
    SettledDelivery,
    /// The tag is taken from somewhere below the next one and a little above.
    Settle(u64, bool),
    SettleAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0usize..3).prop_map(Step::Open),
        3 => Just(Step::SettledDelivery),
        4 => (any::<u64>(), prop::bool::weighted(0.3)).prop_map(|(any, multiple)| Step::Settle(any, multiple)),
        1 => Just(Step::SettleAll),
    ]
}

proptest! {
    #[test]
    fn a_ledger_acts_as_a_plain_map(steps in prop::collection::vec(step(), 0..300), sparse in any::<bool>()) {
        let mut pair = Pair::new(3);
        if sparse {
            // So that what is open at the start becomes stragglers.
            pair.open(0);
            pair.open(1);
            (0..RING_SPARSE_MIN).for_each(|_| pair.settled_delivery());
            prop_assert_eq!(pair.ledger.stragglers.len(), 2);
        }
        for step in steps {
            match step {
                Step::Open(from) => { pair.open(from); }
                Step::SettledDelivery => pair.settled_delivery(),
                Step::Settle(any, multiple) => {
                    let recent = pair.last.saturating_sub(60);
                    let tag = if any % 8 == 0 { any / 8 % 4 } else { recent + any / 8 % 64 };
                    pair.settle(tag, multiple);
                }
                Step::SettleAll => pair.settle(0, true),
            }
        }
        pair.settle(0, true);
        prop_assert_eq!(pair.ledger.open(), 0);
    }
}

#[test]
fn unknown_tags_are_told_and_change_nothing() {
    let mut pair = Pair::new(1);
    for tag in [0, 1, u64::MAX] {
        pair.settle(tag, false);
    }
    for tag in [1, 2, u64::MAX] {
        pair.settle(tag, true);
    }
    let tag = pair.open(0);
    pair.settle(tag, false);
    pair.settle(tag, false);
    pair.settle(tag, true);
    let (old, new) = (pair.open(0), pair.open(0));
    pair.settle(old, false);
    pair.settle(old, true);
    pair.settle(new + 1, true);
    assert_eq!(pair.ledger.open(), 1);
}

#[test]
fn all_up_to_tag_zero_is_all_even_where_there_is_nothing() {
    let mut pair = Pair::new(2);
    pair.settle(0, true);
    (0..5).for_each(|at| {
        pair.open(at % 2);
    });
    pair.settle(0, true);
    assert_eq!(pair.ledger.open(), 0);
}

#[test]
fn one_old_delivery_does_not_make_later_ones_cost_memory() {
    let mut pair = Pair::new(1);
    let old = pair.open(0);
    for _ in 0..100_000 {
        let tag = pair.open(0);
        pair.settle(tag, false);
        assert!(pair.ledger.ring.len() <= RING_SPARSE_MIN + 1);
    }
    assert!(pair.ledger.is_open(old));
    pair.settle(old, true);
    assert_eq!((pair.ledger.open(), pair.ledger.stragglers.len()), (0, 0));
}

#[test]
fn deliveries_that_need_no_settling_cost_no_memory_beside_an_open_one() {
    let mut pair = Pair::new(1);
    let old = pair.open(0);
    for _ in 0..100_000 {
        pair.settled_delivery();
        assert!(pair.ledger.ring.len() <= RING_SPARSE_MIN + 1);
    }
    pair.settle(old, false);
    assert_eq!(pair.ledger.open(), 0);
}

#[test]
fn a_source_is_forgotten_once_it_is_closed_and_all_is_settled() {
    let (mut ledger, mut out) = (Ledger::default(), Settlements::default());
    let gone = queue("gone");
    for settle_first in [true, false] {
        let source = ledger.add_source(gone.clone(), None);
        let tag = ledger.open_delivery(source, Position(0));
        if settle_first {
            ledger.settle(tag, Outcome::Ack, &mut out).unwrap();
            ledger.close_source(source);
        } else {
            ledger.close_source(source);
            ledger.settle_up_to(tag, Outcome::Ack, &mut out).unwrap();
        }
        out = Settlements::default();
        assert_eq!(Arc::strong_count(&gone), 1, "nothing holds the queue");
    }
    (0..1000).for_each(|_| {
        let source = ledger.add_source(gone.clone(), None);
        ledger.close_source(source);
    });
    assert_eq!(ledger.sources.len(), 1, "places are used again");
}
