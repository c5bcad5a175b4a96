//! Putting and deleting what is administered.
//!
//! Owns the answer: 201 or 204 once the edit is durable. Must not know what was edited.

use crate::api::Api;
use crate::auth::Caller;
use crate::durable::until_durable;
use crate::error::{ApiError, ApiResult};
use axum::http::StatusCode;
use deepmq_broker::registry::{Done, RegistryError};

/// Answers a put. That what it is about does not exist is the request's fault, as RabbitMQ has it.
pub(crate) async fn put(
    api: &Api,
    caller: &Caller,
    what: &str,
    done: Result<Done, RegistryError>,
) -> ApiResult<StatusCode> {
    let done = done.map_err(|error| ApiError::bad_request(error.to_string()))?;
    until_durable(api, done.lsn).await?;
    tracing::info!(user = &*caller.user().name, created = done.created, "{what} put");
    Ok(if done.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// Answers a deletion.
pub(crate) async fn delete(
    api: &Api,
    caller: &Caller,
    what: &str,
    done: Result<Done, RegistryError>,
) -> ApiResult<StatusCode> {
    until_durable(api, done?.lsn).await?;
    tracing::info!(user = &*caller.user().name, "{what} deleted");
    Ok(StatusCode::NO_CONTENT)
}
