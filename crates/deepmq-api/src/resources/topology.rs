//! The topology of the default vhost in one document.
//!
//! Owns `/topology`. Must not know the parts.

use super::DEFAULT_VHOST;
use super::bindings::{self, Binding};
use super::exchanges::{self, Exchange};
use super::queues::{self, Queue};
use crate::api::Api;
use crate::auth::Caller;
use crate::error::ApiResult;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Exchanges, queues and bindings of a vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Topology {
    vhost: String,
    exchanges: Vec<Exchange>,
    queues: Vec<Queue>,
    bindings: Vec<Binding>,
}

/// Exchanges, queues and bindings of the default vhost in one document
#[utoipa::path(get, path = "/topology", tag = "overview", responses((status = 200, body = Topology)))]
pub(crate) async fn get(caller: Caller, State(api): State<Api>) -> ApiResult<Json<Topology>> {
    let vhost = caller.see(&api, DEFAULT_VHOST)?;
    Ok(Json(Topology {
        vhost: vhost.name().to_string(),
        exchanges: exchanges::handles(&vhost).iter().map(|one| exchanges::show(&api, one)).collect(),
        queues: vhost.declared_queues().iter().map(|queue| queues::show(&api, queue)).collect(),
        bindings: bindings::handles(&vhost).iter().map(bindings::show).collect(),
    }))
}
