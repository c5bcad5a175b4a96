//! Channels of connections.
//!
//! Owns `/channels`. Must not know what is said on them.

use super::connections::{self, Handle as Connection};
use crate::api::Api;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::rates::Watched;
use crate::request::{At, Params};
use crate::stats::MessageStats;
use axum::extract::State;
use axum::response::Response;
use deepmq_broker::connection::{ChannelInfo, ConnectionId};
use serde::Serialize;
use utoipa::ToSchema;

/// A channel
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Channel {
    /// The connection's name, and the number
    name: String,
    number: u16,
    vhost: String,
    user: String,
    user_who_performed_action: String,
    node: String,
    state: &'static str,
    /// What is published on it is confirmed
    confirm: bool,
    transactional: bool,
    consumer_count: usize,
    /// The prefetch of its next consumer; 0 is none
    prefetch_count: u16,
    /// The prefetch its consumers share; 0 is none
    global_prefetch_count: u32,
    messages_unacknowledged: usize,
    messages_unconfirmed: u64,
    /// Published in its open transaction
    messages_uncommitted: u64,
    /// Settlements in its open transaction
    acks_uncommitted: u64,
    connection_details: ConnectionDetails,
    message_stats: MessageStats,
}

/// The connection something is on
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ConnectionDetails {
    name: String,
    peer_host: String,
    peer_port: u16,
}

impl ConnectionDetails {
    pub(crate) fn new(connection: &Connection) -> Self {
        let (peer_host, peer_port) = connection.peer();
        Self { name: connection.name.clone(), peer_host, peer_port }
    }
}

#[derive(Debug)]
struct Handle {
    name: String,
    info: ChannelInfo,
    connection: ConnectionId,
    vhost: String,
    user: String,
    details: ConnectionDetails,
}

impl Named for Handle {
    fn name(&self) -> &str {
        &self.name
    }
}

fn handles_of(api: &Api, connection: &Connection) -> Vec<Handle> {
    let details = ConnectionDetails::new(connection);
    let channels = api.broker().channels(connection.info.id).into_iter();
    channels
        .map(|info| Handle {
            name: name(&connection.name, info.number),
            info,
            connection: connection.info.id,
            vhost: connection.info.vhost.to_string(),
            user: connection.info.user.to_string(),
            details: details.clone(),
        })
        .collect()
}

/// A channel's name.
pub(crate) fn name(connection: &str, number: u16) -> String {
    format!("{connection} ({number})")
}

fn show(api: &Api, handle: &Handle) -> Channel {
    let info = &handle.info;
    Channel {
        name: handle.name.clone(),
        number: info.number,
        vhost: handle.vhost.clone(),
        user: handle.user.clone(),
        user_who_performed_action: handle.user.clone(),
        node: api.node().to_owned(),
        state: "running",
        confirm: info.confirms,
        transactional: info.transactional,
        consumer_count: info.consumers,
        prefetch_count: info.prefetch_count,
        global_prefetch_count: info.prefetch_shared,
        messages_unacknowledged: info.unacked,
        messages_unconfirmed: info.unconfirmed,
        messages_uncommitted: info.uncommitted,
        acks_uncommitted: info.uncommitted_acks,
        connection_details: handle.details.clone(),
        message_stats: MessageStats::sample(
            api,
            Watched::Channel(handle.connection, info.number),
            &info.counts,
        )
        .0,
    }
}

fn shown(api: Api, query: &ListQuery, connections: &[Connection]) -> ApiResult<Response> {
    let handles = connections.iter().flat_map(|connection| handles_of(&api, connection)).collect();
    list(query, handles, move |handle: &Handle| show(&api, handle))
}

/// All open channels
#[utoipa::path(get, path = "/channels", tag = "channels", params(ListQuery),
    responses((status = 200, body = Listing<Channel>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let connections = connections::handles(&api, &caller, |_| true);
    shown(api, &query, &connections)
}

/// The open channels to a vhost
#[utoipa::path(get, path = "/vhosts/{vhost}/channels", tag = "channels", params(ListQuery),
    responses((status = 200, body = Listing<Channel>)))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    caller.see(&api, &vhost)?;
    let connections = connections::handles(&api, &caller, |info| *info.vhost == *vhost);
    shown(api, &query, &connections)
}

/// The channels of a connection
#[utoipa::path(get, path = "/connections/{connection}/channels", tag = "channels", params(ListQuery),
    responses((status = 200, body = Listing<Channel>)))]
pub(crate) async fn list_of_connection(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let connection = connections::find(&api, &caller, &name)?;
    shown(api, &query, &[connection])
}

/// A channel
#[utoipa::path(get, path = "/channels/{channel}", tag = "channels", params(ColumnsQuery),
    responses((status = 200, body = Channel)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let connection = name.rsplit_once(" (").map_or("", |(connection, _)| connection);
    let connection = connections::find(&api, &caller, connection)?;
    let handles = handles_of(&api, &connection);
    let handle = handles.iter().find(|handle| handle.name == name).ok_or_else(ApiError::not_found)?;
    Ok(one(&query, &show(&api, handle)))
}
