//! The engine of the broker, and the API to embed it.
//!
//! Owns users, limits and configuration. Must not know protocols, sockets or reply codes.

pub mod config;
pub mod limits;
pub mod users;

pub use config::BrokerConfig;
pub use limits::Limits;
