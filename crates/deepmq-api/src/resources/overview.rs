//! The broker at a glance, and who asks.
//!
//! Owns `/overview`, `/whoami`, `/version`, `/extensions` and `/cluster-name`. Must not know single objects.

use super::edits;
use crate::api::Api;
use crate::auth::{Admin, Caller, Monitor};
use crate::error::ApiResult;
use crate::listing::{ColumnsQuery, one};
use crate::rates::Watched;
use crate::request::{Params, Payload};
use crate::stats::{MessageStats, Rate, depth_rates, of_queue};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use deepmq_broker::queue::Depth;
use deepmq_broker::registry::GlobalParameter;
use deepmq_broker::traffic::MessageCounts;
use deepmq_broker::vhost::RunningQueue;
use deepmq_model::topology::ExchangeKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The parameter that holds the name of this broker among others.
const CLUSTER_NAME: &str = "cluster_name";

/// The broker at a glance
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overview {
    cluster_name: String,
    node: String,
    product_name: String,
    product_version: String,
    /// What clients are told, for tools that look for a version they know
    rabbitmq_version: String,
    management_version: String,
    rates_mode: &'static str,
    erlang_version: &'static str,
    erlang_full_version: &'static str,
    #[schema(value_type = Object)]
    cluster_tags: Map<String, Value>,
    #[schema(value_type = Object)]
    node_tags: Map<String, Value>,
    exchange_types: Vec<ExchangeType>,
    message_stats: MessageStats,
    churn_rates: ChurnRates,
    queue_totals: QueueTotals,
    object_totals: ObjectTotals,
    statistics_db_event_queue: u64,
    listeners: Vec<ListenerShown>,
    /// Milliseconds since the broker started
    uptime: u64,
}

/// A type of exchanges
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExchangeType {
    name: &'static str,
    description: &'static str,
    enabled: bool,
}

/// How often things came and went since the broker started
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChurnRates {
    connection_created: u64,
    connection_created_details: Rate,
    connection_closed: u64,
    connection_closed_details: Rate,
    channel_created: u64,
    channel_created_details: Rate,
    channel_closed: u64,
    channel_closed_details: Rate,
    queue_declared: u64,
    queue_declared_details: Rate,
    queue_created: u64,
    queue_created_details: Rate,
    queue_deleted: u64,
    queue_deleted_details: Rate,
}

/// The messages of all queues
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueTotals {
    messages: u64,
    messages_details: Rate,
    messages_ready: u64,
    messages_ready_details: Rate,
    messages_unacknowledged: u64,
    messages_unacknowledged_details: Rate,
}

/// How many objects there are
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ObjectTotals {
    connections: usize,
    channels: usize,
    queues: usize,
    exchanges: usize,
    consumers: usize,
}

/// Where something is listened for
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListenerShown {
    node: String,
    protocol: &'static str,
    ip_address: String,
    port: u16,
}

/// The user who asks
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WhoAmI {
    name: String,
    tags: Vec<String>,
    is_internal_user: bool,
}

/// A name
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ClusterName {
    name: String,
}

/// What the queues of some vhosts hold and counted together.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) queues: usize,
    pub(crate) depth: Depth,
    pub(crate) counts: MessageCounts,
}

impl Sums {
    pub(crate) fn of(queues: &[RunningQueue]) -> Self {
        let mut sums = Self { queues: queues.len(), ..Self::default() };
        for queue in queues {
            let depth = queue.running.depth();
            sums.depth.ready += depth.ready;
            sums.depth.unacked += depth.unacked;
            sums.depth.dead_letters += depth.dead_letters;
            sums.depth.consumers += depth.consumers;
            sums.depth.bytes += depth.bytes;
            sums.counts += of_queue(&queue.running.counters());
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.queues += other.queues;
        self.depth.ready += other.depth.ready;
        self.depth.unacked += other.depth.unacked;
        self.depth.dead_letters += other.depth.dead_letters;
        self.depth.consumers += other.depth.consumers;
        self.depth.bytes += other.depth.bytes;
        self.counts += other.counts;
    }
}

/// The broker at a glance: what it is, how much it holds and how fast it works
#[utoipa::path(get, path = "/overview", tag = "overview", params(ColumnsQuery),
    responses((status = 200, body = Overview)))]
pub(crate) async fn overview(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ColumnsQuery>,
) -> Response {
    one(&query, &show(&api, &caller))
}

impl WhoAmI {
    pub(crate) fn of(caller: &Caller) -> Self {
        let user = caller.user();
        let tags = user.tags.iter().map(ToString::to_string).collect();
        Self { name: user.name.to_string(), tags, is_internal_user: true }
    }
}

fn show(api: &Api, caller: &Caller) -> Overview {
    let vhosts = caller.vhosts(api);
    let mut sums = Sums::default();
    vhosts.iter().for_each(|vhost| sums.add(&Sums::of(&vhost.declared_queues())));
    // Who sees all sees what deleted queues counted, too.
    let (watched, counts) = if caller.is_monitor() {
        (Watched::Broker, api.broker().traffic().messages)
    } else {
        (Watched::Totals(caller.user().name.clone()), sums.counts)
    };
    let config = api.broker().config();
    Overview {
        cluster_name: named(api),
        node: api.node().to_owned(),
        product_name: config.product.to_string(),
        product_version: config.version.to_string(),
        rabbitmq_version: config.version.to_string(),
        management_version: config.version.to_string(),
        rates_mode: "basic",
        erlang_version: "",
        erlang_full_version: "",
        cluster_tags: Map::new(),
        node_tags: Map::new(),
        exchange_types: exchange_types(),
        message_stats: MessageStats::sample(api, watched, &counts).0,
        churn_rates: churn(api),
        queue_totals: totals(api, caller, &sums.depth),
        object_totals: ObjectTotals {
            exchanges: vhosts.iter().map(|vhost| vhost.exchange_count()).sum(),
            queues: sums.queues,
            consumers: sums.depth.consumers,
            ..connections_and_channels(api, caller)
        },
        statistics_db_event_queue: 0,
        listeners: if caller.is_monitor() { listeners(api) } else { Vec::new() },
        uptime: u64::try_from(api.now().as_millis()).unwrap_or(u64::MAX),
    }
}

fn connections_and_channels(api: &Api, caller: &Caller) -> ObjectTotals {
    let mut connections = api.broker().connections();
    connections.retain(|connection| caller.sees_connection(connection));
    let channels = connections.iter().map(|connection| api.broker().channels(connection.id).len()).sum();
    ObjectTotals { connections: connections.len(), channels, queues: 0, exchanges: 0, consumers: 0 }
}

fn totals(api: &Api, caller: &Caller, depth: &Depth) -> QueueTotals {
    // Each user sees its own vhosts, and so its own sum.
    let watched = Watched::Totals(format!("depth of {}", caller.user().name).into());
    let [messages, ready, unacked] = depth_rates(api, watched, depth);
    QueueTotals {
        messages: depth.messages(),
        messages_details: messages,
        messages_ready: depth.ready,
        messages_ready_details: ready,
        messages_unacknowledged: depth.unacked,
        messages_unacknowledged_details: unacked,
    }
}

fn churn(api: &Api) -> ChurnRates {
    let churn = api.broker().events().churn();
    let counters = [
        churn.connections_opened,
        churn.connections_closed,
        churn.channels_opened,
        churn.channels_closed,
        churn.queues_created,
        churn.queues_deleted,
        0,
        0,
        0,
        0,
    ];
    let watched = Watched::Totals("churn".into());
    let [opened, closed, channels_opened, channels_closed, created, deleted, ..] =
        api.rates().sample(watched, counters, api.now()).rates.map(|rate| Rate { rate });
    ChurnRates {
        connection_created: churn.connections_opened,
        connection_created_details: opened,
        connection_closed: churn.connections_closed,
        connection_closed_details: closed,
        channel_created: churn.channels_opened,
        channel_created_details: channels_opened,
        channel_closed: churn.channels_closed,
        channel_closed_details: channels_closed,
        queue_declared: churn.queues_created,
        queue_declared_details: created,
        queue_created: churn.queues_created,
        queue_created_details: created,
        queue_deleted: churn.queues_deleted,
        queue_deleted_details: deleted,
    }
}

pub(crate) fn exchange_types() -> Vec<ExchangeType> {
    let types = [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Headers, ExchangeKind::Topic];
    let describe = |kind: ExchangeKind| match kind {
        ExchangeKind::Direct => "the routing key equals the binding key",
        ExchangeKind::Fanout => "every message matches every binding",
        ExchangeKind::Headers => "the headers match the binding's arguments",
        ExchangeKind::Topic => "the words of the routing key match the binding key's pattern",
    };
    types.map(|kind| ExchangeType { name: kind.name(), description: describe(kind), enabled: true }).into()
}

fn listeners(api: &Api) -> Vec<ListenerShown> {
    let shown = api.config().listeners.iter().map(|listener| ListenerShown {
        node: api.node().to_owned(),
        protocol: listener.protocol,
        ip_address: listener.address.ip().to_string(),
        port: listener.address.port(),
    });
    shown.collect()
}

/// The user who asks, with its tags
#[utoipa::path(get, path = "/whoami", tag = "overview", responses((status = 200, body = WhoAmI)))]
pub(crate) async fn whoami(caller: Caller) -> Json<WhoAmI> {
    Json(WhoAmI::of(&caller))
}

/// The broker's version
#[utoipa::path(get, path = "/version", tag = "overview",
    responses((status = 200, body = String, content_type = "application/json")))]
pub(crate) async fn version(_: Caller, State(api): State<Api>) -> Json<String> {
    Json(api.broker().config().version.to_string())
}

/// Extensions of the user interface: none
#[utoipa::path(get, path = "/extensions", tag = "overview", responses((status = 200, body = Vec<Object>)))]
pub(crate) async fn extensions(_: Caller) -> Json<Vec<Value>> {
    Json(Vec::new())
}

/// The name of this broker among others
#[utoipa::path(get, path = "/cluster-name", tag = "overview", responses((status = 200, body = ClusterName)))]
pub(crate) async fn cluster_name(_: Caller, State(api): State<Api>) -> ApiResult<Json<ClusterName>> {
    Ok(Json(ClusterName { name: named(&api) }))
}

fn named(api: &Api) -> String {
    let given = api.broker().get_global_parameter(CLUSTER_NAME);
    let given = given.and_then(|parameter| parameter.value.as_str().map(str::to_owned));
    given.unwrap_or_else(|| api.broker().config().node_name.to_string())
}

/// Name this broker among others
#[utoipa::path(put, path = "/cluster-name", tag = "overview", request_body = ClusterName,
    responses((status = 201, description = "Named"), (status = 204, description = "Named otherwise")))]
pub(crate) async fn put_cluster_name(
    Admin(caller): Admin,
    State(api): State<Api>,
    Payload(given): Payload<ClusterName>,
) -> ApiResult<StatusCode> {
    let parameter = GlobalParameter { name: CLUSTER_NAME.into(), value: given.name.into() };
    edits::put(&api, &caller, "cluster name", api.broker().put_global_parameter(parameter)).await
}

/// Every setting that counts
#[utoipa::path(get, path = "/config/effective", tag = "overview", responses((status = 200, body = Object)))]
pub(crate) async fn effective_config(_: Monitor, State(api): State<Api>) -> Json<Value> {
    let (config, limits) = (api.broker().config(), api.broker().limits());
    Json(serde_json::json!({
        "node_name": &*config.node_name,
        "data_dir": config.data_dir,
        "limits": {
            "connections_max": limits.connections_max,
            "channels_per_connection_max": limits.channels_per_connection_max,
            "consumers_per_channel_max": limits.consumers_per_channel_max,
            "queues_per_vhost_max": limits.queues_per_vhost_max,
            "exchanges_per_vhost_max": limits.exchanges_per_vhost_max,
            "bindings_per_vhost_max": limits.bindings_per_vhost_max,
            "frame_bytes_max": limits.frame_bytes_max,
            "message_bytes_max": limits.message_bytes_max,
            "ready_memory_bytes_max": limits.ready_memory_bytes_max,
        },
    }))
}
