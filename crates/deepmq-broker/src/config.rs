//! What a broker is started with.
//!
//! Owns the values and their defaults. Must not know where they come from: files, flags and listeners are the business
//! of whoever starts the broker.

mod mechanism;

pub use mechanism::Mechanism;

use deepmq_model::Name;
use deepmq_storage::{Durability, Options as StorageOptions};
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::Limits;
use crate::users::UserSpec;

/// The configuration of one broker.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// Every bound.
    pub limits: Limits,
    /// Where what is durable is kept; none: nowhere, and it is gone with the broker.
    pub data_dir: Option<PathBuf>,
    /// How far a persistent message must have come before it is confirmed, in queues that do not say it themselves with
    /// `x-durability`. Changes of the topology are synced in any case.
    pub durability: Durability,
    /// Sizes of the files it is kept in.
    pub storage: StorageOptions,
    /// Unacked deliveries a consumer may hold whose channel did not say (basic.qos); 0: any number, as in RabbitMQ.
    pub default_consumer_prefetch: u16,
    /// How long a delivery may be unsettled where its queue does not say it, before it is given back and its consumer
    /// cancelled; zero: for ever. (RabbitMQ's default.)
    pub consumer_timeout: Duration,
    /// The vhosts that exist from the start.
    pub vhosts: Vec<Name>,
    /// How clients may say who they are, in the order they are offered; RabbitMQ's default.
    pub auth_mechanisms: Vec<Mechanism>,
    /// The users that exist from the start.
    pub users: Vec<UserSpec>,
    /// The broker's name among others, told to peers as the cluster's name. RabbitMQ's form is `name@host`.
    pub node_name: Name,
    /// The product told to peers. Some client frameworks look for a name they know.
    pub product: Name,
    /// The version told to peers. Some client frameworks want one at least as new as a RabbitMQ they know.
    pub version: Name,
}

impl Default for BrokerConfig {
    /// One vhost `/`, the user `guest` from loopback only, the default limits.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            data_dir: None,
            durability: Durability::Fsync,
            storage: StorageOptions::default(),
            default_consumer_prefetch: 0,
            consumer_timeout: Duration::from_mins(30),
            vhosts: vec!["/".into()],
            auth_mechanisms: vec![Mechanism::Plain, Mechanism::AmqPlain],
            users: vec![UserSpec::guest()],
            node_name: "deepmq@localhost".into(),
            product: "DeepMQ".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}
