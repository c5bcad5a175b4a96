//! From flags, environment and file to what the broker is started with.
//!
//! Owns the precedence of the sources and every default of the program. Must not know how a source is read; that is in
//! `settings` (one definition per setting), `environment` and `file`.

mod accounts;
mod environment;
mod file;
mod settings;
mod units;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, bail};
use deepmq_api::ApiConfig;
use deepmq_broker::{BrokerConfig, Limits};
use deepmq_model::Name;

use settings::LimitSettings;
pub(crate) use settings::Settings;
use units::{ByteSize, Count, Memory};
pub(crate) use units::{Listen, LogFilter, Period};

use crate::machine::Machine;

/// Where AMQP and management are served unless told otherwise: RabbitMQ's ports, for this machine alone.
const AMQP: &str = "127.0.0.1:5672";
const HTTP: &str = "127.0.0.1:15672";

/// Every setting with its final value.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) amqp: Listen,
    pub(crate) http: Listen,
    pub(crate) metrics: Listen,
    pub(crate) api: ApiConfig,
    pub(crate) data_dir: PathBuf,
    pub(crate) load_definitions: Option<PathBuf>,
    pub(crate) worker_threads: usize,
    pub(crate) log: LogFilter,
    pub(crate) broker: BrokerConfig,
    /// Variables of the environment that look like settings and are none.
    pub(crate) unknown_variables: Vec<String>,
}

impl Config {
    /// Reads the other sources beside the flags. Fails with a sentence that says where the wrong value is.
    pub(crate) fn load(flags: Settings, machine: &Machine) -> anyhow::Result<Self> {
        let settings = flags.or(environment::read(|name| std::env::var_os(name))?);
        let config = match settings.config.clone() {
            None => Self::resolve(settings, machine)?,
            Some(path) => Self::resolve(settings.or(file::read(&path)?), machine)
                .with_context(|| format!("with {}", path.display()))?,
        };
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        Ok(Self { unknown_variables: environment::unknown(names), ..config })
    }

    fn resolve(settings: Settings, machine: &Machine) -> anyhow::Result<Self> {
        let limits = resolve_limits(&settings.limits, machine);
        limits.check().map_err(|error| {
            let key = error.limit.replace('_', "-");
            anyhow::anyhow!("the limit {key} must be at least {}; raise it", error.min)
        })?;
        let mut broker = BrokerConfig { limits, ..BrokerConfig::default() };
        broker.node_name =
            settings.node_name.map_or_else(|| format!("deepmq@{}", machine.host_name).into(), |name| name.0);
        broker.product = settings.product.map_or(broker.product, |name| name.0);
        broker.version = settings.product_version.map_or(broker.version, |version| version.0);
        if let Some(users) = settings.user {
            broker.users = users.into_iter().map(|user| user.0).collect();
        }
        if let Some(vhosts) = settings.vhost {
            broker.vhosts = vhosts.into_iter().map(|vhost| vhost.name).collect();
        }
        refuse_duplicate("user", broker.users.iter().map(|user| &user.name))?;
        refuse_duplicate("vhost", &broker.vhosts)?;
        broker.durability = settings.durability.map_or(broker.durability, |confirmed| confirmed.0);
        let mechanisms = settings.auth_mechanisms.map(|mechanisms| mechanisms.0);
        broker.auth_mechanisms = mechanisms.unwrap_or(broker.auth_mechanisms);
        let prefetch = settings.default_consumer_prefetch;
        broker.default_consumer_prefetch = prefetch.map_or(broker.default_consumer_prefetch, |count| count.0);
        broker.consumer_timeout = settings.consumer_timeout.map_or(broker.consumer_timeout, |time| time.0);
        let data_dir: PathBuf = settings.data_dir.unwrap_or_else(|| "data".into());
        broker.data_dir = Some(data_dir.clone());
        Ok(Self {
            amqp: settings.amqp.unwrap_or_else(|| Listen::On(AMQP.into())),
            http: settings.http.unwrap_or_else(|| Listen::On(HTTP.into())),
            metrics: settings.metrics.unwrap_or(Listen::Off),
            api: ApiConfig {
                open_probes: settings.open_probes.unwrap_or_default(),
                metrics_queues_max: settings.metrics_queues_max.unwrap_or_default(),
                ..ApiConfig::default()
            },
            data_dir,
            load_definitions: settings.load_definitions,
            worker_threads: settings.worker_threads.map_or(machine.cores, |count| count.0),
            log: settings.log.unwrap_or_default(),
            broker,
            unknown_variables: Vec::new(),
        })
    }
}

fn resolve_limits(given: &LimitSettings, machine: &Machine) -> Limits {
    let default = Limits::default();
    let count = |given: Option<Count>, default| given.map_or(default, |count| count.0);
    let bytes = |given: Option<ByteSize>, default| given.map_or(default, ByteSize::saturating_usize);
    let frame = |given: Option<ByteSize>, default| given.map_or(default, ByteSize::saturating_u32);
    let time = |given: Option<Period>, default| given.map_or(default, |period| period.0);
    Limits {
        connections_max: count(given.connections_max, default.connections_max),
        channels_per_connection_max: given
            .channels_per_connection_max
            .map_or(default.channels_per_connection_max, |count| count.0),
        consumers_per_channel_max: count(given.consumers_per_channel_max, default.consumers_per_channel_max),
        registry_entries_max: count(given.registry_entries_max, default.registry_entries_max),
        queues_per_vhost_max: count(given.queues_per_vhost_max, default.queues_per_vhost_max),
        exchanges_per_vhost_max: count(given.exchanges_per_vhost_max, default.exchanges_per_vhost_max),
        bindings_per_vhost_max: count(given.bindings_per_vhost_max, default.bindings_per_vhost_max),
        frame_bytes_max: frame(given.frame_bytes_max, default.frame_bytes_max),
        frame_bytes_min: frame(given.frame_bytes_min, default.frame_bytes_min),
        message_bytes_max: given.message_bytes_max.map_or(default.message_bytes_max, |size| size.0),
        table_depth_max: count(given.table_depth_max, default.table_depth_max),
        output_buffer_bytes_max: bytes(given.output_buffer_bytes_max, default.output_buffer_bytes_max),
        ready_memory_bytes_max: given
            .ready_memory_bytes_max
            .unwrap_or(Memory::Percent(40))
            .of(machine.memory_bytes)
            .saturating_usize(),
        message_pool_bytes: bytes(given.message_pool_bytes, default.message_pool_bytes),
        disk_free_bytes_min: given.disk_free_bytes_min.map_or(default.disk_free_bytes_min, |size| size.0),
        handshake_timeout: time(given.handshake_timeout, default.handshake_timeout),
        heartbeat_interval: time(given.heartbeat_interval, default.heartbeat_interval),
        events_buffered_max: count(given.events_buffered_max, default.events_buffered_max),
        slow_logins_max: count(given.slow_logins_max, default.slow_logins_max),
    }
}

fn refuse_duplicate<'a>(kind: &str, names: impl IntoIterator<Item = &'a Name>) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        Some(name) => bail!("the {kind} {name:?} is given twice; remove one"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
