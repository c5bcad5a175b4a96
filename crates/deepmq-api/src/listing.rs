//! Lists: filtered by name, sorted, cut into pages or streamed whole, with the columns that were asked for.
//!
//! Owns RabbitMQ's query parameters and the form of the answer. Must not know what is listed. Only what is sent is ever
//! made: a list of ten thousand costs their handles, and 32 KiB of text at a time.

mod columns;
mod page;
mod query;
mod sort;

pub(crate) use columns::Columns;
pub(crate) use page::Listing;
pub(crate) use query::{ColumnsQuery, ListQuery};

use crate::error::{ApiError, ApiResult};
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use page::Paging;
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::sleep;

/// A piece of a streamed list is this long, in bytes, or one item longer.
const CHUNK_BYTES: usize = 32 * 1024;
/// After so many pieces, which take some hundred microseconds to make, the next waits for [`BREATH`]: who needs the core gets it
/// soon, and a long list, asked for again and again, takes a small part of one.
const PIECES_IN_A_ROW: u32 = 2;
/// How long it waits.
const BREATH: Duration = Duration::from_millis(1);

/// What a list is made of before it is shown.
pub(crate) trait Named {
    /// By what it is filtered.
    fn name(&self) -> &str;
}

/// A list of `handles`, each shown by `show` when its turn comes.
pub(crate) fn list<H, T, F>(query: &ListQuery, mut handles: Vec<H>, show: F) -> ApiResult<Response>
where
    H: Named + Send + 'static,
    T: Serialize,
    F: Fn(&H) -> T + Send + 'static,
{
    let total = handles.len();
    if let Some(filter) = query.filter()? {
        handles.retain(|handle| filter.is_match(handle.name()));
    }
    if let Some(field) = query.sort_field() {
        sort::by_field(&mut handles, field, &show);
    }
    if query.is_reversed() {
        handles.reverse();
    }
    let columns = query.columns();
    match query.paging(handles.len())? {
        Some(paging) => Ok(page(&paging, total, &handles, &columns, &show)),
        None => Ok(whole(handles, columns, show)),
    }
}

/// One object, with the columns that were asked for.
pub(crate) fn one<T: Serialize>(query: &ColumnsQuery, shown: &T) -> Response {
    let mut text = Vec::new();
    query.columns().write(shown, &mut text);
    json(Body::from(text))
}

fn page<H, T: Serialize>(
    paging: &Paging,
    total: usize,
    handles: &[H],
    columns: &Columns,
    show: &impl Fn(&H) -> T,
) -> Response {
    let items = handles.get(paging.range(handles.len())).unwrap_or_default();
    let mut text = paging.head(total, handles.len(), items.len()).into_bytes();
    for (at, handle) in items.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        columns.write(&show(handle), &mut text);
    }
    text.extend_from_slice(b"]}");
    json(Body::from(text))
}

/// Streams a list. Between its pieces other requests go on, and now and then it leaves the processor to messages.
fn whole<H, T, F>(handles: Vec<H>, columns: Columns, show: F) -> Response
where
    H: Send + 'static,
    T: Serialize,
    F: Fn(&H) -> T + Send + 'static,
{
    if handles.is_empty() {
        return json(Body::from("[]"));
    }
    let state = (handles.into_iter().peekable(), (b'[', 0), columns, show);
    let pieces = stream::unfold(state, |(mut handles, (mut before, in_a_row), columns, show)| async move {
        handles.peek()?;
        let in_a_row = if in_a_row == PIECES_IN_A_ROW {
            sleep(BREATH).await;
            0
        } else {
            yield_now().await;
            in_a_row + 1
        };
        let mut piece = Vec::with_capacity(CHUNK_BYTES);
        while piece.len() < CHUNK_BYTES
            && let Some(handle) = handles.next()
        {
            piece.push(before);
            before = b',';
            columns.write(&show(&handle), &mut piece);
        }
        if handles.peek().is_none() {
            piece.push(b']');
        }
        Some((Ok::<_, Infallible>(Bytes::from(piece)), (handles, (before, in_a_row), columns, show)))
    });
    json(Body::from_stream(pieces))
}

fn json(body: Body) -> Response {
    let mut response = body.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The text of a wrong parameter.
fn wrong(parameter: &str, what: &str) -> ApiError {
    ApiError::bad_request(format!("{parameter}: {what}"))
}

#[cfg(test)]
mod tests;
