//! A subscriber for tests: it takes as many deliveries as it was given room for, and writes down all that it is told.

use super::{ConsumerKey, Subscriber, Subscription};
use crate::backlog::BatchSize;
use crate::message::{Body, Delivery, MessageRef};
use crate::queue::{Outcome, Queue, Settlement};
use crate::subscriber::Wakes;
use deepmq_model::queue::{ConsumerId, ConsumerSpec, Position};
use parking_lot::Mutex;
use std::sync::Arc;

/// A delivery as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) index: u32,
    pub(crate) position: u64,
    pub(crate) redelivered: bool,
    pub(crate) body: String,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Messages it takes before it says that it has no room.
    pub(crate) room: u32,
    pub(crate) got: Vec<Got>,
    pub(crate) starved: Vec<ConsumerKey>,
    pub(crate) cancelled: Vec<ConsumerKey>,
    /// The sizes of messages it was told, in bytes.
    pub(crate) estimates: Vec<usize>,
    pub(crate) wakes: usize,
}

#[derive(Debug)]
pub(crate) struct Recorder(pub(crate) Mutex<Record>);

impl Recorder {
    pub(crate) fn with_room(room: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Record { room, ..Record::default() })))
    }

    /// Consumes as the consumer `index`, and is resumed at once.
    pub(crate) fn consume(
        self: &Arc<Self>,
        queue: &Arc<Queue>,
        index: u32,
        spec: ConsumerSpec,
    ) -> ConsumerId {
        let id = queue.subscribe(spec, self.subscription(index)).unwrap();
        let mut wakes = Wakes::default();
        queue.resume(id, &mut wakes);
        wakes.wake();
        id
    }

    pub(crate) fn subscription(self: &Arc<Self>, index: u32) -> Subscription {
        let key = ConsumerKey { channel: 1, index };
        Subscription {
            subscriber: self.clone(),
            connection: crate::connection::ConnectionId(1),
            key,
            tag: format!("c{index}").as_str().into(),
        }
    }

    /// Takes out what came since the last time.
    pub(crate) fn take(&self) -> Vec<Got> {
        std::mem::take(&mut self.0.lock().got)
    }

    /// The positions of what came since the last time.
    pub(crate) fn take_positions(&self) -> Vec<u64> {
        self.take().into_iter().map(|got| got.position).collect()
    }
}

impl Subscriber for Recorder {
    fn reserve(&self, consumer: ConsumerKey, want: u32, message_bytes: usize, _: &Arc<Queue>) -> u32 {
        let mut record = self.0.lock();
        record.estimates.push(message_bytes);
        let granted = want.min(record.room);
        record.room -= granted;
        if granted == 0 {
            record.starved.push(consumer);
        }
        granted
    }

    fn release(&self, _: ConsumerKey, unused: u32) {
        self.0.lock().room += unused;
    }

    fn deliver(&self, consumer: ConsumerKey, deliveries: &mut dyn Iterator<Item = Delivery<'_>>) {
        let got = deliveries.map(|delivery| Got {
            index: consumer.index,
            position: delivery.position.0,
            redelivered: delivery.redelivered,
            body: String::from_utf8_lossy(delivery.message.body.bytes()).into_owned(),
        });
        self.0.lock().got.extend(got);
    }

    fn reply(&self, _: u16, _: &MessageRef<'_>) -> bool {
        false
    }

    fn cancelled(&self, consumer: ConsumerKey) {
        self.0.lock().cancelled.push(consumer);
    }

    fn wake(&self) {
        self.0.lock().wakes += 1;
    }
}

/// Publishes short messages as one batch.
pub(crate) fn publish(queue: &Arc<Queue>, bodies: &[&str]) {
    let messages = || {
        bodies.iter().map(|body| MessageRef {
            address: b"\x01e\x01k",
            properties: &[0, 0],
            body: Body::Inline(body.as_bytes()),
            persistent: false,
            dead_letter: false,
        })
    };
    let bytes = messages().map(|message| message.packed_bytes()).sum();
    let size = BatchSize { count: bodies.len(), bytes, expiring: false };
    let mut wakes = Wakes::default();
    queue.publish(size, messages(), &mut wakes);
    wakes.wake();
}

/// Settles the messages at these positions.
pub(crate) fn settle(queue: &Arc<Queue>, consumer: Option<ConsumerId>, positions: &[u64], outcome: Outcome) {
    let settlements: Vec<_> = positions
        .iter()
        .map(|&position| Settlement { position: Position(position), consumer, outcome })
        .collect();
    let mut wakes = Wakes::default();
    queue.settle(&settlements, &mut wakes);
    wakes.wake();
}
