//! Queues.
//!
//! Owns `/queues`, with the short paths into the default vhost. Must not know messages.

mod shown;

pub(crate) use shown::{Queue, QueueDetails, show};

use super::{DEFAULT_VHOST, NOBODY, declared};
use crate::api::Api;
use crate::arguments::Arguments;
use crate::auth::{Admin, Caller};
use crate::durable::until_kept;
use crate::error::{ApiError, ApiResult};
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::request::{At, Params, Payload};
use crate::request_id::note_change;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use deepmq_broker::subscriber::Wakes;
use deepmq_broker::vhost::{DeleteIf, RunningQueue};
use deepmq_broker::{Vhost, permits};
use deepmq_model::access::Permission;
use deepmq_model::topology::{QueueSpec, ResourceKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What a queue is to be
#[derive(Debug, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct QueueDeclaration {
    durable: bool,
    auto_delete: bool,
    /// Must be false: an exclusive queue belongs to a connection, and this is none
    exclusive: bool,
    arguments: Arguments,
}

impl Default for QueueDeclaration {
    fn default() -> Self {
        Self { durable: true, auto_delete: false, exclusive: false, arguments: Arguments::default() }
    }
}

/// What must hold for a queue to be deleted
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQueue {
    /// It has no consumers
    if_unused: Option<bool>,
    /// It has no ready messages
    if_empty: Option<bool>,
}

/// What is to be done with a queue
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct QueueAction {
    /// `sync` or `cancel_sync`: there is nothing to do, for there are no mirrors
    action: String,
}

/// The queues of a vhost, or one of the default vhost
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what one of two handlers writes")]
#[schema(no_recursion)]
pub(crate) enum QueuesOrQueue {
    List(Listing<Queue>),
    One(Box<QueueDetails>),
}

impl Named for RunningQueue {
    fn name(&self) -> &str {
        &self.declared.name
    }
}

/// The queue of a name.
pub(crate) fn find(vhost: &Vhost, name: &str) -> ApiResult<RunningQueue> {
    vhost.declared_queue(name).ok_or_else(ApiError::not_found)
}

fn shown(api: Api, query: &ListQuery, handles: Vec<RunningQueue>) -> ApiResult<Response> {
    list(query, handles, move |handle| show(&api, handle))
}

/// All queues
#[utoipa::path(get, path = "/queues", tag = "queues", params(ListQuery),
    responses((status = 200, body = Listing<Queue>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let handles = caller.vhosts(&api).iter().flat_map(|vhost| vhost.declared_queues()).collect();
    shown(api, &query, handles)
}

/// All queues; the same as without `detailed`, for there is no more to tell
#[utoipa::path(get, path = "/queues/detailed", tag = "queues", params(ListQuery),
    responses((status = 200, body = Listing<Queue>)))]
pub(crate) async fn list_detailed(
    caller: Caller,
    state: State<Api>,
    query: Params<ListQuery>,
) -> ApiResult<Response> {
    list_all(caller, state, query).await
}

/// The queues that a user may do anything with
#[utoipa::path(get, path = "/users/{user}/queues", tag = "queues", params(ListQuery),
    responses((status = 200, body = Listing<Queue>)))]
pub(crate) async fn list_of_user(
    _: Admin,
    State(api): State<Api>,
    At(user): At<String>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let broker = api.broker();
    let user = broker.get_user(&user).ok_or_else(ApiError::not_found)?.name;
    let mut handles = Vec::new();
    for vhost in broker.vhosts() {
        let Some(access) = broker.access(&user, vhost.name()) else { continue };
        let mut queues = vhost.declared_queues();
        queues.retain(|queue| access.check_any(ResourceKind::Queue, &queue.declared.name).is_ok());
        handles.extend(queues);
    }
    shown(api, &query, handles)
}

/// The queues of a vhost; or, if there is no such vhost, the queue of this name in the default vhost
#[utoipa::path(get, path = "/queues/{vhost}", tag = "queues", params(ListQuery),
    responses((status = 200, body = inline(QueuesOrQueue))))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ListQuery>,
    Params(columns): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    if api.broker().vhost(&name).is_some() {
        let handles = caller.see(&api, &name)?.declared_queues();
        return shown(api, &query, handles);
    }
    let vhost = caller.see(&api, DEFAULT_VHOST)?;
    Ok(one(&columns, &shown::details(&api, &find(&vhost, &name)?)))
}

/// A queue, with its consumers
#[utoipa::path(get, path = "/queues/{vhost}/{queue}", tag = "queues", params(ColumnsQuery),
    responses((status = 200, body = QueueDetails)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    Ok(one(&query, &shown::details(&api, &find(&vhost, &name)?)))
}

/// Declare a queue
#[utoipa::path(put, path = "/queues/{vhost}/{queue}", tag = "queues", request_body = QueueDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "It is there already")))]
pub(crate) async fn put(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Payload(declaration): Payload<QueueDeclaration>,
) -> ApiResult<StatusCode> {
    declare(&api, &caller, &vhost, &name, declaration).await
}

/// Declare a queue in the default vhost
#[utoipa::path(put, path = "/queues/{vhost}", tag = "queues", request_body = QueueDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "It is there already")))]
pub(crate) async fn put_default(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Payload(declaration): Payload<QueueDeclaration>,
) -> ApiResult<StatusCode> {
    declare(&api, &caller, DEFAULT_VHOST, &name, declaration).await
}

async fn declare(
    api: &Api,
    caller: &Caller,
    vhost: &str,
    name: &str,
    given: QueueDeclaration,
) -> ApiResult<StatusCode> {
    if given.exclusive {
        return Err(ApiError::bad_request("an exclusive queue belongs to a connection: declare it there"));
    }
    let vhost = caller.enter(api, vhost)?;
    let spec = QueueSpec {
        durable: given.durable,
        exclusive: false,
        auto_delete: given.auto_delete,
        server_named: false,
        arguments: given.arguments.checked(api.broker().limits().table_depth_max)?,
    };
    let access = caller.access(api, vhost.name())?;
    permits::declare(&access, (ResourceKind::Queue, name), vhost.has_queue(name), &spec.arguments)?;
    let (_, made) = vhost.declare_queue(name, spec, NOBODY)?;
    until_kept(api, &vhost).await?;
    note_change(caller, "queue declared", name);
    Ok(declared(made))
}

/// Delete a queue with its messages
#[utoipa::path(delete, path = "/queues/{vhost}/{queue}", tag = "queues", params(DeleteQueue),
    responses((status = 204)))]
pub(crate) async fn delete(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Params(when): Params<DeleteQueue>,
) -> ApiResult<StatusCode> {
    remove(&api, &caller, &vhost, &name, &when).await
}

/// Delete a queue of the default vhost with its messages
#[utoipa::path(delete, path = "/queues/{vhost}", tag = "queues", params(DeleteQueue), responses((status = 204)))]
pub(crate) async fn delete_default(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(when): Params<DeleteQueue>,
) -> ApiResult<StatusCode> {
    remove(&api, &caller, DEFAULT_VHOST, &name, &when).await
}

async fn remove(
    api: &Api,
    caller: &Caller,
    vhost: &str,
    name: &str,
    when: &DeleteQueue,
) -> ApiResult<StatusCode> {
    let vhost = caller.enter(api, vhost)?;
    caller.permit(api, vhost.name(), Permission::Configure, ResourceKind::Queue, name)?;
    find(&vhost, name)?;
    let when =
        DeleteIf { unused: when.if_unused.unwrap_or_default(), empty: when.if_empty.unwrap_or_default() };
    vhost.delete_queue(name, NOBODY, when, |_| {})?;
    until_kept(api, &vhost).await?;
    note_change(caller, "queue deleted", name);
    Ok(StatusCode::NO_CONTENT)
}

/// Drop the ready messages of a queue
#[utoipa::path(delete, path = "/queues/{vhost}/{queue}/contents", tag = "queues", responses((status = 204)))]
pub(crate) async fn purge(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    let vhost = caller.enter(&api, &vhost)?;
    caller.permit(&api, vhost.name(), Permission::Read, ResourceKind::Queue, &name)?;
    let queue = vhost.queue(&name, NOBODY)?;
    let mut wakes = Wakes::default();
    let dropped = queue.purge(&mut wakes);
    wakes.wake();
    tracing::info!(user = &*caller.user().name, name, dropped, "queue purged");
    Ok(StatusCode::NO_CONTENT)
}

/// RabbitMQ's actions on mirrors: known, and nothing to do
#[utoipa::path(post, path = "/queues/{vhost}/{queue}/actions", tag = "queues", request_body = QueueAction,
    responses((status = 204)))]
pub(crate) async fn act(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Payload(action): Payload<QueueAction>,
) -> ApiResult<StatusCode> {
    find(&*caller.enter(&api, &vhost)?, &name)?;
    match action.action.as_str() {
        "sync" | "cancel_sync" => Ok(StatusCode::NO_CONTENT),
        other => Err(ApiError::bad_request(format!("unknown action: {other}"))),
    }
}
