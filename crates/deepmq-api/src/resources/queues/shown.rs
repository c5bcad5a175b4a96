//! A queue as it is shown.
//!
//! Owns RabbitMQ's names of what a queue holds and counts. Must not know requests.

use super::super::consumers::{self, Connections, Consumer};
use crate::api::Api;
use crate::arguments::Arguments;
use crate::rates::Watched;
use crate::stats::{MessageStats, Rate, depth_rates, of_queue};
use deepmq_broker::queue::Storage;
use deepmq_broker::vhost::RunningQueue;
use deepmq_storage::Durability;
use serde::Serialize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

/// A queue that did nothing for so long is idle.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// A queue
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queue {
    name: String,
    vhost: String,
    /// `classic` or `quorum`
    #[serde(rename = "type")]
    kind: String,
    durable: bool,
    auto_delete: bool,
    exclusive: bool,
    arguments: Arguments,
    node: String,
    state: &'static str,
    policy: Option<String>,
    operator_policy: Option<String>,
    effective_policy_definition: Arguments,
    /// Ready and unacked ones, and dead letters
    messages: u64,
    messages_details: Rate,
    messages_ready: u64,
    messages_ready_details: Rate,
    messages_unacknowledged: u64,
    messages_unacknowledged_details: Rate,
    /// Those that died here and are to be placed where dead letters go. With `x-dead-letter-strategy: at-least-once` they stay until
    /// they are
    messages_dlx: u64,
    /// Those in memory
    messages_ram: u64,
    /// Those on disk alone
    messages_paged_out: u64,
    /// Bytes of the messages, with what is kept beside them, in memory or not; those on disk alone are estimated
    message_bytes: u64,
    /// Bytes of the bodies of dead letters
    message_bytes_dlx: u64,
    message_bytes_ram: u64,
    message_bytes_paged_out: u64,
    /// Memory it takes, in bytes: that of its messages
    memory: usize,
    /// Segment files on disk
    segments: usize,
    /// Their bytes
    segment_bytes: u64,
    /// About how many of these are of messages that are still needed
    live_segment_bytes: u64,
    /// Messages in segments that are still needed, in memory or not
    messages_stored: u64,
    /// When a persistent message is confirmed: `fsync`, once it is synced; `os`, once it is handed to the operating system;
    /// null: nothing of the queue is kept
    durability: Option<&'static str>,
    /// The place of the oldest message that was delivered and not settled; places are counted from the queue's first message
    oldest_unacked_position: Option<u64>,
    /// That message is in a segment, which stays on disk for it
    oldest_unacked_pins_segment: bool,
    /// Messages that were lost to damage on disk
    messages_lost: u64,
    /// How old its oldest message is at least, in seconds: since somebody first looked and found it; null without a message
    oldest_message_age: Option<f64>,
    /// What the first ready message says its time is (its property `timestamp`), in seconds since 1970; null if it does not
    /// say, or is on disk alone
    head_message_timestamp: Option<u64>,
    /// How many consumers it has
    consumers: usize,
    /// 1 if there are consumers and they take what comes at once; 0 if there are none, or messages wait for them. It is of this
    /// moment, not of a time
    consumer_capacity: f64,
    /// The same
    consumer_utilisation: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive_consumer_tag: Option<String>,
    /// Since when nothing happened, as far as somebody looked
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_since: Option<String>,
    message_stats: MessageStats,
    user_who_performed_action: String,
}

/// A queue with its consumers
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueDetails {
    #[serde(flatten)]
    queue: Queue,
    consumer_details: Vec<Consumer>,
}

pub(crate) fn details(api: &Api, handle: &RunningQueue) -> QueueDetails {
    let queue = show(api, handle);
    let consumers = handle.running.consumers();
    let connections = if consumers.is_empty() { Connections::default() } else { consumers::connections(api) };
    let show = |info| consumers::show(api, &connections, &handle.running, info);
    QueueDetails { queue, consumer_details: consumers.iter().map(show).collect() }
}

pub(crate) fn show(api: &Api, handle: &RunningQueue) -> Queue {
    let RunningQueue { declared, running, policy } = handle;
    let storage = running.storage();
    let (depth, counters) = (running.depth(), running.counters());
    let (message_stats, rated) =
        MessageStats::sample(api, Watched::Queue(running.into()), &of_queue(&counters));
    let [messages, ready, unacked] = depth_rates(api, Watched::Depth(running.into()), &depth);
    let exclusive = match depth.consumers {
        1 => running.consumers().into_iter().find(|consumer| consumer.spec.exclusive),
        _ => None,
    };
    // Messages that wait say that consumers cannot take them.
    let capacity = if depth.consumers > 0 && depth.ready == 0 { 1.0 } else { 0.0 };
    Queue {
        name: declared.name.to_string(),
        vhost: running.vhost().to_string(),
        kind: declared.settings.kind.to_string(),
        durable: declared.durable,
        auto_delete: declared.auto_delete,
        exclusive: declared.owner.is_some(),
        arguments: Arguments(declared.arguments.clone()),
        node: api.node().to_owned(),
        state: "running",
        policy: policy.policy.as_ref().map(ToString::to_string),
        operator_policy: policy.operator_policy.as_ref().map(ToString::to_string),
        effective_policy_definition: Arguments(policy.definition.clone()),
        messages: depth.messages(),
        messages_details: messages,
        messages_ready: depth.ready,
        messages_ready_details: ready,
        messages_unacknowledged: depth.unacked,
        messages_unacknowledged_details: unacked,
        messages_dlx: depth.dead_letters,
        messages_ram: depth.messages().saturating_sub(storage.paged_out_messages),
        messages_paged_out: storage.paged_out_messages,
        message_bytes: depth.bytes as u64 + paged_out_bytes(&storage),
        message_bytes_dlx: depth.dead_letter_bytes,
        message_bytes_ram: depth.bytes as u64,
        message_bytes_paged_out: paged_out_bytes(&storage),
        memory: depth.bytes,
        segments: storage.segments,
        segment_bytes: storage.segment_bytes,
        live_segment_bytes: storage.live_segment_bytes,
        messages_stored: storage.stored_messages,
        durability: running.durability().map(|durability| match durability {
            Durability::Fsync => "fsync",
            Durability::Os => "os",
        }),
        oldest_unacked_position: storage.oldest_unacked.map(|position| position.0),
        oldest_unacked_pins_segment: storage.oldest_unacked_is_stored,
        messages_lost: counters.lost,
        oldest_message_age: api.oldest_age(running).map(|age| age.as_secs_f64()),
        head_message_timestamp: running.head_timestamp(),
        consumers: depth.consumers,
        consumer_capacity: capacity,
        consumer_utilisation: capacity,
        exclusive_consumer_tag: exclusive.map(|consumer| consumer.tag.to_string()),
        idle_since: idle_since(api, rated.idle_since),
        message_stats,
        user_who_performed_action: String::new(),
    }
}

/// By the average of what is on disk.
fn paged_out_bytes(storage: &Storage) -> u64 {
    let each = storage.live_segment_bytes.checked_div(storage.stored_messages).unwrap_or_default();
    each * storage.paged_out_messages
}

fn idle_since(api: &Api, since: Duration) -> Option<String> {
    let idle = api.now().saturating_sub(since);
    (idle >= IDLE_AFTER).then(|| rfc3339(api.broker().seam().clock.wall().checked_sub(idle)))
}

/// A date as RabbitMQ writes it: `2026-01-31T23:59:59.123+00:00`.
fn rfc3339(at: Option<SystemTime>) -> String {
    let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}+00:00")
}

/// Year, month and day of a day since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let shown = |seconds| rfc3339(Some(UNIX_EPOCH + Duration::from_secs(seconds)));
        assert_eq!(shown(0), "1970-01-01T00:00:00.000+00:00");
        assert_eq!(shown(951_827_696), "2000-02-29T12:34:56.000+00:00");
        assert_eq!(shown(4_107_542_400), "2100-03-01T00:00:00.000+00:00");
    }
}
