//! The node: there is one.
//!
//! Owns `/nodes`. Must not know how memory is found out.

use super::overview::{ExchangeType, exchange_types};
use crate::api::Api;
use crate::auth::Monitor;
use crate::error::{ApiError, ApiResult};
use crate::listing::{ColumnsQuery, one};
use crate::process::{Disk, Process};
use crate::request::{At, Params};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// A node
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Node {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    running: bool,
    being_drained: bool,
    os_pid: String,
    rabbitmq_version: String,
    /// Milliseconds since the broker started
    uptime: u64,
    processors: usize,
    run_queue: u64,
    rates_mode: &'static str,
    enabled_plugins: Vec<String>,
    applications: Vec<Application>,
    exchange_types: Vec<ExchangeType>,
    partitions: Vec<String>,
    /// Memory of the process, in bytes
    mem_used: u64,
    /// At so many bytes of messages publishers are blocked
    mem_limit: usize,
    mem_alarm: bool,
    mem_calculation_strategy: &'static str,
    /// Memory of all messages, in bytes
    message_bytes: usize,
    disk_free: u64,
    disk_total: u64,
    disk_free_limit: u64,
    disk_free_alarm: bool,
    fd_used: u64,
    fd_total: u64,
    sockets_used: usize,
    sockets_total: usize,
    /// Threads
    proc_used: u64,
    proc_total: u64,
    db_dir: String,
    /// What was found damaged in the data directory at the start, in words
    damage: Vec<String>,
    log_files: Vec<String>,
    config_files: Vec<String>,
}

/// A part of the product
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Application {
    name: &'static str,
    description: &'static str,
    version: String,
}

fn show(api: &Api) -> Node {
    let broker = api.broker();
    let (config, status, process) = (broker.config(), broker.status(), Process::inspect());
    let disk = config.data_dir.as_deref().and_then(Disk::inspect).unwrap_or_default();
    Node {
        name: api.node().to_owned(),
        kind: "disc",
        running: broker.storage_failure().is_none(),
        being_drained: broker.is_stopping(),
        os_pid: process.pid.to_string(),
        rabbitmq_version: config.version.to_string(),
        uptime: u64::try_from(status.uptime.as_millis()).unwrap_or(u64::MAX),
        processors: std::thread::available_parallelism().map_or(1, Into::into),
        run_queue: 0,
        rates_mode: "basic",
        enabled_plugins: Vec::new(),
        applications: vec![Application {
            name: "rabbit",
            description: "DeepMQ",
            version: config.version.to_string(),
        }],
        exchange_types: exchange_types(),
        partitions: Vec::new(),
        mem_used: process.resident_bytes,
        mem_limit: status.message_bytes_max,
        mem_alarm: broker.memory().is_full(),
        mem_calculation_strategy: "rss",
        message_bytes: status.message_bytes,
        disk_free: disk.free_bytes,
        disk_total: disk.total_bytes,
        disk_free_limit: status.disk.map_or(0, |disk| disk.free_bytes_min),
        disk_free_alarm: status.disk.is_some_and(|disk| disk.alarm),
        fd_used: process.open_files,
        fd_total: process.open_files_max.min(u32::MAX.into()),
        sockets_used: status.connections,
        sockets_total: broker.limits().connections_max,
        proc_used: process.threads,
        proc_total: 1 << 20,
        db_dir: config.data_dir.as_deref().map(|dir| dir.display().to_string()).unwrap_or_default(),
        damage: broker.durable().map(|durable| durable.damage().to_vec()).unwrap_or_default(),
        log_files: Vec::new(),
        config_files: Vec::new(),
    }
}

fn check(api: &Api, name: &str) -> ApiResult<()> {
    if name == api.node() { Ok(()) } else { Err(ApiError::not_found()) }
}

/// All nodes: this one
#[utoipa::path(get, path = "/nodes", tag = "nodes", responses((status = 200, body = Vec<Node>)))]
pub(crate) async fn list(_: Monitor, State(api): State<Api>) -> Json<Vec<Node>> {
    Json(vec![show(&api)])
}

/// A node, with what it takes of its machine
#[utoipa::path(get, path = "/nodes/{node}", tag = "nodes", params(ColumnsQuery),
    responses((status = 200, body = Node)))]
pub(crate) async fn get(
    _: Monitor,
    State(api): State<Api>,
    At(node): At<String>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    check(&api, &node)?;
    Ok(one(&query, &show(&api)))
}

/// Where the node's memory went, by RabbitMQ's names: messages, and all else
#[utoipa::path(get, path = "/nodes/{node}/memory", tag = "nodes", responses((status = 200, body = Object)))]
pub(crate) async fn memory(
    _: Monitor,
    State(api): State<Api>,
    At(node): At<String>,
) -> ApiResult<Json<Value>> {
    check(&api, &node)?;
    let mut memory = parts(&api);
    let resident = Process::inspect().resident_bytes;
    memory.insert("strategy".into(), "rss".into());
    memory.insert("total".into(), json!({"erlang": resident, "rss": resident, "allocated": resident}));
    Ok(Json(json!({ "memory": memory })))
}

/// The parts of the node's memory in percent
#[utoipa::path(get, path = "/nodes/{node}/memory/relative", tag = "nodes", responses((status = 200, body = Object)))]
pub(crate) async fn memory_relative(
    _: Monitor,
    State(api): State<Api>,
    At(node): At<String>,
) -> ApiResult<Json<Value>> {
    check(&api, &node)?;
    let mut memory = parts(&api);
    let total: u64 = memory.values().filter_map(Value::as_u64).sum();
    for part in memory.values_mut() {
        let bytes = part.as_u64().unwrap_or_default();
        *part = (bytes * 100).checked_div(total).unwrap_or_default().into();
    }
    memory.insert("total".into(), 100.into());
    Ok(Json(json!({ "memory": memory })))
}

/// The parts of the memory, in bytes.
fn parts(api: &Api) -> Map<String, Value> {
    let (resident, messages) = (Process::inspect().resident_bytes, api.broker().memory().used() as u64);
    // Tools expect every part of RabbitMQ's memory.
    let none = [
        "connection_readers",
        "connection_writers",
        "connection_channels",
        "connection_other",
        "quorum_queue_procs",
        "stream_queue_procs",
        "stream_queue_replica_reader_procs",
        "stream_queue_coordinator_procs",
        "plugins",
        "metadata_store",
        "other_proc",
        "metrics",
        "mgmt_db",
        "mnesia",
        "quorum_ets",
        "metadata_store_ets",
        "other_ets",
        "binary",
        "msg_index",
        "code",
        "atom",
        "allocated_unused",
        "reserved_unallocated",
    ];
    let mut memory: Map<String, Value> = none.iter().map(|part| ((*part).to_owned(), 0.into())).collect();
    memory.insert("queue_procs".into(), messages.into());
    memory.insert("other_system".into(), resident.saturating_sub(messages).into());
    memory
}
