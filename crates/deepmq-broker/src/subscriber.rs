//! How the engine reaches a consumer: the connection's side of a subscription.
//!
//! Owns the contract between queues and front-ends. Must not know any protocol.

#[cfg(test)]
pub(crate) mod recorder;

use crate::connection::ConnectionId;
use crate::dead_letters::Outgoing;
use crate::durable::Settled;
use crate::message::{Delivery, MessageRef};
use crate::queue::Queue;
use deepmq_storage::BatchBuilder;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::sync::Arc;
use std::task::Waker;

/// Which of a connection's consumers is meant: the front-end's own numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerKey {
    /// The channel, or whatever the front-end multiplexes a connection into.
    pub channel: u16,
    /// The consumer within the channel.
    pub index: u32,
}

/// A connection that takes deliveries. [`Subscriber::reserve`], [`Subscriber::release`] and [`Subscriber::deliver`] come
/// with the queue's lock held: they must be short, must not block and must not call back into a queue.
///
/// A subscriber forgets a consumer only once that is off its queue ([`Queue::unsubscribe`], or `cancelled`): until then
/// messages may be on their way to it.
pub trait Subscriber: Debug + Send + Sync {
    /// How many of `want` messages of about `message_bytes` each the consumer takes now. After 0 the subscriber calls
    /// [`Queue::resume`] on `queue` as soon as there is room.
    fn reserve(&self, consumer: ConsumerKey, want: u32, message_bytes: usize, queue: &Arc<Queue>) -> u32;

    /// Takes back what of a reservation was not used.
    fn release(&self, consumer: ConsumerKey, unused: u32);

    /// Takes deliveries, as many as were reserved at most.
    fn deliver(&self, consumer: ConsumerKey, deliveries: &mut dyn Iterator<Item = Delivery<'_>>);

    /// Takes a message that comes from no queue and needs no settling, for who waits for replies on a channel; false: nobody
    /// does, or there is no room, and it is lost. Called without any lock held.
    fn reply(&self, channel: u16, message: &MessageRef<'_>) -> bool;

    /// Its queue is gone, and the consumer with it. Called with the vhost's lock held, not the queue's.
    fn cancelled(&self, consumer: ConsumerKey);

    /// There is something to send. Called without any lock held.
    fn wake(&self);
}

/// A consumer as its queue sees it.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The connection.
    pub subscriber: Arc<dyn Subscriber>,
    /// The consumer within it.
    pub key: ConsumerKey,
    /// The connection's number, for inspection.
    pub connection: ConnectionId,
    /// What clients call the consumer, for inspection.
    pub tag: deepmq_model::Name,
}

/// What is to be done once the locks are released: dead letters to send, settlements to journal, connections to wake.
#[derive(Debug, Default)]
pub struct Wakes {
    pub(crate) settled: Settled,
    pub(crate) dead_letters: Outgoing,
    subscribers: SmallVec<[Arc<dyn Subscriber>; 4]>,
    publishers: SmallVec<[Waker; 4]>,
}

impl Wakes {
    /// Notes a connection. Twice does no harm.
    pub fn add(&mut self, subscriber: &Arc<dyn Subscriber>) {
        if !self.subscribers.iter().rev().take(4).any(|known| Arc::ptr_eq(known, subscriber)) {
            self.subscribers.push(subscriber.clone());
        }
    }

    /// Notes a publisher whose turn it is.
    pub(crate) fn add_publisher(&mut self, waker: Waker) {
        self.publishers.push(waker);
    }

    /// A transaction is being committed: messages that die of it are not sent on before [`Wakes::end_commit`]. That they died
    /// is among the settlements, so that it is in one record with the rest of the commit.
    pub fn begin_commit(&mut self) {
        self.dead_letters.begin_commit();
    }

    /// The commit's record was appended.
    pub fn end_commit(&mut self) {
        for (queue, run, reason) in self.dead_letters.end_commit() {
            queue.let_go(run, reason);
            self.dead_letters.note(&queue);
        }
    }

    /// Moves the settlements into a record of the caller's, to be journalled with what else is in it; false: there are none.
    pub fn take_settlements(&mut self, batch: &mut BatchBuilder) -> bool {
        self.settled.take_into(batch)
    }

    /// Does it all. To be called with no lock held but the registry's.
    pub fn wake(&mut self) {
        self.send_dead_letters();
        self.settled.journal();
        for subscriber in self.subscribers.drain(..) {
            subscriber.wake();
        }
        self.publishers.drain(..).for_each(Waker::wake);
    }

    /// A dead letter can make others, in the queue it goes to; that those end is for the model to see to.
    fn send_dead_letters(&mut self) {
        loop {
            if let Some((queue, letters)) = self.dead_letters.next_refused() {
                queue.send_refused(letters, self);
            } else if let Some(queue) = self.dead_letters.next_queue() {
                queue.send_dead_letters(self);
            } else {
                return;
            }
        }
    }
}
