//! What happens while the memory for messages or the disk is full: publishes wait, acknowledgements do not.
//!
//! Owns the frames that wait, and connection.blocked. As RabbitMQ has it, a connection is blocked at its next publish; as it
//! has not, acknowledgements behind that publish are still read, so that consumers on the connection can drain queues.

use super::Session;
use super::channel::Mode;
use crate::codec::Frame;
use crate::codec::frame::Kind;
use crate::codec::method::connection;
use deepmq_broker::Shortage;

/// Frames that wait, in bytes. Beyond this the connection is not read.
const PARKED_BYTES_MAX: usize = 512 * 1024;

/// The waiting of one connection.
#[derive(Debug, Default)]
pub(super) struct Stall {
    active: bool,
    parked: Vec<u8>,
    told: bool,
}

impl Stall {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing more can be taken.
    pub(super) fn is_full(&self) -> bool {
        self.active && self.parked.len() >= PARKED_BYTES_MAX
    }
}

impl Session {
    /// Whether publishes wait.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stall.active
    }

    /// Parks a frame that has to wait; false: it is to be handled.
    pub(super) fn park_if_stalled(&mut self, frame: &Frame<'_>, whole: &[u8]) -> bool {
        if !self.stall.active {
            let publishes = frame.kind == Kind::Method && frame.payload.starts_with(&[0, 60, 0, 40]);
            let Some(shortage) = publishes.then(|| self.broker.shortage()).flatten() else { return false };
            self.block(shortage);
        }
        if frame.kind == Kind::Heartbeat || self.settles_at_once(frame) {
            return false;
        }
        self.stall.parked.extend_from_slice(whole);
        true
    }

    /// Whether it is said of deliveries, and not part of a transaction. All of these pass, or their order would change; but
    /// on a channel with an unfinished publish, the rest of which is parked, none does.
    fn settles_at_once(&self, frame: &Frame<'_>) -> bool {
        let settles = matches!(frame.payload, [0, 60, 0, 80 | 90 | 120, ..]) && frame.kind == Kind::Method;
        let channel = self.channels.get(&frame.channel);
        settles
            && channel
                .is_some_and(|channel| channel.content.is_none() && !matches!(channel.mode, Mode::Tx(_)))
    }

    fn block(&mut self, shortage: Shortage) {
        self.stall.active = true;
        // RabbitMQ's texts.
        let reason = match shortage {
            Shortage::Memory => "low on memory",
            Shortage::Disk => "low on disk",
            Shortage::Both => "low on memory & disk",
        };
        if self.client.blocked_notify && !self.stall.told {
            self.stall.told = true;
            self.send(0, connection::Blocked { reason });
        }
        tracing::info!(connection = self.id.0, peer = %self.peer, reason, "publisher blocked");
    }

    /// There is room again: takes what was parked, as far as that lasts.
    pub(crate) fn handle_unblocked(&mut self) {
        if !self.stall.active {
            return;
        }
        self.stall.active = false;
        self.take_parked();
        if !self.stall.active && std::mem::take(&mut self.stall.told) {
            self.send(0, connection::Unblocked {});
        }
    }

    /// Takes what was parked, as far as nothing else stands in the way.
    pub(super) fn take_parked(&mut self) {
        if self.stall.active || self.stall.parked.is_empty() {
            return;
        }
        let mut parked = std::mem::take(&mut self.stall.parked);
        let used = self.handle(&parked);
        parked.drain(..used);
        // Empty unless a message must be read from disk first, and then nothing was parked meanwhile.
        self.stall.parked.splice(..0, parked);
    }
}
