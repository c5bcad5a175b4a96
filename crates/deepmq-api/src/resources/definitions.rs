//! Everything administered and declared, as one document in RabbitMQ's form.
//!
//! Owns `/definitions`. Must not know what is in a document.

use crate::api::Api;
use crate::auth::{Admin, Caller};
use crate::durable::until_durable;
use crate::error::{ApiError, ApiResult};
use crate::request::{At, LONG_BODY_BYTES_MAX, Payload};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deepmq_broker::definitions::{Definitions, Scope};
use serde_json::Value;
use tokio::task::spawn_blocking;

/// Export everything
#[utoipa::path(get, path = "/definitions", tag = "definitions", responses((status = 200, body = Value)))]
pub(crate) async fn export(Admin(_): Admin, State(api): State<Api>) -> Json<Value> {
    Json(api.broker().export_definitions().to_json())
}

/// Import a document, all of it or nothing
///
/// What exists is changed to what the document says; queues and exchanges that exist and differ are left alone.
#[utoipa::path(post, path = "/definitions", tag = "definitions", request_body = Value,
    responses((status = 204, description = "Imported, and durable"), (status = 400, description = "Refused: says where")))]
pub(crate) async fn import(
    Admin(caller): Admin,
    State(api): State<Api>,
    Payload(document): Payload<Value, LONG_BODY_BYTES_MAX>,
) -> ApiResult<StatusCode> {
    take(&api, &caller, document, Scope::Broker).await
}

/// Export everything; an older name of `/definitions`
#[utoipa::path(get, path = "/all-configuration", tag = "definitions", responses((status = 200, body = Value)))]
pub(crate) async fn export_all(caller: Admin, state: State<Api>) -> Json<Value> {
    export(caller, state).await
}

/// Import a document; an older name of `/definitions`
#[utoipa::path(post, path = "/all-configuration", tag = "definitions", request_body = Value,
    responses((status = 204, description = "Imported, and durable"), (status = 400, description = "Refused: says where")))]
pub(crate) async fn import_all(
    caller: Admin,
    state: State<Api>,
    document: Payload<Value, LONG_BODY_BYTES_MAX>,
) -> ApiResult<StatusCode> {
    import(caller, state, document).await
}

/// Export a vhost
#[utoipa::path(get, path = "/definitions/{vhost}", tag = "definitions", responses((status = 200, body = Value)))]
pub(crate) async fn export_vhost(
    Admin(_): Admin,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Json<Value>> {
    let exported = api.broker().export_vhost_definitions(&vhost).ok_or_else(ApiError::not_found)?;
    Ok(Json(exported.to_json()))
}

/// Import a document into a vhost, all of it or nothing
#[utoipa::path(post, path = "/definitions/{vhost}", tag = "definitions", request_body = Value,
    responses((status = 204, description = "Imported, and durable"), (status = 400, description = "Refused: says where")))]
pub(crate) async fn import_vhost(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(vhost): At<String>,
    Payload(document): Payload<Value, LONG_BODY_BYTES_MAX>,
) -> ApiResult<StatusCode> {
    if api.broker().vhost(&vhost).is_none() {
        return Err(ApiError::not_found());
    }
    take(&api, &caller, document, Scope::Vhost(vhost.into())).await
}

async fn take(api: &Api, caller: &Caller, document: Value, scope: Scope) -> ApiResult<StatusCode> {
    let broker = api.broker().clone();
    // Passwords may have to be hashed, which takes a while.
    let import = spawn_blocking(move || {
        Definitions::from_json(document, scope)
            .and_then(|definitions| broker.import_definitions(&definitions))
    });
    let imported = import
        .await
        .map_err(|_| ApiError::unavailable("the import has failed"))?
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    for note in &imported.notes {
        tracing::warn!(user = &*caller.user().name, note, "not taken from the definitions");
    }
    until_durable(api, imported.lsn).await?;
    tracing::info!(user = &*caller.user().name, "definitions imported");
    Ok(StatusCode::NO_CONTENT)
}
