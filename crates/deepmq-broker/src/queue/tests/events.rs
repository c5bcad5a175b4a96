//! The events of messages: in order, and only for who wants them.

use super::*;
use crate::events::{EventStream, Interest};
use deepmq_model::queue::Position;

fn queue_telling(events: &Arc<Events>) -> Arc<Queue> {
    let home = Home::alone(Memory::new(usize::MAX), events.clone());
    Queue::new(&home, "q".into(), <_>::default(), None)
}

fn queue_with_events() -> (Arc<Queue>, Arc<Events>) {
    let events = Events::new(100);
    (queue_telling(&events), events)
}

fn seen(stream: &mut EventStream) -> Vec<Event> {
    std::iter::from_fn(|| stream.try_next()).map(|event| event.unwrap()).collect()
}

fn delivered(bytes: usize, redelivered: bool) -> Event {
    let (vhost, queue) = ("/".into(), "q".into());
    Event::MessageDelivered { vhost, queue, routing_key: b"k"[..].into(), bytes, redelivered }
}

#[test]
fn the_way_of_each_message_is_told_in_order() {
    let (queue, events) = queue_with_events();
    let mut stream = events.subscribe(Interest::Everything);
    let consumer = Recorder::with_room(u32::MAX);
    let id = consumer.consume(&queue, 0, ALL);
    publish(&queue, &["a", "bb", "ccc"]);
    assert_eq!(seen(&mut stream), [delivered(1, false), delivered(2, false), delivered(3, false)]);

    let (vhost, name): (Name, Name) = ("/".into(), "q".into());
    settle(&queue, Some(id), &[0], Outcome::Ack);
    settle(&queue, Some(id), &[1], REQUEUE);
    settle(&queue, Some(id), &[2], DROP);
    let (v, q) = (|| vhost.clone(), || name.clone());
    let expected = [
        Event::MessageAcked { vhost: v(), queue: q(), position: Position(0) },
        Event::MessageNacked { vhost: v(), queue: q(), position: Position(1), requeue: true },
        delivered(2, true),
        Event::MessageRejected { vhost: v(), queue: q(), position: Position(2), requeue: false },
    ];
    assert_eq!(seen(&mut stream), expected);
}

#[test]
fn a_fetch_is_told_as_a_delivery() {
    let (queue, events) = queue_with_events();
    let mut stream = events.subscribe(Interest::Everything);
    publish(&queue, &["a"]);
    fetch(&queue, true);
    assert_eq!(seen(&mut stream), [delivered(1, false)]);
}

#[test]
fn nothing_is_told_of_messages_unless_somebody_wants_it() {
    let (queue, events) = queue_with_events();
    let mut topology = events.subscribe(Interest::Topology);
    let everything = events.subscribe(Interest::Everything);
    assert!(events.messages_wanted());
    drop(everything);
    assert!(!events.messages_wanted(), "the last who wanted it is gone");
    let consumer = Recorder::with_room(u32::MAX);
    let id = consumer.consume(&queue, 0, ALL);
    publish(&queue, &["a", "b"]);
    settle(&queue, Some(id), &[0, 1], Outcome::Ack);
    assert_eq!(seen(&mut topology), []);
    let mut late = events.subscribe(Interest::Everything);
    assert_eq!(seen(&mut late), [], "what happened before is not told");
}

#[test]
fn a_slow_listener_learns_how_much_it_missed() {
    use crate::events::EventError;
    let events = Events::new(2);
    let mut stream = events.subscribe(Interest::Everything);
    let queue = queue_telling(&events);
    publish(&queue, &["a", "bb", "ccc", "dddd", "eeeee"]);
    (0..5).for_each(|_| assert!(fetch(&queue, true).is_some()));
    assert_eq!(stream.try_next(), Some(Err(EventError::Missed(3))));
    assert_eq!(seen(&mut stream), [delivered(4, false), delivered(5, false)]);
}
