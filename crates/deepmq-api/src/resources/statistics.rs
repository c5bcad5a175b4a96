//! What is remembered of what somebody looked at.
//!
//! Owns `/reset`. Must not know what is counted: counters are the broker's and stay.

use crate::api::Api;
use crate::auth::Admin;
use crate::error::{ApiError, ApiResult};
use crate::request::At;
use crate::request_id::note_change;
use axum::extract::State;
use axum::http::StatusCode;

/// Forget the samples that rates are made of; there is no other history
#[utoipa::path(delete, path = "/reset", tag = "overview", responses((status = 204)))]
pub(crate) async fn reset(Admin(caller): Admin, State(api): State<Api>) -> StatusCode {
    api.rates().forget();
    note_change(&caller, "statistics reset", api.node());
    StatusCode::NO_CONTENT
}

/// The same, of a node
#[utoipa::path(delete, path = "/reset/{node}", tag = "overview", responses((status = 204)))]
pub(crate) async fn reset_node(
    caller: Admin,
    state: State<Api>,
    At(node): At<String>,
) -> ApiResult<StatusCode> {
    if node == state.node() { Ok(reset(caller, state).await) } else { Err(ApiError::not_found()) }
}
