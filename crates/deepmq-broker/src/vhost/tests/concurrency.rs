//! Several threads at the same queues: counts add up, events keep their order, nobody waits for ever.

use super::*;
use crate::message::Delivery;
use crate::queue::{Fetched, Outcome, Settlement, Unsubscribed};
use crate::subscriber::recorder::settle;
use deepmq_model::queue::{ConsumerId, Position};
use parking_lot::Mutex;
use std::thread;

const THREADS: u64 = 4;
const STEPS: u64 = 3_000;
const BATCH: usize = 5;

/// A stream of numbers that is the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A connection with little room: what it was given lies here until its thread settles it.
#[derive(Debug, Default)]
struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reserved: usize,
    /// By consumer.
    got: Vec<(u32, Position)>,
    starved: Vec<u32>,
}

const ROOM: usize = 16;

impl Subscriber for Inbox {
    fn reserve(&self, consumer: ConsumerKey, want: u32, _: usize, _: &Arc<Queue>) -> u32 {
        let mut state = self.0.lock();
        let room = ROOM - (state.got.len() + state.reserved).min(ROOM);
        let granted = (want as usize).min(room);
        state.reserved += granted;
        if granted == 0 {
            state.starved.push(consumer.index);
        }
        u32::try_from(granted).unwrap()
    }

    fn release(&self, _: ConsumerKey, unused: u32) {
        self.0.lock().reserved -= unused as usize;
    }

    fn deliver(&self, consumer: ConsumerKey, deliveries: &mut dyn Iterator<Item = Delivery<'_>>) {
        let mut state = self.0.lock();
        let before = state.got.len();
        state.got.extend(deliveries.map(|delivery| (consumer.index, delivery.position)));
        state.reserved -= state.got.len() - before;
    }

    fn reply(&self, _: u16, _: &MessageRef<'_>) -> bool {
        false
    }

    fn cancelled(&self, _: ConsumerKey) {}

    fn wake(&self) {}
}

/// One thread with its connection.
struct Client {
    inbox: Arc<Inbox>,
    numbers: Numbers,
    /// By index; those that went stay, for what they hold.
    consumers: Vec<(Arc<Queue>, ConsumerId)>,
    active: Vec<usize>,
    fetched: Vec<(Arc<Queue>, Position)>,
}

impl Client {
    fn new(seed: u64) -> Self {
        let numbers = Numbers(seed);
        Self { inbox: Arc::default(), numbers, consumers: vec![], active: vec![], fetched: vec![] }
    }

    fn step(&mut self, queues: &[Arc<Queue>]) {
        let at = self.numbers.below(queues.len() as u64);
        let queue = &queues[usize::try_from(at).unwrap()];
        match self.numbers.below(8) {
            0..3 => publish(queue, &["message"; BATCH]),
            3 => self.subscribe(queue),
            4 => {
                if let Some(gone) = self.active.pop() {
                    let (queue, id) = &self.consumers[gone];
                    queue.unsubscribe(*id);
                }
            }
            5 => {
                let take = |got: Delivery<'_>, _| (queue.clone(), got.position);
                if let Fetched::Message(got) = queue.fetch(false, take, &mut Wakes::default()) {
                    self.fetched.push(got);
                }
            }
            _ => {
                let outcome = match self.numbers.below(3) {
                    0 => Outcome::Nack { requeue: true },
                    _ => Outcome::Ack,
                };
                self.settle_all(outcome);
            }
        }
    }

    fn subscribe(&mut self, queue: &Arc<Queue>) {
        let (index, prefetch_count) = (self.consumers.len(), self.numbers.below(4));
        let key = ConsumerKey { channel: 1, index: u32::try_from(index).unwrap() };
        let subscription = Subscription {
            subscriber: self.inbox.clone(),
            connection: ConnectionId(1),
            key,
            tag: "c".into(),
        };
        let spec = ConsumerSpec {
            prefetch_count: u32::try_from(prefetch_count).unwrap(),
            ..ConsumerSpec::default()
        };
        let Ok(id) = queue.subscribe(spec, subscription) else { return };
        self.consumers.push((queue.clone(), id));
        self.active.push(index);
        queue.resume(id, &mut Wakes::default());
    }

    /// Settles all there is, and resumes who had no room.
    fn settle_all(&mut self, outcome: Outcome) {
        let (got, starved) = {
            let mut state = self.inbox.0.lock();
            (std::mem::take(&mut state.got), std::mem::take(&mut state.starved))
        };
        let mut wakes = Wakes::default();
        for (index, position) in got {
            let (queue, id) = &self.consumers[index as usize];
            queue.settle(&[Settlement { position, consumer: Some(*id), outcome }], &mut wakes);
        }
        for index in starved {
            let (queue, id) = &self.consumers[index as usize];
            queue.resume(*id, &mut wakes);
        }
        for (queue, position) in self.fetched.drain(..) {
            settle(&queue, None, &[position.0], outcome);
        }
        wakes.wake();
    }

    fn holds(&self) -> usize {
        self.inbox.0.lock().got.len() + self.fetched.len()
    }
}

#[test]
fn counts_add_up_whatever_several_threads_do_to_the_same_queues() {
    let vhost = vhost();
    let queues = ["a", "b", "c"].map(|name| vhost.with_queue(name));
    let mut clients: Vec<_> = thread::scope(|scope| {
        let work = |seed| {
            let mut client = Client::new(seed);
            (0..STEPS).for_each(|_| client.step(&queues));
            client
        };
        let threads: Vec<_> = (0..THREADS).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let sum = |count: fn(&Queue) -> u64| queues.iter().map(|queue| count(queue)).sum::<u64>();
    let held: usize = clients.iter().map(Client::holds).sum();
    assert_eq!(sum(|queue| queue.depth().unacked), held as u64, "each unacked message is held by somebody");
    let (published, acked) = (sum(|q| q.counters().published), sum(|q| q.counters().acked));
    assert!(acked > 0 && published > acked);
    assert_eq!(published, acked + sum(|q| q.depth().ready + q.depth().unacked));

    while sum(|queue| queue.depth().ready + queue.depth().unacked) > 0 {
        queues.iter().for_each(|queue| clients[0].subscribe(queue));
        clients.iter_mut().for_each(|client| client.settle_all(Outcome::Ack));
    }
    assert_eq!(sum(|queue| queue.counters().acked), published, "everything drains");
    assert_eq!(vhost.home.memory.used(), 0);
}

#[test]
fn queues_may_come_and_go_while_others_use_them() {
    let vhost = vhost();
    let work = |seed| {
        let mut client = Client::new(seed);
        for _ in 0..STEPS {
            let name = ["a", "b"][usize::try_from(client.numbers.below(2)).unwrap()];
            match client.numbers.below(12) {
                0 => drop(vhost.delete_queue(name, ME, DeleteIf::default(), drop)),
                1 => drop(vhost.bind(Vhost::request("amq.direct", name, &Table::new()), ME)),
                2 => vhost
                    .queues()
                    .iter()
                    .for_each(|queue| assert!(queue.depth.ready <= queue.counters.published)),
                3 => client.active.drain(..).for_each(|gone| {
                    let (queue, id) = &client.consumers[gone];
                    if queue.unsubscribe(*id) == Unsubscribed::Last {
                        vhost.delete_if_abandoned(queue);
                    }
                }),
                _ => {
                    let (queue, _) = vhost.declare_queue(name, auto_delete(), ME).unwrap();
                    client.step(&[queue]);
                }
            }
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|seed| drop(scope.spawn(move || work(seed)))));
    for queue in vhost.queues() {
        vhost.delete_queue(&queue.name, ME, DeleteIf::default(), drop).unwrap();
    }
    assert_eq!((vhost.queue_count(), vhost.home.memory.used()), (0, 0), "a deleted queue leaves nothing");
}

#[test]
fn a_queue_is_told_deleted_before_its_namesake_is_told_created() {
    const ROUNDS: usize = EVENTS / 4 / 2;
    let vhost = vhost();
    let mut stream = vhost.events.subscribe(Interest::Topology);
    let work = || {
        for _ in 0..ROUNDS {
            vhost.declare_queue("q", QueueSpec::default(), ME).unwrap();
            vhost.delete_queue("q", ME, DeleteIf::default(), drop).unwrap();
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let created: Vec<bool> =
        seen(&mut stream).iter().map(|event| matches!(event, Event::QueueCreated { .. })).collect();
    assert!(created.len() > 1 && created.len().is_multiple_of(2));
    assert!(created.chunks(2).all(|pair| pair == [true, false]), "created and deleted by turns");
}
