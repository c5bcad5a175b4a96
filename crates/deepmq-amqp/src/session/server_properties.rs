//! What the server says of itself in connection.start.
//!
//! Owns the table. Clients look for the capabilities, some frameworks for product and version.

use deepmq_broker::Broker;
use deepmq_model::{Table, Value};

/// Extensions of AMQP 0-9-1 that are supported, by the names RabbitMQ gave them.
const CAPABILITIES: [&str; 9] = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
];

pub(super) fn server_properties(broker: &Broker) -> Table {
    let config = broker.config();
    let capabilities: Table = CAPABILITIES.into_iter().map(|name| (name, Value::Bool(true))).collect();
    [
        ("capabilities", Value::Table(capabilities)),
        ("cluster_name", Value::str(&config.node_name)),
        ("copyright", Value::str("Copyright (c) the DeepMQ authors")),
        ("information", Value::str("Licensed under MIT or Apache-2.0")),
        ("platform", Value::str("Rust")),
        ("product", Value::str(&config.product)),
        ("version", Value::str(&config.version)),
    ]
    .into_iter()
    .collect()
}
