//! A vhost: its catalogue, what goes with what, and the events of it.

mod concurrency;
mod looking;

use super::*;
use crate::events::{EventStream, Interest};
use crate::message::MessageRef;
use crate::queue::Unsubscribed;
use crate::subscriber::recorder::{Recorder, publish};
use crate::subscriber::{ConsumerKey, Subscriber};
use deepmq_model::queue::ConsumerSpec;
use deepmq_model::topology::{ExchangeKind, Resource};
use std::sync::atomic::{AtomicUsize, Ordering::Release};

const ME: ConnectionId = ConnectionId(1);
const OTHER: ConnectionId = ConnectionId(2);
const EVENTS: usize = 10_000;

fn vhost() -> Arc<Vhost> {
    let limits = Limits::default();
    let timers = Timers::new(deepmq_storage::seam::Seam::simulated(0).clock);
    Vhost::new("v".into(), &limits, Memory::new(usize::MAX), Events::new(EVENTS), timers, None)
}

fn auto_delete() -> QueueSpec {
    QueueSpec { auto_delete: true, ..QueueSpec::default() }
}

fn exclusive() -> QueueSpec {
    QueueSpec { exclusive: true, ..QueueSpec::default() }
}

impl Vhost {
    fn with_queue(&self, name: &str) -> Arc<Queue> {
        self.declare_queue(name, QueueSpec::default(), ME).unwrap().0
    }

    fn request<'a>(source: &'a str, queue: &'a str, arguments: &'a Table) -> BindingRequest<'a> {
        BindingRequest { source, destination: Destination::Queue(queue), key: b"k", arguments }
    }

    fn bind_queue(&self, source: &str, queue: &str) -> bool {
        self.bind(Self::request(source, queue, &Table::new()), ME).unwrap()
    }

    fn unbind_queue(&self, source: &str, queue: &str) {
        self.unbind(Self::request(source, queue, &Table::new()), ME).unwrap();
    }

    /// The names of the queues a message goes to.
    fn routed(&self, exchange: &str, key: &str) -> Result<Vec<Name>, RouteError> {
        let mut queues = Vec::new();
        let mut headers = || panic!("headers matter to no exchange here");
        self.route(exchange.as_bytes(), key.as_bytes(), &mut headers, &mut RouteSet::new(), &mut queues)?;
        let mut names: Vec<_> = queues.iter().map(|queue| queue.name().clone()).collect();
        names.sort();
        Ok(names)
    }
}

fn names(names: &[&str]) -> Vec<Name> {
    names.iter().map(|&name| name.into()).collect()
}

fn seen(stream: &mut EventStream) -> Vec<Event> {
    std::iter::from_fn(|| stream.try_next()).map(|event| event.unwrap()).collect()
}

/// Deletes a queue; returns how many ready messages went with it.
fn delete(vhost: &Vhost, name: &str, by: ConnectionId, when: DeleteIf) -> Result<u64, DeleteError> {
    let mut ready = u64::MAX;
    vhost.delete_queue(name, by, when, |count| ready = count).map(|()| ready)
}

#[test]
fn a_queue_is_found_by_its_name_and_is_the_same_for_all() {
    let vhost = vhost();
    let (first, declared) = vhost.declare_queue("q", QueueSpec::default(), ME).unwrap();
    assert_eq!(declared, Declared::Created);
    let (second, declared) = vhost.declare_queue("q", QueueSpec::default(), OTHER).unwrap();
    assert_eq!(declared, Declared::Existing);
    assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&first, &vhost.queue("q", OTHER).unwrap()));
    let missing = TopologyError::NotFound(Resource::queue("none"));
    assert_eq!(vhost.queue("none", ME).unwrap_err(), missing);
}

#[test]
fn messages_are_routed_to_the_queues_there_are() {
    let vhost = vhost();
    ["a", "b", "c"].iter().for_each(|name| drop(vhost.with_queue(name)));
    for name in ["a", "b", "a"] {
        vhost.bind_queue("amq.fanout", name);
    }
    assert_eq!(vhost.routed("", "c"), Ok(names(&["c"])));
    assert_eq!(vhost.routed("amq.fanout", "any"), Ok(names(&["a", "b"])));
    assert_eq!(vhost.routed("", "none"), Ok(vec![]));
    assert_eq!(vhost.routed("none", "k"), Err(RouteError::NotFound));
    delete(&vhost, "a", ME, DeleteIf::default()).unwrap();
    assert_eq!(vhost.routed("amq.fanout", "any"), Ok(names(&["b"])));
    vhost.with_queue("d");
    assert_eq!(
        vhost.routed("amq.fanout", "any"),
        Ok(names(&["b"])),
        "the next in its place is another queue"
    );
}

#[test]
fn headers_are_read_for_a_headers_exchange_only() {
    let vhost = vhost();
    vhost.with_queue("q");
    vhost.bind_queue("amq.headers", "q");
    let (mut asked, mut queues) = (0, Vec::new());
    for exchange in ["", "amq.topic", "amq.headers"] {
        let mut headers = || {
            asked += 1;
            None
        };
        let mut scratch = RouteSet::new();
        vhost.route(exchange.as_bytes(), b"q", &mut headers, &mut scratch, &mut queues).unwrap();
    }
    assert_eq!((asked, queues.len()), (1, 2));
}

#[test]
fn the_generation_grows_with_what_can_alter_a_route_only() {
    let vhost = vhost();
    let mut last = vhost.generation();
    let mut grown = || {
        let before = std::mem::replace(&mut last, vhost.generation());
        assert!(before <= last);
        before < last
    };
    vhost.with_queue("q");
    assert!(grown());
    vhost.with_queue("q");
    assert!(!grown(), "it was there");
    vhost.declare_exchange("e", ExchangeSpec::durable(ExchangeKind::Direct)).unwrap();
    assert!(grown());
    assert!(vhost.bind_queue("e", "q"));
    assert!(grown());
    assert!(!vhost.bind_queue("e", "q"));
    assert!(!grown(), "it was bound");
    vhost.unbind_queue("e", "q");
    assert!(grown());
    vhost.delete_exchange("e", false).unwrap();
    assert!(grown());
    delete(&vhost, "q", ME, DeleteIf::default()).unwrap();
    assert!(grown());
    delete(&vhost, "q", ME, DeleteIf::default()).unwrap();
    assert!(!grown(), "there was none");
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer() {
    let vhost = vhost();
    let (queue, _) = vhost.declare_queue("q", auto_delete(), ME).unwrap();
    let consumer = Recorder::with_room(0);
    let ids = [0, 1].map(|index| consumer.consume(&queue, index, ConsumerSpec::default()));
    assert_eq!(queue.unsubscribe(ids[0]), Unsubscribed::Others);
    vhost.delete_if_abandoned(&queue);
    assert!(vhost.queue("q", ME).is_ok(), "one is left");
    assert_eq!(queue.unsubscribe(ids[1]), Unsubscribed::Last);
    vhost.delete_if_abandoned(&queue);
    assert!(vhost.queue("q", ME).is_err());
}

#[test]
fn only_the_abandoned_auto_delete_queue_itself_is_deleted() {
    let vhost = vhost();
    let lasting = vhost.with_queue("lasting");
    vhost.delete_if_abandoned(&lasting);
    assert!(vhost.queue("lasting", ME).is_ok());

    let (old, _) = vhost.declare_queue("q", auto_delete(), ME).unwrap();
    delete(&vhost, "q", ME, DeleteIf::default()).unwrap();
    vhost.declare_queue("q", auto_delete(), ME).unwrap();
    vhost.delete_if_abandoned(&old);
    assert!(vhost.queue("q", ME).is_ok(), "it only has the same name");
}

#[test]
fn exclusive_queues_go_with_their_connection_and_are_locked_till_then() {
    let vhost = vhost();
    vhost.with_queue("shared");
    for (name, owner) in [("mine", ME), ("mine too", ME), ("other's", OTHER)] {
        vhost.declare_queue(name, exclusive(), owner).unwrap();
    }
    let locked = TopologyError::Locked { queue: "mine".into() };
    assert_eq!(vhost.queue("mine", OTHER).unwrap_err(), locked);
    let refused = delete(&vhost, "mine", OTHER, DeleteIf::default());
    assert_eq!(refused, Err(DeleteError::Topology(locked)));
    vhost.delete_queues_owned_by(ME);
    let left: Vec<_> = vhost.queues().into_iter().map(|queue| queue.name).collect();
    assert_eq!(left, names(&["shared", "other's"]));
}

#[test]
fn a_deletion_tells_the_consumers_and_how_many_messages_went() {
    let vhost = vhost();
    let queue = vhost.with_queue("q");
    publish(&queue, &["a", "b"]);
    let consumer = Recorder::with_room(1);
    consumer.consume(&queue, 4, ConsumerSpec::default());
    let in_use = delete(&vhost, "q", ME, DeleteIf { unused: true, empty: false });
    assert_eq!(in_use, Err(DeleteError::Refused(DeleteRefused::InUse)));
    let not_empty = delete(&vhost, "q", ME, DeleteIf { unused: false, empty: true });
    assert_eq!(not_empty, Err(DeleteError::Refused(DeleteRefused::NotEmpty)));
    assert!(consumer.0.lock().cancelled.is_empty());

    let wakes = consumer.0.lock().wakes;
    assert_eq!(delete(&vhost, "q", ME, DeleteIf::default()), Ok(1));
    let record = consumer.0.lock();
    assert_eq!(
        (&record.cancelled[..], record.wakes),
        (&[ConsumerKey { channel: 1, index: 4 }][..], wakes + 1)
    );
    assert_eq!((delete(&vhost, "q", ME, DeleteIf::default()), vhost.home.memory.used()), (Ok(0), 0));
}

/// Counts how often it was woken while the vhost was not locked, and told of a deletion while it was.
#[derive(Debug)]
struct LockWatch {
    vhost: Arc<Vhost>,
    woken_unlocked: AtomicUsize,
    cancelled_locked: AtomicUsize,
}

impl Subscriber for LockWatch {
    fn reserve(&self, _: ConsumerKey, _: u32, _: usize, _: &Arc<Queue>) -> u32 {
        0
    }

    fn release(&self, _: ConsumerKey, _: u32) {}

    fn deliver(&self, _: ConsumerKey, _: &mut dyn Iterator<Item = crate::message::Delivery<'_>>) {}

    fn reply(&self, _: u16, _: &MessageRef<'_>) -> bool {
        false
    }

    fn cancelled(&self, _: ConsumerKey) {
        let locked = self.vhost.catalogue.try_read().is_none();
        self.cancelled_locked.fetch_add(usize::from(locked), Release);
    }

    fn wake(&self) {
        let unlocked = self.vhost.catalogue.try_write().is_some();
        self.woken_unlocked.fetch_add(usize::from(unlocked), Release);
    }
}

#[test]
fn consumers_are_told_before_the_name_is_free_again_and_woken_without_any_lock() {
    let vhost = vhost();
    let watch = Arc::new(LockWatch {
        vhost: vhost.clone(),
        woken_unlocked: AtomicUsize::new(0),
        cancelled_locked: AtomicUsize::new(0),
    });
    for name in ["one", "two"] {
        let (queue, _) = vhost.declare_queue(name, exclusive(), ME).unwrap();
        let key = ConsumerKey { channel: 1, index: 0 };
        let subscription =
            Subscription { subscriber: watch.clone(), connection: ConnectionId(1), key, tag: "c".into() };
        queue.subscribe(ConsumerSpec::default(), subscription).unwrap();
    }
    delete(&vhost, "one", ME, DeleteIf::default()).unwrap();
    let counted = || (watch.cancelled_locked.load(Acquire), watch.woken_unlocked.load(Acquire));
    assert_eq!(counted(), (1, 1));
    vhost.delete_queues_owned_by(ME);
    assert_eq!(counted(), (2, 2));
}

#[test]
fn changes_are_told_in_the_order_they_happen() {
    let vhost = vhost();
    let mut stream = vhost.events.subscribe(Interest::Topology);
    let (v, q, e): (Name, Name, Name) = ("v".into(), "q".into(), "e".into());
    let binding = || (v.clone(), e.clone(), BindingTo::Queue(q.clone()), Box::from(&b"k"[..]));

    let spec = ExchangeSpec { auto_delete: true, ..ExchangeSpec::durable(ExchangeKind::Topic) };
    vhost.declare_exchange("e", spec.clone()).unwrap();
    vhost.declare_exchange("e", spec).unwrap();
    let queue = vhost.with_queue("q");
    vhost.with_queue("q");
    vhost.bind_queue("e", "q");
    vhost.bind_queue("e", "q");
    let (vhost_name, source, destination, key) = binding();
    let expected = [
        Event::ExchangeCreated { vhost: v.clone(), exchange: e.clone(), kind: "topic" },
        Event::QueueCreated { vhost: v.clone(), queue: q.clone() },
        Event::BindingCreated { vhost: vhost_name, source, destination, key },
    ];
    assert_eq!(seen(&mut stream), expected);

    Recorder::with_room(0).consume(&queue, 0, ConsumerSpec::default());
    delete(&vhost, "q", ME, DeleteIf::default()).unwrap();
    delete(&vhost, "q", ME, DeleteIf::default()).unwrap();
    vhost.delete_exchange("e", false).unwrap();
    let (vhost_name, source, destination, key) = binding();
    let expected = [
        Event::BindingDeleted { vhost: vhost_name, source, destination, key },
        Event::ExchangeDeleted { vhost: v.clone(), exchange: e.clone() },
        Event::ConsumerCancelled { vhost: v.clone(), queue: q.clone(), tag: "c0".into() },
        Event::QueueDeleted { vhost: v.clone(), queue: q.clone() },
    ];
    assert_eq!(seen(&mut stream), expected);
}
