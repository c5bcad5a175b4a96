//! Policies and operator policies.
//!
//! Owns `/policies` and `/operator-policies`. Must not know what follows from a policy.

use super::edits;
use crate::api::Api;
use crate::auth::{Admin, Caller, PolicyMaker};
use crate::error::{ApiError, ApiResult};
use crate::request::{At, Payload};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deepmq_broker::registry::PolicyRecord;
use deepmq_model::policy::PolicyRank;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use PolicyRank::{Operator, User};

/// Settings for all queues and exchanges whose names match
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Policy {
    vhost: String,
    name: String,
    pattern: String,
    #[serde(rename = "apply-to")]
    apply_to: String,
    #[schema(value_type = Object)]
    definition: Map<String, Value>,
    priority: i64,
}

/// What a policy is to be
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PolicyDeclaration {
    pattern: String,
    /// `all`, `queues`, `classic_queues`, `quorum_queues`, `streams` or `exchanges`
    #[serde(default, rename = "apply-to")]
    apply_to: Option<String>,
    #[schema(value_type = Object)]
    definition: Map<String, Value>,
    #[serde(default)]
    priority: i64,
}

impl From<PolicyRecord> for Policy {
    fn from(record: PolicyRecord) -> Self {
        Self {
            vhost: record.vhost.to_string(),
            name: record.name.to_string(),
            pattern: record.pattern.to_string(),
            apply_to: record.apply_to.to_string(),
            definition: record.definition,
            priority: record.priority,
        }
    }
}

fn listed(api: &Api, caller: &Caller, rank: PolicyRank, vhost: Option<&str>) -> Json<Vec<Policy>> {
    let mut records = api.broker().list_policies(rank);
    records.retain(|record| {
        caller.sees(api, &record.vhost) && vhost.is_none_or(|vhost| *record.vhost == *vhost)
    });
    Json(records.into_iter().map(Policy::from).collect())
}

fn found(api: &Api, caller: &Caller, rank: PolicyRank, vhost: &str, name: &str) -> ApiResult<Json<Policy>> {
    caller.see(api, vhost)?;
    let record = api.broker().get_policy(rank, vhost, name).ok_or_else(ApiError::not_found)?;
    Ok(Json(record.into()))
}

async fn set(
    api: &Api,
    caller: &Caller,
    rank: PolicyRank,
    (vhost, name): (String, String),
    given: PolicyDeclaration,
) -> ApiResult<StatusCode> {
    caller.enter(api, &vhost)?;
    let record = PolicyRecord {
        vhost: vhost.into(),
        name: name.into(),
        pattern: given.pattern.into(),
        apply_to: given.apply_to.unwrap_or_else(|| "all".into()).into(),
        definition: given.definition,
        priority: given.priority,
    };
    edits::put(api, caller, "policy", api.broker().put_policy(rank, record)).await
}

async fn clear(
    api: &Api,
    caller: &Caller,
    rank: PolicyRank,
    vhost: &str,
    name: &str,
) -> ApiResult<StatusCode> {
    caller.enter(api, vhost)?;
    edits::delete(api, caller, "policy", api.broker().delete_policy(rank, vhost, name)).await
}

/// All policies
#[utoipa::path(get, path = "/policies", tag = "policies", responses((status = 200, body = Vec<Policy>)))]
pub(crate) async fn list(caller: Caller, State(api): State<Api>) -> Json<Vec<Policy>> {
    listed(&api, &caller, User, None)
}

/// The policies of a vhost
#[utoipa::path(get, path = "/policies/{vhost}", tag = "policies", responses((status = 200, body = Vec<Policy>)))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Json<Vec<Policy>>> {
    caller.see(&api, &vhost)?;
    Ok(listed(&api, &caller, User, Some(&vhost)))
}

/// A policy
#[utoipa::path(get, path = "/policies/{vhost}/{policy}", tag = "policies", responses((status = 200, body = Policy)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
) -> ApiResult<Json<Policy>> {
    found(&api, &caller, User, &vhost, &name)
}

/// Set a policy
#[utoipa::path(put, path = "/policies/{vhost}/{policy}", tag = "policies", request_body = PolicyDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At(at): At<(String, String)>,
    Payload(given): Payload<PolicyDeclaration>,
) -> ApiResult<StatusCode> {
    set(&api, &caller, User, at, given).await
}

/// Clear a policy
#[utoipa::path(delete, path = "/policies/{vhost}/{policy}", tag = "policies", responses((status = 204)))]
pub(crate) async fn delete(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    clear(&api, &caller, User, &vhost, &name).await
}

/// All operator policies
#[utoipa::path(get, path = "/operator-policies", tag = "policies", responses((status = 200, body = Vec<Policy>)))]
pub(crate) async fn list_operator(caller: Caller, State(api): State<Api>) -> Json<Vec<Policy>> {
    listed(&api, &caller, Operator, None)
}

/// The operator policies of a vhost
#[utoipa::path(get, path = "/operator-policies/{vhost}", tag = "policies",
    responses((status = 200, body = Vec<Policy>)))]
pub(crate) async fn list_operator_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Json<Vec<Policy>>> {
    caller.see(&api, &vhost)?;
    Ok(listed(&api, &caller, Operator, Some(&vhost)))
}

/// An operator policy
#[utoipa::path(get, path = "/operator-policies/{vhost}/{policy}", tag = "policies",
    responses((status = 200, body = Policy)))]
pub(crate) async fn get_operator(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
) -> ApiResult<Json<Policy>> {
    found(&api, &caller, Operator, &vhost, &name)
}

/// Set an operator policy
#[utoipa::path(put, path = "/operator-policies/{vhost}/{policy}", tag = "policies", request_body = PolicyDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put_operator(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(at): At<(String, String)>,
    Payload(given): Payload<PolicyDeclaration>,
) -> ApiResult<StatusCode> {
    set(&api, &caller, Operator, at, given).await
}

/// Clear an operator policy
#[utoipa::path(delete, path = "/operator-policies/{vhost}/{policy}", tag = "policies", responses((status = 204)))]
pub(crate) async fn delete_operator(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    clear(&api, &caller, Operator, &vhost, &name).await
}
