//! The connections of all front-ends: how many, who, and how to reach them.
//!
//! Owns the registry. Must not know what a connection speaks.

pub use deepmq_model::topology::ConnectionId;

use crate::traffic::{MessageCounts, Traffic};
use deepmq_model::{Name, Table};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    next: AtomicU64,
    /// From accept to close.
    admitted: Mutex<BTreeMap<u64, Arc<dyn ConnectionControl>>>,
    /// From the end of the handshake to close.
    open: Mutex<BTreeMap<u64, Entry>>,
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

    pub(crate) fn add(&self, info: ConnectionInfo, control: Arc<dyn ConnectionControl>) {
        self.open.lock().insert(info.id.0, Entry { info, control });
    }

    pub(crate) fn remove(&self, id: ConnectionId) -> bool {
        // Held over both, so that no sum misses a connection or counts it twice.
        let mut gone = self.gone.lock();
        let Some(entry) = self.open.lock().remove(&id.0) else { return false };
        *gone += entry.control.traffic();
        true
    }

    /// What all connections counted, those that are gone included.
    pub(crate) fn traffic(&self) -> Traffic {
        let gone = self.gone.lock();
        let open: Vec<_> = self.open.lock().values().map(|entry| entry.control.clone()).collect();
        open.iter().fold(*gone, |mut sum, control| {
            sum += control.traffic();
            sum
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }

    pub(crate) fn list(&self) -> Vec<ConnectionInfo> {
        self.open.lock().values().map(|entry| entry.info.clone()).collect()
    }

    pub(crate) fn control(&self, id: ConnectionId) -> Option<Arc<dyn ConnectionControl>> {
        self.open.lock().get(&id.0).map(|entry| entry.control.clone())
    }
}
