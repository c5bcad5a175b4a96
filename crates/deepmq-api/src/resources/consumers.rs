//! Consumers of queues.
//!
//! Owns `/consumers`. Must not know how messages are handed out.

use super::channels;
use super::connections::Handle as Connection;
use crate::api::Api;
use crate::arguments::Arguments;
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::listing::{ListQuery, Listing, Named, list};
use crate::request::{At, Params};
use axum::extract::State;
use axum::response::Response;
use deepmq_broker::Vhost;
use deepmq_broker::connection::ConnectionId;
use deepmq_broker::queue::{ConsumerInfo, Queue};
use deepmq_model::queue::Activity;
use deepmq_model::{Table, Value};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A consumer
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are RabbitMQ's")]
pub(crate) struct Consumer {
    consumer_tag: String,
    queue: QueueName,
    /// Only if it wants to be the only one
    exclusive: bool,
    ack_required: bool,
    /// Unacked messages it may hold; 0: any number
    prefetch_count: u32,
    active: bool,
    activity_status: &'static str,
    /// Unacked messages it holds
    messages_unacknowledged: u32,
    arguments: Arguments,
    consumer_timeout: u64,
    channel_details: ChannelDetails,
}

/// A queue by name
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueName {
    name: String,
    vhost: String,
}

/// The channel something is on
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct ChannelDetails {
    name: String,
    number: u16,
    connection_name: String,
    node: String,
    peer_host: String,
    peer_port: u16,
    user: String,
}

#[derive(Debug)]
struct Handle {
    info: ConsumerInfo,
    queue: Arc<Queue>,
}

impl Named for Handle {
    fn name(&self) -> &str {
        &self.info.tag
    }
}

/// Connections by number: consumers only know that.
pub(crate) type Connections = HashMap<ConnectionId, Connection>;

pub(crate) fn connections(api: &Api) -> Connections {
    let all = api.broker().connections().into_iter();
    all.map(|info| (info.id, Connection::new(api, info))).collect()
}

/// A consumer of a queue, as it is shown.
pub(crate) fn show(api: &Api, connections: &Connections, queue: &Queue, info: &ConsumerInfo) -> Consumer {
    let mut arguments = Table::new();
    if info.spec.priority != 0 {
        arguments.push("x-priority", Value::I32(info.spec.priority));
    }
    Consumer {
        consumer_tag: info.tag.to_string(),
        queue: QueueName { name: queue.name().to_string(), vhost: queue.vhost().to_string() },
        exclusive: info.spec.exclusive,
        ack_required: !info.spec.no_ack,
        prefetch_count: info.spec.prefetch_count,
        active: info.activity != Activity::Waiting,
        activity_status: match info.activity {
            Activity::Up => "up",
            Activity::SingleActive => "single_active",
            Activity::Waiting => "waiting",
        },
        messages_unacknowledged: info.in_flight,
        arguments: Arguments(arguments),
        consumer_timeout: 0,
        channel_details: details(api, connections.get(&info.connection), info.channel),
    }
}

fn details(api: &Api, connection: Option<&Connection>, number: u16) -> ChannelDetails {
    let node = api.node().to_owned();
    // It has gone between two looks.
    let Some(connection) = connection else { return ChannelDetails { number, node, ..Default::default() } };
    let (peer_host, peer_port) = connection.peer();
    ChannelDetails {
        name: channels::name(&connection.name, number),
        number,
        connection_name: connection.name.clone(),
        node,
        peer_host,
        peer_port,
        user: connection.info.user.to_string(),
    }
}

fn shown(api: Api, query: &ListQuery, vhosts: &[Arc<Vhost>]) -> ApiResult<Response> {
    let queues = vhosts.iter().flat_map(|vhost| vhost.declared_queues());
    let handles: Vec<_> = queues
        .flat_map(|queue| {
            let consumers = queue.running.consumers().into_iter();
            consumers.map(move |info| Handle { info, queue: queue.running.clone() })
        })
        .collect();
    let connections = connections(&api);
    list(query, handles, move |handle: &Handle| show(&api, &connections, &handle.queue, &handle.info))
}

/// All consumers
#[utoipa::path(get, path = "/consumers", tag = "consumers", params(ListQuery),
    responses((status = 200, body = Listing<Consumer>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhosts = caller.vhosts(&api);
    shown(api, &query, &vhosts)
}

/// The consumers in a vhost
#[utoipa::path(get, path = "/consumers/{vhost}", tag = "consumers", params(ListQuery),
    responses((status = 200, body = Listing<Consumer>)))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    shown(api, &query, &[vhost])
}
