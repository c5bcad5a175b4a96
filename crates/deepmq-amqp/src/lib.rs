//! The AMQP 0-9-1 front-end, with RabbitMQ's extensions.
//!
//! Owns the protocol from the bytes to the broker's calls. Must not know other front-ends.
//!
//! ```text
//! socket -> driver -> session (codec) -> deepmq_broker
//! socket <- driver <- outbox  (codec) <- deepmq_broker
//! ```

pub mod codec;
mod driver;
mod goal;
mod listener;
mod outbox;
mod session;
mod translate;

pub use listener::serve;
