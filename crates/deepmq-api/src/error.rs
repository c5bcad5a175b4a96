//! Refusals, in the form RabbitMQ's clients know: a status, and `{"error": .., "reason": ..}`.
//!
//! Owns which status an error of the broker becomes. Must not know paths or handlers.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use deepmq_broker::queue::DeleteRefused;
use deepmq_broker::registry::RegistryError;
use deepmq_broker::vhost::{DeleteError, PublishError};
use deepmq_model::access::Refused;
use deepmq_model::topology::{RouteError, TopologyError};
use deepmq_storage::StorageFailure;
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request was refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Refusal {
    /// A word for programs: `bad_request`, `not_authorized`, `Object Not Found`
    error: String,
    /// A sentence for people
    reason: String,
}

/// A refused request.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: &'static str,
    reason: String,
    /// The client may ask its user for a name and a password.
    challenge: bool,
}

/// What most handlers give.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: &'static str, reason: impl Into<String>) -> Self {
        Self { status, error, reason: reason.into(), challenge: false }
    }

    pub(crate) fn bad_request(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// It is known who asks, and it may not. RabbitMQ has 401 here too.
    pub(crate) fn not_authorized(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not_authorized", reason)
    }

    /// It is not known who asks.
    pub(crate) fn unknown_caller(challenge: bool) -> Self {
        Self { challenge, ..Self::not_authorized("Not_Authorized") }
    }

    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let reason = format!("the body is larger than {bytes_max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", reason)
    }

    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let refusal = Refusal { error: self.error.to_owned(), reason: self.reason };
        let mut response = (self.status, Json(refusal)).into_response();
        if self.challenge {
            let realm = HeaderValue::from_static("Basic realm=\"RabbitMQ Management\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        }
        response
    }
}

impl From<TopologyError> for ApiError {
    fn from(error: TopologyError) -> Self {
        match error {
            TopologyError::NotFound(_) => Self::not_found(),
            TopologyError::ReservedName(_)
            | TopologyError::DefaultExchange
            | TopologyError::SystemExchange { .. } => {
                Self::not_authorized(format!("ACCESS_REFUSED - {error}"))
            }
            _ => Self::bad_request(error.to_string()),
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self::not_authorized(format!("ACCESS_REFUSED - {refused}"))
    }
}

impl From<DeleteError> for ApiError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::Topology(error) => error.into(),
            DeleteError::Refused(DeleteRefused::InUse) => Self::bad_request("the queue is in use"),
            DeleteError::Refused(DeleteRefused::NotEmpty) => Self::bad_request("the queue is not empty"),
        }
    }
}

impl From<RouteError> for ApiError {
    fn from(error: RouteError) -> Self {
        match error {
            RouteError::NotFound => Self::not_found(),
            RouteError::Internal => {
                Self::not_authorized("ACCESS_REFUSED - cannot publish to an internal exchange")
            }
        }
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Route(error) => error.into(),
            PublishError::Carbon(_) => Self::bad_request(error.to_string()),
        }
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::NotFound { .. } => Self::not_found(),
            RegistryError::Protected { .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", error.to_string())
            }
            _ => Self::bad_request(error.to_string()),
        }
    }
}

impl From<StorageFailure> for ApiError {
    fn from(failure: StorageFailure) -> Self {
        Self::unavailable(format!("the data directory has failed: {failure}"))
    }
}
