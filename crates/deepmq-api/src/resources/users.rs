//! Users.
//!
//! Owns `/users` and `/auth/hash_password`. Must not know permissions or how passwords are hashed.

use super::edits;
use crate::api::Api;
use crate::auth::Admin;
use crate::durable::until_durable;
use crate::error::{ApiError, ApiResult};
use crate::request::{At, Payload};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use deepmq_broker::broker::UserPut;
use deepmq_broker::registry::UserRecord;
use deepmq_broker::users::{Password, PasswordHash, Secret};
use deepmq_model::Name;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

/// What RabbitMQ takes a hash for that comes without its algorithm.
const DEFAULT_ALGORITHM: &str = "rabbit_password_hashing_sha256";
/// What it makes of it is of no use if the hash is as long as this one's: RabbitMQ's own tool sends such hashes.
const LONG_ALGORITHM: &str = "rabbit_password_hashing_sha512";
/// Four bytes of salt and a digest of 64.
const LONG_HASH_BYTES: usize = 68;

/// A user
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct User {
    name: String,
    /// In the form of its algorithm; empty: no login with a password
    password_hash: String,
    /// `argon2id`, `rabbit_password_hashing_sha256` or `rabbit_password_hashing_sha512`
    hashing_algorithm: String,
    tags: Vec<String>,
    limits: UserLimitsShown,
}

/// Limits of a user
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct UserLimitsShown {
    #[serde(rename = "max-connections", skip_serializing_if = "Option::is_none")]
    max_connections: Option<i64>,
    #[serde(rename = "max-channels", skip_serializing_if = "Option::is_none")]
    max_channels: Option<i64>,
}

/// What a user is to be. Without a password and a hash it keeps the one it has
#[derive(Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct UserDeclaration {
    password: Option<String>,
    /// Empty: no login with a password
    password_hash: Option<String>,
    hashing_algorithm: Option<String>,
    /// A list, or words divided by commas
    tags: Tags,
}

/// Words, as a list or divided by commas
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "tags are a list of words, or words divided by commas")]
pub(crate) enum Tags {
    Words(String),
    List(Vec<String>),
}

impl Default for Tags {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Tags {
    pub(crate) fn names(&self) -> Vec<Name> {
        let names = |words: &[String]| words.iter().map(|word| word.trim().into()).collect::<Vec<Name>>();
        let mut names = match self {
            Self::Words(words) => words.split(',').map(|word| word.trim().into()).collect(),
            Self::List(words) => names(words),
        };
        names.retain(|name| !name.is_empty());
        names
    }
}

/// Users to be deleted
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct BulkDelete {
    users: Vec<String>,
}

/// A hashed password
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hashed {
    ok: String,
}

fn show(api: &Api, record: UserRecord) -> User {
    let limits = api.broker().get_user_limits(&record.name);
    User {
        name: record.name.to_string(),
        password_hash: record.password_hash,
        hashing_algorithm: record.hashing_algorithm.to_string(),
        tags: record.tags.iter().map(ToString::to_string).collect(),
        limits: UserLimitsShown {
            max_connections: limits.max_connections,
            max_channels: limits.max_channels,
        },
    }
}

/// All users
#[utoipa::path(get, path = "/users", tag = "users", responses((status = 200, body = Vec<User>)))]
pub(crate) async fn list(_: Admin, State(api): State<Api>) -> Json<Vec<User>> {
    Json(api.broker().list_users().into_iter().map(|record| show(&api, record)).collect())
}

/// The users who may enter no vhost
#[utoipa::path(get, path = "/users/without-permissions", tag = "users", responses((status = 200, body = Vec<User>)))]
pub(crate) async fn without_permissions(_: Admin, State(api): State<Api>) -> Json<Vec<User>> {
    let permissions = api.broker().list_permissions();
    let users = api.broker().list_users().into_iter();
    let without = users.filter(|user| permissions.iter().all(|permission| permission.user != user.name));
    Json(without.map(|record| show(&api, record)).collect())
}

/// A user
#[utoipa::path(get, path = "/users/{user}", tag = "users", responses((status = 200, body = User)))]
pub(crate) async fn get(_: Admin, State(api): State<Api>, At(name): At<String>) -> ApiResult<Json<User>> {
    let record = api.broker().get_user(&name).ok_or_else(ApiError::not_found)?;
    Ok(Json(show(&api, record)))
}

/// Create or change a user
#[utoipa::path(put, path = "/users/{user}", tag = "users", request_body = UserDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "Changed")))]
pub(crate) async fn put(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(name): At<String>,
    Payload(given): Payload<UserDeclaration>,
) -> ApiResult<StatusCode> {
    let user = UserPut {
        name: name.into(),
        tags: given.tags.names(),
        password: password(given)?,
        loopback_only: None,
    };
    let broker = api.broker().clone();
    // Hashing takes tens of milliseconds.
    let done = spawn_blocking(move || broker.put_user(user)).await;
    let done = done.map_err(|_| ApiError::unavailable("the password could not be hashed"))?;
    edits::put(&api, &caller, "user", done).await
}

fn password(given: UserDeclaration) -> ApiResult<Option<Password>> {
    match (given.password, given.password_hash) {
        (Some(_), Some(_)) => Err(ApiError::bad_request("give one of password and password_hash")),
        (Some(plain), None) => Ok(Some(Password::Plain(Secret::new(plain)))),
        (None, Some(hash)) if hash.is_empty() => Ok(Some(Password::Hash(PasswordHash::nothing()))),
        (None, Some(hash)) => {
            let algorithm = given.hashing_algorithm.as_deref().unwrap_or_else(|| algorithm_of(&hash));
            let read = PasswordHash::read(algorithm, &hash);
            read.map(|hash| Some(Password::Hash(hash)))
                .map_err(|error| ApiError::bad_request(error.to_string()))
        }
        (None, None) => Ok(None),
    }
}

/// The algorithm of a hash that comes without its name.
fn algorithm_of(hash: &str) -> &'static str {
    let is_long = BASE64_STANDARD.decode(hash).is_ok_and(|bytes| bytes.len() == LONG_HASH_BYTES);
    if is_long { LONG_ALGORITHM } else { DEFAULT_ALGORITHM }
}

/// Delete a user; its connections are closed
#[utoipa::path(delete, path = "/users/{user}", tag = "users", responses((status = 204)))]
pub(crate) async fn delete(
    Admin(caller): Admin,
    State(api): State<Api>,
    At(name): At<String>,
) -> ApiResult<StatusCode> {
    let done = api.broker().delete_user(&name);
    edits::delete(&api, &caller, "user", done).await
}

/// Delete several users; those that do not exist are passed over
#[utoipa::path(post, path = "/users/bulk-delete", tag = "users", request_body = BulkDelete, responses((status = 204)))]
pub(crate) async fn bulk_delete(
    Admin(caller): Admin,
    State(api): State<Api>,
    Payload(given): Payload<BulkDelete>,
) -> ApiResult<StatusCode> {
    let lsn = given.users.iter().filter_map(|name| api.broker().delete_user(name).ok()?.lsn).max();
    until_durable(&api, lsn).await?;
    tracing::info!(user = &*caller.user().name, users = given.users.len(), "users deleted");
    Ok(StatusCode::NO_CONTENT)
}

/// Hash a password as RabbitMQ would, for a definitions file: with SHA-256 and a fresh salt
#[utoipa::path(get, path = "/auth/hash_password/{password}", tag = "users", responses((status = 200, body = Hashed)))]
pub(crate) async fn hash_password(
    _: Admin,
    State(api): State<Api>,
    At(password): At<String>,
) -> Json<Hashed> {
    let mut salt = [0; 4];
    api.broker().seam().random.fill(&mut salt);
    let digest = Sha256::new().chain_update(salt).chain_update(password).finalize();
    Json(Hashed { ok: BASE64_STANDARD.encode([&salt[..], &digest].concat()) })
}
