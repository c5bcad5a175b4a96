//! The queue against a plain one: vectors, no ranges, no rings.

use super::super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
enum Step {
    /// Messages of these priorities.
    Publish(Vec<Option<u8>>),
    Subscribe(ConsumerSpec),
    /// Which of the consumers there are, by any number.
    Resume(usize),
    Unsubscribe(usize),
    /// How much room each consumer in turn says it has.
    Dispatch(Vec<u32>),
    Ack(usize),
    /// The first unacked ones, of any consumer.
    AckMany(usize),
    Requeue(usize),
    Get(bool),
    /// Any of the ready ones, which is done then.
    Take(usize),
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let spec = (any::<bool>(), 0..10, -1..2, 0u32..4).prop_map(|(no_ack, one, priority, prefetch_count)| {
        ConsumerSpec { no_ack, exclusive: one == 0, priority, prefetch_count }
    });
    prop_oneof![
        4 => prop::collection::vec(prop::option::of(0u8..7), 0..8).prop_map(Step::Publish),
        2 => spec.prop_map(Step::Subscribe),
        3 => any::<usize>().prop_map(Step::Resume),
        1 => any::<usize>().prop_map(Step::Unsubscribe),
        6 => prop::collection::vec(0u32..5, 1..6).prop_map(Step::Dispatch),
        3 => any::<usize>().prop_map(Step::Ack),
        1 => (0usize..6).prop_map(Step::AckMany),
        3 => any::<usize>().prop_map(Step::Requeue),
        1 => any::<bool>().prop_map(Step::Get),
        1 => any::<usize>().prop_map(Step::Take),
        1 => Just(Step::Purge),
    ]
}

/// A consumer as the plain model sees it.
#[derive(Debug)]
struct Plain {
    id: ConsumerId,
    spec: ConsumerSpec,
    /// The model may hand it messages: it was resumed since it last said that it has no room.
    room: bool,
    held: u32,
}

/// A message handed out and not settled: to whom, if not by a fetch.
type Holder = Option<ConsumerId>;

/// A message by its turn: the highest level first, then the oldest.
type Turn = (Reverse<u8>, u64);

/// The real queue, and beside it what it should hold.
#[derive(Default)]
struct Pair {
    queue: Queue<u32>,
    priorities: Priorities,
    /// The handle of the next consumer, by which it is found.
    next: u32,
    next_position: u64,
    levels: Vec<u8>,
    ready: BTreeSet<Turn>,
    unacked: BTreeMap<u64, Holder>,
    handed_before: BTreeSet<u64>,
    done: BTreeSet<u64>,
    consumers: BTreeMap<u32, Plain>,
}

fn pick<K: Copy, V>(map: &BTreeMap<K, V>, any: usize) -> Option<K> {
    map.keys().nth(any.checked_rem(map.len())?).copied()
}

impl Pair {
    fn new(priorities: Priorities) -> Self {
        Self {
            queue: Queue::new(Profile { priorities, ..Profile::default() }),
            priorities,
            ..Self::default()
        }
    }

    fn turn(&self, position: u64) -> Turn {
        (Reverse(self.levels[usize::try_from(position).unwrap()]), position)
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Publish(priorities) => self.publish(&priorities),
            Step::Subscribe(spec) => self.subscribe(spec),
            Step::Resume(any) => {
                if let Some(handle) = pick(&self.consumers, any) {
                    self.resume(handle);
                }
            }
            Step::Unsubscribe(any) => {
                if let Some(plain) = pick(&self.consumers, any).and_then(|key| self.consumers.remove(&key)) {
                    let gone = self.queue.unsubscribe(plain.id).unwrap();
                    assert_eq!(
                        (gone.id(), gone.spec(), gone.in_flight()),
                        (plain.id, plain.spec, plain.held)
                    );
                }
            }
            Step::Dispatch(rooms) => self.dispatch(&mut rooms.into_iter().cycle()),
            Step::Ack(any) => self.ack(any),
            Step::AckMany(count) => (0..count).for_each(|_| self.ack(0)),
            Step::Requeue(any) => self.requeue(any),
            Step::Get(no_ack) => self.get(no_ack),
            Step::Take(any) => self.take_any(any),
            Step::Purge => self.purge(),
        }
        self.check();
    }

    fn publish(&mut self, priorities: &[Option<u8>]) {
        let first = if self.queue.has_priorities() {
            self.queue.publish_each(priorities.iter().copied())
        } else {
            self.queue.publish(priorities.len() as u64)
        };
        assert_eq!(first, Position(self.next_position));
        for &priority in priorities {
            self.levels.push(self.priorities.level(priority));
            self.ready.insert(self.turn(self.next_position));
            self.next_position += 1;
        }
    }

    fn subscribe(&mut self, spec: ConsumerSpec) {
        let refused = self.consumers.values().any(|other| other.spec.exclusive)
            || (spec.exclusive && !self.consumers.is_empty());
        match self.queue.subscribe(spec, self.next) {
            Ok(id) => {
                assert!(!refused);
                self.consumers.insert(self.next, Plain { id, spec, room: false, held: 0 });
                self.next += 1;
            }
            Err(ConsumeError::ExclusiveUse) => assert!(refused),
        }
    }

    fn resume(&mut self, handle: u32) {
        let plain = self.consumers.get_mut(&handle).unwrap();
        plain.room = true;
        self.queue.resume(plain.id);
    }

    /// Takes the first ready message in the plain model; whether it was handed out before.
    fn take(&mut self, position: u64) -> bool {
        assert_eq!(self.ready.pop_first(), Some(self.turn(position)), "the first ready message goes first");
        !self.handed_before.insert(position)
    }

    fn dispatch(&mut self, rooms: &mut dyn Iterator<Item = u32>) {
        let consumers = &mut self.consumers;
        let mut reserved = BTreeMap::<u32, u32>::new();
        let assigned = self.queue.dispatch(
            |_| u32::MAX,
            |&to, want| {
                assert!(want > 0);
                let plain = consumers.get_mut(&to).unwrap();
                assert!(plain.room, "a consumer without room is not asked again");
                let room = rooms.next().unwrap().min(want);
                plain.room = room > 0;
                *reserved.entry(to).or_default() += room;
                room
            },
        );
        let mut got = Vec::new();
        self.queue.drain_assigned(|&to, no_ack, runs, unused| {
            let count = runs.iter().map(|(run, _)| run.count).sum::<u32>();
            assert_eq!(reserved.remove(&to).unwrap_or_default(), count + unused);
            for &(run, again) in runs {
                got.extend((run.first.0..run.end().0).map(|position| (position, again, to, no_ack)));
            }
        });
        assert!(reserved.values().all(|&left| left == 0), "each reservation is used or given back");
        assert_eq!(assigned, !got.is_empty());
        for per_consumer in got.chunk_by(|a, b| a.2 == b.2) {
            assert!(per_consumer.is_sorted_by_key(|got| self.turn(got.0)), "in order per consumer");
        }
        got.sort_unstable_by_key(|got| self.turn(got.0));
        self.check_priorities(&got);
        for (position, again, to, no_ack) in got {
            assert_eq!(self.take(position), again);
            let plain = self.consumers.get_mut(&to).unwrap();
            assert_eq!(no_ack, plain.spec.no_ack);
            if no_ack {
                self.done.insert(position);
            } else {
                plain.held += 1;
                self.unacked.insert(position, Some(plain.id));
            }
        }
        let hungry = self.consumers.values().any(|plain| plain.room && plain.can_hold());
        assert!(self.ready.is_empty() || !hungry, "nothing waits while somebody can take it");
    }

    /// Within one dispatch priorities never rise: the highest gets all until it can take no more.
    fn check_priorities(&self, got: &[(u64, bool, u32, bool)]) {
        let priorities = got.iter().map(|(_, _, to, _)| self.consumers[to].spec.priority);
        assert!(priorities.is_sorted_by(|a, b| a >= b), "the highest priority goes first");
    }

    fn settled(&mut self, holder: Holder) {
        if let Some(plain) = self.consumers.values_mut().find(|plain| Some(plain.id) == holder) {
            plain.held -= 1;
        }
    }

    fn ack(&mut self, any: usize) {
        let Some(position) = pick(&self.unacked, any) else { return };
        let holder = self.unacked.remove(&position).unwrap();
        self.queue.complete(Position(position), holder);
        self.settled(holder);
        self.done.insert(position);
    }

    fn requeue(&mut self, any: usize) {
        let Some(position) = pick(&self.unacked, any) else { return };
        let holder = self.unacked.remove(&position).unwrap();
        self.queue.requeue(Position(position), holder);
        self.settled(holder);
        self.ready.insert(self.turn(position));
    }

    fn get(&mut self, no_ack: bool) {
        let Some(handed) = self.queue.get(no_ack) else { return assert!(self.ready.is_empty()) };
        assert_eq!(self.take(handed.position.0), handed.redelivered);
        if no_ack {
            self.done.insert(handed.position.0);
        } else {
            self.unacked.insert(handed.position.0, None);
        }
    }

    fn take_any(&mut self, any: usize) {
        let at = any.checked_rem(self.ready.len()).and_then(|at| self.ready.iter().nth(at).copied());
        let Some(turn) = at else { return };
        assert!(self.queue.take(Position(turn.1)) && !self.queue.take(Position(turn.1)));
        self.ready.remove(&turn);
        self.done.insert(turn.1);
    }

    fn purge(&mut self) {
        let purged = self.queue.purge();
        let fresh = (purged.first, purged.end);
        let all: BTreeSet<u64> =
            purged.older.ranges().chain([fresh]).flat_map(|(start, end)| start.0..end.0).collect();
        assert_eq!(purged.count(), all.len() as u64);
        let ready: BTreeSet<u64> = std::mem::take(&mut self.ready).into_iter().map(|(_, at)| at).collect();
        assert_eq!(all, ready);
        self.done.extend(ready);
    }

    fn check(&self) {
        assert_eq!(self.queue.ready(), self.ready.len() as u64);
        assert_eq!(self.queue.unacked(), self.unacked.len() as u64);
        assert_eq!(self.queue.consumers().len(), self.consumers.len());
        for consumer in self.queue.consumers().iter() {
            let plain = &self.consumers[&consumer.handle];
            assert_eq!((consumer.id(), consumer.in_flight()), (plain.id, plain.held));
            assert!(
                plain.spec.no_ack
                    || plain.spec.prefetch_count == 0
                    || plain.held <= plain.spec.prefetch_count
            );
        }
        let ranges: Vec<_> = self.queue.ready_ranges().collect();
        assert_eq!(ranges.iter().map(|(start, end)| end.0 - start.0).sum::<u64>(), self.ready.len() as u64);
        assert!(
            self.ready.iter().all(|(_, at)| ranges.iter().any(|(start, end)| (start.0..end.0).contains(at)))
        );
        let all = self.ready.len() + self.unacked.len() + self.done.len();
        assert_eq!(all as u64, self.next_position, "each message is in one place");
    }

    /// With consumers that take all there is, and acknowledge it, everything gets done.
    fn drain(&mut self) {
        if self.consumers.is_empty() {
            self.subscribe(ConsumerSpec::default());
        }
        while !(self.ready.is_empty() && self.unacked.is_empty()) {
            for handle in self.consumers.keys().copied().collect::<Vec<_>>() {
                self.resume(handle);
            }
            let before = self.done.len();
            self.apply(Step::Dispatch(vec![u32::MAX]));
            self.apply(Step::AckMany(self.unacked.len()));
            assert!(self.done.len() > before, "it stands still");
        }
    }
}

impl Plain {
    fn can_hold(&self) -> bool {
        self.spec.no_ack || self.spec.prefetch_count == 0 || self.held < self.spec.prefetch_count
    }
}

proptest! {
    #[test]
    fn a_queue_acts_as_a_plain_one(steps in prop::collection::vec(step(), 0..150)) {
        run(Priorities::default(), steps);
    }

    #[test]
    fn a_queue_of_several_priorities_acts_as_a_plain_one(
        steps in prop::collection::vec(step(), 0..150),
        (default, max) in (0u8..3, 3u8..6),
    ) {
        run(Priorities { default, max }, steps);
    }
}

fn run(priorities: Priorities, steps: Vec<Step>) {
    let mut pair = Pair::new(priorities);
    steps.into_iter().for_each(|step| pair.apply(step));
    pair.drain();
    assert_eq!(pair.done.len() as u64, pair.next_position);
}
