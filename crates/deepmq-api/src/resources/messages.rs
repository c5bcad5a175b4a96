//! Messages: publish one, and look at the first of a queue.
//!
//! Owns `/exchanges/../publish` and `/queues/../get`: for tests and for people, not for speed. Must not know how properties
//! are written in JSON.

mod properties;

use super::{NOBODY, exchange_name};
use crate::api::Api;
use crate::auth::Caller;
use crate::durable::until_durable;
use crate::error::{ApiError, ApiResult};
use crate::request::{At, LONG_BODY_BYTES_MAX, Payload};
use axum::Json;
use axum::extract::State;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use deepmq_broker::message::Delivery;
use deepmq_broker::queue::{Fetched, Outcome, Queue, Settlement};
use deepmq_broker::subscriber::Wakes;
use deepmq_broker::traffic::MessageCounts;
use deepmq_broker::vhost::{Publication, PublishError};
use deepmq_broker::{Shortage, permits};
use deepmq_model::access::Permission;
use deepmq_model::message::carbon::carbon;
use deepmq_model::queue::Position;
use deepmq_model::topology::{NAME_BYTES_MAX, ResourceKind};
use properties::Properties;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use utoipa::ToSchema;

/// What one answer may hold of bodies, in bytes; the message that passes it is the last.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Messages of one answer.
const MESSAGES_MAX: usize = 10_000;

/// A message to be published
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Publish {
    #[serde(default, deserialize_with = "properties::read")]
    properties: Properties,
    routing_key: String,
    payload: String,
    /// `string` or `base64`
    #[serde(default)]
    payload_encoding: Option<String>,
}

/// Whether a message went to a queue
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Routed {
    routed: bool,
}

/// Which messages are wanted, and what becomes of them
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Get {
    /// How many, at most 10000
    count: usize,
    /// `ack_requeue_true` and `reject_requeue_true` put them back, `ack_requeue_false` and `reject_requeue_false` do not
    ackmode: AckMode,
    /// `auto`: as text if it is some; or `base64`
    #[serde(default)]
    encoding: Encoding,
    /// Only so many bytes of each body
    #[serde(default)]
    truncate: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AckMode {
    AckRequeueTrue,
    AckRequeueFalse,
    RejectRequeueTrue,
    RejectRequeueFalse,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    #[default]
    Auto,
    Base64,
}

/// A message
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are RabbitMQ's")]
pub(crate) struct Message {
    /// Bytes of the whole body
    payload_bytes: usize,
    redelivered: bool,
    exchange: String,
    routing_key: String,
    /// Ready messages behind it
    message_count: u64,
    properties: Properties,
    payload: String,
    /// `string` or `base64`
    payload_encoding: &'static str,
}

impl AckMode {
    fn outcome(self) -> Outcome {
        match self {
            Self::AckRequeueTrue => Outcome::Nack { requeue: true },
            Self::AckRequeueFalse => Outcome::Ack,
            Self::RejectRequeueTrue => Outcome::Reject { requeue: true },
            Self::RejectRequeueFalse => Outcome::Reject { requeue: false },
        }
    }
}

/// Publish a message
#[utoipa::path(post, path = "/exchanges/{vhost}/{exchange}/publish", tag = "messages", request_body = Publish,
    responses((status = 200, body = Routed)))]
pub(crate) async fn publish(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, exchange)): At<(String, String)>,
    Payload(message): Payload<Publish, LONG_BODY_BYTES_MAX>,
) -> ApiResult<Json<Routed>> {
    let vhost = caller.enter(&api, &vhost)?;
    let body = body(&message)?;
    let limits = api.broker().limits();
    if body.len() as u64 > limits.message_bytes_max {
        return Err(ApiError::bad_request(format!(
            "the body is larger than {} bytes",
            limits.message_bytes_max
        )));
    }
    let exchange = exchange_name(&exchange);
    let access = caller.access(&api, vhost.name())?;
    permits::publish(&access, &vhost, exchange, message.routing_key.as_bytes())?;
    if exchange.len() > NAME_BYTES_MAX || message.routing_key.len() > NAME_BYTES_MAX {
        return Err(ApiError::bad_request("an exchange and a routing key have at most 255 bytes"));
    }
    let properties = message.properties.encode(&caller.user().name, limits.table_depth_max)?;
    let further = carbon(&properties).map_err(PublishError::from)?;
    let mut further = further.iter().flat_map(|carbon| &carbon.keys);
    further.try_for_each(|key| permits::publish(&access, &vhost, exchange, key))?;
    if let Some(shortage) = api.broker().shortage() {
        let reason = match shortage {
            Shortage::Memory => "publishers are blocked: low on memory",
            Shortage::Disk => "publishers are blocked: low on disk",
            Shortage::Both => "publishers are blocked: low on memory & disk",
        };
        return Err(ApiError::unavailable(reason));
    }
    let publication =
        Publication { exchange, routing_key: &message.routing_key, properties: &properties, body };
    let routed = vhost.publish(&publication)?;
    let dropped = u64::from(routed.queues == 0);
    api.broker().count(MessageCounts { published: 1, dropped, ..MessageCounts::default() });
    until_durable(&api, routed.lsn).await?;
    Ok(Json(Routed { routed: routed.queues > 0 }))
}

fn body(message: &Publish) -> ApiResult<Bytes> {
    match message.payload_encoding.as_deref() {
        None | Some("string") => Ok(Bytes::copy_from_slice(message.payload.as_bytes())),
        Some("base64") => match BASE64_STANDARD.decode(&message.payload) {
            Ok(body) => Ok(body.into()),
            Err(error) => Err(ApiError::bad_request(format!("payload is no base64: {error}"))),
        },
        Some(_) => Err(ApiError::bad_request("payload_encoding must be string or base64")),
    }
}

/// Fetch the first messages of a queue, and put them back or not
#[utoipa::path(post, path = "/queues/{vhost}/{queue}/get", tag = "messages", request_body = Get,
    responses((status = 200, body = Vec<Message>)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, queue)): At<(String, String)>,
    Payload(wanted): Payload<Get>,
) -> ApiResult<Json<Vec<Message>>> {
    if wanted.count > MESSAGES_MAX {
        return Err(ApiError::bad_request(format!("count must be at most {MESSAGES_MAX}")));
    }
    let vhost = caller.enter(&api, &vhost)?;
    caller.permit(&api, vhost.name(), Permission::Read, ResourceKind::Queue, &queue)?;
    let queue = vhost.queue(&queue, NOBODY)?;
    let messages = fetch(&queue, &wanted).await?;
    count(&api, &messages, wanted.ackmode);
    Ok(Json(messages))
}

/// Counts what was fetched in the broker's totals.
fn count(api: &Api, messages: &[Message], mode: AckMode) {
    let fetched = messages.len() as u64;
    let redelivered = messages.iter().filter(|message| message.redelivered).count() as u64;
    let acked = if mode == AckMode::AckRequeueFalse { fetched } else { 0 };
    api.broker().count(MessageCounts { fetched, redelivered, acked, ..MessageCounts::default() });
}

/// Takes all that is wanted first and settles it then, or else the first would come again and again.
async fn fetch(queue: &Arc<Queue>, wanted: &Get) -> ApiResult<Vec<Message>> {
    let (mut messages, mut settlements, mut wakes) = (Vec::new(), Vec::new(), Wakes::default());
    let mut bytes = 0;
    while messages.len() < wanted.count && bytes < ANSWER_BYTES_MAX {
        let take = |delivery: Delivery<'_>, left| (delivery.position, show(&delivery, left, wanted));
        let (position, message) = match queue.fetch(false, take, &mut wakes) {
            Fetched::Message(taken) => taken,
            Fetched::Empty => break,
            Fetched::SingleActive => {
                return Err(ApiError::bad_request(
                    "the queue has a single active consumer, who gets its messages",
                ));
            }
            Fetched::PagedOut => {
                wakes.wake();
                poll_fn(|cx| if queue.poll_paged_in(cx.waker()) { Poll::Ready(()) } else { Poll::Pending })
                    .await;
                continue;
            }
        };
        bytes += message.payload.len();
        settlements.push(settlement(position, wanted.ackmode));
        messages.push(message);
    }
    queue.settle(&settlements, &mut wakes);
    wakes.wake();
    Ok(messages)
}

fn settlement(position: Position, mode: AckMode) -> Settlement {
    Settlement { position, consumer: None, outcome: mode.outcome() }
}

fn show(delivery: &Delivery<'_>, left: u64, wanted: &Get) -> Message {
    let message = delivery.message;
    let whole = message.body.bytes();
    let body = whole.get(..wanted.truncate.unwrap_or(usize::MAX)).unwrap_or(whole);
    let text = std::str::from_utf8(body).ok().filter(|_| wanted.encoding == Encoding::Auto);
    let (payload, payload_encoding) = match text {
        Some(text) => (text.to_owned(), "string"),
        None => (BASE64_STANDARD.encode(body), "base64"),
    };
    Message {
        payload_bytes: whole.len(),
        redelivered: delivery.redelivered,
        exchange: String::from_utf8_lossy(message.exchange()).into_owned(),
        routing_key: String::from_utf8_lossy(message.routing_key()).into_owned(),
        message_count: left,
        properties: Properties::decode(message.properties),
        payload,
        payload_encoding,
    }
}
