//! Bindings between exchanges and queues.
//!
//! Owns `/bindings`, and the keys by which one of several bindings is named in a path. Must not know how they match.

mod key;

use super::{DEFAULT_VHOST, NOBODY, exchange_in_path, exchange_name};
use crate::api::Api;
use crate::arguments::Arguments;
use crate::auth::Caller;
use crate::durable::until_kept;
use crate::error::{ApiError, ApiResult};
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::request::{At, Params, Payload};
use crate::request_id::note_change;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use deepmq_broker::events::BindingTo;
use deepmq_broker::inspect::BindingInfo;
use deepmq_broker::vhost::BindingRequest;
use deepmq_broker::{Vhost, permits};
use deepmq_model::topology::{Destination, ResourceKind};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A binding
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Binding {
    /// The exchange it leads from; empty for the default exchange
    source: String,
    vhost: String,
    destination: String,
    /// `queue` or `exchange`
    destination_type: &'static str,
    routing_key: String,
    arguments: Arguments,
    /// Names it in a path among the others between its ends
    properties_key: String,
}

/// What a binding is to be
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct BindingDeclaration {
    routing_key: String,
    arguments: Arguments,
}

/// A binding of the default vhost to be
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct WholeBindingDeclaration {
    source: String,
    destination: String,
    /// `queue` or `exchange`; a queue if not given
    #[serde(default)]
    destination_type: Option<String>,
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    arguments: Arguments,
}

#[derive(Debug)]
pub(super) struct Handle {
    binding: BindingInfo,
    vhost: Arc<Vhost>,
}

impl Handle {
    fn destination(&self) -> Destination<'_> {
        match &self.binding.destination {
            BindingTo::Queue(name) => Destination::Queue(name),
            BindingTo::Exchange(name) => Destination::Exchange(name),
        }
    }
}

impl Named for Handle {
    fn name(&self) -> &str {
        &self.binding.source
    }
}

/// The two ends of bindings, as a path names them.
type Ends = (String, String, String);

fn handles_from(vhost: &Arc<Vhost>, bindings: Vec<BindingInfo>) -> Vec<Handle> {
    bindings.into_iter().map(|binding| Handle { binding, vhost: vhost.clone() }).collect()
}

pub(super) fn handles(vhost: &Arc<Vhost>) -> Vec<Handle> {
    handles_from(vhost, vhost.bindings())
}

pub(super) fn show(handle: &Handle) -> Binding {
    let binding = &handle.binding;
    let (destination, destination_type) = match &binding.destination {
        BindingTo::Queue(name) => (name, "queue"),
        BindingTo::Exchange(name) => (name, "exchange"),
    };
    Binding {
        source: binding.source.to_string(),
        vhost: handle.vhost.name().to_string(),
        destination: destination.to_string(),
        destination_type,
        routing_key: String::from_utf8_lossy(&binding.key).into_owned(),
        arguments: Arguments(binding.arguments.clone()),
        properties_key: key::of(&binding.key, &binding.arguments),
    }
}

/// All bindings between an exchange and a queue or an exchange.
fn between(vhost: &Arc<Vhost>, source: &str, to: ResourceKind, destination: &str) -> ApiResult<Vec<Handle>> {
    let source = exchange_name(source);
    let incoming = match to {
        ResourceKind::Queue => vhost.bindings_to_queue(destination),
        ResourceKind::Exchange => vhost.bindings_to_exchange(exchange_name(destination)),
    };
    let mut incoming = incoming.ok_or_else(ApiError::not_found)?;
    vhost.find_exchange(source).ok_or_else(ApiError::not_found)?;
    incoming.retain(|binding| &*binding.source == source);
    Ok(handles_from(vhost, incoming))
}

fn find(
    vhost: &Arc<Vhost>,
    source: &str,
    to: ResourceKind,
    destination: &str,
    key: &str,
) -> ApiResult<Handle> {
    let mut handles = between(vhost, source, to, destination)?;
    let key_of = |handle: &Handle| key::of(&handle.binding.key, &handle.binding.arguments);
    // As it is quoted first: unquoted it may be another binding's.
    let exact = handles.iter().position(|handle| key_of(handle) == key);
    let found = exact.or_else(|| handles.iter().position(|handle| key::is_unquoted(key, &key_of(handle))));
    found.map(|at| handles.swap_remove(at)).ok_or_else(ApiError::not_found)
}

/// All bindings
#[utoipa::path(get, path = "/bindings", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    list(&query, caller.vhosts(&api).iter().flat_map(handles).collect(), show)
}

/// The bindings of a vhost
#[utoipa::path(get, path = "/bindings/{vhost}", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    list(&query, handles(&caller.see(&api, &vhost)?), show)
}

/// The bindings that lead to a queue
#[utoipa::path(get, path = "/queues/{vhost}/{queue}/bindings", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_of_queue(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, queue)): At<(String, String)>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    let bindings = vhost.bindings_to_queue(&queue).ok_or_else(ApiError::not_found)?;
    list(&query, handles_from(&vhost, bindings), show)
}

/// The bindings that lead from an exchange
#[utoipa::path(get, path = "/exchanges/{vhost}/{exchange}/bindings/source", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_from_exchange(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, exchange)): At<(String, String)>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    let bindings = vhost.bindings_from_exchange(exchange_name(&exchange)).ok_or_else(ApiError::not_found)?;
    list(&query, handles_from(&vhost, bindings), show)
}

/// The bindings that lead to an exchange
#[utoipa::path(get, path = "/exchanges/{vhost}/{exchange}/bindings/destination", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_to_exchange(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, exchange)): At<(String, String)>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    let bindings = vhost.bindings_to_exchange(exchange_name(&exchange)).ok_or_else(ApiError::not_found)?;
    list(&query, handles_from(&vhost, bindings), show)
}

/// The bindings between an exchange and a queue
#[utoipa::path(get, path = "/bindings/{vhost}/e/{source}/q/{destination}", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_to(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, queue)): At<Ends>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    list(&query, between(&caller.see(&api, &vhost)?, &source, ResourceKind::Queue, &queue)?, show)
}

/// The bindings between two exchanges
#[utoipa::path(get, path = "/bindings/{vhost}/e/{source}/e/{destination}", tag = "bindings", params(ListQuery),
    responses((status = 200, body = Listing<Binding>)))]
pub(crate) async fn list_to_e(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, exchange)): At<Ends>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    list(&query, between(&caller.see(&api, &vhost)?, &source, ResourceKind::Exchange, &exchange)?, show)
}

/// Bind a queue to an exchange
#[utoipa::path(post, path = "/bindings/{vhost}/e/{source}/q/{destination}", tag = "bindings",
    request_body = BindingDeclaration, responses((status = 201, description = "It is bound")))]
pub(crate) async fn post(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, queue)): At<Ends>,
    Payload(given): Payload<BindingDeclaration>,
) -> ApiResult<Response> {
    bind(&api, &caller, &vhost, &source, Destination::Queue(&queue), given).await
}

/// Bind an exchange to an exchange
#[utoipa::path(post, path = "/bindings/{vhost}/e/{source}/e/{destination}", tag = "bindings",
    request_body = BindingDeclaration, responses((status = 201, description = "It is bound")))]
pub(crate) async fn post_e(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, exchange)): At<Ends>,
    Payload(given): Payload<BindingDeclaration>,
) -> ApiResult<Response> {
    bind(&api, &caller, &vhost, &source, Destination::Exchange(exchange_name(&exchange)), given).await
}

/// Bind in the default vhost
#[utoipa::path(post, path = "/bindings", tag = "bindings", request_body = WholeBindingDeclaration,
    responses((status = 201, description = "It is bound")))]
pub(crate) async fn post_default(
    caller: Caller,
    State(api): State<Api>,
    Payload(given): Payload<WholeBindingDeclaration>,
) -> ApiResult<Response> {
    let destination = match given.destination_type.as_deref() {
        None | Some("queue") => Destination::Queue(&given.destination),
        Some("exchange") => Destination::Exchange(exchange_name(&given.destination)),
        Some(_) => return Err(ApiError::bad_request("destination_type must be queue or exchange")),
    };
    let declaration = BindingDeclaration { routing_key: given.routing_key, arguments: given.arguments };
    bind(&api, &caller, DEFAULT_VHOST, &given.source, destination, declaration).await
}

async fn bind(
    api: &Api,
    caller: &Caller,
    vhost: &str,
    source: &str,
    destination: Destination<'_>,
    given: BindingDeclaration,
) -> ApiResult<Response> {
    let vhost = caller.enter(api, vhost)?;
    let arguments = given.arguments.checked(api.broker().limits().table_depth_max)?;
    let key = given.routing_key.as_bytes();
    let access = caller.access(api, vhost.name())?;
    permits::bind(&access, &vhost, exchange_name(source), destination, key)?;
    let request = BindingRequest { source: exchange_name(source), destination, key, arguments: &arguments };
    vhost.bind(request, NOBODY)?;
    until_kept(api, &vhost).await?;
    note_change(caller, "bound", source);
    let (kind, name) = match destination {
        Destination::Queue(name) => ("q", name),
        Destination::Exchange(name) => ("e", exchange_in_path(name)),
    };
    let encoded = |part: &str| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string();
    let location = format!(
        "/api/bindings/{}/e/{}/{kind}/{}/{}",
        encoded(vhost.name()),
        encoded(source),
        encoded(name),
        encoded(&key::of(key, &arguments))
    );
    let location: [(HeaderName, String); 1] = [(header::LOCATION, location)];
    Ok((StatusCode::CREATED, location).into_response())
}

/// A binding between an exchange and a queue
#[utoipa::path(get, path = "/bindings/{vhost}/e/{source}/q/{destination}/{properties_key}", tag = "bindings",
    params(ColumnsQuery), responses((status = 200, body = Binding)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, queue, key)): At<(String, String, String, String)>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    Ok(one(&query, &show(&find(&vhost, &source, ResourceKind::Queue, &queue, &key)?)))
}

/// A binding between two exchanges
#[utoipa::path(get, path = "/bindings/{vhost}/e/{source}/e/{destination}/{properties_key}", tag = "bindings",
    params(ColumnsQuery), responses((status = 200, body = Binding)))]
pub(crate) async fn get_e(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, exchange, key)): At<(String, String, String, String)>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    Ok(one(&query, &show(&find(&vhost, &source, ResourceKind::Exchange, &exchange, &key)?)))
}

/// Unbind a queue from an exchange
#[utoipa::path(delete, path = "/bindings/{vhost}/e/{source}/q/{destination}/{properties_key}", tag = "bindings",
    responses((status = 204)))]
pub(crate) async fn delete(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, queue, key)): At<(String, String, String, String)>,
) -> ApiResult<StatusCode> {
    let vhost = caller.enter(&api, &vhost)?;
    unbind(&api, &caller, &find(&vhost, &source, ResourceKind::Queue, &queue, &key)?).await
}

/// Unbind an exchange from an exchange
#[utoipa::path(delete, path = "/bindings/{vhost}/e/{source}/e/{destination}/{properties_key}", tag = "bindings",
    responses((status = 204)))]
pub(crate) async fn delete_e(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, source, exchange, key)): At<(String, String, String, String)>,
) -> ApiResult<StatusCode> {
    let vhost = caller.enter(&api, &vhost)?;
    unbind(&api, &caller, &find(&vhost, &source, ResourceKind::Exchange, &exchange, &key)?).await
}

async fn unbind(api: &Api, caller: &Caller, handle: &Handle) -> ApiResult<StatusCode> {
    let BindingInfo { source, key, arguments, .. } = &handle.binding;
    let access = caller.access(api, handle.vhost.name())?;
    permits::bind(&access, &handle.vhost, source, handle.destination(), key)?;
    handle
        .vhost
        .unbind(BindingRequest { source, destination: handle.destination(), key, arguments }, NOBODY)?;
    until_kept(api, &handle.vhost).await?;
    note_change(caller, "unbound", source);
    Ok(StatusCode::NO_CONTENT)
}
