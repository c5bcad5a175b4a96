//! Every bound of the broker, by name.
//!
//! Owns the bounds, their units and defaults. Must not know how they are configured, nor how a front-end words a
//! refusal.

use deepmq_model::message::table;
use std::time::Duration;

/// What the broker and its front-ends grant at most. A bound is checked before anything is allocated for what would
/// pass it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections, over all front-ends. One more is closed as soon as it is accepted.
    pub connections_max: usize,
    /// Channels of one connection, and so the highest channel number. Offered in the handshake; a peer that opens a
    /// higher one loses the connection. (RabbitMQ's default.)
    pub channels_per_connection_max: u16,
    /// Consumers of one channel. One more is refused.
    pub consumers_per_channel_max: usize,
    /// Users, vhosts, permissions, policies, parameters and limits together. One more is refused; what is there can always be
    /// replaced.
    pub registry_entries_max: usize,
    /// Queues of one vhost. Declaring one more is refused; existing ones go on working.
    pub queues_per_vhost_max: usize,
    /// Exchanges of one vhost beside the predeclared ones. Declaring one more is refused.
    pub exchanges_per_vhost_max: usize,
    /// Bindings of one vhost, the implicit ones to the default exchange not counted. One more is refused.
    pub bindings_per_vhost_max: usize,
    /// Largest frame in bytes, as offered in the handshake: header and end octet count. A larger one costs the peer its
    /// connection. (RabbitMQ's default.)
    pub frame_bytes_max: u32,
    /// Smallest frame limit in bytes a peer may negotiate; the smallest the AMQP specification allows. A peer that asks
    /// for less is refused.
    pub frame_bytes_min: u32,
    /// Largest message body in bytes. A publish that announces a larger one is refused before its body is read.
    pub message_bytes_max: u64,
    /// Nesting of tables and arrays in arguments and headers; a flat table is 1. A deeper one is malformed. More than the
    /// default, 64, has no effect: nothing deeper is decoded.
    pub table_depth_max: usize,
    /// Bytes waiting to be sent on one connection. At the limit its consumers pause until the peer reads; the queue and
    /// other connections go on.
    pub output_buffer_bytes_max: usize,
    /// Memory of all messages held, in bytes. At the limit publishers are blocked until consumers have made room.
    pub ready_memory_bytes_max: usize,
    /// Memory of messages in a durable broker, in bytes. Those that are needed last are paged out to disk before it is
    /// full, and publishers are slowed down to the pace of that.
    pub message_pool_bytes: usize,
    /// Free bytes on the disk of the data directory. With less, publishers are blocked until there is an eighth more;
    /// consumers go on, which makes room. Four journal files, so that acknowledgements and declarations are kept for long
    /// then; zero turns this off, and publishers are blocked only when the journal can not go on. (RabbitMQ's default is
    /// 50 MB.)
    pub disk_free_bytes_min: u64,
    /// Time from accepting a connection to the end of its handshake. At the limit the connection is dropped.
    pub handshake_timeout: Duration,
    /// Heartbeat interval offered in the handshake; zero offers none. A peer silent for two intervals is taken for dead.
    pub heartbeat_interval: Duration,
    /// Events that wait for one subscriber. At the limit the oldest are dropped and the subscriber is told how many.
    pub events_buffered_max: usize,
    /// Password verifications that run at once on the slow path. Each takes a thread for tens of milliseconds and 19 MiB
    /// for a stored password of default cost. At the limit further logins wait, within their handshake's time.
    pub slow_logins_max: usize,
}

impl Limits {
    /// The smallest frame limit the AMQP 0-9-1 specification allows (frame-min-size), in bytes.
    pub const FRAME_BYTES_FLOOR: u32 = 4096;

    /// Whether the bounds agree with each other and leave a broker that can work.
    ///
    /// # Errors
    /// The first bound found to be wrong, by its name.
    pub fn check(&self) -> Result<(), LimitsError> {
        let never_zero: [(&'static str, bool); 12] = [
            ("connections_max", self.connections_max == 0),
            ("channels_per_connection_max", self.channels_per_connection_max == 0),
            ("consumers_per_channel_max", self.consumers_per_channel_max == 0),
            ("registry_entries_max", self.registry_entries_max == 0),
            ("queues_per_vhost_max", self.queues_per_vhost_max == 0),
            ("bindings_per_vhost_max", self.bindings_per_vhost_max == 0),
            ("table_depth_max", self.table_depth_max == 0),
            ("ready_memory_bytes_max", self.ready_memory_bytes_max == 0),
            ("message_pool_bytes", self.message_pool_bytes == 0),
            ("handshake_timeout", self.handshake_timeout.is_zero()),
            ("events_buffered_max", self.events_buffered_max == 0),
            ("slow_logins_max", self.slow_logins_max == 0),
        ];
        if let Some((limit, _)) = never_zero.into_iter().find(|(_, zero)| *zero) {
            return Err(LimitsError { limit, min: 1 });
        }
        let at_least: [(&'static str, u64, u64); 3] = [
            ("frame_bytes_min", self.frame_bytes_min.into(), Self::FRAME_BYTES_FLOOR.into()),
            ("frame_bytes_max", self.frame_bytes_max.into(), self.frame_bytes_min.into()),
            ("output_buffer_bytes_max", to_u64(self.output_buffer_bytes_max), self.frame_bytes_max.into()),
        ];
        match at_least.into_iter().find(|(_, value, min)| value < min) {
            Some((limit, _, min)) => Err(LimitsError { limit, min }),
            None => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 65_536,
            channels_per_connection_max: 2047,
            consumers_per_channel_max: 4096,
            registry_entries_max: 100_000,
            queues_per_vhost_max: 100_000,
            exchanges_per_vhost_max: 20_000,
            bindings_per_vhost_max: 1_000_000,
            frame_bytes_max: 131_072,
            frame_bytes_min: Self::FRAME_BYTES_FLOOR,
            message_bytes_max: 128 << 20,
            table_depth_max: table::DEPTH_MAX,
            output_buffer_bytes_max: 1 << 20,
            // Who embeds the broker knows what share of the machine it gets.
            ready_memory_bytes_max: 512 << 20,
            message_pool_bytes: 128 << 20,
            disk_free_bytes_min: 256 << 20,
            handshake_timeout: Duration::from_secs(10),
            heartbeat_interval: Duration::from_mins(1),
            events_buffered_max: 1024,
            slow_logins_max: 4,
        }
    }
}

/// A bound that is too small. Who configures the broker can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{limit} must be at least {min}")]
pub struct LimitsError {
    /// The field of [`Limits`].
    pub limit: &'static str,
    /// The smallest value it may have beside the others as they are.
    pub min: u64,
}

fn to_u64(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Limits)) -> Option<(&'static str, u64)> {
        let mut limits = Limits::default();
        change(&mut limits);
        limits.check().err().map(|error| (error.limit, error.min))
    }

    #[test]
    fn the_defaults_agree_with_each_other() {
        assert_eq!(refused(|_| ()), None);
    }

    #[test]
    fn a_frame_limit_may_equal_its_minimum_but_not_be_below() {
        assert_eq!(refused(|limits| limits.frame_bytes_max = 4096), None);
        assert_eq!(refused(|limits| limits.frame_bytes_max = 4095), Some(("frame_bytes_max", 4096)));
        assert_eq!(refused(|limits| limits.frame_bytes_min = 4095), Some(("frame_bytes_min", 4096)));
    }

    #[test]
    fn the_output_buffer_takes_at_least_one_frame() {
        assert_eq!(refused(|limits| limits.output_buffer_bytes_max = 131_072), None);
        let error = refused(|limits| limits.output_buffer_bytes_max = 131_071);
        assert_eq!(error, Some(("output_buffer_bytes_max", 131_072)));
    }

    #[test]
    fn a_bound_of_zero_that_would_stop_all_work_is_refused_by_name() {
        assert_eq!(refused(|limits| limits.connections_max = 0), Some(("connections_max", 1)));
        assert_eq!(
            refused(|limits| limits.handshake_timeout = Duration::ZERO),
            Some(("handshake_timeout", 1))
        );
        assert_eq!(refused(|limits| limits.heartbeat_interval = Duration::ZERO), None);
    }
}
