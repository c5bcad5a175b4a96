//! Series of each object: RabbitMQ's `/metrics/per-object` and `/metrics/detailed`.
//!
//! Owns which families there are and whose series they hold. Must not know how they are asked for. A family tells of so many
//! objects at most, and how many it leaves out.

use super::text::{Kind, Text};
use crate::api::Api;
use deepmq_broker::connection::{ChannelInfo, ConnectionInfo};
use deepmq_broker::queue::{Counters, Depth, Storage};
use deepmq_broker::traffic::Traffic;
use deepmq_broker::vhost::{ExchangeTraffic, RunningQueue};
use deepmq_model::Name;
use std::sync::Arc;

use Kind::{Counter, Gauge};

/// Objects that one family tells of.
pub(super) const OBJECTS_MAX: usize = 5_000;

/// Which series are wanted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// RabbitMQ's names of families; none: all.
    pub(super) families: Vec<String>,
    /// Vhosts; none: all.
    pub(super) vhosts: Vec<String>,
}

impl Wanted {
    fn has_family(&self, family: &str) -> bool {
        self.families.is_empty() || self.families.iter().any(|wanted| wanted == family)
    }

    fn has_vhost(&self, vhost: &str) -> bool {
        self.vhosts.is_empty() || self.vhosts.iter().any(|wanted| wanted == vhost)
    }
}

/// One metric of a family, read off an object.
struct Series<T>(&'static str, Kind, &'static str, fn(&T) -> u64);

/// Series of one kind of object under one prefix.
struct Writer<'a> {
    prefix: &'a str,
    text: &'a mut Text,
}

impl Writer<'_> {
    fn write<T>(
        &mut self,
        family: &str,
        objects: &[T],
        labels: impl Fn(&T) -> Vec<(&'static str, String)>,
        series: &[Series<T>],
    ) {
        let told = objects.get(..OBJECTS_MAX).unwrap_or(objects);
        for Series(name, kind, help, read) in series {
            let name = format!("{}{name}", self.prefix);
            self.text.family(&name, *kind, help);
            for object in told {
                let labels = labels(object);
                let labels: Vec<_> = labels.iter().map(|(key, value)| (*key, value.as_str())).collect();
                self.text.sample(&name, &labels, read(object));
            }
        }
        if told.len() < objects.len() {
            self.text.omitted(family, objects.len() - told.len());
        }
    }
}

/// A queue as it was at one moment, and how old its oldest message is at least.
struct QueueOf {
    vhost: Name,
    name: Name,
    depth: Depth,
    counters: Counters,
    storage: Storage,
    age_seconds: u64,
}

impl QueueOf {
    fn new(api: &Api, queue: &RunningQueue) -> Self {
        let running = &queue.running;
        Self {
            vhost: running.vhost().clone(),
            name: running.name().clone(),
            depth: running.depth(),
            counters: running.counters(),
            storage: running.storage(),
            age_seconds: api.oldest_age(running).unwrap_or_default().as_secs(),
        }
    }
}

/// An exchange, and what passed it.
struct ExchangeOf {
    vhost: Name,
    name: Name,
    traffic: ExchangeTraffic,
}

/// A connection, with its bytes and channels.
struct ConnectionOf {
    info: ConnectionInfo,
    traffic: Traffic,
    channels: Vec<ChannelInfo>,
}

/// Writes the families that are wanted.
pub(super) fn write(api: &Api, prefix: &str, wanted: &Wanted, text: &mut Text) {
    let mut vhosts = api.broker().vhosts();
    vhosts.retain(|vhost| wanted.has_vhost(vhost.name()));
    let mut writer = Writer { prefix, text };
    let all = vhosts.iter().flat_map(|vhost| vhost.declared_queues());
    queues(&all.map(|queue| QueueOf::new(api, &queue)).collect::<Vec<_>>(), wanted, &mut writer);
    if wanted.has_family("exchange_metrics") {
        exchanges(&vhosts, &mut writer);
    }
    let families = ["connection_coarse_metrics", "connection_metrics", "channel_metrics"];
    if families.iter().any(|family| wanted.has_family(family)) {
        connections(api, wanted, &mut writer);
    }
    if wanted.has_family("vhost_status") {
        let failed = api.broker().storage_failure().is_some();
        writer.text.family("rabbitmq_cluster_vhost_status", Gauge, "1 while the vhost runs.");
        for vhost in &vhosts {
            let labels = [("vhost", &**vhost.name())];
            writer.text.sample("rabbitmq_cluster_vhost_status", &labels, u8::from(!failed));
        }
    }
}

const DEPTH: [Series<QueueOf>; 3] = [
    Series("queue_messages_ready", Gauge, "Messages that wait.", |queue| queue.depth.ready),
    Series("queue_messages_unacked", Gauge, "Delivered and not settled.", |queue| queue.depth.unacked),
    Series("queue_messages", Gauge, "All, dead letters too.", |queue| queue.depth.messages()),
];

const CONSUMERS: [Series<QueueOf>; 1] =
    [Series("queue_consumers", Gauge, "Consumers.", |queue| queue.depth.consumers as u64)];

const STORAGE: [Series<QueueOf>; 5] = [
    Series("queue_oldest_message_age_seconds", Gauge, "How old its oldest message is at least.", |queue| {
        queue.age_seconds
    }),
    Series("queue_messages_ram_bytes", Gauge, "Memory of the messages.", |queue| queue.depth.bytes as u64),
    Series("queue_messages_paged_out", Gauge, "Messages on disk alone.", |queue| {
        queue.storage.paged_out_messages
    }),
    Series("queue_disk_bytes", Gauge, "Bytes of its segments.", |queue| queue.storage.segment_bytes),
    Series("queue_messages_lost", Gauge, "Lost to damage on disk.", |queue| queue.counters.lost),
];

const TRAFFIC: [Series<QueueOf>; 7] = [
    Series("queue_messages_published_total", Counter, "Messages taken.", |queue| queue.counters.published),
    Series("queue_messages_delivered_total", Counter, "To consumers that do not acknowledge.", |queue| {
        queue.counters.delivered_no_ack
    }),
    Series("queue_messages_delivered_ack_total", Counter, "To consumers that acknowledge.", |queue| {
        queue.counters.delivered - queue.counters.delivered_no_ack
    }),
    Series("queue_get_total", Counter, "Fetched without acknowledgement.", |queue| {
        queue.counters.fetched_no_ack
    }),
    Series("queue_get_ack_total", Counter, "Fetched, to be acknowledged.", |queue| {
        queue.counters.fetched - queue.counters.fetched_no_ack
    }),
    Series("queue_messages_redelivered_total", Counter, "Handed out again.", |queue| {
        queue.counters.redelivered
    }),
    Series("queue_messages_acked_total", Counter, "Acknowledged.", |queue| queue.counters.acked),
];

fn queues(queues: &[QueueOf], wanted: &Wanted, writer: &mut Writer<'_>) {
    let labels =
        |queue: &QueueOf| vec![("vhost", queue.vhost.to_string()), ("queue", queue.name.to_string())];
    let families: [(&str, &[Series<QueueOf>]); 4] = [
        ("queue_coarse_metrics", &DEPTH),
        ("queue_consumer_count", &CONSUMERS),
        ("queue_metrics", &STORAGE),
        ("queue_delivery_metrics", &TRAFFIC),
    ];
    for (family, series) in families.iter().filter(|(family, _)| wanted.has_family(family)) {
        writer.write(family, queues, labels, series);
    }
}

fn exchanges(vhosts: &[Arc<deepmq_broker::Vhost>], writer: &mut Writer<'_>) {
    let of = |vhost: &Arc<deepmq_broker::Vhost>| {
        let vhost = vhost.clone();
        vhost.exchanges().into_iter().map(move |exchange| ExchangeOf {
            vhost: vhost.name().clone(),
            traffic: vhost.exchange_traffic(&exchange.name),
            name: exchange.name,
        })
    };
    let exchanges: Vec<_> = vhosts.iter().flat_map(of).collect();
    let labels = |of: &ExchangeOf| vec![("vhost", of.vhost.to_string()), ("exchange", of.name.to_string())];
    let series: [Series<ExchangeOf>; 2] = [
        Series("exchange_messages_published_in_total", Counter, "Messages published to it.", |of| {
            of.traffic.published_in
        }),
        Series(
            "exchange_messages_published_out_total",
            Counter,
            "Copies of them that went to queues.",
            |of| of.traffic.published_out,
        ),
    ];
    writer.write("exchange_metrics", &exchanges, labels, &series);
}

fn connections(api: &Api, wanted: &Wanted, writer: &mut Writer<'_>) {
    let broker = api.broker();
    let mut infos = broker.connections();
    infos.retain(|info| wanted.has_vhost(&info.vhost));
    let of = |info: ConnectionInfo| ConnectionOf {
        traffic: broker.traffic_of(info.id).unwrap_or_default(),
        channels: broker.channels(info.id),
        info,
    };
    let connections: Vec<_> = infos.into_iter().map(of).collect();
    let labels = |of: &ConnectionOf| vec![("connection", of.info.id.0.to_string())];
    let bytes: [Series<ConnectionOf>; 2] = [
        Series("connection_incoming_bytes_total", Counter, "Bytes from the client.", |of| {
            of.traffic.received_bytes
        }),
        Series("connection_outgoing_bytes_total", Counter, "Bytes to the client.", |of| {
            of.traffic.sent_bytes
        }),
    ];
    let count: [Series<ConnectionOf>; 1] =
        [Series("connection_channels", Gauge, "Channels.", |of| of.channels.len() as u64)];
    if wanted.has_family("connection_coarse_metrics") {
        writer.write("connection_coarse_metrics", &connections, labels, &bytes);
    }
    if wanted.has_family("connection_metrics") {
        writer.write("connection_metrics", &connections, labels, &count);
    }
    if wanted.has_family("channel_metrics") {
        channels(&connections, writer);
    }
}

fn channels(connections: &[ConnectionOf], writer: &mut Writer<'_>) {
    let of = |of: &ConnectionOf| {
        let id = of.info.id.0;
        of.channels.clone().into_iter().map(move |channel| (id, channel))
    };
    let channels: Vec<(u64, ChannelInfo)> = connections.iter().flat_map(of).collect();
    let labels = |(connection, channel): &(u64, ChannelInfo)| {
        vec![("connection", connection.to_string()), ("channel", channel.number.to_string())]
    };
    let series: [Series<(u64, ChannelInfo)>; 6] = [
        Series("channel_consumers", Gauge, "Consumers.", |(_, channel)| channel.consumers as u64),
        Series("channel_messages_unacked", Gauge, "Delivered and not settled.", |(_, channel)| {
            channel.unacked as u64
        }),
        Series("channel_messages_unconfirmed", Gauge, "Published and not confirmed.", |(_, channel)| {
            channel.unconfirmed
        }),
        Series("channel_messages_uncommitted", Gauge, "Published in an open transaction.", |(_, channel)| {
            channel.uncommitted
        }),
        Series("channel_acks_uncommitted", Gauge, "Settled in an open transaction.", |(_, channel)| {
            channel.uncommitted_acks
        }),
        Series("channel_prefetch", Gauge, "The limit that its consumers share.", |(_, channel)| {
            channel.prefetch_shared.into()
        }),
    ];
    writer.write("channel_metrics", &channels, labels, &series);
}
