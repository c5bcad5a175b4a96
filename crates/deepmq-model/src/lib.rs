//! The pure semantics of the broker: values, messages' metadata, exchanges and routing, the queue state machine.
//!
//! Owns every decision and no effect: nothing here does I/O, reads a clock or knows a protocol.

pub mod access;
pub mod message;
mod pattern;
pub mod policy;
pub mod queue;
pub mod topology;
pub mod value;

pub use pattern::{PATTERN_BYTES_MAX, Pattern, PatternError};
pub use value::{Name, Table, Value};
