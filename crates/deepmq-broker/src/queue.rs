//! A queue at run time: the state machine of the model, the bytes of its messages, and one lock around both.
//!
//! Owns the order of effects: append, dispatch, deliver, complete. Must not know exchanges, vhosts or protocols.
//!
//! In: [`Queue::publish`], [`Queue::settle`]. Out: [`Subscriber::deliver`](crate::subscriber::Subscriber).

mod counters;
mod dispatch;
mod flow;
mod head;
mod home;
mod keeping;
mod leaving;
mod limits;
mod mailing;
mod paging;
mod ruling;
mod settlement;
#[cfg(test)]
mod tests;
mod timing;

pub use counters::Counters;
pub use flow::Ticket;
pub(crate) use home::Home;
pub(crate) use paging::PageRead;
pub use paging::Storage;
pub use settlement::{Outcome, Settlement, Settlements};

use crate::backlog::{Backlog, BatchSize};
use crate::connection::ConnectionId;
use crate::durable::Durable;
use crate::events::Event;
use crate::message::{Delivery, MessageRef};
use crate::subscriber::{Subscription, Wakes};
use deepmq_model::Name;
use deepmq_model::message::death::Reason;
use deepmq_model::message::properties;
use deepmq_model::queue::{
    self as model, Activity, ConsumeError, ConsumerId, ConsumerSpec, Pause, Position, Profile, Run, Settings,
};
use deepmq_storage::Durability;
use flow::Flow;
use leaving::Leaving;
use paging::Paging;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Waker;
use timing::Alarm;

/// What a queue holds at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Messages delivered and not settled.
    pub unacked: u64,
    /// Consumers.
    pub consumers: usize,
    /// Messages that died and are to be placed where dead letters go.
    pub dead_letters: u64,
    /// What the bodies of these take, in bytes.
    pub dead_letter_bytes: u64,
    /// Memory of the messages, in bytes.
    pub bytes: usize,
}

impl Depth {
    /// All messages.
    pub fn messages(&self) -> u64 {
        self.ready + self.unacked + self.dead_letters
    }
}

/// A consumer, for inspection.
#[derive(Debug, Clone)]
pub struct ConsumerInfo {
    /// Its tag.
    pub tag: Name,
    /// The connection it is on: see [`Broker::connections`](crate::Broker::connections).
    pub connection: ConnectionId,
    /// The channel it is on.
    pub channel: u16,
    /// What it asked for.
    pub spec: ConsumerSpec,
    /// Unacked messages it holds.
    pub in_flight: u32,
    /// Why it takes no messages now, if it does not.
    pub pause: Pause,
    /// What it is to its queue.
    pub activity: Activity,
}

/// What a deleted queue leaves behind.
#[derive(Debug)]
pub struct Deleted {
    /// Ready messages that were dropped.
    pub ready: u64,
    /// Its consumers, who must be told.
    pub subscriptions: Vec<Subscription>,
}

/// Who is left when a consumer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsubscribed {
    /// There was no such consumer, or it went with its queue.
    Unknown,
    /// It was one of several.
    Others,
    /// It was the last.
    Last,
}

/// Why a queue takes no consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// It has just been deleted.
    #[error("the queue is gone")]
    Gone,
    /// The model refuses it.
    #[error(transparent)]
    Refused(#[from] ConsumeError),
}

/// Why a queue is not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteRefused {
    /// It has consumers, and was to be deleted only if unused.
    InUse,
    /// It has ready messages, and was to be deleted only if empty.
    NotEmpty,
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    name: Name,
    home: Arc<Home>,
    profile: Profile,
    stored: Option<StoredAs>,
    /// Something has changed for the letters it holds.
    stirred: AtomicBool,
    state: Mutex<State>,
}

/// How a queue is known to the store of a durable broker.
#[derive(Debug, Clone)]
pub(crate) struct StoredAs {
    pub(crate) durable: Arc<Durable>,
    pub(crate) number: u64,
    /// It is durable: its persistent messages are in the journal, and come back after a restart. What is stored of others is
    /// thrown away then.
    pub(crate) survives: bool,
    /// How far its persistent messages must have come before they are confirmed.
    pub(crate) durability: Durability,
}

/// What came of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched<R> {
    /// No message is ready.
    Empty,
    /// The first message is read from disk: see [`Queue::poll_paged_in`].
    PagedOut,
    /// It has a single active consumer, who gets them all.
    SingleActive,
    /// A message, as it was taken.
    Message(R),
}

/// What became of a published batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Where the first message is, the others right after it; none if the queue was deleted, or refused all.
    pub first: Option<Position>,
    /// Which of them a full queue refused, by their index in the batch, in order.
    pub refused: Vec<u32>,
    /// With a ticket, consumers fall behind: see [`Queue::poll_turn`].
    pub ticket: Option<Ticket>,
}

impl Published {
    /// Whether a message was refused, by its index in the batch.
    pub(crate) fn has_refused(&self, index: u32) -> bool {
        self.refused.binary_search(&index).is_ok()
    }
}

#[derive(Debug)]
struct State {
    model: model::Queue<Subscription>,
    backlog: Backlog,
    counters: Counters,
    flow: Flow,
    paging: Paging,
    settings: Settings,
    /// Bytes of ready messages' bodies, while there is a limit on them.
    ready_bytes: Option<u64>,
    leaving: Leaving,
    refused: mailing::Refused,
    alarm: Alarm,
    deleted: bool,
}

impl Queue {
    pub(crate) fn new(
        home: &Arc<Home>,
        name: Name,
        (profile, settings): (Profile, Settings),
        stored: Option<StoredAs>,
    ) -> Arc<Self> {
        let state = State {
            model: model::Queue::new(profile),
            backlog: Backlog::new(home.memory.clone()),
            counters: Counters::default(),
            flow: Flow::default(),
            paging: Paging::default(),
            ready_bytes: settings.max_length_bytes.map(|_| 0),
            leaving: Leaving::default(),
            refused: mailing::Refused::new(),
            alarm: Alarm::default(),
            deleted: false,
            settings: Settings::default(),
        };
        let (home, stirred) = (home.clone(), AtomicBool::new(false));
        let queue = Arc::new(Self { name, home, profile, stored, stirred, state: Mutex::new(state) });
        queue.begin(settings);
        queue
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The vhost it is in.
    pub fn vhost(&self) -> &Name {
        &self.home.vhost
    }

    /// What it holds.
    pub fn depth(&self) -> Depth {
        let state = self.state.lock();
        Depth {
            ready: state.model.ready(),
            unacked: state.model.unacked(),
            consumers: state.model.consumers().len(),
            dead_letters: state.leaving.count,
            dead_letter_bytes: state.leaving.bytes,
            bytes: state.backlog.bytes(),
        }
    }

    /// What it counted.
    pub fn counters(&self) -> Counters {
        self.state.lock().counters
    }

    /// Its consumers.
    pub fn consumers(&self) -> Vec<ConsumerInfo> {
        let state = self.state.lock();
        let info = |consumer: &model::Consumer<Subscription>| ConsumerInfo {
            tag: consumer.handle.tag.clone(),
            connection: consumer.handle.connection,
            channel: consumer.handle.key.channel,
            spec: consumer.spec(),
            in_flight: consumer.in_flight(),
            pause: consumer.pause(),
            activity: state.model.consumers().activity(consumer.id()),
        };
        state.model.consumers().iter().map(info).collect()
    }

    /// Takes a batch of messages and hands out what consumers can take. A deleted queue drops them.
    ///
    /// What is to survive a restart must be journalled by the caller, at the positions it is told, and confirmed only after.
    pub fn publish<'a>(
        self: &Arc<Self>,
        size: BatchSize,
        messages: impl Iterator<Item = MessageRef<'a>>,
        wakes: &mut Wakes,
    ) -> Published {
        let mut state = self.state.lock();
        if state.deleted || size.count == 0 {
            return Published::default();
        }
        state.expire_overdue(self, wakes);
        let mut published = if state.settings.refuses() {
            state.admit(self, size, messages, wakes)
        } else {
            let first = state.append(self, size, messages);
            state.dispatch(self, wakes);
            state.shorten(self, wakes);
            state.expire_fresh(self, wakes);
            Published { first: Some(first), ..Published::default() }
        };
        published.ticket = state.falls_behind().then(|| state.flow.issue(size.count as u64));
        published
    }

    /// Whether a publisher's turn has come; if not, `waker` is woken when it has.
    pub fn poll_turn(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        !state.falls_behind() || state.flow.poll(ticket, waker)
    }

    /// Adds a consumer. It gets nothing until [`Queue::resume`], so that the front-end can announce it first.
    pub fn subscribe(
        &self,
        spec: ConsumerSpec,
        subscription: Subscription,
    ) -> Result<ConsumerId, SubscribeError> {
        let mut state = self.state.lock();
        if state.deleted {
            return Err(SubscribeError::Gone);
        }
        Ok(state.model.subscribe(spec, subscription)?)
    }

    /// Removes a consumer. What it holds stays unacked. [`Queue::hand_over`] must follow, once what goes back is back.
    pub fn unsubscribe(self: &Arc<Self>, id: ConsumerId) -> Unsubscribed {
        let mut state = self.state.lock();
        if state.model.unsubscribe(id).is_none() {
            return Unsubscribed::Unknown;
        }
        if !state.model.consumers().is_empty() {
            return Unsubscribed::Others;
        }
        state.flow.open(Waker::wake);
        state.note_use(self);
        Unsubscribed::Last
    }

    /// What consumers that are gone held is back: if one was the single active consumer, another is from now on.
    pub fn hand_over(self: &Arc<Self>, wakes: &mut Wakes) {
        if self.profile.single_active {
            let mut state = self.state.lock();
            state.model.hand_over();
            state.expire_overdue(self, wakes);
            state.dispatch(self, wakes);
        }
    }

    /// A consumer can take messages (again).
    pub fn resume(self: &Arc<Self>, id: ConsumerId, wakes: &mut Wakes) {
        let mut state = self.state.lock();
        state.model.resume(id);
        state.expire_overdue(self, wakes);
        state.dispatch(self, wakes);
    }

    /// Fetches the first ready message into `take`, which also learns how many are left. Unless `no_ack`, it is
    /// unacked from then on.
    pub fn fetch<R>(
        self: &Arc<Self>,
        no_ack: bool,
        take: impl FnOnce(Delivery<'_>, u64) -> R,
        wakes: &mut Wakes,
    ) -> Fetched<R> {
        if self.profile.single_active {
            return Fetched::SingleActive;
        }
        let mut state = self.state.lock();
        state.note_use(self);
        state.expire_overdue(self, wakes);
        if !state.first_at_hand(self, wakes) {
            return Fetched::PagedOut;
        }
        let Some(handed) = state.model.get(no_ack) else { return Fetched::Empty };
        let left = state.model.ready();
        let message = state.backlog.read(handed.position).expect("what is at hand is in memory");
        if self.home.events.messages_wanted() {
            self.home.events.publish(&self.delivered(message, handed.redelivered));
        }
        let model::Handed { position, redelivered } = handed;
        let returns = state.backlog.returns(position);
        let tells_returns = state.settings.tells_returns;
        let taken = take(Delivery { position, redelivered, returns, tells_returns, message }, left);
        state.count_taken(Run { first: position, count: 1 });
        state.counters.fetched += 1;
        state.counters.redelivered += u64::from(handed.redelivered);
        if no_ack {
            state.counters.fetched_no_ack += 1;
            state.counters.acked += 1;
            let persistent = state.backlog.complete(handed.position);
            self.note_done(persistent, Run { first: handed.position, count: 1 }, wakes);
        }
        state.tell_room();
        Fetched::Message(taken)
    }

    /// Settles deliveries, in the order given, and hands out what that makes possible.
    pub fn settle(self: &Arc<Self>, settlements: &[Settlement], wakes: &mut Wakes) {
        let mut state = self.state.lock();
        if state.deleted {
            return;
        }
        state.settle(self, settlements, wakes);
        // What came back can be too much.
        state.shorten(self, wakes);
        state.expire_overdue(self, wakes);
        if self.home.events.messages_wanted() {
            for settlement in settlements {
                self.home.events.publish(&self.settled(settlement));
            }
        }
        state.dispatch(self, wakes);
    }

    /// Drops all ready messages, and the dead letters that wait; returns how many, as RabbitMQ does.
    pub fn purge(&self, wakes: &mut Wakes) -> u64 {
        let mut state = self.state.lock();
        let purged = state.model.purge();
        let fresh = (purged.first, purged.end);
        for (start, end) in purged.older.ranges().chain((fresh.0 < fresh.1).then_some(fresh)) {
            let persistent = state.backlog.complete_range(start, end);
            if let Some(kept) = self.kept().filter(|_| persistent) {
                wakes.settled.done_range(&kept.durable, kept.number, start.0..end.0);
            }
        }
        state.counters.discarded += purged.count();
        state.recount_ready();
        let letters = state.purge_letters(self, wakes);
        state.tell_room();
        state.flow.open(Waker::wake);
        purged.count() + letters
    }

    /// Closes the queue for good, unless a condition forbids it: its messages are dropped, whatever still refers to
    /// it does nothing.
    pub(crate) fn delete(&self, if_unused: bool, if_empty: bool) -> Result<Deleted, DeleteRefused> {
        let mut state = self.state.lock();
        if if_unused && !state.model.consumers().is_empty() {
            return Err(DeleteRefused::InUse);
        }
        if if_empty && state.model.ready() > 0 {
            return Err(DeleteRefused::NotEmpty);
        }
        let subscriptions = state.model.consumers().iter().map(|consumer| consumer.handle.clone()).collect();
        let deleted = Deleted { ready: state.model.ready(), subscriptions };
        state.deleted = true;
        state.flow.open(Waker::wake);
        state.model = model::Queue::default();
        state.backlog.clear();
        state.leaving = Leaving::default();
        state.refused.clear();
        state.paging.end();
        Ok(deleted)
    }

    /// Notes for the journal that messages are needed no more, if it may know them.
    fn note_done(&self, persistent: bool, run: Run, wakes: &mut Wakes) {
        if let Some(kept) = self.kept().filter(|_| persistent) {
            wakes.settled.done(&kept.durable, kept.number, run);
        }
    }

    fn delivered(&self, message: MessageRef<'_>, redelivered: bool) -> Event {
        Event::MessageDelivered {
            vhost: self.home.vhost.clone(),
            queue: self.name.clone(),
            routing_key: message.routing_key().into(),
            bytes: message.body.len(),
            redelivered,
        }
    }

    fn settled(&self, settlement: &Settlement) -> Event {
        let (vhost, queue, position) = (self.home.vhost.clone(), self.name.clone(), settlement.position);
        match settlement.outcome {
            Outcome::Ack => Event::MessageAcked { vhost, queue, position },
            Outcome::Nack { requeue } => Event::MessageNacked { vhost, queue, position, requeue },
            Outcome::Reject { requeue } => Event::MessageRejected { vhost, queue, position, requeue },
            Outcome::Recover => Event::MessageNacked { vhost, queue, position, requeue: true },
        }
    }
}

impl State {
    /// Whether there are consumers, and more messages for them than they take.
    fn falls_behind(&self) -> bool {
        Flow::is_long(self.model.ready(), self.backlog.bytes()) && !self.model.consumers().is_empty()
    }

    /// Takes new messages; returns the position of the first.
    fn append<'a>(
        &mut self,
        queue: &Arc<Queue>,
        size: BatchSize,
        messages: impl Iterator<Item = MessageRef<'a>>,
    ) -> Position {
        let first = self.model.next();
        self.backlog.append(first, size, messages);
        let run = Run { first, count: u32::try_from(size.count).expect("a read has fewer messages") };
        if self.model.has_priorities() {
            let messages = self.backlog.run(run).map(|(_, message)| properties::priority(message.properties));
            self.model.publish_each(messages);
        } else {
            self.model.publish(size.count as u64);
        }
        self.counters.published += size.count as u64;
        self.count_ready(run);
        if size.expiring || self.settings.message_ttl.is_some() {
            self.arrive(queue, first, size.expiring);
        }
        first
    }

    fn note_priority(&mut self, position: Position, message: MessageRef<'_>) {
        if self.model.has_priorities() {
            self.model.note_priority(position, properties::priority(message.properties));
        }
    }

    /// A message came back.
    fn take_back(&mut self, queue: &Arc<Queue>, settlement: &Settlement, wakes: &mut Wakes) {
        let times = self.backlog.returned(settlement.position);
        if let Some(kept) = queue.kept().filter(|_| self.backlog.is_persistent(settlement.position)) {
            wakes.settled.returned(&kept.durable, kept.number, settlement.position, times);
        }
        let run = Run { first: settlement.position, count: 1 };
        if self.settings.is_undeliverable(times) {
            self.model.complete(settlement.position, settlement.consumer);
            self.discard(queue, run, Reason::DeliveryLimit, wakes);
            return;
        }
        self.model.requeue(settlement.position, settlement.consumer);
        self.count_ready(run);
        if self.alarm.is_timed() {
            self.backlog.expire_again(settlement.position);
        }
        self.counters.requeued += 1;
    }

    fn settle(&mut self, queue: &Arc<Queue>, settlements: &[Settlement], wakes: &mut Wakes) {
        let mut done: Option<Run> = None;
        for settlement in settlements {
            if settlement.outcome.requeues() {
                self.take_back(queue, settlement, wakes);
                continue;
            }
            self.model.complete(settlement.position, settlement.consumer);
            if settlement.outcome != Outcome::Ack {
                let run = Run { first: settlement.position, count: 1 };
                self.discard(queue, run, Reason::Rejected, wakes);
                continue;
            }
            self.counters.acked += 1;
            match &mut done {
                Some(run) if run.end() == settlement.position => run.count += 1,
                _ => {
                    let run = done.replace(Run { first: settlement.position, count: 1 });
                    if let Some(run) = run {
                        queue.note_done(self.backlog.complete_run(run), run, wakes);
                    }
                }
            }
        }
        if let Some(run) = done {
            queue.note_done(self.backlog.complete_run(run), run, wakes);
        }
    }
}
