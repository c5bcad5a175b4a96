//! Whose time comes when.

use super::*;
use crate::events::Events;
use crate::memory::Memory;
use crate::queue::Home;
use deepmq_storage::seam::SimClock;

fn queue(name: &str) -> Arc<Queue> {
    let home = Home::alone(Memory::new(usize::MAX), Events::new(1));
    Queue::new(&home, name.into(), <_>::default(), None)
}

#[test]
fn queues_are_due_in_the_order_of_their_times_and_not_before() {
    let clock = Arc::new(SimClock::new());
    let timers = Timers::new(clock.clone());
    let (early, late) = (queue("early"), queue("late"));
    let now = timers.now();
    timers.at(now + 20, &late);
    timers.at(now + 10, &early);
    let due =
        |at| timers.next_due(at).and_then(|(_, queue)| queue.upgrade()).map(|queue| queue.name().to_string());
    assert_eq!(due(timers.now()), None);
    clock.advance(Duration::from_millis(20));
    assert_eq!(due(timers.now()).as_deref(), Some("early"));
    assert_eq!(due(timers.now()).as_deref(), Some("late"));
    assert_eq!(due(NEVER), None);
}

#[test]
fn the_thread_ends_when_it_is_dropped_whatever_waits() {
    let timers = Timers::new(Arc::new(SimClock::new()));
    let queue = queue("q");
    timers.at(timers.now() + 1_000_000, &queue);
    drop(timers.start().unwrap());
    assert!(!timers.wait());
}
