//! The stored, wire-ready form of a message's metadata.
//!
//! Owns the encodings of field tables and basic properties, for messages are kept as they were written and only looked
//! into where routing, expiry or dead-lettering must. Must not know frames, methods, sessions or storage.

pub mod bytes;
pub mod carbon;
pub mod death;
pub mod properties;
pub mod table;

pub use bytes::{Malformed, Reader, Writer};
pub use properties::Properties;
