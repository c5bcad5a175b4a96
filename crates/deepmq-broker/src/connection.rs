//! The connections of all front-ends: how many, who, and how to reach them.
//!
//! Owns the registry. Must not know what a connection speaks.

pub use deepmq_model::topology::ConnectionId;

use crate::traffic::{MessageCounts, Traffic};
use deepmq_model::{Name, Table};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::SystemTime;

/// A connection, for inspection.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// Its number, unique while the broker runs.
    pub id: ConnectionId,
    /// The front-end: `AMQP 0-9-1` and so on.
    pub protocol: &'static str,
    /// The peer's address.
    pub peer: String,
    /// The user.
    pub user: Name,
    /// The vhost.
    pub vhost: Name,
    /// What the client says of itself.
    pub client_properties: Table,
    /// When it was opened.
    pub connected_at: SystemTime,
}

/// A channel, for inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Its number.
    pub number: u16,
    /// Consumers on it.
    pub consumers: usize,
    /// Deliveries on it that are not settled.
    pub unacked: usize,
    /// It confirms what is published on it.
    pub confirms: bool,
    /// It is in transaction mode.
    pub transactional: bool,
    /// Published in its open transaction.
    pub uncommitted: u64,
    /// Settlements in its open transaction.
    pub uncommitted_acks: u64,
    /// Published on it and not confirmed yet.
    pub unconfirmed: u64,
    /// The limit on unacked deliveries that its consumers share; 0 is none.
    pub prefetch_shared: u32,
    /// The prefetch of its next consumer; 0 is none.
    pub prefetch_count: u16,
    /// What it counted.
    pub counts: MessageCounts,
}

/// A front-end's side of a connection.
pub trait ConnectionControl: Debug + Send + Sync {
    /// Asks it to close, telling the peer why.
    fn close(&self, reason: &str);

    /// Its open channels.
    fn channels(&self) -> Vec<ChannelInfo>;

    /// What it counted, on channels that are closed too.
    fn traffic(&self) -> Traffic;
}

#[derive(Debug)]
struct Entry {
    info: ConnectionInfo,
    control: Arc<dyn ConnectionControl>,
}

/// The open connections, and how many of them there are by vhost and by user.
#[derive(Debug, Default)]
struct Open {
    entries: BTreeMap<u64, Entry>,
    of_vhost: HashMap<Name, usize>,
    of_user: HashMap<Name, Load>,
}

/// What a user has open.
#[derive(Debug, Default)]
struct Load {
    connections: usize,
    channels: Arc<AtomicUsize>,
}

/// Why a connection is one too many, and the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverLimit {
    Vhost(usize),
    User(usize),
}

/// The right to have a channel, until it is dropped.
#[derive(Debug)]
pub struct ChannelSlot(Arc<AtomicUsize>);

impl Drop for ChannelSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    next: AtomicU64,
    /// From accept to close.
    admitted: Mutex<BTreeMap<u64, Arc<dyn ConnectionControl>>>,
    /// From the end of the handshake to close.
    open: Mutex<Open>,
    /// What those counted that are gone.
    gone: Mutex<Traffic>,
}

/// The right to have a connection, from accept to close.
#[derive(Debug)]
pub struct Admission {
    id: ConnectionId,
    connections: Arc<Connections>,
}

impl Admission {
    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.connections.admitted.lock().remove(&self.id.0);
    }
}

impl Connections {
    pub(crate) fn admit(
        self: &Arc<Self>,
        control: Arc<dyn ConnectionControl>,
        max: usize,
    ) -> Option<Admission> {
        let mut admitted = self.admitted.lock();
        if admitted.len() >= max {
            return None;
        }
        let id = ConnectionId(self.next.fetch_add(1, Relaxed) + 1);
        admitted.insert(id.0, control);
        Some(Admission { id, connections: self.clone() })
    }

    /// Asks all to close, those in their handshake too.
    pub(crate) fn close_all(&self, reason: &str) {
        let all: Vec<_> = self.admitted.lock().values().cloned().collect();
        all.iter().for_each(|control| control.close(reason));
    }

    /// Asks those open connections to close that `which` chooses.
    pub(crate) fn close_those(&self, which: impl Fn(&ConnectionInfo) -> bool, reason: &str) {
        let open = self.open.lock();
        let chosen = open.entries.values().filter(|entry| which(&entry.info));
        let chosen: Vec<_> = chosen.map(|entry| entry.control.clone()).collect();
        drop(open);
        chosen.iter().for_each(|control| control.close(reason));
    }

    /// Adds an open connection, unless its vhost or its user has as many as allowed.
    pub(crate) fn add(
        &self,
        info: ConnectionInfo,
        control: Arc<dyn ConnectionControl>,
        (vhost_max, user_max): (Option<usize>, Option<usize>),
    ) -> Result<(), OverLimit> {
        let mut open = self.open.lock();
        let of_vhost = open.of_vhost.get(&info.vhost).copied().unwrap_or_default();
        let of_user = open.of_user.get(&info.user).map(|load| load.connections).unwrap_or_default();
        if let Some(max) = vhost_max.filter(|max| of_vhost >= *max) {
            return Err(OverLimit::Vhost(max));
        }
        if let Some(max) = user_max.filter(|max| of_user >= *max) {
            return Err(OverLimit::User(max));
        }
        *open.of_vhost.entry(info.vhost.clone()).or_default() += 1;
        open.of_user.entry(info.user.clone()).or_default().connections += 1;
        open.entries.insert(info.id.0, Entry { info, control });
        Ok(())
    }

    pub(crate) fn remove(&self, id: ConnectionId) -> bool {
        // Held over both, so that no sum misses a connection or counts it twice.
        let mut gone = self.gone.lock();
        let mut open = self.open.lock();
        let Some(Entry { info, control }) = open.entries.remove(&id.0) else { return false };
        if let Some(count) = open.of_vhost.get_mut(&info.vhost) {
            *count -= 1;
            if *count == 0 {
                open.of_vhost.remove(&info.vhost);
            }
        }
        if let Some(load) = open.of_user.get_mut(&info.user) {
            load.connections -= 1;
            if load.connections == 0 {
                open.of_user.remove(&info.user);
            }
        }
        drop(open);
        *gone += control.traffic();
        true
    }

    /// Adds what was counted without a connection.
    pub(crate) fn count(&self, traffic: Traffic) {
        *self.gone.lock() += traffic;
    }

    /// What all connections counted, those that are gone included.
    pub(crate) fn traffic(&self) -> Traffic {
        let gone = self.gone.lock();
        let open: Vec<_> = self.open.lock().entries.values().map(|entry| entry.control.clone()).collect();
        open.iter().fold(*gone, |mut sum, control| {
            sum += control.traffic();
            sum
        })
    }

    /// The right of a user to one more channel; none if it has as many as allowed.
    pub(crate) fn admit_channel(&self, user: &str, max: usize) -> Option<ChannelSlot> {
        let mut open = self.open.lock();
        // A user without an open connection has no channels to count.
        let channels = open.of_user.get_mut(user).map(|load| load.channels.clone()).unwrap_or_default();
        // With the lock held nobody else adds one.
        if channels.load(Relaxed) >= max {
            return None;
        }
        channels.fetch_add(1, Relaxed);
        Some(ChannelSlot(channels))
    }

    pub(crate) fn len(&self) -> usize {
        self.open.lock().entries.len()
    }

    pub(crate) fn list(&self) -> Vec<ConnectionInfo> {
        self.open.lock().entries.values().map(|entry| entry.info.clone()).collect()
    }

    pub(crate) fn control(&self, id: ConnectionId) -> Option<Arc<dyn ConnectionControl>> {
        self.open.lock().entries.get(&id.0).map(|entry| entry.control.clone())
    }
}
