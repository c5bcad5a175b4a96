//! The settings: each is one field here, and so a flag, a variable of the environment and a key of the file.
//!
//! Owns the names, their help and the merge of two sources. Must not know defaults beyond what the help says; a test
//! keeps that true.

use std::path::PathBuf;

use super::accounts::{UserTable, VhostTable};
use super::file;
use super::units::{
    ByteSize, Confirmed, Count, Label, Listen, LogFilter, Mechanisms, Memory, Period, ShortCount, ThreadCount,
};

/// Declares settings that may each be absent from a source, and how two sources are laid over each other.
macro_rules! layer {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, clap::Args, serde::Deserialize)]
        #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $type,)*
        }

        impl $name {
            /// These settings, and those of `lower` where these say nothing.
            pub(crate) fn or(self, lower: Self) -> Self {
                Self { $($field: self.$field.or(lower.$field),)* }
            }
        }
    };
}

layer! {
    /// What can be set in any of the sources. The form of the file is exactly this.
    struct Settings {
        /// Read settings from this TOML file
        #[arg(long, value_name = "FILE")]
        #[serde(skip)]
        config: Option<PathBuf>,

        /// Keep everything in this directory, which belongs to one broker at a time [default: ./data]
        #[arg(long, value_name = "DIR")]
        #[serde(deserialize_with = "file::path")]
        data_dir: Option<PathBuf>,

        /// What a confirm means, where a queue's x-durability does not say it: "fsync", the message is on the disk and
        /// outlives the machine's end; "os", it is with the operating system and outlives the broker's [default: fsync]
        #[arg(long, value_name = "fsync|os")]
        durability: Option<Confirmed>,

        /// Unacked deliveries a consumer may hold whose client does not say, with basic.qos; 0 for any number [default: 0]
        #[arg(long, value_name = "N", hide_short_help = true)]
        default_consumer_prefetch: Option<ShortCount>,

        /// How long a delivery may be unacked before it is given back and its consumer cancelled, where neither
        /// x-consumer-timeout nor a policy says it; 0s for ever [default: 30min]
        #[arg(long, value_name = "TIME", hide_short_help = true)]
        consumer_timeout: Option<Period>,

        /// Listen for AMQP 0-9-1 here; port 0 takes any free one, "off" listens not at all [default: 127.0.0.1:5672]
        #[arg(long, value_name = "HOST:PORT|off")]
        amqp: Option<Listen>,

        /// How AMQP clients may log in, some of PLAIN, AMQPLAIN and RABBIT-CR-DEMO in the order they are offered
        /// [default: PLAIN AMQPLAIN]
        #[arg(long, value_name = "NAMES", hide_short_help = true)]
        auth_mechanisms: Option<Mechanisms>,

        /// Serve management (HTTP) here; port 0 takes any free one, "off" serves none [default: 127.0.0.1:15672]
        #[arg(long, value_name = "HOST:PORT|off")]
        http: Option<Listen>,

        /// Serve metrics (HTTP) without a login here, for Prometheus [default: off]
        #[arg(long, value_name = "HOST:PORT|off")]
        metrics: Option<Listen>,

        /// Tell of queues one by one in the metrics, unless there are more than this; 0 never [default: 0]
        #[arg(long, value_name = "N", hide_short_help = true)]
        metrics_queues_max: Option<usize>,

        /// Let probes ask for health checks without a login [default: false]
        #[arg(long, value_name = "BOOL", hide_short_help = true)]
        open_probes: Option<bool>,
        /// Import definitions, in RabbitMQ's JSON, from this file at every start
        #[arg(long, value_name = "FILE")]
        load_definitions: Option<PathBuf>,

        /// Threads that serve connections (default: one per core)
        #[arg(long, value_name = "N")]
        worker_threads: Option<ThreadCount>,

        /// Log this level and up: off, error, warn, info, debug or trace; also per module, as in
        /// "info,deepmq_amqp=debug" [default: info]
        #[arg(long, value_name = "FILTER")]
        log: Option<LogFilter>,

        /// Name of this broker among others (default: deepmq@ and the machine's name)
        #[arg(long, value_name = "NAME")]
        node_name: Option<Label>,

        /// Product told to clients, for those that look for one they know [default: DeepMQ]
        #[arg(long, value_name = "NAME")]
        product: Option<Label>,

        /// Version told to clients, for those that want a certain one (default: the broker's own)
        #[arg(long, value_name = "VERSION")]
        product_version: Option<Label>,

        #[command(flatten, next_help_heading = "Limits")]
        limits: LimitSettings,

        #[arg(skip)]
        user: Option<Vec<UserTable>>,

        #[arg(skip)]
        vhost: Option<Vec<VhostTable>>,
    }
}

layer! {
    /// The section `[limits]` of the file.
    struct LimitSettings {
        /// Open connections [default: 65536]
        #[arg(long, value_name = "N", hide_short_help = true)]
        connections_max: Option<Count>,

        /// Channels of a connection [default: 2047]
        #[arg(long, value_name = "N", hide_short_help = true)]
        channels_per_connection_max: Option<ShortCount>,

        /// Consumers of a channel [default: 4096]
        #[arg(long, value_name = "N", hide_short_help = true)]
        consumers_per_channel_max: Option<Count>,

        /// Users, vhosts, permissions, policies and parameters together [default: 100000]
        #[arg(long, value_name = "N", hide_short_help = true)]
        registry_entries_max: Option<Count>,

        /// Queues of a vhost [default: 100000]
        #[arg(long, value_name = "N", hide_short_help = true)]
        queues_per_vhost_max: Option<Count>,

        /// Exchanges of a vhost [default: 20000]
        #[arg(long, value_name = "N", hide_short_help = true)]
        exchanges_per_vhost_max: Option<Count>,

        /// Bindings of a vhost [default: 1000000]
        #[arg(long, value_name = "N", hide_short_help = true)]
        bindings_per_vhost_max: Option<Count>,

        /// Largest frame [default: 128KiB]
        #[arg(long, value_name = "SIZE", hide_short_help = true)]
        frame_bytes_max: Option<ByteSize>,

        /// Smallest frame limit a client may ask for [default: 4KiB]
        #[arg(long, value_name = "SIZE", hide_short_help = true)]
        frame_bytes_min: Option<ByteSize>,

        /// Largest message body [default: 128MiB]
        #[arg(long, value_name = "SIZE", hide_short_help = true)]
        message_bytes_max: Option<ByteSize>,

        /// Nesting of tables in arguments and headers [default: 64]
        #[arg(long, value_name = "N", hide_short_help = true)]
        table_depth_max: Option<Count>,

        /// Bytes waiting to be sent on a connection before its consumers pause [default: 1MiB]
        #[arg(long, value_name = "SIZE", hide_short_help = true)]
        output_buffer_bytes_max: Option<ByteSize>,

        /// Memory of all messages held before publishers are blocked; a size or a share of the machine's memory
        /// [default: 40%]
        #[arg(long, value_name = "SIZE|PERCENT", hide_short_help = true)]
        ready_memory_bytes_max: Option<Memory>,

        /// Memory of messages before those needed last are paged out to disk [default: 128MiB]
        #[arg(long, value_name = "SIZE", hide_short_help = true)]
        message_pool_bytes: Option<ByteSize>,

        /// Free bytes on the data directory's disk below which publishers are blocked; 0 for none [default: 256MiB]
        #[arg(long, value_name = "SIZE", hide_short_help = true)]
        disk_free_bytes_min: Option<ByteSize>,

        /// Time for a connection's handshake [default: 10s]
        #[arg(long, value_name = "TIME", hide_short_help = true)]
        handshake_timeout: Option<Period>,

        /// Heartbeat interval offered to clients; 0s offers none [default: 60s]
        #[arg(long, value_name = "TIME", hide_short_help = true)]
        heartbeat_interval: Option<Period>,

        /// Events that wait for one subscriber [default: 1024]
        #[arg(long, value_name = "N", hide_short_help = true)]
        events_buffered_max: Option<Count>,

        /// Passwords verified at once on the slow path [default: 4]
        #[arg(long, value_name = "N", hide_short_help = true)]
        slow_logins_max: Option<Count>,
    }
}
