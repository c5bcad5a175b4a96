//! The broker: everything that front-ends and embedders start from.
//!
//! Owns vhosts, the registry, the connections and the event stream, and the start of all that. Must not know protocols or
//! sockets.

mod accounts;
mod editing;
mod entering;
mod exporting;
mod importing;
mod settings;
#[cfg(test)]
mod tests;

pub use accounts::UserPut;
pub use entering::{EnterRefused, TooManyChannels};

use crate::config::BrokerConfig;
use crate::connection::{
    Admission, ChannelInfo, ConnectionControl, ConnectionId, ConnectionInfo, Connections,
};
use crate::durable::change::{Change, What};
use crate::durable::{Durable, DurableError, House, Recovery};
use crate::events::{Event, EventStream, Events, Interest};
use crate::limits::{Limits, LimitsError};
use crate::memory::Memory;
use crate::queue::Queue;
use crate::registry::{Edit, PermissionRecord, Registry, RegistryError, State, UserRecord, VhostRecord};
use crate::timers::{TimerThread, Timers};
use crate::traffic::{MessageCounts, Traffic};
use crate::users::{UserSpec, Users, VhostAccess};
use crate::vhost::{Vhost, give_back};
use deepmq_model::Name;
use deepmq_storage::seam::Seam;
use deepmq_storage::{AppendError, Durability, Lsn, StorageFailure};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashSet};
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
    /// A configured user or vhost cannot be made.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Two configured users have the same name.
    #[error("user {0:?} is given twice")]
    DuplicateUser(Name),
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
    registry: Registry,
    events: Arc<Events>,
    memory: Arc<Memory>,
    connections: Arc<Connections>,
    vhosts: RwLock<BTreeMap<Name, Arc<Vhost>>>,
    durable: Option<Arc<Durable>>,
    timers: Arc<Timers>,
    timing: Mutex<Option<TimerThread>>,
    stopping: watch::Sender<bool>,
}

impl Inner {
    /// The registry, and the durable topology of all vhosts.
    fn tell(&self) -> Vec<Change> {
        let edits = self.registry.read(State::tell).into_iter().map(Change::registry);
        let vhosts: Vec<_> = self.vhosts.read().values().cloned().collect();
        edits.chain(vhosts.iter().flat_map(|vhost| vhost.tell())).collect()
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
        let broker = Self(Arc::new(Inner {
            users: Users::new(seam.random.clone()),
            registry: Registry::new(durable.clone()),
            events,
            memory,
            connections: Arc::default(),
            vhosts: RwLock::default(),
            durable,
            timers: Timers::new(seam.clock.clone()),
            timing: Mutex::default(),
            stopping: watch::Sender::new(false),
            config,
            seam,
        }));
        let found = recovery.as_ref().map(|recovery| &*recovery.changes).unwrap_or_default();
        broker.take_back(found)?;
        // Before messages come back, for policies may say how long they are good.
        broker.0.registry.read(|state| {
            state.users().iter().for_each(|user| broker.let_in(user));
            state.vhosts().iter().for_each(|vhost| broker.settle(state, &vhost.name));
        });
        if let Some(recovery) = recovery {
            broker.recover(recovery)?;
        }
        let timing = broker.0.timers.start().map_err(DurableError::Thread)?;
        *broker.0.timing.lock() = Some(timing);
        broker.0.events.publish(&Event::BrokerStarted);
        Ok(broker)
    }

    /// Takes back what was journalled, and adds what is configured and not there.
    fn take_back(&self, changes: &[Change]) -> Result<(), StartError> {
        let mut state = self.0.registry.write();
        // Before the first edit of the registry there was a directory without one, or none.
        let first_start = !changes.iter().any(|change| matches!(change.what, What::Registry(_)));
        if first_start {
            self.seed(&mut state, true)?;
        }
        self.vhosts().iter().for_each(|vhost| vhost.lift_limits());
        changes.iter().try_for_each(|change| self.again(&mut state, change.clone()))?;
        self.seed(&mut state, false)?;
        state.limit_entries(self.limits().registry_entries_max);
        Ok(())
    }

    /// Makes a change of an earlier life again. What it is about may be gone by now: a snapshot can know more than the changes
    /// after it.
    fn again(&self, state: &mut State, change: Change) -> Result<(), DurableError> {
        let Change { vhost, what } = change;
        let What::Registry(edit) = what else {
            let Some(running) = self.vhost(&vhost) else {
                tracing::debug!(vhost = &*vhost, "a change is of a vhost that is gone");
                return Ok(());
            };
            let queue = match &what {
                What::Queue { name, .. } => Some(name.clone()),
                _ => None,
            };
            return match (running.apply(what), queue) {
                (Ok(()), _) => Ok(()),
                // Without the queue its messages would be taken for nobody's.
                (Err(error), Some(queue)) => {
                    Err(DurableError::Queue { vhost, queue, error: Box::new(error) })
                }
                (Err(error), None) => {
                    tracing::error!(%error, vhost = &*vhost, "a change cannot be made again");
                    Ok(())
                }
            };
        };
        match state.apply(edit.clone()) {
            Ok(_) => {}
            Err(error @ RegistryError::NotFound { .. }) => {
                tracing::debug!(%error, "an edit is of what is gone");
            }
            Err(error) => tracing::error!(%error, "an edit cannot be made again"),
        }
        match edit {
            Edit::Vhost(vhost) => self.run_vhost(&vhost.name).lift_limits(),
            Edit::NoVhost { name } => drop(self.0.vhosts.write().remove(&name)),
            _ => {}
        }
        Ok(())
    }

    /// Adds the vhosts and users that are configured and not there.
    fn seed(&self, state: &mut State, first_start: bool) -> Result<(), StartError> {
        for name in self.0.config.vhosts.iter().filter(|name| state.vhost(name).is_none()).collect::<Vec<_>>()
        {
            state.apply(Edit::Vhost(VhostRecord { name: name.clone(), ..VhostRecord::default() }))?;
            self.run_vhost(name);
        }
        let mut seen = HashSet::new();
        for spec in &self.0.config.users {
            if !seen.insert(&spec.name) {
                return Err(StartError::DuplicateUser(spec.name.clone()));
            }
            if state.user(&spec.name).is_none() && (first_start || !spec.first_start_only) {
                self.seed_user(state, spec.clone())?;
            }
        }
        Ok(())
    }

    fn seed_user(&self, state: &mut State, spec: UserSpec) -> Result<(), RegistryError> {
        let UserSpec { name, password, tags, vhosts, loopback_only, .. } = spec;
        let (hash, plain) = self.0.users.hash(password);
        let user = UserRecord {
            name: name.clone(),
            password_hash: hash.to_string(),
            hashing_algorithm: hash.algorithm().into(),
            tags,
            loopback_only,
        };
        self.let_in(&user);
        state.apply(Edit::User(user))?;
        plain.iter().for_each(|plain| self.0.users.remember(&name, &hash, plain));
        for VhostRecord { name: vhost, .. } in state.vhosts() {
            if matches!(&vhosts, VhostAccess::Only(names) if !names.contains(&vhost)) {
                continue;
            }
            state.apply(Edit::Permission(PermissionRecord::full(name.clone(), vhost)))?;
        }
        Ok(())
    }

    /// Takes back the messages that the data directory held, and begins a new life in it.
    fn recover(&self, recovery: Recovery) -> Result<(), DurableError> {
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
        // Not dropped, and so waited for, with the lock held.
        let timing = self.0.timing.lock().take();
        drop(timing);
        let Some(durable) = &self.0.durable else { return Ok(()) };
        durable.snapshot(|| self.0.tell())?;
        durable.close(&Arc::downgrade(&self.0))
    }

    /// The date, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.0.timers.now()
    }

    /// Does what is due by now: messages expire, and queues. A thread does it by itself; this is for who moves a simulated clock.
    pub fn run_timers(&self) {
        self.0.timers.run_due();
    }

    /// Stops the broker: front-ends close their connections. [`Broker::close`] comes after; what is not durable is gone with
    /// the last reference.
    pub fn shutdown(&self) {
        if !self.0.stopping.send_replace(true) {
            self.0.events.publish(&Event::BrokerStopped);
        }
    }

    /// Whether somebody called [`Broker::shutdown`].
    pub fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }

    /// Why nothing becomes durable any more, if that is so.
    pub fn storage_failure(&self) -> Option<StorageFailure> {
        self.0.durable.as_ref()?.journal().failure().cloned()
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

    /// What a connection counted; none if it is gone.
    pub fn traffic_of(&self, id: ConnectionId) -> Option<Traffic> {
        self.0.connections.control(id).map(|control| control.traffic())
    }

    /// What all connections counted since the broker started.
    pub fn traffic(&self) -> Traffic {
        self.0.connections.traffic()
    }

    /// Adds what was published or fetched without a connection to what [`Broker::traffic`] tells.
    pub fn count(&self, messages: MessageCounts) {
        self.0.connections.count(Traffic { messages, ..Traffic::default() });
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
