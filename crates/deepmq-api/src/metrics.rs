//! Metrics, in Prometheus' text format: `deepmq_*`, and beside them the names that boards made for RabbitMQ look for.
//!
//! Owns the paths and what is asked in them. Must not know how it is written. Everything is read when it is asked for.

mod families;
mod latency;
mod objects;
mod text;

use crate::api::Api;
use crate::auth::{Monitor, authenticate};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use objects::Wanted;
use percent_encoding::percent_decode_str;
use text::Text;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Families and vhosts that one request may name; more are not looked at.
const NAMES_MAX: usize = 100;

/// What each path tells.
type Show = fn(&Api, &str) -> Response;

const PATHS: [(&str, Show); 3] =
    [("/metrics", totals), ("/metrics/per-object", per_object), ("/metrics/detailed", detailed)];

/// The metrics for whoever asks: for a listener of their own.
pub(crate) fn open(api: &Api) -> Router {
    let open = |show: Show| {
        get(async move |State(api): State<Api>, RawQuery(query): RawQuery| {
            show(&api, &query.unwrap_or_default())
        })
    };
    router(api, open)
}

/// The metrics for those who may monitor.
pub(crate) fn guarded(api: &Api) -> Router {
    let guarded = |show: Show| {
        get(async move |_: Monitor, State(api): State<Api>, RawQuery(query): RawQuery| {
            show(&api, &query.unwrap_or_default())
        })
    };
    router(api, guarded).layer(from_fn_with_state(api.clone(), authenticate))
}

fn router(api: &Api, handler: impl Fn(Show) -> MethodRouter<Api>) -> Router {
    let routes =
        PATHS.into_iter().fold(Router::new(), |router, (path, show)| router.route(path, handler(show)));
    routes.with_state(api.clone())
}

/// Sums over all objects.
fn totals(api: &Api, _: &str) -> Response {
    let mut text = Text::default();
    families::write(api, &mut text);
    answer(text)
}

/// Series of each object, under the names of the sums.
fn per_object(api: &Api, _: &str) -> Response {
    let mut text = Text::default();
    families::identity(api, &mut text);
    objects::write(api, "rabbitmq_", &Wanted::default(), &mut text);
    answer(text)
}

/// Series of each object of the families and vhosts that are named; without a family, none.
fn detailed(api: &Api, query: &str) -> Response {
    let named = |wanted: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let values = pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value.replace('+', " "));
        let decoded = values.map(|value| percent_decode_str(&value).decode_utf8_lossy().into_owned());
        decoded.take(NAMES_MAX).collect::<Vec<_>>()
    };
    let wanted = Wanted { families: named("family"), vhosts: named("vhost") };
    let mut text = Text::default();
    families::identity(api, &mut text);
    if !wanted.families.is_empty() {
        objects::write(api, "rabbitmq_detailed_", &wanted, &mut text);
    }
    answer(text)
}

fn answer(text: Text) -> Response {
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    ([content_type], text.finish()).into_response()
}
