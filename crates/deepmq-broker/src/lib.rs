//! The engine of the broker, and the API to embed it.
//!
//! Owns vhosts and their queues at run time, what of them is durable, what is administered, limits, events. Must not know protocols, sockets or reply codes.
//!
//! In: [`Vhost`] and [`queue::Queue`]. Out: [`subscriber::Subscriber`], and [`events`] for whoever watches.

mod backlog;
pub mod broker;
pub mod config;
pub mod connection;
mod dead_letters;
pub mod definitions;
pub mod durable;
pub mod events;
pub mod inspect;
pub mod json;
mod ledger;
pub mod limits;
mod memory;
pub mod message;
pub mod permits;
pub mod queue;
pub mod registry;
pub mod subscriber;
mod timers;
pub mod traffic;
pub mod users;
pub mod vhost;

pub use backlog::{BatchSize, decode_page};
pub use broker::{Broker, DiskStatus, Shortage, StartError, Status};
pub use config::BrokerConfig;
pub use ledger::{Ledger, SourceId, UnknownTag};
pub use limits::Limits;
pub use memory::{Account, Memory};
pub use vhost::Vhost;
