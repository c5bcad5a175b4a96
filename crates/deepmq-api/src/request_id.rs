//! A number for each request, in the log and in the answer.
//!
//! Owns the header `x-request-id`: taken from the client if it is sound, made otherwise. Must not know what is asked for.

use crate::auth::Caller;
use crate::peer::Peer;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const BYTES_MAX: usize = 64;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Numbers a request, logs what became of it, and forbids guesses about the answer's form.
pub(crate) async fn number(request: Request, next: Next) -> Response {
    let id = request.headers().get(HEADER).filter(|given| is_sound(given)).cloned().unwrap_or_else(fresh);
    let (method, path) = (request.method().clone(), shown(request.uri().path()).to_owned());
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let begun = Instant::now();
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    let (number, elapsed) = (id.to_str().unwrap_or_default(), begun.elapsed());
    let changes = !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    if changes || response.status().is_server_error() {
        tracing::info!(id = number, ?peer, %method, path, status, ?elapsed, "request");
    } else {
        tracing::debug!(id = number, ?peer, %method, path, status, ?elapsed, "request");
    }
    let headers = response.headers_mut();
    headers.insert(HEADER, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

/// A path as it may be logged: one of them ends with a password.
fn shown(path: &str) -> &str {
    const SECRET_BEHIND: &str = "/api/auth/hash_password/";
    if path.starts_with(SECRET_BEHIND) { SECRET_BEHIND } else { path }
}

fn is_sound(given: &HeaderValue) -> bool {
    let bytes = given.as_bytes();
    let sound = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    !bytes.is_empty() && bytes.len() <= BYTES_MAX && bytes.iter().all(sound)
}

fn fresh() -> HeaderValue {
    HeaderValue::from(NEXT.fetch_add(1, Relaxed))
}

/// Logs who made a change, beside the number that the request has.
pub(crate) fn note_change(caller: &Caller, what: &str, name: &str) {
    tracing::info!(user = &*caller.user().name, name, "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_path_is_not_shown() {
        assert_eq!(shown("/api/auth/hash_password/secret"), "/api/auth/hash_password/");
        assert_eq!(shown("/api/queues/%2F/q"), "/api/queues/%2F/q");
    }
}
