//! The protocol as a client sees it, byte for byte: what is answered, in which order, and with which code and text.
//!
//! One program, so that it is linked once. Each module is a subject; a test's name is the behaviour it holds the broker to.

#![expect(clippy::panic, reason = "a function that helps a test fails with it")]

mod access;
mod bind;
mod carbon;
mod channel;
mod confirm;
mod connection_close;
mod consume;
mod consumer_timeout;
mod counts;
mod declare;
mod fairness;
mod framing;
mod garbage;
mod get;
mod handshake;
mod heartbeat;
mod limits;
mod memory;
mod priority;
mod publish;
mod qos;
mod refusals;
mod reply_to;
mod settle;
mod single_active;
mod tx;
