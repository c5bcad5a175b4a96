//! Permissions, and those on topics.
//!
//! Owns `/permissions` and `/topic-permissions`. Must not know what follows from a permission.

use super::edits;
use crate::api::Api;
use crate::auth::Admin;
use crate::error::{ApiError, ApiResult};
use crate::request::{At, Payload};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deepmq_broker::registry::{PermissionRecord, TopicPermissionRecord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a user may do in a vhost: patterns of names
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Permission {
    user: String,
    vhost: String,
    configure: String,
    write: String,
    read: String,
}

/// What a user is to be allowed in a vhost: patterns of names
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PermissionDeclaration {
    configure: String,
    write: String,
    read: String,
}

/// With which routing keys a user may publish to a topic exchange and bind to it
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopicPermission {
    user: String,
    vhost: String,
    exchange: String,
    write: String,
    read: String,
}

/// With which routing keys a user is to publish to a topic exchange and bind to it
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct TopicPermissionDeclaration {
    exchange: String,
    write: String,
    read: String,
}

impl From<PermissionRecord> for Permission {
    fn from(record: PermissionRecord) -> Self {
        let PermissionRecord { user, vhost, configure, write, read } = record;
        let [user, vhost, configure, write, read] =
            [user, vhost, configure, write, read].map(|name| name.to_string());
        Self { user, vhost, configure, write, read }
    }
}

impl From<TopicPermissionRecord> for TopicPermission {
    fn from(record: TopicPermissionRecord) -> Self {
        let TopicPermissionRecord { user, vhost, exchange, write, read } = record;
        let [user, vhost, exchange, write, read] =
            [user, vhost, exchange, write, read].map(|name| name.to_string());
        Self { user, vhost, exchange, write, read }
    }
}

fn listed(api: &Api, wanted: impl Fn(&PermissionRecord) -> bool) -> Json<Vec<Permission>> {
    Json(api.broker().list_permissions().into_iter().filter(wanted).map(Permission::from).collect())
}

fn listed_topics(api: &Api, wanted: impl Fn(&TopicPermissionRecord) -> bool) -> Json<Vec<TopicPermission>> {
    Json(
        api.broker().list_topic_permissions().into_iter().filter(wanted).map(TopicPermission::from).collect(),
    )
}

fn check_user(api: &Api, name: &str) -> ApiResult<()> {
    api.broker().get_user(name).map(drop).ok_or_else(ApiError::not_found)
}

fn check_vhost(api: &Api, name: &str) -> ApiResult<()> {
    api.broker().get_vhost(name).map(drop).ok_or_else(ApiError::not_found)
}

/// All permissions
#[utoipa::path(get, path = "/permissions", tag = "permissions", responses((status = 200, body = Vec<Permission>)))]
pub(crate) async fn list(_: Admin, State(api): State<Api>) -> Json<Vec<Permission>> {
    listed(&api, |_| true)
}

/// The permissions in a vhost
#[utoipa::path(get, path = "/vhosts/{vhost}/permissions", tag = "permissions",
    responses((status = 200, body = Vec<Permission>)))]
pub(crate) async fn list_of_vhost(
    _: Admin,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Json<Vec<Permission>>> {
    check_vhost(&api, &vhost)?;
    Ok(listed(&api, |record| *record.vhost == *vhost))
}

/// The permissions of a user
#[utoipa::path(get, path = "/users/{user}/permissions", tag = "permissions",
    responses((status = 200, body = Vec<Permission>)))]
pub(crate) async fn list_of_user(
    _: Admin,
    State(api): State<Api>,
    At(user): At<String>,
) -> ApiResult<Json<Vec<Permission>>> {
    check_user(&api, &user)?;
    Ok(listed(&api, |record| *record.user == *user))
}

/// The permission of a user in a vhost
#[utoipa::path(get, path = "/permissions/{vhost}/{user}", tag = "permissions",
    responses((status = 200, body = Permission)))]
pub(crate) async fn get(
    _: Admin,
    State(api): State<Api>,
    At((vhost, user)): At<(String, String)>,
) -> ApiResult<Json<Permission>> {
    let record = api.broker().get_permission(&vhost, &user).ok_or_else(ApiError::not_found)?;
    Ok(Json(record.into()))
}

/// Give a user a permission in a vhost
#[utoipa::path(put, path = "/permissions/{vhost}/{user}", tag = "permissions", request_body = PermissionDeclaration,
    responses((status = 201, description = "Given"), (status = 204, description = "Changed")))]
pub(crate) async fn put(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, user)): At<(String, String)>,
    Payload(given): Payload<PermissionDeclaration>,
) -> ApiResult<StatusCode> {
    let PermissionDeclaration { configure, write, read } = given;
    let done = api.broker().put_permission(PermissionRecord {
        user: user.into(),
        vhost: vhost.into(),
        configure: configure.into(),
        write: write.into(),
        read: read.into(),
    });
    edits::put(&api, &caller, "permission", done).await
}

/// Take a user's permission in a vhost away
#[utoipa::path(delete, path = "/permissions/{vhost}/{user}", tag = "permissions", responses((status = 204)))]
pub(crate) async fn delete(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, user)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    let done = api.broker().delete_permission(&vhost, &user);
    edits::delete(&api, &caller, "permission", done).await
}

/// All permissions on topics
#[utoipa::path(get, path = "/topic-permissions", tag = "permissions",
    responses((status = 200, body = Vec<TopicPermission>)))]
pub(crate) async fn list_topics(_: Admin, State(api): State<Api>) -> Json<Vec<TopicPermission>> {
    listed_topics(&api, |_| true)
}

/// The permissions on topics in a vhost
#[utoipa::path(get, path = "/vhosts/{vhost}/topic-permissions", tag = "permissions",
    responses((status = 200, body = Vec<TopicPermission>)))]
pub(crate) async fn list_topics_of_vhost(
    _: Admin,
    State(api): State<Api>,
    At(vhost): At<String>,
) -> ApiResult<Json<Vec<TopicPermission>>> {
    check_vhost(&api, &vhost)?;
    Ok(listed_topics(&api, |record| *record.vhost == *vhost))
}

/// The permissions on topics of a user
#[utoipa::path(get, path = "/users/{user}/topic-permissions", tag = "permissions",
    responses((status = 200, body = Vec<TopicPermission>)))]
pub(crate) async fn list_topics_of_user(
    _: Admin,
    State(api): State<Api>,
    At(user): At<String>,
) -> ApiResult<Json<Vec<TopicPermission>>> {
    check_user(&api, &user)?;
    Ok(listed_topics(&api, |record| *record.user == *user))
}

/// The permissions on topics of a user in a vhost
#[utoipa::path(get, path = "/topic-permissions/{vhost}/{user}", tag = "permissions",
    responses((status = 200, body = Vec<TopicPermission>)))]
pub(crate) async fn get_topics(
    _: Admin,
    State(api): State<Api>,
    At((vhost, user)): At<(String, String)>,
) -> ApiResult<Json<Vec<TopicPermission>>> {
    check_vhost(&api, &vhost)?;
    check_user(&api, &user)?;
    let found = listed_topics(&api, |record| *record.vhost == *vhost && *record.user == *user);
    if found.is_empty() { Err(ApiError::not_found()) } else { Ok(found) }
}

/// Give a user a permission on the topics of an exchange
#[utoipa::path(put, path = "/topic-permissions/{vhost}/{user}", tag = "permissions",
    request_body = TopicPermissionDeclaration,
    responses((status = 201, description = "Given"), (status = 204, description = "Changed")))]
pub(crate) async fn put_topic(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, user)): At<(String, String)>,
    Payload(given): Payload<TopicPermissionDeclaration>,
) -> ApiResult<StatusCode> {
    let TopicPermissionDeclaration { exchange, write, read } = given;
    let done = api.broker().put_topic_permission(TopicPermissionRecord {
        user: user.into(),
        vhost: vhost.into(),
        exchange: exchange.into(),
        write: write.into(),
        read: read.into(),
    });
    edits::put(&api, &caller, "topic permission", done).await
}

/// Take a user's permissions on topics in a vhost away
#[utoipa::path(delete, path = "/topic-permissions/{vhost}/{user}", tag = "permissions", responses((status = 204)))]
pub(crate) async fn delete_topics(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, user)): At<(String, String)>,
) -> ApiResult<StatusCode> {
    let all = api.broker().list_topic_permissions().into_iter();
    let mut last = None;
    for record in all.filter(|record| *record.vhost == *vhost && *record.user == *user) {
        last = Some(api.broker().delete_topic_permission(&vhost, &user, &record.exchange));
    }
    edits::delete(&api, &caller, "topic permissions", last.ok_or_else(ApiError::not_found)?).await
}

/// Take a user's permission on the topics of an exchange away
#[utoipa::path(delete, path = "/topic-permissions/{vhost}/{user}/{exchange}", tag = "permissions",
    responses((status = 204)))]
pub(crate) async fn delete_topic(
    Admin(caller): Admin,
    State(api): State<Api>,
    At((vhost, user, exchange)): At<(String, String, String)>,
) -> ApiResult<StatusCode> {
    let done = api.broker().delete_topic_permission(&vhost, &user, &exchange);
    edits::delete(&api, &caller, "topic permission", done).await
}
