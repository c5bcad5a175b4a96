//! The typed stream of everything the broker does.
//!
//! Owns the events and their subscribers. An event about a message is made only while somebody listens for those; a
//! subscriber that does not keep up loses the oldest events and learns how many, and never slows the broker.

use crate::connection::ConnectionId;
use deepmq_model::Name;
use deepmq_model::queue::Position;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::broadcast;

/// Where a binding leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingTo {
    /// To a queue.
    Queue(Name),
    /// To an exchange.
    Exchange(Name),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the name or count that its own name says")]
pub enum Event {
    BrokerStarted,
    BrokerStopped,
    ConnectionOpened { connection: ConnectionId, user: Name, vhost: Name, peer: String },
    ConnectionClosed { connection: ConnectionId, reason: String },
    ChannelOpened { connection: ConnectionId, channel: u16 },
    ChannelClosed { connection: ConnectionId, channel: u16 },
    ExchangeCreated { vhost: Name, exchange: Name, kind: &'static str },
    ExchangeDeleted { vhost: Name, exchange: Name },
    QueueCreated { vhost: Name, queue: Name },
    QueueDeleted { vhost: Name, queue: Name },
    BindingCreated { vhost: Name, source: Name, destination: BindingTo, key: Box<[u8]> },
    BindingDeleted { vhost: Name, source: Name, destination: BindingTo, key: Box<[u8]> },
    UserCreated { user: Name },
    UserChanged { user: Name },
    UserDeleted { user: Name },
    UserLimitsSet { user: Name },
    VhostCreated { vhost: Name },
    VhostChanged { vhost: Name },
    VhostDeleted { vhost: Name },
    VhostLimitsSet { vhost: Name },
    PermissionSet { vhost: Name, user: Name },
    PermissionCleared { vhost: Name, user: Name },
    TopicPermissionSet { vhost: Name, user: Name, exchange: Name },
    TopicPermissionCleared { vhost: Name, user: Name, exchange: Name },
    PolicySet { vhost: Name, policy: Name },
    PolicyCleared { vhost: Name, policy: Name },
    OperatorPolicySet { vhost: Name, policy: Name },
    OperatorPolicyCleared { vhost: Name, policy: Name },
    ParameterSet { component: Name, vhost: Name, name: Name },
    ParameterCleared { component: Name, vhost: Name, name: Name },
    GlobalParameterSet { name: Name },
    GlobalParameterCleared { name: Name },
    ConsumerCreated { vhost: Name, queue: Name, tag: Name },
    ConsumerCancelled { vhost: Name, queue: Name, tag: Name },
    MessagePublished { vhost: Name, exchange: Box<[u8]>, routing_key: Box<[u8]>, bytes: usize },
    MessageRouted { vhost: Name, exchange: Box<[u8]>, routing_key: Box<[u8]>, queues: usize },
    MessageReturned { vhost: Name, exchange: Box<[u8]>, routing_key: Box<[u8]> },
    MessageDelivered { vhost: Name, queue: Name, routing_key: Box<[u8]>, bytes: usize, redelivered: bool },
    MessageAcked { vhost: Name, queue: Name, position: Position },
    MessageNacked { vhost: Name, queue: Name, position: Position, requeue: bool },
    MessageRejected { vhost: Name, queue: Name, position: Position, requeue: bool },
}

impl Event {
    /// Whether it is about a message, and thus only sent to [`Interest::Everything`].
    pub fn is_about_message(&self) -> bool {
        matches!(
            self,
            Self::MessagePublished { .. }
                | Self::MessageRouted { .. }
                | Self::MessageReturned { .. }
                | Self::MessageDelivered { .. }
                | Self::MessageAcked { .. }
                | Self::MessageNacked { .. }
                | Self::MessageRejected { .. }
        )
    }
}

/// Which events a subscriber wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Connections, channels, topology, consumers, and what is administered.
    Topology,
    /// Those, and every message's way. This costs the broker work for each message.
    Everything,
}

/// Why there is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The subscriber was too slow: so many events were dropped. The next call goes on after them.
    #[error("{0} events were missed")]
    Missed(u64),
    /// The broker is gone.
    #[error("the broker is gone")]
    Closed,
}

/// The sending side.
#[derive(Debug)]
pub struct Events {
    topology: broadcast::Sender<Event>,
    everything: broadcast::Sender<Event>,
    message_listeners: Arc<AtomicUsize>,
}

impl Events {
    /// With so many events kept for each subscriber that lags.
    pub fn new(buffered_max: usize) -> Arc<Self> {
        Arc::new(Self {
            topology: broadcast::Sender::new(buffered_max.max(1)),
            everything: broadcast::Sender::new(buffered_max.max(1)),
            message_listeners: Arc::default(),
        })
    }

    /// Whether events about messages are worth making.
    #[inline]
    pub fn messages_wanted(&self) -> bool {
        self.message_listeners.load(Relaxed) > 0
    }

    /// Sends an event to those who want it.
    pub fn publish(&self, event: &Event) {
        if !event.is_about_message() {
            // An error means that nobody listens, which is fine.
            let _ = self.topology.send(event.clone());
        }
        if self.messages_wanted() {
            let _ = self.everything.send(event.clone());
        }
    }

    /// Listens from now on.
    pub fn subscribe(&self, interest: Interest) -> EventStream {
        match interest {
            Interest::Topology => EventStream { receiver: self.topology.subscribe(), counted: None },
            Interest::Everything => {
                let receiver = self.everything.subscribe();
                self.message_listeners.fetch_add(1, Relaxed);
                EventStream { receiver, counted: Some(self.message_listeners.clone()) }
            }
        }
    }
}

/// The receiving side.
#[derive(Debug)]
pub struct EventStream {
    receiver: broadcast::Receiver<Event>,
    counted: Option<Arc<AtomicUsize>>,
}

impl EventStream {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<Event, EventError> {
        self.receiver.recv().await.map_err(|error| match error {
            broadcast::error::RecvError::Lagged(count) => EventError::Missed(count),
            broadcast::error::RecvError::Closed => EventError::Closed,
        })
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Result<Event, EventError>> {
        match self.receiver.try_recv() {
            Ok(event) => Some(Ok(event)),
            Err(broadcast::error::TryRecvError::Empty) => None,
            Err(broadcast::error::TryRecvError::Lagged(count)) => Some(Err(EventError::Missed(count))),
            Err(broadcast::error::TryRecvError::Closed) => Some(Err(EventError::Closed)),
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(listeners) = &self.counted {
            listeners.fetch_sub(1, Relaxed);
        }
    }
}
