//! The store as a whole, against a model of what it promised.

mod crash;
mod flip;
mod open;
mod workload;
