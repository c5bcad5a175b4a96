//! A consumer that goes while its queue is handing messages out.

use super::super::{Channel, Phase, Session};
use super::*;
use crate::outbox::Outbox;
use deepmq_broker::connection::ConnectionControl;
use deepmq_broker::message::{Body, Delivery, MessageRef};
use deepmq_broker::subscriber::{Subscriber, Wakes};
use deepmq_broker::{BatchSize, Broker, BrokerConfig};
use deepmq_model::topology::QueueSpec;
use deepmq_storage::seam::Seam;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

const CHANNEL: u16 = 1;

/// A session with a consumer, and its queue.
fn session() -> (Session, Arc<Queue>) {
    let broker = Broker::start(BrokerConfig::default(), Seam::simulated(1)).unwrap();
    let vhost = broker.vhost("/").unwrap();
    let outbox = Outbox::new(1024 * 1024);
    let admission = broker.admit_connection(outbox.clone()).unwrap();
    let guest = broker.users().get("guest");
    let mut session = Session::new(broker, outbox, ([127, 0, 0, 1], 1).into(), admission);
    let (queue, _) = vhost.declare_queue("q", QueueSpec::default(), session.id).unwrap();
    session.phase = Phase::Open;
    session.user = guest;
    session.vhost = Some(vhost);
    session.channels.insert(CHANNEL, Channel::default());
    session.outbox.open_channel(CHANNEL);
    let consume = basic::Consume { queue: "q", consumer_tag: "c", ..basic::Consume::default() };
    session.on_consume(CHANNEL, &consume).unwrap();
    (session, queue)
}

/// A consumer without room. It holds the queue up when it is asked, for the session's consumer to go meanwhile.
#[derive(Debug)]
struct Gate {
    asked: Sender<()>,
    session: Arc<Outbox>,
}

impl Subscriber for Gate {
    fn reserve(&self, _: ConsumerKey, _: u32, _: usize, _: &Arc<Queue>) -> u32 {
        self.asked.send(()).unwrap();
        // The session must wait for the queue; if it does not, its consumer is soon gone.
        for _ in 0..50 {
            if self.session.channels().first().is_none_or(|channel| channel.consumers == 0) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        0
    }

    fn release(&self, _: ConsumerKey, _: u32) {}

    fn deliver(&self, _: ConsumerKey, _: &mut dyn Iterator<Item = Delivery<'_>>) {}

    fn reply(&self, _: u16, _: &MessageRef<'_>) -> bool {
        false
    }

    fn cancelled(&self, _: ConsumerKey) {}

    fn wake(&self) {}
}

/// Lets the consumer go while two messages are on their way to it, then closes the channel.
fn go_while_messages_come(go: impl FnOnce(&mut Session)) {
    let (mut session, queue) = session();
    let (sender, asked) = channel();
    let gate = Arc::new(Gate { asked: sender, session: session.outbox.clone() });
    let key = ConsumerKey { channel: 1, index: 0 };
    let subscription = Subscription { subscriber: gate, connection: session.id, key, tag: "gate".into() };
    let id = queue.subscribe(ConsumerSpec::default(), subscription).unwrap();
    queue.resume(id, &mut Wakes::default());

    let message = MessageRef {
        dead_letter: false,
        address: b"\0\x01q",
        properties: &[0, 0],
        body: Body::Inline(b"body"),
        persistent: false,
    };
    let size = BatchSize { count: 2, bytes: 2 * message.packed_bytes(), expiring: false };
    thread::scope(|scope| {
        scope.spawn(|| queue.publish(size, [message; 2].into_iter(), &mut Wakes::default()));
        asked.recv().unwrap();
        go(&mut session);
    });
    session.on_channel_close(CHANNEL);
    let depth = queue.depth();
    assert_eq!((depth.ready, depth.unacked, depth.consumers), (2, 0, 1));
}

#[test]
fn messages_on_their_way_to_a_consumer_that_is_cancelled_are_not_lost() {
    go_while_messages_come(|session| {
        session.on_cancel(CHANNEL, &basic::Cancel { consumer_tag: "c", no_wait: true }).unwrap();
    });
}

#[test]
fn messages_on_their_way_to_a_channel_that_is_closed_are_not_lost() {
    go_while_messages_come(|session| session.on_channel_close(CHANNEL));
}
