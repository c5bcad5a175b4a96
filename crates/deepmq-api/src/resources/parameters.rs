//! Parameters of components, and of the whole broker.
//!
//! Owns `/parameters` and `/global-parameters`. Must not know what a parameter means.

use super::edits;
use crate::api::Api;
use crate::auth::{Caller, PolicyMaker};
use crate::error::{ApiError, ApiResult};
use crate::request::{At, Payload};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deepmq_broker::registry as records;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A parameter of a component in a vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Parameter {
    component: String,
    vhost: String,
    name: String,
    #[schema(value_type = Value)]
    value: Value,
}

/// A parameter of the whole broker
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GlobalParameter {
    name: String,
    #[schema(value_type = Value)]
    value: Value,
}

/// The value of a parameter to be
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ParameterDeclaration {
    #[schema(value_type = Value)]
    value: Value,
}

fn shown(record: records::Parameter) -> Parameter {
    let records::Parameter { component, vhost, name, value } = record;
    Parameter { component: component.to_string(), vhost: vhost.to_string(), name: name.to_string(), value }
}

fn global(record: records::GlobalParameter) -> GlobalParameter {
    GlobalParameter { name: record.name.to_string(), value: record.value }
}

fn listed(api: &Api, caller: &Caller, wanted: impl Fn(&records::Parameter) -> bool) -> Json<Vec<Parameter>> {
    let mut all = api.broker().list_parameters();
    all.retain(|record| caller.sees(api, &record.vhost) && wanted(record));
    Json(all.into_iter().map(shown).collect())
}

/// All parameters
#[utoipa::path(get, path = "/parameters", tag = "parameters", responses((status = 200, body = Vec<Parameter>)))]
pub(crate) async fn list(PolicyMaker(caller): PolicyMaker, State(api): State<Api>) -> Json<Vec<Parameter>> {
    listed(&api, &caller, |_| true)
}

/// The parameters of a component
#[utoipa::path(get, path = "/parameters/{component}", tag = "parameters",
    responses((status = 200, body = Vec<Parameter>)))]
pub(crate) async fn list_of_component(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At(component): At<String>,
) -> Json<Vec<Parameter>> {
    listed(&api, &caller, |record| *record.component == *component)
}

/// The parameters of a component in a vhost
#[utoipa::path(get, path = "/parameters/{component}/{vhost}", tag = "parameters",
    responses((status = 200, body = Vec<Parameter>)))]
pub(crate) async fn list_of_vhost(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At((component, vhost)): At<(String, String)>,
) -> ApiResult<Json<Vec<Parameter>>> {
    caller.see(&api, &vhost)?;
    Ok(listed(&api, &caller, |record| *record.component == *component && *record.vhost == *vhost))
}

/// A parameter
#[utoipa::path(get, path = "/parameters/{component}/{vhost}/{name}", tag = "parameters",
    responses((status = 200, body = Parameter)))]
pub(crate) async fn get(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At((component, vhost, name)): At<(String, String, String)>,
) -> ApiResult<Json<Parameter>> {
    caller.see(&api, &vhost)?;
    let record = api.broker().get_parameter(&component, &vhost, &name).ok_or_else(ApiError::not_found)?;
    Ok(Json(shown(record)))
}

/// Set a parameter
#[utoipa::path(put, path = "/parameters/{component}/{vhost}/{name}", tag = "parameters",
    request_body = ParameterDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At((component, vhost, name)): At<(String, String, String)>,
    Payload(given): Payload<ParameterDeclaration>,
) -> ApiResult<StatusCode> {
    caller.enter(&api, &vhost)?;
    check_rank(&caller, &component)?;
    let done = api.broker().put_parameter(records::Parameter {
        component: component.into(),
        vhost: vhost.into(),
        name: name.into(),
        value: given.value,
    });
    edits::put(&api, &caller, "parameter", done).await
}

/// Clear a parameter
#[utoipa::path(delete, path = "/parameters/{component}/{vhost}/{name}", tag = "parameters",
    responses((status = 204)))]
pub(crate) async fn delete(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At((component, vhost, name)): At<(String, String, String)>,
) -> ApiResult<StatusCode> {
    caller.enter(&api, &vhost)?;
    check_rank(&caller, &component)?;
    let done = api.broker().delete_parameter(&component, &vhost, &name);
    edits::delete(&api, &caller, "parameter", done).await
}

/// Some components stand for what only an administrator may set.
fn check_rank(caller: &Caller, component: &str) -> ApiResult<()> {
    let theirs = matches!(component, "operator_policy" | "vhost-limits");
    if theirs && !caller.is_admin() {
        Err(ApiError::not_authorized("Not administrator user"))
    } else {
        Ok(())
    }
}

/// All parameters of the whole broker
#[utoipa::path(get, path = "/global-parameters", tag = "parameters",
    responses((status = 200, body = Vec<GlobalParameter>)))]
pub(crate) async fn list_global(_: PolicyMaker, State(api): State<Api>) -> Json<Vec<GlobalParameter>> {
    Json(api.broker().list_global_parameters().into_iter().map(global).collect())
}

/// A parameter of the whole broker
#[utoipa::path(get, path = "/global-parameters/{name}", tag = "parameters",
    responses((status = 200, body = GlobalParameter)))]
pub(crate) async fn get_global(
    _: PolicyMaker,
    State(api): State<Api>,
    At(name): At<String>,
) -> ApiResult<Json<GlobalParameter>> {
    Ok(Json(global(api.broker().get_global_parameter(&name).ok_or_else(ApiError::not_found)?)))
}

/// Set a parameter of the whole broker
#[utoipa::path(put, path = "/global-parameters/{name}", tag = "parameters", request_body = ParameterDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put_global(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At(name): At<String>,
    Payload(given): Payload<ParameterDeclaration>,
) -> ApiResult<StatusCode> {
    let parameter = records::GlobalParameter { name: name.into(), value: given.value };
    edits::put(&api, &caller, "global parameter", api.broker().put_global_parameter(parameter)).await
}

/// Clear a parameter of the whole broker
#[utoipa::path(delete, path = "/global-parameters/{name}", tag = "parameters", responses((status = 204)))]
pub(crate) async fn delete_global(
    PolicyMaker(caller): PolicyMaker,
    State(api): State<Api>,
    At(name): At<String>,
) -> ApiResult<StatusCode> {
    let done = api.broker().delete_global_parameter(&name);
    edits::delete(&api, &caller, "global parameter", done).await
}
