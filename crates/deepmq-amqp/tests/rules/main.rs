//! The rules of single queues: limits, dead letters, time; each as a client sees it.
//!
//! One program, so that it is linked once. Time is simulated where it matters.

#![expect(clippy::panic, reason = "a function that helps a test fails with it")]

mod at_least_once;
mod crash;
mod dead_letters;
mod expires;
mod max_length;
mod pairwise;
mod policies;
mod rig;
mod ttl;
