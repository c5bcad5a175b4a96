//! Connections of clients.
//!
//! Owns `/connections`, and the names of connections. Must not know what they speak.

use crate::api::Api;
use crate::arguments::Arguments;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::rates::Watched;
use crate::request::{At, Params};
use crate::request_id::note_change;
use crate::stats::{MessageStats, Rate};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use deepmq_broker::connection::ConnectionInfo;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;
use utoipa::ToSchema;

/// The longest reason for a close that is passed on, in bytes: what AMQP's close can carry beside its own words.
const REASON_BYTES_MAX: usize = 200;

/// A client's connection
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Connection {
    /// From where to where; closes it in the path
    name: String,
    vhost: String,
    user: String,
    user_who_performed_action: String,
    node: String,
    protocol: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// `running`, or `blocked` while memory or disk is short
    state: &'static str,
    host: String,
    port: u16,
    peer_host: String,
    peer_port: u16,
    ssl: bool,
    /// How many channels it has
    channels: usize,
    /// Milliseconds since 1970
    connected_at: u64,
    client_properties: Arguments,
    /// Bytes from the client
    recv_oct: u64,
    recv_oct_details: Rate,
    /// Bytes to the client
    send_oct: u64,
    send_oct_details: Rate,
    message_stats: MessageStats,
}

/// A connection before it is shown.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) info: ConnectionInfo,
    pub(crate) name: String,
}

impl Named for Handle {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Handle {
    pub(crate) fn new(api: &Api, info: ConnectionInfo) -> Self {
        let here = api.amqp_address().map(|address| address.to_string()).unwrap_or_default();
        let name = format!("{} -> {here}", info.peer);
        Self { info, name }
    }

    /// The peer's host and port.
    pub(crate) fn peer(&self) -> (String, u16) {
        match self.info.peer.parse::<SocketAddr>() {
            Ok(peer) => (peer.ip().to_string(), peer.port()),
            Err(_) => (self.info.peer.clone(), 0),
        }
    }
}

impl Caller {
    /// A manager sees its own connections, those who monitor see all.
    pub(crate) fn sees_connection(&self, connection: &ConnectionInfo) -> bool {
        self.is_monitor() || connection.user == self.user().name
    }
}

/// The connections that a caller sees, in the order of their names.
pub(crate) fn handles(api: &Api, caller: &Caller, wanted: impl Fn(&ConnectionInfo) -> bool) -> Vec<Handle> {
    let connections = api.broker().connections().into_iter();
    let seen = connections.filter(|connection| caller.sees_connection(connection) && wanted(connection));
    let mut handles: Vec<_> = seen.map(|info| Handle::new(api, info)).collect();
    handles.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    handles
}

/// The connection of a name, if the caller sees it.
pub(crate) fn find(api: &Api, caller: &Caller, name: &str) -> ApiResult<Handle> {
    let handle = api.broker().connections().into_iter().map(|info| Handle::new(api, info));
    match { handle }.find(|handle| handle.name == name) {
        Some(handle) if caller.sees_connection(&handle.info) => Ok(handle),
        Some(_) => Err(ApiError::not_authorized("Access refused.")),
        None => Err(ApiError::not_found()),
    }
}

fn show(api: &Api, handle: &Handle) -> Connection {
    let info = &handle.info;
    let (peer_host, peer_port) = handle.peer();
    let here = api.amqp_address();
    let traffic = api.broker().traffic_of(info.id).unwrap_or_default();
    let bytes = [traffic.received_bytes, traffic.sent_bytes, 0, 0, 0, 0, 0, 0, 0, 0];
    let watched = Watched::Totals(handle.name.as_str().into());
    let [received, sent, ..] = api.rates().sample(watched, bytes, api.now()).rates.map(|rate| Rate { rate });
    Connection {
        name: handle.name.clone(),
        vhost: info.vhost.to_string(),
        user: info.user.to_string(),
        user_who_performed_action: info.user.to_string(),
        node: api.node().to_owned(),
        protocol: info.protocol,
        kind: "network",
        state: if api.broker().shortage().is_some() { "blocked" } else { "running" },
        host: here.map(|address| address.ip().to_string()).unwrap_or_default(),
        port: here.map(|address| address.port()).unwrap_or_default(),
        peer_host,
        peer_port,
        ssl: false,
        channels: api.broker().channels(info.id).len(),
        connected_at: millis_since_1970(info),
        client_properties: Arguments(info.client_properties.clone()),
        recv_oct: traffic.received_bytes,
        recv_oct_details: received,
        send_oct: traffic.sent_bytes,
        send_oct_details: sent,
        message_stats: MessageStats::sample(api, Watched::Connection(info.id), &traffic.messages).0,
    }
}

fn millis_since_1970(info: &ConnectionInfo) -> u64 {
    let since = info.connected_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn shown(api: Api, query: &ListQuery, handles: Vec<Handle>) -> ApiResult<Response> {
    list(query, handles, move |handle| show(&api, handle))
}

/// All open connections
#[utoipa::path(get, path = "/connections", tag = "connections", params(ListQuery),
    responses((status = 200, body = Listing<Connection>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let handles = handles(&api, &caller, |_| true);
    shown(api, &query, handles)
}

/// The open connections to a vhost
#[utoipa::path(get, path = "/vhosts/{vhost}/connections", tag = "connections", params(ListQuery),
    responses((status = 200, body = Listing<Connection>)))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    caller.see(&api, &vhost)?;
    let handles = handles(&api, &caller, |info| *info.vhost == *vhost);
    shown(api, &query, handles)
}

/// The open connections of a user
#[utoipa::path(get, path = "/connections/username/{user}", tag = "connections", params(ListQuery),
    responses((status = 200, body = Listing<Connection>)))]
pub(crate) async fn list_of_user(
    caller: Caller,
    State(api): State<Api>,
    At(user): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let handles = handles(&api, &caller, |info| *info.user == *user);
    shown(api, &query, handles)
}

/// A connection
#[utoipa::path(get, path = "/connections/{connection}", tag = "connections", params(ColumnsQuery),
    responses((status = 200, body = Connection)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    Ok(one(&query, &show(&api, &find(&api, &caller, &name)?)))
}

/// Close a connection; the header `X-Reason` is told to the client
#[utoipa::path(delete, path = "/connections/{connection}", tag = "connections",
    params(("X-Reason" = Option<String>, Header, description = "Why")), responses((status = 204)))]
pub(crate) async fn close(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let handle = find(&api, &caller, &name)?;
    check_closing(&caller, &handle.info.user)?;
    note_change(&caller, "connection closed", &name);
    api.broker().kill_connection(handle.info.id, &reason(&headers));
    Ok(StatusCode::NO_CONTENT)
}

/// Close all connections of a user
#[utoipa::path(delete, path = "/connections/username/{user}", tag = "connections",
    params(("X-Reason" = Option<String>, Header, description = "Why")), responses((status = 204)))]
pub(crate) async fn close_of_user(
    caller: Caller,
    State(api): State<Api>,
    At(user): At<String>,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    check_closing(&caller, &user)?;
    note_change(&caller, "connections of a user closed", &user);
    let reason = reason(&headers);
    for handle in handles(&api, &caller, |info| *info.user == *user) {
        api.broker().kill_connection(handle.info.id, &reason);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// An administrator closes anybody's connections, others their own; monitoring only looks (RabbitMQ's rule).
fn check_closing(caller: &Caller, user: &str) -> ApiResult<()> {
    if caller.is_admin() || *caller.user().name == *user {
        return Ok(());
    }
    Err(ApiError::not_authorized("User not authorised to access object"))
}

fn reason(headers: &HeaderMap) -> String {
    let given = headers.get("x-reason").and_then(|reason| reason.to_str().ok());
    let given = given.filter(|reason| !reason.is_empty()).unwrap_or("Closed via management API");
    given.get(..given.floor_char_boundary(REASON_BYTES_MAX)).unwrap_or(given).to_owned()
}
