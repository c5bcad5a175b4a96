//! Health checks, as load balancers, Kubernetes and RabbitMQ's tools ask for them.
//!
//! Owns `/health/checks`, `/aliveness-test` and `/healthchecks/node`: 200 with `ok`, or 503 with a reason. Must not need a login where the settings
//! say so.

use crate::api::Api;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::request::At;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// What a check found
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `failed`
    status: &'static str,
    /// What is wrong
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

const UNITS: [&str; 4] = ["days", "weeks", "months", "years"];

fn ok() -> Response {
    Json(Health { status: "ok", reason: None }).into_response()
}

/// 503, with fields beside the reason that RabbitMQ's tools read.
fn failed(reason: &str, mut more: Value) -> Response {
    if let Some(fields) = more.as_object_mut() {
        fields.insert("status".into(), "failed".into());
        fields.insert("reason".into(), reason.into());
    }
    (StatusCode::SERVICE_UNAVAILABLE, Json(more)).into_response()
}

/// No alarm is in effect
#[utoipa::path(get, path = "/health/checks/alarms", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn alarms(State(api): State<Api>) -> Response {
    let disk = api.broker().status().disk.is_some_and(|disk| disk.alarm);
    let on = [("memory", api.broker().memory().is_full()), ("disk", disk)];
    let alarms: Vec<_> = on
        .iter()
        .filter(|(_, on)| *on)
        .map(|(resource, _)| json!({ "node": api.node(), "resource": resource }))
        .collect();
    if alarms.is_empty() { ok() } else { failed("There are alarms in effect", json!({ "alarms": alarms })) }
}

/// No alarm is in effect on this node
#[utoipa::path(get, path = "/health/checks/local-alarms", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn local_alarms(state: State<Api>) -> Response {
    alarms(state).await
}

/// Why the data directory is of no use any more, if that is so.
fn storage_failed(api: &Api) -> Option<Response> {
    let failure = api.broker().storage_failure()?;
    Some(failed(&format!("the data directory has failed: {failure}"), json!({})))
}

/// All vhosts run, and what is durable in them can be written
#[utoipa::path(get, path = "/health/checks/virtual-hosts", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn vhosts(State(api): State<Api>) -> Response {
    let (broker, failure) = (api.broker(), api.broker().storage_failure());
    let vhosts = broker.list_vhosts().into_iter().map(|vhost| vhost.name);
    let down: Vec<_> = vhosts.filter(|name| failure.is_some() || broker.vhost(name).is_none()).collect();
    if down.is_empty() {
        return ok();
    }
    failed("Some virtual hosts are down", json!({ "virtual-hosts": down }))
}

/// The node serves: it is not being stopped, and its data directory works
#[utoipa::path(get, path = "/health/checks/is-in-service", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn in_service(State(api): State<Api>) -> Response {
    out_of_service(&api).unwrap_or_else(ok)
}

fn out_of_service(api: &Api) -> Option<Response> {
    if api.broker().is_stopping() {
        return Some(failed("this node is being stopped", json!({})));
    }
    storage_failed(api)
}

/// The node is ready for clients: it serves, listens, and is below its limit of connections
#[utoipa::path(get, path = "/health/checks/ready-to-serve-clients", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn ready(state: State<Api>) -> Response {
    if let Some(out) = out_of_service(&state) {
        return out;
    }
    if state.amqp_address().is_none() {
        return failed("no listener for clients is on", json!({}));
    }
    below_connection_limit(state).await
}

/// The node can take more connections
#[utoipa::path(get, path = "/health/checks/below-node-connection-limit", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn below_connection_limit(State(api): State<Api>) -> Response {
    let (open, max) = (api.broker().status().connections, api.broker().limits().connections_max);
    if open >= max {
        return failed("the limit of connections is reached", json!({ "connections": open, "limit": max }));
    }
    ok()
}

/// The cluster has all its nodes: this one
#[utoipa::path(get, path = "/health/checks/reached-target-cluster-size", tag = "health",
    responses((status = 200, body = Health)))]
pub(crate) async fn cluster_size() -> Response {
    ok()
}

/// No queue would lose its majority with this node: always so, as RabbitMQ has it of a node that is alone
#[utoipa::path(get, path = "/health/checks/node-is-quorum-critical", tag = "health",
    responses((status = 200, body = Health)))]
pub(crate) async fn quorum_critical() -> Response {
    ok()
}

/// The topology was read, and changes of it can be written
#[utoipa::path(get, path = "/health/checks/metadata-store/initialized", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn store_initialized(State(api): State<Api>) -> Response {
    storage_failed(&api).unwrap_or_else(ok)
}

/// The same: a broker that has not read its topology does not listen
#[utoipa::path(get, path = "/health/checks/metadata-store/initialized/with-data", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn store_with_data(state: State<Api>) -> Response {
    store_initialized(state).await
}

/// Something listens on a port
#[utoipa::path(get, path = "/health/checks/port-listener/{port}", tag = "health",
    responses((status = 200, body = Object), (status = 503, body = Health)))]
pub(crate) async fn port_listener(State(api): State<Api>, At(port): At<String>) -> ApiResult<Response> {
    let port: u16 = port.parse().map_err(|_| ApiError::bad_request("a port is a number up to 65535"))?;
    let ports: Vec<u16> = api.config().listeners.iter().map(|listener| listener.address.port()).collect();
    if ports.contains(&port) {
        return Ok(Json(json!({ "status": "ok", "port": port })).into_response());
    }
    Ok(failed("No active listener", json!({ "missing": port, "ports": ports })))
}

/// Listeners for all these protocols, divided by commas, are on
#[utoipa::path(get, path = "/health/checks/protocol-listener/{protocols}", tag = "health",
    responses((status = 200, body = Object), (status = 503, body = Health)))]
pub(crate) async fn protocol_listener(State(api): State<Api>, At(protocols): At<String>) -> Response {
    let on: Vec<&str> = api.config().listeners.iter().map(|listener| listener.protocol).collect();
    let wanted: Vec<&str> = protocols.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let missing: Vec<&str> = wanted.iter().copied().filter(|name| !on.contains(&canonical(name))).collect();
    if missing.is_empty() {
        return Json(json!({ "status": "ok", "protocol": protocols })).into_response();
    }
    failed("No active listener", json!({ "missing": missing, "protocols": on }))
}

/// RabbitMQ's tools know AMQP 0-9-1 by several names.
fn canonical(protocol: &str) -> &str {
    match protocol {
        "amqp091" | "amqp0.9.1" | "amqp-0-9-1" => "amqp",
        other => other,
    }
}

/// No certificate expires soon: there is none
#[utoipa::path(get, path = "/health/checks/certificate-expiration/{within}/{unit}", tag = "health",
    responses((status = 200, body = Health)))]
pub(crate) async fn certificates(At((within, unit)): At<(String, String)>) -> ApiResult<Response> {
    if within.parse::<u32>().is_err() || !UNITS.contains(&unit.as_str()) {
        return Err(ApiError::bad_request("write a number, and days, weeks, months or years"));
    }
    Ok(ok())
}

/// All quorum queues of a name pattern have a leader: this node, if it serves
#[utoipa::path(get,
    path = "/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}",
    tag = "health", responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn leaders(State(api): State<Api>, At(_): At<(String, String)>) -> Response {
    out_of_service(&api).unwrap_or_else(ok)
}

/// The same, of all vhosts
#[utoipa::path(get,
    path = "/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}",
    tag = "health", responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn all_leaders(State(api): State<Api>, At(_): At<String>) -> Response {
    out_of_service(&api).unwrap_or_else(ok)
}

/// A vhost works. Publishes nothing; RabbitMQ's does not any more either
#[utoipa::path(get, path = "/aliveness-test/{vhost}", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn aliveness(
    caller: Caller,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Response> {
    caller.see(&api, &vhost)?;
    Ok(storage_failed(&api).unwrap_or_else(ok))
}

/// This node serves. An old name of `is-in-service`, which old charts for Kubernetes still ask for
#[utoipa::path(get, path = "/healthchecks/node", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn node(_: Caller, state: State<Api>) -> Response {
    in_service(state).await
}

/// The same, of a node by its name
#[utoipa::path(get, path = "/healthchecks/node/{node}", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn named_node(
    caller: Caller,
    state: State<Api>,
    At(node): At<String>,
) -> ApiResult<Response> {
    if node != state.node() {
        return Err(ApiError::not_found());
    }
    Ok(self::node(caller, state).await)
}
