//! What the front-end is started with.
//!
//! Owns the values, their units and defaults. Must not know where they come from.

use std::net::SocketAddr;

/// A listener of this process, for those that ask where they can connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// RabbitMQ's name of what is spoken there: `amqp`, `http`, `http/prometheus`.
    pub protocol: &'static str,
    /// Where.
    pub address: SocketAddr,
}

/// The settings of the HTTP front-end.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// All listeners of this process.
    pub listeners: Vec<Listener>,
    /// Connections of this front-end at once. One more is closed as soon as it is accepted.
    pub connections_max: usize,
    /// Logins refused to one address within a minute before further ones are answered with 429, unless the password is known
    /// to be right. 0: no bound.
    pub failed_logins_max: u32,
    /// Health checks need no login: for probes that can give none.
    pub open_probes: bool,
    /// Queues that `/metrics` tells of one by one; with more, of none. 0: never.
    pub metrics_queues_max: usize,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            connections_max: 1024,
            failed_logins_max: 30,
            open_probes: false,
            metrics_queues_max: 0,
        }
    }
}
