//! What connections count: messages by what became of them, and bytes.
//!
//! Owns the numbers and how they add up. Must not know how a front-end counts them.

use std::ops::AddAssign;

/// How many messages passed a channel or a connection since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Taken from the publisher.
    pub published: u64,
    /// Confirmed to it.
    pub confirmed: u64,
    /// Returned to it, for they went to no queue and were mandatory.
    pub returned: u64,
    /// Dropped, for they went to no queue.
    pub dropped: u64,
    /// Delivered to consumers that acknowledge.
    pub delivered: u64,
    /// Delivered to consumers that do not.
    pub delivered_no_ack: u64,
    /// Fetched, to be acknowledged.
    pub fetched: u64,
    /// Fetched without acknowledgement.
    pub fetched_no_ack: u64,
    /// Of the delivered and fetched, those that had been handed out before.
    pub redelivered: u64,
    /// Acknowledged by the client.
    pub acked: u64,
}

impl AddAssign for MessageCounts {
    fn add_assign(&mut self, other: Self) {
        self.published += other.published;
        self.confirmed += other.confirmed;
        self.returned += other.returned;
        self.dropped += other.dropped;
        self.delivered += other.delivered;
        self.delivered_no_ack += other.delivered_no_ack;
        self.fetched += other.fetched;
        self.fetched_no_ack += other.fetched_no_ack;
        self.redelivered += other.redelivered;
        self.acked += other.acked;
    }
}

/// What passed a connection since it was opened, its closed channels included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages.
    pub messages: MessageCounts,
    /// Bytes read from the peer.
    pub received_bytes: u64,
    /// Bytes written to the peer.
    pub sent_bytes: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
    }
}
