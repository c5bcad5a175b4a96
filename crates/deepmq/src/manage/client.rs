//! A client of the HTTP API.
//!
//! Owns the way of a request and what is said when it fails. Must not know resources.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// How long an answer may take: a long list over a slow line.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum ClientError {
    /// There is no broker there, or it went away.
    Unreachable { url: String, why: String },
    /// It refused, for this reason.
    Refused { status: StatusCode, reason: String },
    /// It answered what no broker answers.
    Odd(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable { url, why } => {
                write!(f, "no broker answers at {url}: {why}; say where it is with --url")
            }
            Self::Refused { status, .. } if *status == StatusCode::NOT_FOUND => {
                f.write_str("there is no such thing; see deepmq list")
            }
            Self::Refused { status, reason } if *status == StatusCode::UNAUTHORIZED => {
                write!(f, "the broker refused: {reason}; say who you are with --user and --password")
            }
            Self::Refused { reason, .. } => write!(f, "the broker refused: {reason}"),
            Self::Odd(what) => write!(f, "the answer is not one of a broker: {what}; check --url"),
        }
    }
}

impl std::error::Error for ClientError {}

/// A path below `/api`, of names as they are.
pub(super) fn path(parts: &[&str]) -> String {
    parts
        .iter()
        .flat_map(|part| ["/"].into_iter().chain(utf8_percent_encode(part, NON_ALPHANUMERIC)))
        .collect()
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    url: String,
    login: String,
}

impl Client {
    pub(super) fn new(url: &str, user: &str, password: &str) -> Self {
        let config =
            Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).build();
        let login = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
        Self { agent: config.into(), url: url.trim_end_matches('/').to_owned(), login }
    }

    fn at(&self, path: &str) -> String {
        format!("{}/api{path}", self.url)
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, ClientError> {
        let sent = self.agent.get(self.at(path)).header("authorization", &self.login).call();
        self.read(sent).map(|(_, value)| value)
    }

    /// True: it was created.
    pub(super) fn put(&self, path: &str, body: &Value) -> Result<bool, ClientError> {
        let request = self.agent.put(self.at(path)).header("authorization", &self.login);
        let sent = request.header("content-type", "application/json").send(body.to_string());
        self.read(sent).map(|(status, _)| status == StatusCode::CREATED)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        let request = self.agent.post(self.at(path)).header("authorization", &self.login);
        let sent = request.header("content-type", "application/json").send(body.to_string());
        self.read(sent).map(|(_, value)| value)
    }

    pub(super) fn delete(&self, path: &str) -> Result<(), ClientError> {
        let sent = self.agent.delete(self.at(path)).header("authorization", &self.login).call();
        self.read(sent).map(drop)
    }

    /// Deletes, and says why.
    pub(super) fn delete_for(&self, path: &str, reason: &str) -> Result<(), ClientError> {
        let request = self.agent.delete(self.at(path)).header("authorization", &self.login);
        self.read(request.header("x-reason", reason).call()).map(drop)
    }

    fn read(&self, sent: Result<Response<Body>, ureq::Error>) -> Result<(StatusCode, Value), ClientError> {
        let unreachable =
            |why: ureq::Error| ClientError::Unreachable { url: self.url.clone(), why: why.to_string() };
        let mut response = sent.map_err(unreachable)?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let (status, text) = (response.status(), body.map_err(unreachable)?);
        if text.is_empty() && status.is_success() {
            return Ok((status, Value::Null));
        }
        let value: Value =
            serde_json::from_str(&text).map_err(|error| ClientError::Odd(error.to_string()))?;
        if status.is_success() {
            return Ok((status, value));
        }
        let reason = value.get("reason").and_then(Value::as_str).unwrap_or("without a reason");
        Err(ClientError::Refused { status, reason: reason.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_path_stay_whole() {
        assert_eq!(path(&["queues", "/", "a b/ü"]), "/queues/%2F/a%20b%2F%C3%BC");
    }
}
