//! What RabbitMQ has and this broker needs not, answered so that tools go on; and hashing a password.
//!
//! Owns feature flags, deprecated features, rebalancing. Must not pretend to do anything.

use crate::auth::{Admin, Caller, Monitor};
use crate::error::{ApiError, ApiResult};
use crate::request::At;
use axum::Json;
use axum::http::StatusCode;
use serde_json::Value;

/// Feature flags: none, for everything there is is on
#[utoipa::path(get, path = "/feature-flags", tag = "features", responses((status = 200, body = Vec<Object>)))]
pub(crate) async fn flags(_: Admin) -> Json<Vec<Value>> {
    Json(Vec::new())
}

/// Enable a feature flag: there is none
#[utoipa::path(put, path = "/feature-flags/{flag}/enable", tag = "features", responses((status = 204)))]
pub(crate) async fn enable_flag(_: Admin, At(flag): At<String>) -> ApiResult<StatusCode> {
    Err(ApiError::bad_request(format!("there is no feature flag '{flag}'")))
}

/// Deprecated features: none
#[utoipa::path(get, path = "/deprecated-features", tag = "features", responses((status = 200, body = Vec<Object>)))]
pub(crate) async fn deprecated(_: Monitor) -> Json<Vec<Value>> {
    Json(Vec::new())
}

/// Deprecated features in use: none
#[utoipa::path(get, path = "/deprecated-features/used", tag = "features",
    responses((status = 200, body = Vec<Object>)))]
pub(crate) async fn deprecated_used(_: Monitor) -> Json<Vec<Value>> {
    Json(Vec::new())
}

/// Spread queues over the nodes: there is one
#[utoipa::path(post, path = "/rebalance/queues", tag = "features", responses((status = 204)))]
pub(crate) async fn rebalance(Admin(caller): Admin) -> StatusCode {
    tracing::info!(user = &*caller.user().name, "rebalancing asked for: there is one node");
    StatusCode::NO_CONTENT
}

/// Whether management logins go through OAuth: they do not
#[utoipa::path(get, path = "/auth", tag = "features", responses((status = 200, body = Object)))]
pub(crate) async fn oauth(_: Caller) -> Json<Value> {
    Json(serde_json::json!({ "oauth_enabled": false }))
}
