//! The ledger against a plain map, and the memory it keeps.

use super::*;
use crate::events::Events;
use crate::memory::Memory;
use crate::queue::Home;
use proptest::prelude::*;

fn queue(name: &str) -> Arc<Queue> {
    let home = Home::alone(Memory::new(usize::MAX), Events::new(1));
    Queue::new(&home, name.into(), <_>::default(), None)
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

mod lapsing {
    use super::*;
    use deepmq_storage::seam::Monotonic;
    use std::time::Duration;

    const NONE: [[u64; 0]; 2] = [[], []];

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    /// Positions given back by a look at this second, of queues that may be open for so many seconds each.
    fn lapse(pair: &mut Pair, second: u64, allowed: &[u64]) -> Vec<Vec<u64>> {
        let mut out = Settlements::default();
        let allowed: Vec<_> = (pair.sources.iter().zip(allowed))
            .map(|((queue, _), &seconds)| (queue.clone(), Duration::from_secs(seconds)))
            .collect();
        pair.ledger.lapse(at(second), &allowed, &mut out);
        let positions = |(queue, _): &(Arc<Queue>, SourceId)| {
            out.of(queue)
                .iter()
                .inspect(|s| assert_eq!(s.outcome, Outcome::Recover))
                .map(|s| s.position.0)
                .collect()
        };
        pair.sources.iter().map(positions).collect()
    }

    #[test]
    fn what_is_open_for_too_long_goes_back_and_the_rest_stays() {
        let mut pair = Pair::new(2);
        for from in [0, 1, 0, 1] {
            pair.open(from);
        }
        assert_eq!(lapse(&mut pair, 10, &[30, 60]), NONE);
        pair.open(0);
        assert_eq!(lapse(&mut pair, 39, &[30, 60]), NONE);
        assert_eq!(lapse(&mut pair, 40, &[30, 60]), [vec![10, 30], vec![]]);
        assert_eq!(pair.ledger.open(), 3);
        assert_eq!(lapse(&mut pair, 75, &[30, 60]), [vec![50], vec![20, 40]]);
        assert_eq!((pair.ledger.open(), lapse(&mut pair, 500, &[30, 60])), (0, vec![vec![], vec![]]));
    }

    #[test]
    fn a_client_may_settle_what_went_back_once_and_nothing_follows() {
        let mut pair = Pair::new(1);
        for _ in 0..5 {
            pair.open(0);
        }
        lapse(&mut pair, 0, &[30]);
        assert_eq!(lapse(&mut pair, 30, &[30]), [[10, 20, 30, 40, 50]]);
        pair.open(0);
        let mut out = Settlements::default();
        let ledger = &mut pair.ledger;
        assert_eq!(ledger.settle(2, Outcome::Ack, &mut out), Ok(()));
        assert_eq!(ledger.settle(2, Outcome::Ack, &mut out), Err(UnknownTag(2)));
        assert_eq!(ledger.settle_up_to(4, Outcome::Ack, &mut out), Ok(()));
        assert_eq!(ledger.settle(3, Outcome::Ack, &mut out), Err(UnknownTag(3)));
        assert!(out.is_empty());
        assert_eq!(ledger.settle_up_to(0, Outcome::Ack, &mut out), Ok(()));
        assert_eq!((ledger.open(), out.of(&pair.sources[0].0).len()), (0, 1), "the one that was still open");
    }

    #[test]
    fn however_often_one_looks_the_notes_are_few_and_what_is_too_old_is_found() {
        let mut pair = Pair::new(1);
        for second in 0..10_000 {
            pair.open(0);
            lapse(&mut pair, second, &[5000]);
        }
        let open = pair.ledger.open();
        assert!((5000..5700).contains(&open), "{open} of those of the last 5,000 seconds are open");
        assert!(pair.ledger.marks.len() < 150, "{} notes", pair.ledger.marks.len());
    }
}
