//! The first message of a queue, as far as somebody asks about it.
//!
//! Owns what is told of it. Must not fetch it, or read a disk for it.

use super::Queue;
use deepmq_model::message::properties::Properties;
use deepmq_model::queue::Position;

impl Queue {
    /// The places of the oldest message that is not settled, and of the next to come; none if there is no message.
    pub fn span(&self) -> Option<(Position, Position)> {
        let state = self.state.lock();
        Some((state.backlog.first_live_but(|_| false)?, state.model.next()))
    }

    /// What the publisher of the first ready message said its time was, in seconds since 1970 (the property `timestamp`); none
    /// if it said nothing, or the message is not in memory.
    pub fn head_timestamp(&self) -> Option<u64> {
        let state = self.state.lock();
        let first = state.model.first_ready()?;
        if state.backlog.at_hand(first) == 0 {
            return None;
        }
        Properties::decode(state.backlog.read(first)?.properties).ok()?.timestamp
    }
}
