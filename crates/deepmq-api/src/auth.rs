//! Who asks, and what they may see.
//!
//! Owns the login of each request: Basic, no cookies and no sessions, so that no other site can ask in a user's name. Must
//! not know how passwords are kept.

mod basic;
mod caller;
mod guard;

pub(crate) use caller::{Admin, Caller, Monitor, PolicyMaker};
pub(crate) use guard::LoginGuard;

use crate::api::Api;
use crate::error::ApiError;
use crate::peer::Peer;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use basic::Credentials;
use deepmq_broker::users::{Secret, Source, User};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Where health checks are, as seen below `/api`.
const PROBES: &str = "/health/checks/";
/// Where one logs in by form.
const LOGIN: &str = "/login";

/// Lets a request pass if it says who asks, and puts the [`Caller`] into it.
pub(crate) async fn authenticate(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    // A login by form says in its body who asks.
    if is_login(&request) || (api.config().open_probes && is_probe(&request)) {
        return next.run(request).await;
    }
    let login = match asked_by(&request) {
        Ok((credentials, peer)) => login(&api, credentials, peer).await,
        Err(error) => Err(error),
    };
    match login {
        Ok(user) => {
            request.extensions_mut().insert(Caller::new(user));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

fn is_login(request: &Request) -> bool {
    request.method() == Method::POST && request.uri().path() == LOGIN
}

fn is_probe(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD) && request.uri().path().starts_with(PROBES)
}

/// Who the request says it is from.
fn asked_by(request: &Request) -> Result<(Credentials, Peer), ApiError> {
    let peer = request.extensions().get::<Peer>().copied().ok_or_else(|| ApiError::unknown_caller(true))?;
    let header = request.headers().get(header::AUTHORIZATION);
    let header = header.ok_or_else(|| ApiError::unknown_caller(true))?;
    let credentials = Credentials::read(header.as_bytes()).ok_or_else(|| ApiError::unknown_caller(false))?;
    Ok((credentials, peer))
}

/// Lets in who gives a name and a password in another way than the header.
pub(crate) async fn login_by_form(
    api: &Api,
    user: String,
    password: Vec<u8>,
    peer: Peer,
) -> Result<Arc<User>, ApiError> {
    login(api, Credentials { user, password: Secret::new(password) }, peer).await
}

async fn login(api: &Api, credentials: Credentials, peer: Peer) -> Result<Arc<User>, ApiError> {
    let user = verify(api, credentials, peer).await?;
    if Caller::new(user.clone()).may_manage() {
        Ok(user)
    } else {
        Err(ApiError::not_authorized("Not management user"))
    }
}

/// Who is known pays nothing and is never held up by those who guess.
async fn verify(api: &Api, credentials: Credentials, peer: Peer) -> Result<Arc<User>, ApiError> {
    let Credentials { user: name, password } = credentials;
    let users = api.broker().users();
    if let Some(user) = users.authenticate_fast(&name, password.expose(), peer.is_loopback()) {
        note_attempt(api, peer, &name, true);
        return Ok(user);
    }
    if !api.guard().admits(peer.ip(), api.now()) {
        tracing::warn!(peer = %peer.0, user = name, "login not looked at: too many were refused");
        let reason = "too many logins were refused; try again in a minute";
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", reason));
    }
    let permit = api.slow_logins().acquire().await;
    let broker = api.broker().clone();
    let (asked, loopback) = (name.clone(), peer.is_loopback());
    let verdict =
        spawn_blocking(move || broker.users().authenticate_slow(&asked, password.expose(), loopback)).await;
    drop(permit);
    match verdict {
        Ok(Ok(user)) => {
            note_attempt(api, peer, &name, true);
            Ok(user)
        }
        Ok(Err(error)) => {
            note_attempt(api, peer, &name, false);
            api.guard().failed(peer.ip(), api.now());
            tracing::warn!(peer = %peer.0, user = name, %error, "login refused");
            Err(ApiError::unknown_caller(false))
        }
        Err(error) => {
            tracing::error!(%error, "a password could not be verified");
            Err(ApiError::unavailable("the password could not be verified"))
        }
    }
}

fn note_attempt(api: &Api, peer: Peer, user: &str, succeeded: bool) {
    let source = Source { protocol: "http", address: peer.ip(), user: user.into() };
    api.broker().users().attempts().note(source, succeeded);
}
