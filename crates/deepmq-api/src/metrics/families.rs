//! The metrics one by one.
//!
//! Owns their names, which boards and alerts rely on. Must not know the format.

use super::latency;
use super::text::{Kind, Text};
use crate::api::Api;
use crate::process::{Disk, Process};
use crate::resources::overview::Sums;
use deepmq_broker::traffic::MessageCounts;
use deepmq_broker::users::Tally;
use deepmq_broker::vhost::RunningQueue;

use Kind::{Counter, Gauge};

/// RabbitMQ's label for AMQP 0-9-1.
const PROTOCOL: &str = "amqp091";
/// RabbitMQ's label for queues of one engine.
const QUEUE_TYPE: &str = "rabbit_classic_queue";

/// Writes them all.
pub(super) fn write(api: &Api, text: &mut Text) {
    let queues: Vec<_> = api.broker().vhosts().iter().flat_map(|vhost| vhost.declared_queues()).collect();
    identity(api, text);
    process(api, text);
    alarms(api, text);
    objects(api, &queues, text);
    churn(api, text);
    messages(api, text);
    oldest(api, &queues, text);
    latency::write(api, text);
    logins(api, text);
    damage(api, &queues, text);
    if queues.len() <= api.config().metrics_queues_max {
        each_queue(api, &queues, text);
    }
}

pub(super) fn identity(api: &Api, text: &mut Text) {
    let config = api.broker().config();
    text.family("rabbitmq_identity_info", Gauge, "Which node and cluster this is.");
    let labels = [("rabbitmq_node", api.node()), ("rabbitmq_cluster", api.node())];
    text.sample("rabbitmq_identity_info", &labels, 1);
    let labels = [
        ("rabbitmq_version", &*config.version),
        ("product_name", &*config.product),
        ("product_version", &*config.version),
    ];
    for name in ["deepmq_build_info", "rabbitmq_build_info"] {
        text.family(name, Gauge, "The version.");
        text.sample(name, &labels, 1);
    }
    let uptime = api.now().as_secs_f64();
    text.one(&["deepmq_uptime_seconds", "rabbitmq_erlang_uptime_seconds"], Gauge, "Since the start.", uptime);
}

fn process(api: &Api, text: &mut Text) {
    let (process, memory) = (Process::inspect(), api.broker().memory());
    let gauges: [(&[&str], &str, u64); 7] = [
        (
            &["process_resident_memory_bytes", "rabbitmq_process_resident_memory_bytes"],
            "Resident memory.",
            process.resident_bytes,
        ),
        (&["process_virtual_memory_bytes"], "Virtual memory.", process.virtual_bytes),
        (&["process_open_fds", "rabbitmq_process_open_fds"], "Open files.", process.open_files),
        (&["process_max_fds", "rabbitmq_process_max_fds"], "Open files allowed.", process.open_files_max),
        (&["process_threads"], "Threads.", process.threads),
        (&["deepmq_message_memory_bytes"], "Memory of all messages.", memory.used() as u64),
        (
            &["deepmq_message_memory_limit_bytes", "rabbitmq_resident_memory_limit_bytes"],
            "Memory of messages at which publishers are blocked.",
            memory.max() as u64,
        ),
    ];
    for (names, help, value) in gauges {
        text.one(names, Gauge, help, value);
    }
    text.one(&["process_cpu_seconds_total"], Counter, "CPU time.", process.cpu_seconds);
    if let Some(disk) = api.broker().config().data_dir.as_deref().and_then(Disk::inspect) {
        let names = ["deepmq_disk_available_bytes", "rabbitmq_disk_space_available_bytes"];
        text.one(&names, Gauge, "Room on the disk of the data directory.", disk.free_bytes);
        text.one(&["deepmq_disk_bytes"], Gauge, "Size of the disk of the data directory.", disk.total_bytes);
    }
}

fn alarms(api: &Api, text: &mut Text) {
    let memory = u8::from(api.broker().memory().is_full());
    text.one(
        &["rabbitmq_alarms_memory_used_watermark"],
        Gauge,
        "1 while publishers are blocked for memory.",
        memory,
    );
    let disk = u8::from(api.broker().status().disk.is_some_and(|disk| disk.alarm));
    text.one(&["rabbitmq_alarms_free_disk_space_watermark"], Gauge, "1 while they are for the disk.", disk);
    text.family("deepmq_alarm", Gauge, "1 while an alarm is in effect.");
    text.sample("deepmq_alarm", &[("resource", "memory")], memory);
    text.sample("deepmq_alarm", &[("resource", "disk")], disk);
}

fn objects(api: &Api, queues: &[RunningQueue], text: &mut Text) {
    let broker = api.broker();
    let (status, sums) = (broker.status(), Sums::of(queues));
    let channels: usize = broker.connections().iter().map(|one| broker.channels(one.id).len()).sum();
    let (ready, unacked) = (sums.depth.ready, sums.depth.unacked);
    let count = |count: usize| count as u64;
    let gauges: [(&[&str], &str, u64); 10] = [
        (&["deepmq_connections", "rabbitmq_connections"], "Open connections.", count(status.connections)),
        (&["deepmq_channels", "rabbitmq_channels"], "Open channels.", count(channels)),
        (&["deepmq_consumers", "rabbitmq_consumers"], "Consumers.", count(sums.depth.consumers)),
        (&["deepmq_queues", "rabbitmq_queues"], "Queues.", count(status.queues)),
        (&["deepmq_exchanges"], "Exchanges.", count(status.exchanges)),
        (&["deepmq_vhosts"], "Vhosts.", count(status.vhosts)),
        (&["deepmq_messages", "rabbitmq_queue_messages"], "Messages of all queues.", sums.depth.messages()),
        (&["deepmq_messages_ready", "rabbitmq_queue_messages_ready"], "Those that wait.", ready),
        (
            &["deepmq_messages_unacked", "rabbitmq_queue_messages_unacked"],
            "Those delivered and not settled.",
            unacked,
        ),
        (&["rabbitmq_queue_consumers"], "Consumers of all queues.", count(sums.depth.consumers)),
    ];
    for (names, help, value) in gauges {
        text.one(names, Gauge, help, value);
    }
}

fn churn(api: &Api, text: &mut Text) {
    let churn = api.broker().events().churn();
    let counters: [(&[&str], &str, u64); 7] = [
        (
            &["deepmq_connections_opened_total", "rabbitmq_connections_opened_total"],
            "Connections opened.",
            churn.connections_opened,
        ),
        (
            &["deepmq_connections_closed_total", "rabbitmq_connections_closed_total"],
            "Connections closed.",
            churn.connections_closed,
        ),
        (
            &["deepmq_channels_opened_total", "rabbitmq_channels_opened_total"],
            "Channels opened.",
            churn.channels_opened,
        ),
        (
            &["deepmq_channels_closed_total", "rabbitmq_channels_closed_total"],
            "Channels closed.",
            churn.channels_closed,
        ),
        (&["rabbitmq_queues_declared_total"], "Queues declared.", churn.queues_created),
        (
            &["deepmq_queues_created_total", "rabbitmq_queues_created_total"],
            "Queues created.",
            churn.queues_created,
        ),
        (
            &["deepmq_queues_deleted_total", "rabbitmq_queues_deleted_total"],
            "Queues deleted.",
            churn.queues_deleted,
        ),
    ];
    for (names, help, value) in counters {
        text.one(names, Counter, help, value);
    }
}

fn oldest(api: &Api, queues: &[RunningQueue], text: &mut Text) {
    let ages = queues.iter().filter_map(|queue| api.oldest_age(&queue.running));
    let oldest = ages.max().unwrap_or_default().as_secs_f64();
    let help = "How old the oldest message of any queue is at least.";
    text.one(&["deepmq_oldest_message_age_seconds"], Gauge, help, oldest);
}

fn logins(api: &Api, text: &mut Text) {
    type Read = fn(Tally) -> u64;
    let protocols = api.broker().users().attempts().by_protocol();
    let series: [(&str, &str, Read); 3] = [
        ("rabbitmq_auth_attempts_total", "Logins tried.", |tally| tally.succeeded + tally.failed),
        ("rabbitmq_auth_attempts_succeeded_total", "Logins that were let in.", |tally| tally.succeeded),
        ("rabbitmq_auth_attempts_failed_total", "Logins that were refused.", |tally| tally.failed),
    ];
    for (name, help, read) in series {
        text.family(name, Counter, help);
        protocols
            .iter()
            .for_each(|(protocol, tally)| text.sample(name, &[("protocol", protocol)], read(*tally)));
    }
}

fn damage(api: &Api, queues: &[RunningQueue], text: &mut Text) {
    let found = api.broker().durable().map_or(0, |durable| durable.damage().len());
    text.one(&["deepmq_damage_found"], Gauge, "Damaged places in the data directory at the start.", found);
    let lost: u64 = queues.iter().map(|queue| queue.running.counters().lost).sum();
    text.one(
        &["deepmq_messages_lost"],
        Gauge,
        "Messages of all queues that were lost to damage on disk.",
        lost,
    );
}

fn messages(api: &Api, text: &mut Text) {
    let traffic = api.broker().traffic();
    text.one(&["deepmq_received_bytes_total"], Counter, "Bytes from clients.", traffic.received_bytes);
    text.one(&["deepmq_sent_bytes_total"], Counter, "Bytes to clients.", traffic.sent_bytes);
    for (name, help, value) in by_publisher(&traffic.messages) {
        counted(text, name, help, value, &[("protocol", PROTOCOL)]);
    }
    for (name, help, value) in by_consumer(&traffic.messages) {
        counted(text, name, help, value, &[("protocol", PROTOCOL), ("queue_type", QUEUE_TYPE)]);
    }
}

fn counted(text: &mut Text, name: &str, help: &str, value: u64, labels: &[(&str, &str)]) {
    text.one(&[&format!("deepmq_{name}_total")], Counter, help, value);
    let theirs = format!("rabbitmq_global_{name}_total");
    text.family(&theirs, Counter, help);
    text.sample(&theirs, labels, value);
}

fn by_publisher(counts: &MessageCounts) -> [(&'static str, &'static str, u64); 5] {
    let routed = counts.published.saturating_sub(counts.returned + counts.dropped);
    [
        ("messages_received", "Messages from publishers.", counts.published),
        ("messages_routed", "Messages that went to a queue.", routed),
        ("messages_confirmed", "Messages confirmed.", counts.confirmed),
        ("messages_unroutable_dropped", "Messages that went to no queue.", counts.dropped),
        ("messages_unroutable_returned", "Messages that were returned.", counts.returned),
    ]
}

fn by_consumer(counts: &MessageCounts) -> [(&'static str, &'static str, u64); 7] {
    let fetched = counts.fetched + counts.fetched_no_ack;
    let delivered = counts.delivered + counts.delivered_no_ack + fetched;
    [
        ("messages_delivered", "Messages delivered or fetched.", delivered),
        ("messages_delivered_consume_manual_ack", "To consumers that acknowledge.", counts.delivered),
        ("messages_delivered_consume_auto_ack", "To consumers that do not.", counts.delivered_no_ack),
        ("messages_delivered_get_manual_ack", "Fetched, to be acknowledged.", counts.fetched),
        ("messages_delivered_get_auto_ack", "Fetched without acknowledgement.", counts.fetched_no_ack),
        ("messages_redelivered", "Messages handed out again.", counts.redelivered),
        ("messages_acknowledged", "Messages acknowledged.", counts.acked),
    ]
}

/// Series of each queue, under names of their own: a sum over one name must not count a message twice.
fn each_queue(api: &Api, queues: &[RunningQueue], text: &mut Text) {
    type Read = fn(&RunningQueue) -> u64;
    let series: [(&str, Kind, &str, Read); 7] = [
        ("queue_messages_ready", Gauge, "Messages that wait.", |queue| queue.running.depth().ready),
        ("queue_messages_unacked", Gauge, "Delivered and not settled.", |queue| {
            queue.running.depth().unacked
        }),
        ("queue_message_bytes", Gauge, "Memory of the messages.", |queue| queue.running.depth().bytes as u64),
        ("queue_consumers", Gauge, "Consumers.", |queue| queue.running.depth().consumers as u64),
        ("queue_published_total", Counter, "Messages taken.", |queue| queue.running.counters().published),
        ("queue_delivered_total", Counter, "Delivered or fetched.", |queue| {
            queue.running.counters().delivered + queue.running.counters().fetched
        }),
        ("queue_acked_total", Counter, "Messages acknowledged.", |queue| queue.running.counters().acked),
    ];
    for (name, kind, help, read) in series {
        let name = format!("deepmq_{name}");
        text.family(&name, kind, help);
        for queue in queues {
            let labels = [("vhost", &**queue.running.vhost()), ("queue", &*queue.declared.name)];
            text.sample(&name, &labels, read(queue));
        }
    }
    let name = "deepmq_queue_oldest_message_age_seconds";
    text.family(name, Gauge, "How old the oldest message is at least.");
    for queue in queues {
        let age = api.oldest_age(&queue.running).unwrap_or_default();
        let labels = [("vhost", &**queue.running.vhost()), ("queue", &*queue.declared.name)];
        text.sample(name, &labels, age.as_secs_f64());
    }
}
