//! The API as its users see it, over HTTP.
//!
//! One program, so that it is linked once. Each module is a subject; a test's name is the behaviour it holds the API to.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a function that helps a test fails with it"
)]

mod administration;
mod bindings;
mod clients;
mod exchanges;
mod health;
mod messages;
mod metrics;
mod openapi;
mod permits;
mod probes;
mod queues;
mod rabbitmq;
mod rig;
mod security;
mod truth;
mod visibility;
