//! The verbs, their arguments and their help.
//!
//! Owns the command line of managing. Must not know what a verb does.

use std::env;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::client::Client;
use super::file::ClientFile;
use super::kind::Kind;
use crate::config::Period;

/// Where the broker is and who asks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(crate) struct On {
    /// Where the broker's HTTP API is [default: $DEEPMQ_URL, or url of the file, or http://127.0.0.1:15672]
    #[arg(long, value_name = "URL", global = true)]
    url: Option<String>,

    /// Who asks [default: $DEEPMQ_USER, or user of the file, or guest]
    #[arg(long, value_name = "NAME", global = true)]
    user: Option<String>,

    /// Its password [default: $DEEPMQ_PASSWORD, or password of the file, or guest]
    #[arg(long, value_name = "PASSWORD", global = true)]
    password: Option<String>,
}

impl On {
    /// A client of that broker.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let file = ClientFile::read()?;
        let or = |flag: &Option<String>, variable: &str, file: Option<String>, default: &str| {
            let given = flag.clone().or_else(|| env::var(variable).ok()).or(file);
            given.unwrap_or_else(|| default.to_owned())
        };
        let url = or(&self.url, "DEEPMQ_URL", file.url, "http://127.0.0.1:15672");
        if !url.starts_with("http://") {
            anyhow::bail!("{url} is no address of a broker; write it as http://HOST:PORT");
        }
        let user = or(&self.user, "DEEPMQ_USER", file.user, "guest");
        let password = or(&self.password, "DEEPMQ_PASSWORD", file.password, "guest");
        Ok(Client::new(&url, &user, &password))
    }
}

/// What can be done with a running broker.
#[derive(Debug, Subcommand)]
pub(crate) enum Manage {
    /// Show the broker at a glance
    Status {
        #[command(flatten)]
        on: On,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List things of one kind
    List {
        #[arg(value_enum)]
        kind: Kind,
        #[command(flatten)]
        on: On,
        /// Only those of this vhost
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show everything that is known of one thing
    Show {
        #[arg(value_enum)]
        kind: Kind,
        name: String,
        #[command(flatten)]
        on: On,
        /// The vhost it is in
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Declare an exchange, a queue, a binding, a vhost, a user, a permission or a policy
    Declare {
        #[command(flatten)]
        on: On,
        #[command(subcommand)]
        what: Declare,
    },
    /// Delete one of these
    Delete {
        #[command(flatten)]
        on: On,
        #[command(subcommand)]
        what: Delete,
    },
    /// Drop the ready messages of a queue
    Purge {
        queue: String,
        #[command(flatten)]
        on: On,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// Publish a persistent message
    Publish {
        /// The exchange; "" is the default one, which knows each queue by its name
        exchange: String,
        routing_key: String,
        /// The body; without it, standard input is read to its end
        payload: Option<String>,
        #[command(flatten)]
        on: On,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// Look at the first messages of a queue, which stay there
    Get {
        queue: String,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 1)]
        count: u32,
        /// Take them out of the queue for good
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        on: On,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all queues again and again
    Watch {
        #[command(flatten)]
        on: On,
        /// Only those of this vhost
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
        /// How often
        #[arg(long, value_name = "TIME", default_value = "2s")]
        interval: Period,
        /// How many times; without it, until it is stopped
        #[arg(long, value_name = "N")]
        rounds: Option<u32>,
    },
    /// Close a client's connection
    CloseConnection {
        /// Its name, as in the list of connections
        name: String,
        /// What the client is told
        #[arg(long, default_value = "closed by an operator")]
        reason: String,
        #[command(flatten)]
        on: On,
    },
    /// Export everything administered and declared, or import it
    Definitions {
        #[command(subcommand)]
        what: DefinitionsVerb,
    },
}

/// What can be done with definitions: a document in RabbitMQ's form.
#[derive(Debug, Subcommand)]
pub(crate) enum DefinitionsVerb {
    /// Write them to a file, or to standard output
    Export {
        file: Option<PathBuf>,
        #[command(flatten)]
        on: On,
        /// Only those of this vhost
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
    },
    /// Take them from a file, all of them or none
    Import {
        file: PathBuf,
        #[command(flatten)]
        on: On,
        /// Into this vhost
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
    },
}

/// What can be declared.
#[derive(Debug, Subcommand)]
pub(crate) enum Declare {
    /// An exchange
    Exchange {
        name: String,
        /// direct, fanout, topic or headers
        #[arg(long = "type", value_name = "TYPE", default_value = "direct")]
        kind: String,
        /// It goes when the broker stops
        #[arg(long)]
        transient: bool,
        /// A JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A queue
    Queue {
        name: String,
        /// It goes when the broker stops
        #[arg(long)]
        transient: bool,
        /// A JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A binding
    Binding {
        source: String,
        destination: String,
        #[arg(default_value = "")]
        routing_key: String,
        /// The destination is an exchange
        #[arg(long)]
        to_exchange: bool,
        /// A JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A vhost
    Vhost {
        name: String,
        #[arg(long)]
        description: Option<String>,
    },
    /// A user, or another password or other tags for one
    User {
        name: String,
        /// Without it, a user keeps the one it has
        #[arg(long, value_name = "PASSWORD")]
        new_password: Option<String>,
        /// Divided by commas: administrator, monitoring, policymaker, management
        #[arg(long)]
        tags: Option<String>,
    },
    /// What a user may do in a vhost: patterns of names
    Permission {
        // Not `user`: that is who asks.
        #[arg(value_name = "USER")]
        whose: String,
        #[arg(long, value_name = "PATTERN", default_value = ".*")]
        configure: String,
        #[arg(long, value_name = "PATTERN", default_value = ".*")]
        write: String,
        #[arg(long, value_name = "PATTERN", default_value = ".*")]
        read: String,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A policy
    Policy {
        name: String,
        /// The names it is for
        pattern: String,
        /// A JSON object
        definition: String,
        #[arg(long, value_name = "KIND", default_value = "all")]
        apply_to: String,
        #[arg(long, default_value_t = 0)]
        priority: i64,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
}

/// What can be deleted.
#[derive(Debug, Subcommand)]
pub(crate) enum Delete {
    /// An exchange
    Exchange {
        name: String,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A queue
    Queue {
        name: String,
        /// Only if it has no ready messages
        #[arg(long)]
        if_empty: bool,
        /// Only if it has no consumers
        #[arg(long)]
        if_unused: bool,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A binding
    Binding {
        source: String,
        destination: String,
        /// As in the list of bindings
        properties_key: String,
        /// The destination is an exchange
        #[arg(long)]
        to_exchange: bool,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A vhost with everything in it
    Vhost { name: String },
    /// A user
    User { name: String },
    /// A user's permission in a vhost
    Permission {
        // Not `user`: that is who asks.
        #[arg(value_name = "USER")]
        whose: String,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
    /// A policy
    Policy {
        name: String,
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
}

impl Declare {
    /// What it is, for people.
    pub(super) fn said(&self) -> String {
        match self {
            Self::Exchange { name, .. } => format!("exchange '{name}'"),
            Self::Queue { name, .. } => format!("queue '{name}'"),
            Self::Binding { source, destination, .. } => {
                format!("binding from '{source}' to '{destination}'")
            }
            Self::Vhost { name, .. } => format!("vhost '{name}'"),
            Self::User { name, .. } => format!("user '{name}'"),
            Self::Permission { whose, vhost, .. } => format!("permission of '{whose}' in '{vhost}'"),
            Self::Policy { name, .. } => format!("policy '{name}'"),
        }
    }
}

impl Delete {
    /// What it is, for people.
    pub(super) fn said(&self) -> String {
        match self {
            Self::Exchange { name, .. } => format!("exchange '{name}'"),
            Self::Queue { name, .. } => format!("queue '{name}'"),
            Self::Binding { source, destination, .. } => {
                format!("binding from '{source}' to '{destination}'")
            }
            Self::Vhost { name } => format!("vhost '{name}'"),
            Self::User { name } => format!("user '{name}'"),
            Self::Permission { whose, vhost } => format!("permission of '{whose}' in '{vhost}'"),
            Self::Policy { name, .. } => format!("policy '{name}'"),
        }
    }
}
