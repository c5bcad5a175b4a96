//! The floor of the broker: the seam through which time, randomness and the disk enter.
//!
//! Owns the traits of that seam, their real implementations and their simulated ones. Must not know messages, queues'
//! semantics, protocols or tokio.

pub mod seam;

pub use seam::Seam;
