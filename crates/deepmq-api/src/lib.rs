//! The HTTP front-end: management with RabbitMQ's paths and names, OpenAPI, metrics.
//!
//! Owns HTTP from the accepted socket to the broker's calls. Must not know other front-ends, beyond where they listen.
//!
//! ```text
//! socket -> server -> request id -> login -> resources -> deepmq_broker
//! ```

#![expect(
    unused_qualifications,
    reason = "the macro that describes handlers writes the types of queries in full"
)]

mod ages;
mod api;
mod arguments;
mod auth;
mod config;
mod durable;
mod error;
mod health;
mod listing;
mod metrics;
mod openapi;
mod peer;
mod process;
mod rates;
mod request;
mod request_id;
mod resources;
mod router;
mod server;
mod stats;

pub use api::Api;
pub use config::{ApiConfig, Listener};
pub use openapi::document;
