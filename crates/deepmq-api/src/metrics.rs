//! Metrics, in Prometheus' text format: `deepmq_*`, and beside them the names that boards made for RabbitMQ look for.
//!
//! Owns what is told. Must not know how it is written. Everything is read when it is asked for.

mod families;
mod text;

use crate::api::Api;
use crate::auth::Monitor;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use text::Text;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics for whoever asks: for a listener of their own.
pub(crate) fn open(api: &Api) -> Router {
    Router::new().route("/metrics", get(async |State(api): State<Api>| show(&api))).with_state(api.clone())
}

/// The metrics for those who may monitor.
pub(crate) async fn guarded(_: Monitor, State(api): State<Api>) -> Response {
    show(&api)
}

fn show(api: &Api) -> Response {
    let mut text = Text::default();
    families::write(api, &mut text);
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    ([content_type], text.finish()).into_response()
}
