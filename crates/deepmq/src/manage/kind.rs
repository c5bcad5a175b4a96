//! The kinds of things that can be listed.
//!
//! Owns the path and the columns of each. Must not know how they are printed.

use anyhow::bail;

use super::client::path;

/// A kind of things, by the noun that the API has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    #[value(alias = "queue")]
    Queues,
    #[value(alias = "exchange")]
    Exchanges,
    #[value(alias = "binding")]
    Bindings,
    #[value(alias = "connection")]
    Connections,
    #[value(alias = "channel")]
    Channels,
    #[value(alias = "consumer")]
    Consumers,
    #[value(alias = "vhost")]
    Vhosts,
    #[value(alias = "user")]
    Users,
    #[value(alias = "permission")]
    Permissions,
    #[value(alias = "policy")]
    Policies,
    #[value(alias = "node")]
    Nodes,
}

/// Headings, and the fields below them.
type Columns = &'static [(&'static str, &'static str)];

const QUEUES: Columns = &[
    ("NAME", "name"),
    ("VHOST", "vhost"),
    ("TYPE", "type"),
    ("DURABLE", "durable"),
    ("READY", "messages_ready"),
    ("UNACKED", "messages_unacknowledged"),
    ("CONSUMERS", "consumers"),
    ("POLICY", "policy"),
];

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Exchanges => "exchanges",
            Self::Bindings => "bindings",
            Self::Connections => "connections",
            Self::Channels => "channels",
            Self::Consumers => "consumers",
            Self::Vhosts => "vhosts",
            Self::Users => "users",
            Self::Permissions => "permissions",
            Self::Policies => "policies",
            Self::Nodes => "nodes",
        }
    }

    /// Where all of them are listed, or those of a vhost.
    pub(super) fn list_path(self, vhost: Option<&str>) -> String {
        match (self, vhost) {
            (
                Self::Queues | Self::Exchanges | Self::Bindings | Self::Consumers | Self::Policies,
                Some(vhost),
            ) => path(&[self.noun(), vhost]),
            (Self::Connections | Self::Channels | Self::Permissions, Some(vhost)) => {
                path(&["vhosts", vhost, self.noun()])
            }
            (Self::Vhosts | Self::Users | Self::Nodes, _) | (_, None) => path(&[self.noun()]),
        }
    }

    /// Where one of them is.
    pub(super) fn show_path(self, vhost: &str, name: &str) -> anyhow::Result<String> {
        match self {
            Self::Queues | Self::Exchanges | Self::Policies | Self::Permissions => {
                Ok(path(&[self.noun(), vhost, name]))
            }
            Self::Connections | Self::Channels | Self::Vhosts | Self::Users | Self::Nodes => {
                Ok(path(&[self.noun(), name]))
            }
            Self::Bindings | Self::Consumers => bail!("{} have no names; list them", self.noun()),
        }
    }

    pub(super) fn columns(self) -> Columns {
        match self {
            Self::Queues => QUEUES,
            Self::Exchanges => &[
                ("NAME", "name"),
                ("VHOST", "vhost"),
                ("TYPE", "type"),
                ("DURABLE", "durable"),
                ("INTERNAL", "internal"),
            ],
            Self::Bindings => &[
                ("SOURCE", "source"),
                ("VHOST", "vhost"),
                ("TO", "destination_type"),
                ("DESTINATION", "destination"),
                ("ROUTING KEY", "routing_key"),
                ("PROPERTIES KEY", "properties_key"),
            ],
            Self::Connections => &[
                ("NAME", "name"),
                ("USER", "user"),
                ("VHOST", "vhost"),
                ("STATE", "state"),
                ("CHANNELS", "channels"),
            ],
            Self::Channels => &[
                ("NAME", "name"),
                ("USER", "user"),
                ("CONSUMERS", "consumer_count"),
                ("UNACKED", "messages_unacknowledged"),
                ("CONFIRM", "confirm"),
            ],
            Self::Consumers => &[
                ("TAG", "consumer_tag"),
                ("QUEUE", "queue.name"),
                ("VHOST", "queue.vhost"),
                ("ACK", "ack_required"),
                ("PREFETCH", "prefetch_count"),
                ("CHANNEL", "channel_details.name"),
            ],
            Self::Vhosts => &[("NAME", "name"), ("MESSAGES", "messages"), ("DESCRIPTION", "description")],
            Self::Users => &[("NAME", "name"), ("TAGS", "tags")],
            Self::Permissions => &[
                ("USER", "user"),
                ("VHOST", "vhost"),
                ("CONFIGURE", "configure"),
                ("WRITE", "write"),
                ("READ", "read"),
            ],
            Self::Policies => &[
                ("NAME", "name"),
                ("VHOST", "vhost"),
                ("PATTERN", "pattern"),
                ("APPLY TO", "apply-to"),
                ("PRIORITY", "priority"),
                ("DEFINITION", "definition"),
            ],
            Self::Nodes => &[
                ("NAME", "name"),
                ("MEMORY", "mem_used"),
                ("MESSAGES", "message_bytes"),
                ("FILES", "fd_used"),
            ],
        }
    }
}
