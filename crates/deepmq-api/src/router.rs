//! All paths in one place.
//!
//! Owns what is reached without a login: the description of the API and the page that shows it. Must not know what the
//! handlers do.

use crate::api::Api;
use crate::auth::authenticate;
use crate::error::ApiError;
use crate::health;
use crate::metrics;
use crate::openapi;
use crate::request_id;
use crate::resources::{
    attempts, bindings, channels, connections, consumers, definitions, exchanges, features, limits, login,
    messages, nodes, overview, parameters, permissions, policies, queues, statistics, topology, users,
    vhosts,
};
use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// Everything that is served.
pub(crate) fn whole(api: &Api) -> Router {
    let (resources, _) = resources().split_for_parts();
    let resources = resources
        .fallback(async || ApiError::not_found())
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(api.clone(), authenticate))
        .with_state(api.clone());
    let swagger = SwaggerUi::new("/swagger").config(Config::from("/api/openapi.json"));
    Router::new()
        .route("/", get(async || Redirect::to("/swagger/")))
        .route("/api/openapi.json", get(async || openapi::response()))
        .nest("/api", resources)
        .merge(metrics::guarded(api))
        .merge(swagger)
        .fallback(async || ApiError::not_found())
        .layer(from_fn(request_id::number))
}

/// The router adds which methods there are, which is all that OPTIONS asks for.
async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::OK.into_response();
    }
    let reason = "this path has other methods";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", reason).into_response()
}

/// What needs a login, with its description. Paths are below `/api`.
pub(crate) fn resources() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .merge(broker())
        .merge(clients())
        .merge(topology_resources())
        .merge(bindings_resources())
        .merge(health_checks())
        .merge(accounts())
        .merge(settings())
}

fn accounts() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(users::list))
        .routes(routes!(users::without_permissions))
        .routes(routes!(users::bulk_delete))
        .routes(routes!(users::get, users::put, users::delete))
        .routes(routes!(users::hash_password))
        .routes(routes!(attempts::list, attempts::reset))
        .routes(routes!(attempts::list_sources, attempts::reset_sources))
        .routes(routes!(permissions::list))
        .routes(routes!(permissions::list_of_vhost))
        .routes(routes!(permissions::list_of_user))
        .routes(routes!(permissions::get, permissions::put, permissions::delete))
        .routes(routes!(permissions::list_topics))
        .routes(routes!(permissions::list_topics_of_vhost))
        .routes(routes!(permissions::list_topics_of_user))
        .routes(routes!(permissions::get_topics, permissions::put_topic, permissions::delete_topics))
        .routes(routes!(permissions::delete_topic))
        .routes(routes!(limits::list_users))
        .routes(routes!(limits::get_user))
        .routes(routes!(limits::put_user, limits::delete_user))
}

fn settings() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(policies::list))
        .routes(routes!(policies::list_of_vhost))
        .routes(routes!(policies::get, policies::put, policies::delete))
        .routes(routes!(policies::list_operator))
        .routes(routes!(policies::list_operator_of_vhost))
        .routes(routes!(policies::get_operator, policies::put_operator, policies::delete_operator))
        .routes(routes!(parameters::list))
        .routes(routes!(parameters::list_of_component))
        .routes(routes!(parameters::list_of_vhost))
        .routes(routes!(parameters::get, parameters::put, parameters::delete))
        .routes(routes!(parameters::list_global))
        .routes(routes!(parameters::get_global, parameters::put_global, parameters::delete_global))
        .routes(routes!(definitions::export, definitions::import))
        .routes(routes!(definitions::export_all, definitions::import_all))
        .routes(routes!(definitions::export_vhost, definitions::import_vhost))
        .routes(routes!(limits::list_vhosts))
        .routes(routes!(limits::get_vhost))
        .routes(routes!(limits::put_vhost, limits::delete_vhost))
}

fn broker() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(overview::overview))
        .routes(routes!(overview::whoami))
        .routes(routes!(login::login))
        .routes(routes!(statistics::reset))
        .routes(routes!(statistics::reset_node))
        .routes(routes!(overview::version))
        .routes(routes!(overview::extensions))
        .routes(routes!(overview::cluster_name, overview::put_cluster_name))
        .routes(routes!(overview::effective_config))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::get))
        .routes(routes!(nodes::memory))
        .routes(routes!(nodes::memory_relative))
        .routes(routes!(vhosts::list_all))
        .routes(routes!(vhosts::get, vhosts::put, vhosts::delete))
        .routes(routes!(vhosts::protect, vhosts::unprotect))
        .routes(routes!(vhosts::start))
        .routes(routes!(features::flags))
        .routes(routes!(features::enable_flag))
        .routes(routes!(features::deprecated))
        .routes(routes!(features::deprecated_used))
        .routes(routes!(features::rebalance))
        .routes(routes!(features::oauth))
}

fn clients() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(connections::list_all))
        .routes(routes!(connections::list_of_vhost))
        .routes(routes!(connections::list_of_user, connections::close_of_user))
        .routes(routes!(connections::get, connections::close))
        .routes(routes!(channels::list_all))
        .routes(routes!(channels::list_of_vhost))
        .routes(routes!(channels::list_of_connection))
        .routes(routes!(channels::get))
        .routes(routes!(consumers::list_all))
        .routes(routes!(consumers::list_of_vhost))
}

fn topology_resources() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(topology::get))
        .routes(routes!(exchanges::list_all))
        .routes(routes!(exchanges::list_of_vhost, exchanges::put_default, exchanges::delete_default))
        .routes(routes!(exchanges::get, exchanges::put, exchanges::delete))
        .routes(routes!(messages::publish))
        .routes(routes!(queues::list_all))
        .routes(routes!(queues::list_detailed))
        .routes(routes!(queues::list_of_user))
        .routes(routes!(queues::list_of_vhost, queues::put_default, queues::delete_default))
        .routes(routes!(queues::get, queues::put, queues::delete))
        .routes(routes!(queues::purge))
        .routes(routes!(queues::act))
        .routes(routes!(messages::get))
}

fn bindings_resources() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(bindings::list_all, bindings::post_default))
        .routes(routes!(bindings::list_of_vhost))
        .routes(routes!(bindings::list_of_queue))
        .routes(routes!(bindings::list_from_exchange))
        .routes(routes!(bindings::list_to_exchange))
        .routes(routes!(bindings::list_to, bindings::post))
        .routes(routes!(bindings::list_to_e, bindings::post_e))
        .routes(routes!(bindings::get, bindings::delete))
        .routes(routes!(bindings::get_e, bindings::delete_e))
}

fn health_checks() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(health::alarms))
        .routes(routes!(health::local_alarms))
        .routes(routes!(health::vhosts))
        .routes(routes!(health::in_service))
        .routes(routes!(health::ready))
        .routes(routes!(health::below_connection_limit))
        .routes(routes!(health::cluster_size))
        .routes(routes!(health::quorum_critical))
        .routes(routes!(health::store_initialized))
        .routes(routes!(health::store_with_data))
        .routes(routes!(health::port_listener))
        .routes(routes!(health::protocol_listener))
        .routes(routes!(health::certificates))
        .routes(routes!(health::leaders))
        .routes(routes!(health::all_leaders))
        .routes(routes!(health::aliveness))
        .routes(routes!(health::node))
        .routes(routes!(health::named_node))
}
