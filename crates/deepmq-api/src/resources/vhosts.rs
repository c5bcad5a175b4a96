//! Vhosts.
//!
//! Owns `/vhosts`. Must not know what is in one, beyond sums.

use super::edits;
use super::overview::Sums;
use super::users::Tags;
use crate::api::Api;
use crate::auth::{Admin, Caller};
use crate::error::{ApiError, ApiResult, Refusal};
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::rates::Watched;
use crate::request::{At, Params, Payload};
use crate::stats::{MessageStats, Rate, depth_rates};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use deepmq_broker::registry::{PermissionRecord, VhostRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Vhost {
    name: String,
    description: String,
    tags: Vec<String>,
    default_queue_type: String,
    metadata: Metadata,
    tracing: bool,
    protected_from_deletion: bool,
    /// Each node, and whether it runs there
    cluster_state: BTreeMap<String, &'static str>,
    messages: u64,
    messages_details: Rate,
    messages_ready: u64,
    messages_ready_details: Rate,
    messages_unacknowledged: u64,
    messages_unacknowledged_details: Rate,
    message_stats: MessageStats,
}

/// What people say of a vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Metadata {
    description: String,
    tags: Vec<String>,
    default_queue_type: String,
}

/// What a vhost is to be
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct VhostDeclaration {
    description: String,
    /// A list, or words divided by commas
    tags: Tags,
    /// `classic` or `quorum`
    default_queue_type: Option<String>,
    /// Whether it is protected; if not given, as before
    protected_from_deletion: Option<bool>,
}

impl Named for Arc<deepmq_broker::Vhost> {
    fn name(&self) -> &str {
        deepmq_broker::Vhost::name(self)
    }
}

fn show(api: &Api, vhost: &Arc<deepmq_broker::Vhost>) -> Vhost {
    let name = deepmq_broker::Vhost::name(vhost);
    let record = api.broker().get_vhost(name);
    let description = record.as_ref().map(|record| record.description.clone()).unwrap_or_default();
    let tags: Vec<_> = record.iter().flat_map(|record| &record.tags).map(ToString::to_string).collect();
    let protected = record.as_ref().is_some_and(|record| record.protected_from_deletion);
    let kind =
        record.and_then(|record| record.default_queue_type).map_or("classic".into(), |kind| kind.to_string());
    let sums = Sums::of(&vhost.declared_queues());
    let watched = Watched::Totals(format!("depth of vhost {name}").into());
    let [messages, ready, unacked] = depth_rates(api, watched, &sums.depth);
    Vhost {
        name: name.to_string(),
        metadata: Metadata {
            description: description.clone(),
            tags: tags.clone(),
            default_queue_type: kind.clone(),
        },
        description,
        tags,
        default_queue_type: kind,
        tracing: false,
        protected_from_deletion: protected,
        cluster_state: BTreeMap::from([(api.node().to_owned(), state(api))]),
        messages: sums.depth.messages(),
        messages_details: messages,
        messages_ready: sums.depth.ready,
        messages_ready_details: ready,
        messages_unacknowledged: sums.depth.unacked,
        messages_unacknowledged_details: unacked,
        message_stats: MessageStats::sample(api, Watched::Vhost(name.clone()), &sums.counts).0,
    }
}

/// What is durable in it can be written, or it is stopped.
fn state(api: &Api) -> &'static str {
    if api.broker().storage_failure().is_some() { "stopped" } else { "running" }
}

/// All vhosts
#[utoipa::path(get, path = "/vhosts", tag = "vhosts", params(ListQuery),
    responses((status = 200, body = Listing<Vhost>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhosts = caller.vhosts(&api);
    list(&query, vhosts, move |vhost| show(&api, vhost))
}

/// A vhost
#[utoipa::path(get, path = "/vhosts/{vhost}", tag = "vhosts", params(ColumnsQuery),
    responses((status = 200, body = Vhost)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &name)?;
    Ok(one(&query, &show(&api, &vhost)))
}

/// Create or change a vhost; who creates one may do everything in it
#[utoipa::path(put, path = "/vhosts/{vhost}", tag = "vhosts", request_body = VhostDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(name): At<String>,
    Payload(given): Payload<VhostDeclaration>,
) -> ApiResult<StatusCode> {
    let known = api.broker().get_vhost(&name).is_some_and(|known| known.protected_from_deletion);
    let done = api.broker().put_vhost(VhostRecord {
        name: name.as_str().into(),
        description: given.description,
        tags: given.tags.names(),
        default_queue_type: given.default_queue_type.filter(|kind| !kind.is_empty()).map(Into::into),
        protected_from_deletion: given.protected_from_deletion.unwrap_or(known),
    });
    let created = done.as_ref().is_ok_and(|done| done.created);
    let status = edits::put(&api, &caller, "vhost", done).await?;
    if created {
        let full = PermissionRecord::full(caller.user().name.clone(), name);
        edits::put(&api, &caller, "permission", api.broker().put_permission(full)).await?;
    }
    Ok(status)
}

/// Delete a vhost with everything in it; connections to it are closed
#[utoipa::path(delete, path = "/vhosts/{vhost}", tag = "vhosts",
    responses((status = 204), (status = 412, description = "It is protected from deletion", body = Refusal)))]
pub(crate) async fn delete(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(name): At<String>,
) -> ApiResult<StatusCode> {
    let done = api.broker().delete_vhost(&name);
    edits::delete(&api, &caller, "vhost", done).await
}

/// Protect a vhost from deletion
#[utoipa::path(post, path = "/vhosts/{vhost}/deletion/protection", tag = "vhosts", responses((status = 204)))]
pub(crate) async fn protect(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(name): At<String>,
) -> ApiResult<StatusCode> {
    let done = api.broker().protect_vhost(&name, true)?;
    edits::put(&api, &caller, "vhost", Ok(done)).await
}

/// Allow to delete a vhost again
#[utoipa::path(delete, path = "/vhosts/{vhost}/deletion/protection", tag = "vhosts", responses((status = 204)))]
pub(crate) async fn unprotect(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(name): At<String>,
) -> ApiResult<StatusCode> {
    let done = api.broker().protect_vhost(&name, false)?;
    edits::put(&api, &caller, "vhost", Ok(done)).await
}

/// Start a vhost on a node: it runs already
#[utoipa::path(post, path = "/vhosts/{vhost}/start/{node}", tag = "vhosts", responses((status = 204)))]
pub(crate) async fn start(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((name, node)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    caller.see(&api, &name)?;
    if node == api.node() { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found()) }
}
