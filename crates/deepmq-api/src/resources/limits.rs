//! Limits of vhosts and users.
//!
//! Owns `/vhost-limits` and `/user-limits`, which set one limit at a time. Must not know how they are enforced.

use super::edits;
use crate::api::Api;
use crate::auth::{Admin, Caller};
use crate::error::{ApiError, ApiResult};
use crate::request::{At, Payload};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deepmq_broker::registry::{UserLimits, VhostLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The limits of a vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsOfVhost {
    vhost: String,
    /// `max-connections` and `max-queues`, as far as they are set
    value: BTreeMap<&'static str, i64>,
}

/// The limits of a user
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsOfUser {
    user: String,
    /// `max-connections` and `max-channels`, as far as they are set
    value: BTreeMap<&'static str, i64>,
}

/// A limit to be
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct LimitDeclaration {
    /// A negative number is no limit
    value: i64,
}

type Set = BTreeMap<&'static str, i64>;

fn set(limits: [(&'static str, Option<i64>); 2]) -> Set {
    limits.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn of_vhost(limits: VhostLimits) -> Set {
    set([("max-connections", limits.max_connections), ("max-queues", limits.max_queues)])
}

fn of_user(limits: UserLimits) -> Set {
    set([("max-connections", limits.max_connections), ("max-channels", limits.max_channels)])
}

fn unknown(name: &str) -> ApiError {
    ApiError::bad_request(format!("there is no limit '{name}'"))
}

fn change_of_vhost(mut limits: VhostLimits, name: &str, value: Option<i64>) -> ApiResult<VhostLimits> {
    match name {
        "max-connections" => limits.max_connections = value,
        "max-queues" => limits.max_queues = value,
        _ => return Err(unknown(name)),
    }
    Ok(limits)
}

fn change_of_user(mut limits: UserLimits, name: &str, value: Option<i64>) -> ApiResult<UserLimits> {
    match name {
        "max-connections" => limits.max_connections = value,
        "max-channels" => limits.max_channels = value,
        _ => return Err(unknown(name)),
    }
    Ok(limits)
}

/// The limits of all vhosts that have some
#[utoipa::path(get, path = "/vhost-limits", tag = "limits", responses((status = 200, body = Vec<LimitsOfVhost>)))]
pub(crate) async fn list_vhosts(caller: Caller, State(api): State<Api>) -> Json<Vec<LimitsOfVhost>> {
    let vhosts = caller.vhosts(&api).into_iter().map(|vhost| vhost.name().to_string());
    let limits =
        vhosts.map(|vhost| LimitsOfVhost { value: of_vhost(api.broker().get_vhost_limits(&vhost)), vhost });
    Json(limits.filter(|limits| !limits.value.is_empty()).collect())
}

/// The limits of a vhost, as a list of one or none
#[utoipa::path(get, path = "/vhost-limits/{vhost}", tag = "limits",
    responses((status = 200, body = Vec<LimitsOfVhost>)))]
pub(crate) async fn get_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Json<Vec<LimitsOfVhost>>> {
    caller.see(&api, &vhost)?;
    let value = of_vhost(api.broker().get_vhost_limits(&vhost));
    Ok(Json(if value.is_empty() { Vec::new() } else { vec![LimitsOfVhost { vhost, value }] }))
}

/// Limit a vhost
#[utoipa::path(put, path = "/vhost-limits/{vhost}/{limit}", tag = "limits", request_body = LimitDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put_vhost(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Payload(given): Payload<LimitDeclaration>,
) -> ApiResult<StatusCode> {
    let limits = change_of_vhost(api.broker().get_vhost_limits(&vhost), &name, Some(given.value))?;
    edits::put(&api, &caller, "vhost limit", api.broker().put_vhost_limits(&vhost, limits)).await
}

/// Limit a vhost no more
#[utoipa::path(delete, path = "/vhost-limits/{vhost}/{limit}", tag = "limits", responses((status = 204)))]
pub(crate) async fn delete_vhost(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    let limits = change_of_vhost(api.broker().get_vhost_limits(&vhost), &name, None)?;
    edits::delete(&api, &caller, "vhost limit", api.broker().put_vhost_limits(&vhost, limits)).await
}

/// The limits of all users that have some
#[utoipa::path(get, path = "/user-limits", tag = "limits", responses((status = 200, body = Vec<LimitsOfUser>)))]
pub(crate) async fn list_users(_: Admin, State(api): State<Api>) -> Json<Vec<LimitsOfUser>> {
    let users = api.broker().list_users().into_iter().map(|user| user.name.to_string());
    let limits = users.map(|user| LimitsOfUser { value: of_user(api.broker().get_user_limits(&user)), user });
    Json(limits.filter(|limits| !limits.value.is_empty()).collect())
}

/// The limits of a user, as a list of one or none
#[utoipa::path(get, path = "/user-limits/{user}", tag = "limits", responses((status = 200, body = Vec<LimitsOfUser>)))]
pub(crate) async fn get_user(
    _: Admin,
    State(api): State<Api>,
    At(user): At<String>,
) -> ApiResult<Json<Vec<LimitsOfUser>>> {
    api.broker().get_user(&user).ok_or_else(ApiError::not_found)?;
    let value = of_user(api.broker().get_user_limits(&user));
    Ok(Json(if value.is_empty() { Vec::new() } else { vec![LimitsOfUser { user, value }] }))
}

/// Limit a user
#[utoipa::path(put, path = "/user-limits/{user}/{limit}", tag = "limits", request_body = LimitDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put_user(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((user, name)): At<(String, String)>,
    Payload(given): Payload<LimitDeclaration>,
) -> ApiResult<StatusCode> {
    let limits = change_of_user(api.broker().get_user_limits(&user), &name, Some(given.value))?;
    edits::put(&api, &caller, "user limit", api.broker().put_user_limits(&user, limits)).await
}

/// Limit a user no more
#[utoipa::path(delete, path = "/user-limits/{user}/{limit}", tag = "limits", responses((status = 204)))]
pub(crate) async fn delete_user(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((user, name)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    let limits = change_of_user(api.broker().get_user_limits(&user), &name, None)?;
    edits::delete(&api, &caller, "user limit", api.broker().put_user_limits(&user, limits)).await
}
