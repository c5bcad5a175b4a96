//! The broker: everything that front-ends and embedders start from.
//!
//! Owns vhosts, users, the connections' registry and the event stream. Must not know protocols or sockets.

use crate::config::BrokerConfig;
use crate::connection::{
    Admission, ChannelInfo, ConnectionControl, ConnectionId, ConnectionInfo, Connections,
};
use crate::durable::change::Change;
use crate::durable::{Durable, DurableError, House, Recovery};
use crate::events::{Event, EventStream, Events, Interest};
use crate::limits::{Limits, LimitsError};
use crate::memory::Memory;
use crate::queue::Queue;
use crate::users::{Users, UsersError};
use crate::vhost::{Vhost, give_back};
use deepmq_model::Name;
use deepmq_storage::seam::Seam;
use deepmq_storage::{AppendError, Durability, Lsn, StorageFailure};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The limits contradict each other.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// A user cannot be made.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Durable(#[from] DurableError),
}

/// What there is too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// Memory for messages.
    Memory,
    /// Disk.
    Disk,
    /// Memory and disk.
    Both,
}

/// What the broker holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// How long it has been running.
    pub uptime: Duration,
    /// Open connections.
    pub connections: usize,
    /// Vhosts.
    pub vhosts: usize,
    /// Queues of all vhosts.
    pub queues: usize,
    /// Exchanges of all vhosts.
    pub exchanges: usize,
    /// Memory of all messages, in bytes.
    pub message_bytes: usize,
    /// The bound on it.
    pub message_bytes_max: usize,
    /// The disk that what is durable is on; none in a broker that keeps nothing.
    pub disk: Option<DiskStatus>,
    /// Publishers are blocked, for want of memory or disk.
    pub publishers_blocked: bool,
}

/// The disk at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskStatus {
    /// Bytes that are free, as of some hundred milliseconds ago.
    pub free_bytes: u64,
    /// The least of them, below which publishers are blocked.
    pub free_bytes_min: u64,
    /// The alarm is on: too few are free, or the journal has no room to go on.
    pub alarm: bool,
}

#[derive(Debug)]
struct Inner {
    config: BrokerConfig,
    seam: Seam,
    users: Users,
    events: Arc<Events>,
    memory: Arc<Memory>,
    connections: Arc<Connections>,
    vhosts: RwLock<BTreeMap<Name, Arc<Vhost>>>,
    durable: Option<Arc<Durable>>,
    stopping: watch::Sender<bool>,
}

impl Inner {
    /// The durable topology of all vhosts.
    fn tell(&self) -> Vec<Change> {
        self.vhosts.read().values().flat_map(|vhost| vhost.tell()).collect()
    }

    /// The queues of all vhosts.
    fn queues(&self) -> Vec<Arc<Queue>> {
        self.vhosts.read().values().flat_map(|vhost| vhost.running_queues()).collect()
    }
}

impl House for Weak<Inner> {
    fn queues(&self) -> Vec<Arc<Queue>> {
        self.upgrade().map(|inner| inner.queues()).unwrap_or_default()
    }

    fn tell(&self) -> Vec<Change> {
        self.upgrade().map(|inner| inner.tell()).unwrap_or_default()
    }
}

/// A running broker. Clones are the same broker.
#[derive(Debug, Clone)]
pub struct Broker(Arc<Inner>);

impl Broker {
    /// Starts a broker.
    pub fn start(config: BrokerConfig, seam: Seam) -> Result<Self, StartError> {
        let events = Events::new(config.limits.events_buffered_max);
        Self::start_observed(config, seam, events)
    }

    /// Starts a broker whose events can have been subscribed to before.
    pub fn start_observed(config: BrokerConfig, seam: Seam, events: Arc<Events>) -> Result<Self, StartError> {
        config.limits.check()?;
        let (max, pool) = (config.limits.ready_memory_bytes_max, config.limits.message_pool_bytes);
        let memory = match config.data_dir {
            Some(_) => Memory::with_pool(max, pool),
            None => Memory::new(max),
        };
        let open = |dir: &Path| Durable::open(&seam, dir, &config, memory.clone());
        let opened = config.data_dir.as_deref().map(open).transpose()?;
        let (durable, recovery) = opened.unzip();
        let users = Users::new(config.users.clone(), seam.random.clone())?;
        let broker = Self(Arc::new(Inner {
            users,
            events,
            memory,
            connections: Arc::default(),
            vhosts: RwLock::default(),
            durable,
            stopping: watch::Sender::new(false),
            config,
            seam,
        }));
        for name in &broker.0.config.vhosts {
            broker.add_vhost(name);
        }
        if let Some(recovery) = recovery {
            broker.recover(recovery)?;
        }
        broker.0.events.publish(&Event::BrokerStarted);
        Ok(broker)
    }

    fn add_vhost(&self, name: &Name) {
        let inner = &self.0;
        let (memory, events, durable) = (inner.memory.clone(), inner.events.clone(), inner.durable.clone());
        let vhost = Vhost::new(name.clone(), &inner.config.limits, memory, events, durable);
        inner.vhosts.write().insert(name.clone(), Arc::new(vhost));
    }

    /// Takes back what the data directory held.
    fn recover(&self, recovery: Recovery) -> Result<(), DurableError> {
        for change in &recovery.changes {
            let Some(vhost) = self.vhost(&change.vhost) else {
                tracing::warn!(
                    vhost = &*change.vhost,
                    "the data directory knows a vhost that is not configured"
                );
                continue;
            };
            if let Err(error) = vhost.apply(change.what.clone()) {
                tracing::error!(%error, vhost = &*change.vhost, "a change cannot be made again");
            }
        }
        let Some(durable) = &self.0.durable else { return Ok(()) };
        let queues = self.0.queues();
        let (messages, unknown) = give_back(&recovery, &queues, durable)?;
        tracing::info!(queues = queues.len(), messages, clean = recovery.is_clean(), "recovered");
        drop(recovery);
        durable.begin(&unknown, || self.0.tell())?;
        durable.keep_house(Arc::downgrade(&self.0))
    }

    /// The durable side, if there is a data directory.
    pub fn durable(&self) -> Option<&Arc<Durable>> {
        self.0.durable.as_ref()
    }

    /// What publishers are to be blocked for, if they are.
    pub fn shortage(&self) -> Option<Shortage> {
        let disk = self.0.durable.as_ref().is_some_and(|durable| durable.disk().is_on());
        match (self.0.memory.is_full(), disk) {
            (false, false) => None,
            (true, false) => Some(Shortage::Memory),
            (false, true) => Some(Shortage::Disk),
            (true, true) => Some(Shortage::Both),
        }
    }

    /// Waits until publishers that were blocked may go on.
    pub async fn until_publishing(&self) {
        self.0.memory.until_free().await;
        if let Some(durable) = &self.0.durable {
            durable.disk().until_off().await;
        }
    }

    /// Waits until the data directory fails, if it ever does: from then on nothing becomes durable any more.
    pub async fn failed(&self) -> StorageFailure {
        std::future::poll_fn(|cx| {
            let Some(durable) = &self.0.durable else { return Poll::Pending };
            // A record that never comes is waited for until the journal fails.
            match durable.journal().poll(Lsn(u64::MAX), Durability::Fsync, cx.waker()) {
                Poll::Ready(Err(failure)) => Poll::Ready(failure),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Writes what is left to write, and closes the data directory in order. To be called once no front-end serves any
    /// more.
    pub fn close(&self) -> Result<(), AppendError> {
        let Some(durable) = &self.0.durable else { return Ok(()) };
        durable.snapshot(|| self.0.tell())?;
        durable.close(&Arc::downgrade(&self.0))
    }

    /// Stops the broker: front-ends close their connections. [`Broker::close`] comes after; what is not durable is gone with
    /// the last reference.
    pub fn shutdown(&self) {
        if !self.0.stopping.send_replace(true) {
            self.0.events.publish(&Event::BrokerStopped);
        }
    }

    /// Waits until somebody called [`Broker::shutdown`].
    pub async fn stopping(&self) {
        // The sender lives in `self`, so this cannot fail.
        let _ = self.0.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// What it was started with.
    pub fn config(&self) -> &BrokerConfig {
        &self.0.config
    }

    /// Its bounds.
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Clock, randomness and disk.
    pub fn seam(&self) -> &Seam {
        &self.0.seam
    }

    /// Who may log in.
    pub fn users(&self) -> &Users {
        &self.0.users
    }

    /// The events' sending side.
    pub fn events(&self) -> &Arc<Events> {
        &self.0.events
    }

    /// The memory that messages take.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }

    /// Listens to what happens from now on.
    pub fn subscribe(&self, interest: Interest) -> EventStream {
        self.0.events.subscribe(interest)
    }

    /// A vhost.
    pub fn vhost(&self, name: &str) -> Option<Arc<Vhost>> {
        self.0.vhosts.read().get(name).cloned()
    }

    /// All vhosts by name.
    pub fn vhosts(&self) -> Vec<Arc<Vhost>> {
        self.0.vhosts.read().values().cloned().collect()
    }

    /// The right to one more connection, if the limit allows it.
    pub fn admit_connection(&self, control: Arc<dyn ConnectionControl>) -> Option<Admission> {
        self.0.connections.admit(control, self.limits().connections_max)
    }

    /// Asks all connections to close, those in their handshake too.
    pub fn close_connections(&self, reason: &str) {
        self.0.connections.close_all(reason);
    }

    /// Registers an open connection.
    pub fn open_connection(&self, info: ConnectionInfo, control: Arc<dyn ConnectionControl>) {
        self.0.events.publish(&Event::ConnectionOpened {
            connection: info.id,
            user: info.user.clone(),
            vhost: info.vhost.clone(),
            peer: info.peer.clone(),
        });
        self.0.connections.add(info, control);
    }

    /// Forgets a connection, and deletes the queues that were exclusively its own.
    pub fn close_connection(&self, id: ConnectionId, vhost: &Vhost, reason: &str) {
        if self.0.connections.remove(id) {
            vhost.delete_queues_owned_by(id);
            self.0.events.publish(&Event::ConnectionClosed { connection: id, reason: reason.into() });
        }
    }

    /// Open connections.
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        self.0.connections.list()
    }

    /// The channels of a connection; none if it is gone.
    pub fn channels(&self, id: ConnectionId) -> Vec<ChannelInfo> {
        self.0.connections.control(id).map(|control| control.channels()).unwrap_or_default()
    }

    /// Asks a connection to close; false if there is none.
    pub fn kill_connection(&self, id: ConnectionId, reason: &str) -> bool {
        let control = self.0.connections.control(id);
        control.is_some_and(|control| {
            control.close(reason);
            true
        })
    }

    /// What it holds.
    pub fn status(&self) -> Status {
        let vhosts = self.vhosts();
        Status {
            uptime: self.0.seam.clock.now().since_start(),
            connections: self.0.connections.len(),
            vhosts: vhosts.len(),
            queues: vhosts.iter().map(|vhost| vhost.queue_count()).sum(),
            exchanges: vhosts.iter().map(|vhost| vhost.exchange_count()).sum(),
            message_bytes: self.0.memory.used(),
            message_bytes_max: self.0.memory.max(),
            disk: self.0.durable.as_ref().map(|durable| DiskStatus {
                free_bytes: durable.disk().free_bytes(),
                free_bytes_min: durable.disk().free_bytes_min(),
                alarm: durable.disk().is_on(),
            }),
            publishers_blocked: self.shortage().is_some(),
        }
    }
}
