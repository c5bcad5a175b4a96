//! Counters as RabbitMQ shows them: each with its rate beside it.
//!
//! Owns the names, which tools rely on. Must not know where the counters come from.

use crate::api::Api;
use crate::rates::{Counters, Rated, Watched};
use deepmq_broker::queue::{Counters as QueueCounters, Depth};
use deepmq_broker::traffic::MessageCounts;
use serde::Serialize;
use utoipa::ToSchema;

/// How fast a counter grows
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Rate {
    /// Per second, since it was looked at before
    pub(crate) rate: f64,
}

/// Messages by what became of them, and how fast
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct MessageStats {
    publish: u64,
    publish_details: Rate,
    confirm: u64,
    confirm_details: Rate,
    return_unroutable: u64,
    return_unroutable_details: Rate,
    drop_unroutable: u64,
    drop_unroutable_details: Rate,
    /// Delivered to consumers that acknowledge
    deliver: u64,
    deliver_details: Rate,
    deliver_no_ack: u64,
    deliver_no_ack_details: Rate,
    get: u64,
    get_details: Rate,
    get_no_ack: u64,
    get_no_ack_details: Rate,
    /// All that were delivered or fetched
    deliver_get: u64,
    deliver_get_details: Rate,
    redeliver: u64,
    redeliver_details: Rate,
    ack: u64,
    ack_details: Rate,
}

impl MessageStats {
    /// Samples the counters of something.
    pub(crate) fn sample(api: &Api, watched: Watched, counts: &MessageCounts) -> (Self, Rated) {
        let rated = api.rates().sample(watched, counters(counts), api.now());
        (Self::new(counts, &rated), rated)
    }

    fn new(counts: &MessageCounts, rated: &Rated) -> Self {
        let [publish, confirm, returned, dropped, deliver, deliver_no_ack, get, get_no_ack, redeliver, ack] =
            rated.rates.map(|rate| Rate { rate });
        let out = [deliver, deliver_no_ack, get, get_no_ack];
        Self {
            publish: counts.published,
            publish_details: publish,
            confirm: counts.confirmed,
            confirm_details: confirm,
            return_unroutable: counts.returned,
            return_unroutable_details: returned,
            drop_unroutable: counts.dropped,
            drop_unroutable_details: dropped,
            deliver: counts.delivered,
            deliver_details: deliver,
            deliver_no_ack: counts.delivered_no_ack,
            deliver_no_ack_details: deliver_no_ack,
            get: counts.fetched,
            get_details: get,
            get_no_ack: counts.fetched_no_ack,
            get_no_ack_details: get_no_ack,
            deliver_get: counts.delivered + counts.delivered_no_ack + counts.fetched + counts.fetched_no_ack,
            deliver_get_details: Rate { rate: out.iter().map(|out| out.rate).sum() },
            redeliver: counts.redelivered,
            redeliver_details: redeliver,
            ack: counts.acked,
            ack_details: ack,
        }
    }
}

fn counters(counts: &MessageCounts) -> Counters {
    [
        counts.published,
        counts.confirmed,
        counts.returned,
        counts.dropped,
        counts.delivered,
        counts.delivered_no_ack,
        counts.fetched,
        counts.fetched_no_ack,
        counts.redelivered,
        counts.acked,
    ]
}

/// What a queue counted, by the same names.
pub(crate) fn of_queue(counters: &QueueCounters) -> MessageCounts {
    MessageCounts {
        published: counters.published,
        delivered: counters.delivered - counters.delivered_no_ack,
        delivered_no_ack: counters.delivered_no_ack,
        fetched: counters.fetched - counters.fetched_no_ack,
        fetched_no_ack: counters.fetched_no_ack,
        redelivered: counters.redelivered,
        acked: counters.acked,
        ..MessageCounts::default()
    }
}

/// How fast all messages, the ready and the unacked ones grow.
pub(crate) fn depth_rates(api: &Api, watched: Watched, depth: &Depth) -> [Rate; 3] {
    let counters = [depth.messages(), depth.ready, depth.unacked, 0, 0, 0, 0, 0, 0, 0];
    let [messages, ready, unacked, ..] = api.rates().sample(watched, counters, api.now()).rates;
    [messages, ready, unacked].map(|rate| Rate { rate })
}
