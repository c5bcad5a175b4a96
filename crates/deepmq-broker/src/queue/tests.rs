//! A queue at run time: what consumers, fetches and listeners see of it, and what it leaves behind.

mod events;

use super::*;
use crate::events::Events;
use crate::memory::Memory;
use crate::subscriber::recorder::{Got, Recorder, publish, settle};

const ALL: ConsumerSpec = ConsumerSpec { no_ack: false, exclusive: false, priority: 0, prefetch_count: 0 };
const NO_ACK: ConsumerSpec = ConsumerSpec { no_ack: true, ..ALL };
const REQUEUE: Outcome = Outcome::Nack { requeue: true };
const DROP: Outcome = Outcome::Reject { requeue: false };

fn prefetch(prefetch_count: u32) -> ConsumerSpec {
    ConsumerSpec { prefetch_count, ..ALL }
}

fn queue() -> (Arc<Queue>, Arc<Memory>) {
    let memory = Memory::new(usize::MAX);
    let home = Home::alone(memory.clone(), Events::new(1));
    (Queue::new(&home, "q".into(), <_>::default(), None), memory)
}

/// Ready and unacked.
fn counts(queue: &Queue) -> (u64, u64) {
    let depth = queue.depth();
    (depth.ready, depth.unacked)
}

fn fetch(queue: &Arc<Queue>, no_ack: bool) -> Option<(String, bool, u64)> {
    let fetched = queue.fetch(
        no_ack,
        |delivery, left| {
            (String::from_utf8_lossy(delivery.message.body.bytes()).into_owned(), delivery.redelivered, left)
        },
        &mut Wakes::default(),
    );
    match fetched {
        Fetched::Message(message) => Some(message),
        Fetched::Empty => None,
        Fetched::PagedOut | Fetched::SingleActive => panic!("all is in memory, and the queue a plain one"),
    }
}

#[test]
fn messages_arrive_in_order_as_they_were_published() {
    let (queue, _) = queue();
    publish(&queue, &["a"]);
    let consumer = Recorder::with_room(u32::MAX);
    consumer.consume(&queue, 7, ALL);
    publish(&queue, &["b", ""]);
    let got = |position, body: &str| Got { index: 7, position, redelivered: false, body: body.into() };
    assert_eq!(consumer.take(), [got(0, "a"), got(1, "b"), got(2, "")]);
    assert_eq!(consumer.0.lock().wakes, 2, "one for each time there was something to send");
    assert_eq!(counts(&queue), (0, 3));
}

#[test]
fn what_is_acknowledged_or_rejected_is_gone_and_counted() {
    let (queue, memory) = queue();
    let consumer = Recorder::with_room(u32::MAX);
    let id = consumer.consume(&queue, 0, ALL);
    publish(&queue, &["a", "b", "c", "d"]);
    assert!(memory.used() > 0 && memory.used() == queue.depth().bytes);
    settle(&queue, Some(id), &[0, 1, 3], Outcome::Ack);
    settle(&queue, Some(id), &[2], DROP);
    assert_eq!((counts(&queue), memory.used()), ((0, 0), 0));
    let counted = Counters { published: 4, delivered: 4, acked: 3, discarded: 1, ..Counters::default() };
    assert_eq!(queue.counters(), counted);
}

#[test]
fn what_comes_back_is_delivered_again_before_the_rest() {
    let (queue, memory) = queue();
    let consumer = Recorder::with_room(u32::MAX);
    let id = consumer.consume(&queue, 0, prefetch(2));
    publish(&queue, &["a", "b", "c"]);
    assert_eq!(consumer.take_positions(), [0, 1]);
    settle(&queue, Some(id), &[1, 0], REQUEUE);
    let again: Vec<_> = consumer.take().into_iter().map(|got| (got.position, got.redelivered)).collect();
    assert_eq!(again, [(0, true), (1, true)]);
    settle(&queue, Some(id), &[0, 1], Outcome::Ack);
    assert!(!consumer.take().first().unwrap().redelivered);
    settle(&queue, Some(id), &[2], Outcome::Ack);
    let counters = queue.counters();
    assert_eq!((counters.delivered, counters.redelivered, counters.requeued), (5, 2, 2));
    assert_eq!(memory.used(), 0);
}

#[test]
fn without_acknowledgement_nothing_is_kept() {
    let (queue, memory) = queue();
    let consumer = Recorder::with_room(u32::MAX);
    consumer.consume(&queue, 0, NO_ACK);
    publish(&queue, &["a", "b"]);
    assert_eq!(consumer.take_positions(), [0, 1]);
    assert_eq!((counts(&queue), memory.used(), queue.counters().acked), ((0, 0), 0, 2));
}

#[test]
fn what_a_removed_consumer_holds_goes_to_another_once_it_comes_back() {
    let (queue, _) = queue();
    let (old, new) = (Recorder::with_room(u32::MAX), Recorder::with_room(u32::MAX));
    let id = old.consume(&queue, 0, ALL);
    publish(&queue, &["a", "b"]);
    assert_eq!(queue.unsubscribe(id), Unsubscribed::Last);
    assert_eq!(queue.unsubscribe(id), Unsubscribed::Unknown);
    new.consume(&queue, 0, ALL);
    assert_eq!((new.take_positions(), counts(&queue)), (vec![], (0, 2)));
    settle(&queue, Some(id), &[0, 1], Outcome::Recover);
    assert_eq!(new.take_positions(), [0, 1]);
}

#[test]
fn a_consumer_without_room_gets_the_rest_once_resumed() {
    let (queue, _) = queue();
    let consumer = Recorder::with_room(3);
    let id = consumer.consume(&queue, 0, ALL);
    publish(&queue, &["a", "b", "c", "d", "e"]);
    assert_eq!((consumer.take_positions(), counts(&queue)), (vec![0, 1, 2], (2, 3)));
    assert_eq!(consumer.0.lock().starved.len(), 1);
    publish(&queue, &["f"]);
    assert_eq!(consumer.0.lock().starved.len(), 1, "it is not asked again");
    assert_eq!(queue.consumers().first().unwrap().pause, Pause::NoRoom);
    consumer.0.lock().room = 10;
    queue.resume(id, &mut Wakes::default());
    assert_eq!(consumer.take_positions(), [3, 4, 5]);
}

#[test]
fn room_that_was_reserved_and_not_used_is_given_back() {
    let (queue, _) = queue();
    let (one, two) = (Recorder::with_room(10), Recorder::with_room(10));
    one.consume(&queue, 0, ALL);
    two.consume(&queue, 0, ALL);
    publish(&queue, &["a", "b", "c", "d"]);
    assert_eq!((one.take_positions(), two.take_positions()), (vec![0, 2], vec![1, 3]));
    assert_eq!((one.0.lock().room, two.0.lock().room), (8, 8));
}

#[test]
fn a_consumer_is_told_about_how_long_messages_are() {
    let (queue, _) = queue();
    publish(&queue, &["x".repeat(1000).as_str(); 4]);
    let consumer = Recorder::with_room(u32::MAX);
    consumer.consume(&queue, 0, ALL);
    let record = consumer.0.lock();
    assert!(record.estimates.iter().all(|bytes| (1000..1100).contains(bytes)), "{:?}", record.estimates);
    assert!(!record.estimates.is_empty());
}

#[test]
fn a_fetch_takes_the_first_and_tells_how_many_are_left() {
    let (queue, memory) = queue();
    assert_eq!(fetch(&queue, false), None);
    publish(&queue, &["a", "b"]);
    assert_eq!(fetch(&queue, false), Some(("a".into(), false, 1)));
    assert_eq!(counts(&queue), (1, 1));
    settle(&queue, None, &[0], REQUEUE);
    assert_eq!(fetch(&queue, true), Some(("a".into(), true, 1)));
    assert_eq!(fetch(&queue, true), Some(("b".into(), false, 0)));
    assert_eq!((counts(&queue), memory.used()), ((0, 0), 0));
    let counters = queue.counters();
    assert_eq!((counters.fetched, counters.redelivered, counters.acked), (3, 1, 2));
}

#[test]
fn a_purge_drops_what_is_ready_and_leaves_what_is_unacked() {
    let (queue, memory) = queue();
    publish(&queue, &["a", "b", "c", "d"]);
    (0..3).for_each(|_| assert!(fetch(&queue, false).is_some()));
    settle(&queue, None, &[1], REQUEUE);
    assert_eq!(queue.purge(&mut Wakes::default()), 2, "one that came back and one that never went");
    assert_eq!((counts(&queue), queue.counters().discarded), ((0, 2), 2));
    assert_eq!(queue.purge(&mut Wakes::default()), 0);
    settle(&queue, None, &[0], REQUEUE);
    settle(&queue, None, &[2], Outcome::Ack);
    assert_eq!(fetch(&queue, true), Some(("a".into(), true, 0)));
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_deletion_may_ask_for_no_consumers_and_no_ready_messages() {
    let (queue, _) = queue();
    publish(&queue, &["a"]);
    assert_eq!(queue.delete(true, true).unwrap_err(), DeleteRefused::NotEmpty);
    fetch(&queue, false);
    let consumer = Recorder::with_room(0);
    let id = consumer.consume(&queue, 3, ALL);
    assert_eq!(queue.delete(true, true).unwrap_err(), DeleteRefused::InUse);
    queue.unsubscribe(id);
    assert_eq!(queue.delete(true, true).unwrap().ready, 0, "an unacked message holds nothing up");
}

#[test]
fn a_deleted_queue_ignores_everything() {
    let (queue, memory) = queue();
    let consumer = Recorder::with_room(2);
    let id = consumer.consume(&queue, 3, ALL);
    publish(&queue, &["a", "b", "c"]);
    let deleted = queue.delete(false, false).unwrap();
    let keys: Vec<_> = deleted.subscriptions.iter().map(|gone| gone.key.index).collect();
    assert_eq!((deleted.ready, keys, memory.used()), (1, vec![3], 0));
    consumer.take();

    let counters = queue.counters();
    consumer.0.lock().room = 10;
    publish(&queue, &["d"]);
    queue.resume(id, &mut Wakes::default());
    settle(&queue, Some(id), &[0], REQUEUE);
    settle(&queue, Some(id), &[1], Outcome::Ack);
    assert_eq!(queue.subscribe(ALL, consumer.subscription(1)), Err(SubscribeError::Gone));
    assert_eq!(
        (fetch(&queue, false), queue.purge(&mut Wakes::default()), queue.unsubscribe(id)),
        (None, 0, Unsubscribed::Unknown)
    );
    assert_eq!(queue.delete(true, true).unwrap().ready, 0);
    assert_eq!((consumer.take_positions(), counts(&queue), queue.counters()), (vec![], (0, 0), counters));
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_consumer_is_shown_with_what_it_asked_for_and_holds() {
    let (queue, _) = queue();
    let consumer = Recorder::with_room(u32::MAX);
    let spec = ConsumerSpec { priority: 5, ..prefetch(2) };
    consumer.consume(&queue, 9, spec);
    publish(&queue, &["a", "b", "c"]);
    let consumers = queue.consumers();
    let [info] = &consumers[..] else { panic!("one consumer") };
    assert_eq!((&*info.tag, info.channel, info.spec), ("c9", 1, spec));
    assert_eq!((info.in_flight, info.pause), (2, Pause::PrefetchFull));
}
