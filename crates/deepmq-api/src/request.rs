//! What a request brings: the parts of its path, its query and its body, each refused with a sentence if it is wrong.
//!
//! Owns the bounds on the body and how it is read. Must not know what is asked for.

use crate::error::{ApiError, ApiResult};
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// The largest body of most requests, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// The largest body that carries messages or definitions, in bytes; RabbitMQ's limit.
pub(crate) const LONG_BODY_BYTES_MAX: usize = 20 << 20;
/// Time for a body to come.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// The parts of the path, percent-decoded one by one: a slash in a name does not divide it.
#[derive(Debug)]
pub(crate) struct At<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(parts)) => Ok(Self(parts)),
            Err(rejection) => Err(ApiError::bad_request(rejection.body_text())),
        }
    }
}

/// The query.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(ApiError::bad_request(rejection.body_text())),
        }
    }
}

/// A JSON body, whatever its content type says; none is `{}`.
#[derive(Debug)]
pub(crate) struct Payload<T, const BYTES_MAX: usize = BODY_BYTES_MAX>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned, const BYTES_MAX: usize> FromRequest<S> for Payload<T, BYTES_MAX> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let bytes = read(request.into_body(), BYTES_MAX).await?;
        let text = if bytes.is_empty() { b"{}" } else { &*bytes };
        let parsed = serde_json::from_slice(text);
        parsed
            .map(Self)
            .map_err(|error| ApiError::bad_request(format!("the body is not as expected: {error}")))
    }
}

/// Reads a body of at most so many bytes.
pub(crate) async fn read(body: Body, bytes_max: usize) -> ApiResult<Bytes> {
    let announced = http_body_size(&body);
    if announced.is_some_and(|announced| announced > bytes_max as u64) {
        return Err(ApiError::too_large(bytes_max));
    }
    match timeout(BODY_TIMEOUT, to_bytes(body, bytes_max.saturating_add(1))).await {
        Ok(Ok(bytes)) if bytes.len() <= bytes_max => Ok(bytes),
        // It is too long, or the client went away in the middle: then nobody reads this.
        Ok(_) => Err(ApiError::too_large(bytes_max)),
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not come in time")),
    }
}

fn http_body_size(body: &Body) -> Option<u64> {
    hyper::body::Body::size_hint(body).exact()
}
