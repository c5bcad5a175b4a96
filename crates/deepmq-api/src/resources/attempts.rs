//! Logins that were tried.
//!
//! Owns `/auth/attempts`. Must not know how a login is decided.

use crate::api::Api;
use crate::auth::{Admin, Monitor};
use crate::error::{ApiError, ApiResult};
use crate::request::At;
use crate::request_id::note_change;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deepmq_broker::users::Tally;
use serde::Serialize;
use utoipa::ToSchema;

/// Logins tried by one protocol
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are RabbitMQ's")]
pub(crate) struct Attempts {
    /// `amqp091` or `http`
    protocol: &'static str,
    auth_attempts: u64,
    auth_attempts_failed: u64,
    auth_attempts_succeeded: u64,
}

/// Logins tried from one address as one user
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptsOfSource {
    remote_address: String,
    /// As it was given: there need be no such user
    username: String,
    #[serde(flatten)]
    attempts: Attempts,
}

fn show(protocol: &'static str, tally: Tally) -> Attempts {
    Attempts {
        protocol,
        auth_attempts: tally.succeeded + tally.failed,
        auth_attempts_failed: tally.failed,
        auth_attempts_succeeded: tally.succeeded,
    }
}

fn check(api: &Api, node: &str) -> ApiResult<()> {
    if node == api.node() { Ok(()) } else { Err(ApiError::not_found()) }
}

/// Logins tried since the start, by protocol; each request to this API is one
#[utoipa::path(get, path = "/auth/attempts/{node}", tag = "users", responses((status = 200, body = Vec<Attempts>)))]
pub(crate) async fn list(
    _: Monitor,
    State(api): State<Api>,
    At(node): At<String>,
) -> ApiResult<Json<Vec<Attempts>>> {
    check(&api, &node)?;
    let protocols = api.broker().users().attempts().by_protocol();
    Ok(Json(protocols.into_iter().map(|(protocol, tally)| show(protocol, tally)).collect()))
}

/// Logins tried since the start, by address and user, for the first thousand of them
#[utoipa::path(get, path = "/auth/attempts/{node}/source", tag = "users",
    responses((status = 200, body = Vec<AttemptsOfSource>)))]
pub(crate) async fn list_sources(
    _: Monitor,
    State(api): State<Api>,
    At(node): At<String>,
) -> ApiResult<Json<Vec<AttemptsOfSource>>> {
    check(&api, &node)?;
    let sources = api.broker().users().attempts().by_source().into_iter();
    let show = sources.map(|(source, tally)| AttemptsOfSource {
        remote_address: source.address.to_string(),
        username: source.user.to_string(),
        attempts: show(source.protocol, tally),
    });
    Ok(Json(show.collect()))
}

/// Count logins anew
#[utoipa::path(delete, path = "/auth/attempts/{node}", tag = "users", responses((status = 204)))]
pub(crate) async fn reset(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(node): At<String>,
) -> ApiResult<StatusCode> {
    check(&api, &node)?;
    api.broker().users().attempts().reset();
    note_change(&caller, "login attempts reset", &node);
    Ok(StatusCode::NO_CONTENT)
}

/// Count logins anew
#[utoipa::path(delete, path = "/auth/attempts/{node}/source", tag = "users", responses((status = 204)))]
pub(crate) async fn reset_sources(
    caller: Admin,
    state: State<Api>,
    node: At<String>,
) -> ApiResult<StatusCode> {
    reset(caller, state, node).await
}
