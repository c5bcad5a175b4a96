//! The queue state machine's behaviour. Here: single rules by name; in `reference`: all of them against a plain model.

mod reference;

use super::*;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as `dispatch` passes a handle")]
fn everything(_: &u32, want: u32) -> u32 {
    want
}

/// What each consumer got, by its handle.
fn drained(queue: &mut Queue<u32>) -> Vec<(u32, Vec<u64>)> {
    let mut got = Vec::new();
    queue.drain_assigned(|&to, _, runs, _| {
        got.push((to, runs.iter().flat_map(|(run, _)| run.first.0..run.end().0).collect()));
    });
    got
}

fn dispatched(queue: &mut Queue<u32>) -> Vec<(u32, Vec<u64>)> {
    queue.dispatch(|_| u32::MAX, everything);
    drained(queue)
}

fn consumer(queue: &mut Queue<u32>, spec: ConsumerSpec, handle: u32) -> ConsumerId {
    let id = queue.subscribe(spec, handle).unwrap();
    queue.resume(id);
    id
}

#[test]
fn consumers_without_prefetch_share_strictly_in_turn() {
    let mut queue = Queue::default();
    for handle in 0..4 {
        consumer(&mut queue, ConsumerSpec::default(), handle);
    }
    queue.publish(4000);
    let got = dispatched(&mut queue);
    for (handle, positions) in &got {
        let turns: Vec<u64> = (0..1000).map(|turn| turn * 4 + u64::from(*handle)).collect();
        assert_eq!(positions, &turns);
    }
    assert_eq!((got.len(), queue.ready(), queue.unacked()), (4, 0, 4000));
}

#[test]
fn the_turn_goes_on_where_it_stopped() {
    let mut queue = Queue::default();
    for handle in 0..3 {
        consumer(&mut queue, ConsumerSpec::default(), handle);
    }
    let takers: Vec<u32> = (0..6)
        .flat_map(|_| {
            queue.publish(1);
            dispatched(&mut queue)
        })
        .map(|(handle, _)| handle)
        .collect();
    assert_eq!(takers, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_lone_consumer_gets_a_long_backlog_in_pieces() {
    let mut queue = Queue::default();
    consumer(&mut queue, ConsumerSpec::default(), 0);
    queue.publish(3000);
    let mut wants = Vec::new();
    queue.dispatch(
        |_| u32::MAX,
        |_, want| {
            wants.push(want);
            want
        },
    );
    assert_eq!(wants, [GRANT_MAX, GRANT_MAX, 3000 - 2 * GRANT_MAX]);
    assert_eq!(drained(&mut queue), [(0, (0..3000).collect())]);
}

#[test]
fn what_is_reserved_and_not_used_is_told() {
    let mut queue = Queue::default();
    for handle in 0..2 {
        consumer(&mut queue, ConsumerSpec::default(), handle);
    }
    queue.publish(10);
    queue.dispatch(|_| u32::MAX, everything);
    let mut unused = Vec::new();
    queue.drain_assigned(|&to, _, runs, left| unused.push((to, runs.len(), left)));
    assert_eq!(unused, [(0, 5, 5), (1, 5, 4)], "one was gone when the second was asked");
}

#[test]
fn an_exclusive_consumer_is_alone_until_it_goes() {
    let mut queue = Queue::default();
    let exclusive = ConsumerSpec { exclusive: true, ..ConsumerSpec::default() };
    let plain = queue.subscribe(ConsumerSpec::default(), 0).unwrap();
    assert_eq!(queue.subscribe(exclusive, 1), Err(ConsumeError::ExclusiveUse));
    queue.unsubscribe(plain).unwrap();
    let alone = queue.subscribe(exclusive, 1).unwrap();
    assert_eq!(queue.subscribe(ConsumerSpec::default(), 2), Err(ConsumeError::ExclusiveUse));
    assert_eq!(queue.subscribe(exclusive, 2), Err(ConsumeError::ExclusiveUse));
    queue.unsubscribe(alone).unwrap();
    assert!(queue.subscribe(ConsumerSpec::default(), 2).is_ok());
}

#[test]
fn the_number_of_a_removed_consumer_does_nothing_to_the_next_in_its_place() {
    let mut queue = Queue::default();
    let one = ConsumerSpec { prefetch_count: 1, ..ConsumerSpec::default() };
    let old = consumer(&mut queue, one, 0);
    queue.publish(3);
    assert_eq!(dispatched(&mut queue), [(0, vec![0])]);
    queue.unsubscribe(old).unwrap();

    let new = queue.subscribe(one, 1).unwrap();
    assert_ne!(new, old);
    queue.resume(old);
    assert_eq!(dispatched(&mut queue), [], "the new one was not resumed");
    queue.resume(new);
    assert_eq!(dispatched(&mut queue), [(1, vec![1])]);
    queue.complete(Position(0), Some(old));
    assert_eq!(dispatched(&mut queue), [], "the new one still holds its message");
    assert!(queue.unsubscribe(old).is_none());
    assert_eq!((queue.consumers().len(), queue.unacked()), (1, 1));
    queue.complete(Position(1), Some(new));
    assert_eq!(dispatched(&mut queue), [(1, vec![2])]);
}

#[test]
fn a_paused_consumer_gets_nothing_until_it_is_resumed() {
    let mut queue = Queue::default();
    let id = queue.subscribe(ConsumerSpec::default(), 0).unwrap();
    queue.publish(2);
    assert_eq!(dispatched(&mut queue), [], "a new one waits for its announcement");
    queue.resume(id);
    queue.dispatch(|_| u32::MAX, |_, _| 0);
    drained(&mut queue);
    assert_eq!(queue.consumers().iter().next().unwrap().pause(), Pause::NoRoom);
    assert_eq!(dispatched(&mut queue), [], "it said it has no room");
    queue.resume(id);
    queue.resume(id);
    assert_eq!(dispatched(&mut queue), [(0, vec![0, 1])], "resumed twice, it is still one");
}

#[test]
fn a_resume_does_not_lift_the_limit_on_unacked_messages() {
    let mut queue = Queue::default();
    let id = consumer(&mut queue, ConsumerSpec { prefetch_count: 2, ..ConsumerSpec::default() }, 0);
    queue.publish(4);
    assert_eq!(dispatched(&mut queue), [(0, vec![0, 1])]);
    assert_eq!(queue.consumers().iter().next().unwrap().pause(), Pause::PrefetchFull);
    queue.resume(id);
    assert_eq!(dispatched(&mut queue), []);
    queue.requeue(Position(0), Some(id));
    assert_eq!(dispatched(&mut queue), [(0, vec![0])], "what came back goes first");
}

#[test]
fn a_lower_priority_gets_what_the_higher_cannot_take() {
    let mut queue = Queue::default();
    let spec =
        |priority, prefetch_count| ConsumerSpec { priority, prefetch_count, ..ConsumerSpec::default() };
    consumer(&mut queue, spec(-1, 0), 0);
    let high = consumer(&mut queue, spec(i32::MAX, 2), 1);
    queue.publish(4);
    let mut got = dispatched(&mut queue);
    got.sort_unstable();
    assert_eq!(got, [(0, vec![2, 3]), (1, vec![0, 1])]);
    queue.complete(Position(0), Some(high));
    queue.publish(2);
    let mut got = dispatched(&mut queue);
    got.sort_unstable();
    assert_eq!(got, [(0, vec![5]), (1, vec![4])]);
}

#[test]
fn a_single_active_consumer_gets_everything_until_it_goes_and_what_it_held_is_back() {
    let mut queue = Queue::new(Profile { single_active: true, ..Profile::default() });
    let spec = |priority| ConsumerSpec { priority, prefetch_count: 2, ..ConsumerSpec::default() };
    let priorities = [0, 0, 5, 5].into_iter().zip(0..);
    let ids: Vec<_> =
        priorities.map(|(priority, handle)| consumer(&mut queue, spec(priority), handle)).collect();
    let activity = |queue: &Queue<u32>| [0, 1, 2, 3].map(|at| queue.consumers().activity(ids[at]));
    let (active, waiting) = (Activity::SingleActive, Activity::Waiting);
    queue.publish(4);
    assert_eq!(activity(&queue), [active, waiting, waiting, waiting], "who came first, whatever comes after");
    assert_eq!(dispatched(&mut queue), [(0, vec![0, 1])], "its limit stops it, and nobody helps");

    queue.unsubscribe(ids[0]).unwrap();
    assert_eq!(dispatched(&mut queue), [], "what it held has not come back");
    [1, 0].into_iter().for_each(|at| queue.requeue(Position(at), Some(ids[0])));
    queue.hand_over();
    assert_eq!(
        activity(&queue),
        [waiting, waiting, active, waiting],
        "the highest priority, then the oldest"
    );
    assert_eq!(dispatched(&mut queue), [(2, vec![0, 1])]);

    queue.unsubscribe(ids[1]).unwrap();
    queue.hand_over();
    [0, 1].into_iter().for_each(|at| queue.complete(Position(at), Some(ids[2])));
    assert_eq!(dispatched(&mut queue), [(2, vec![2, 3])], "one that waited has gone, which changes nothing");
}

#[test]
fn a_single_active_consumer_starts_once_it_is_resumed_and_is_not_exclusive() {
    let mut queue = Queue::new(Profile { single_active: true, ..Profile::default() });
    let exclusive = ConsumerSpec { exclusive: true, ..ConsumerSpec::default() };
    assert_eq!(queue.subscribe(exclusive, 0), Err(ConsumeError::ExclusiveUse));
    let first = queue.subscribe(ConsumerSpec::default(), 0).unwrap();
    let second = consumer(&mut queue, ConsumerSpec::default(), 1);
    queue.publish(1);
    assert_eq!(dispatched(&mut queue), []);
    queue.resume(first);
    assert_eq!(dispatched(&mut queue), [(0, vec![0])]);
    queue.unsubscribe(first).unwrap();
    queue.unsubscribe(second).unwrap();
    let third = consumer(&mut queue, ConsumerSpec::default(), 2);
    queue.publish(1);
    assert_eq!(dispatched(&mut queue), [], "the first one's messages may still come back");
    queue.requeue(Position(0), Some(first));
    queue.hand_over();
    assert_eq!(dispatched(&mut queue), [(2, vec![0, 1])]);
    assert_eq!(queue.consumers().activity(third), Activity::SingleActive);
}

/// A queue of ten levels with messages of these priorities.
fn prioritized(priorities: &[Option<u8>]) -> Queue<u32> {
    let priorities_of = Priorities { default: 0, max: 9 };
    let mut queue = Queue::new(Profile { priorities: priorities_of, ..Profile::default() });
    queue.publish_each(priorities.iter().copied());
    queue
}

fn fetched(queue: &mut Queue<u32>) -> Vec<(u64, bool)> {
    std::iter::from_fn(|| queue.get(true)).map(|handed| (handed.position.0, handed.redelivered)).collect()
}

#[test]
fn the_highest_priority_goes_first_and_within_one_the_oldest() {
    let mut queue = prioritized(&[None, Some(5), Some(0), Some(200), Some(9), Some(5)]);
    assert_eq!((queue.ready(), queue.first_ready()), (6, Some(Position(3))));
    let order: Vec<u64> = fetched(&mut queue).into_iter().map(|(position, _)| position).collect();
    assert_eq!(order, [3, 4, 1, 5, 0, 2], "none is 0, and above the highest counts as it");
}

#[test]
fn what_comes_back_goes_to_its_place_in_its_level() {
    let mut queue = prioritized(&[Some(1), Some(1), Some(7), Some(1)]);
    let taken: Vec<Handed> = (0..3).map(|_| queue.get(false).unwrap()).collect();
    assert_eq!(taken.iter().map(|handed| handed.position.0).collect::<Vec<_>>(), [2, 0, 1]);
    queue.publish_each([Some(7), Some(3)].into_iter());
    for handed in taken.iter().rev() {
        queue.requeue(handed.position, None);
    }
    assert_eq!(fetched(&mut queue), [(2, true), (4, false), (5, false), (0, true), (1, true), (3, false)]);
}

#[test]
fn a_message_keeps_its_priority_while_the_queue_is_empty_but_for_it() {
    let mut queue = prioritized(&[Some(7), None]);
    let taken: Vec<Handed> = (0..2).map(|_| queue.get(false).unwrap()).collect();
    queue.publish_each([None, None].into_iter());
    taken.iter().for_each(|handed| queue.requeue(handed.position, None));
    assert_eq!(fetched(&mut queue), [(0, true), (1, true), (2, false), (3, false)]);
    queue.publish_each([None, Some(2)].into_iter());
    assert_eq!(fetched(&mut queue), [(5, false), (4, false)]);
}

#[test]
fn priorities_outlive_the_queue_that_learned_them() {
    let mut queue = prioritized(&[]);
    [(2, Some(8)), (5, Some(1)), (7, Some(8))]
        .into_iter()
        .for_each(|(at, priority)| queue.note_priority(Position(at), priority));
    let set = |positions: &[u64]| positions.iter().copied().map(Position).collect::<PositionSet>();
    queue.restore(Position(10), set(&[1, 7]), set(&[2, 5, 6]));
    assert_eq!(queue.publish_each([Some(1)].into_iter()), Position(10));
    assert_eq!(queue.returned(), set(&[1, 7]));
    let order = fetched(&mut queue);
    assert_eq!(order, [(2, false), (7, true), (5, false), (10, false), (1, true), (6, false)]);
}

#[test]
fn a_million_neighbours_that_come_back_cost_one_range() {
    const COUNT: u64 = 1_000_000;
    let mut queue = Queue::<u32>::default();
    queue.publish(COUNT);
    for _ in 0..COUNT {
        queue.get(false).unwrap();
    }
    for at in (0..COUNT).filter(|at| at % 2 == 1).chain((0..COUNT).filter(|at| at % 2 == 0)) {
        queue.requeue(Position(at), None);
    }
    assert_eq!((queue.ready(), queue.unacked()), (COUNT, 0));
    let purged = queue.purge();
    assert_eq!(purged.older.ranges().collect::<Vec<_>>(), [(Position(0), Position(COUNT))]);
    assert_eq!(purged.count(), COUNT);
}
