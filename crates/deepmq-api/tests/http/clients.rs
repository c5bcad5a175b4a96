//! RabbitMQ's own HTTP client, as its command line tool uses it.

use crate::rig::Rig;
use rabbitmq_http_client::api::Client;
use rabbitmq_http_client::commons::{BindingDestinationType, ExchangeType, QueueType};
use rabbitmq_http_client::requests::{BindingDeletionParams, ExchangeParams, QueueParams};
use serde_json::{Map, json};

/// A client that logs in as `guest`.
pub(crate) fn client(rig: &Rig) -> Client<String, &'static str, &'static str> {
    Client::new(rig.url(""), "guest", "guest")
}

pub(crate) fn map(value: serde_json::Value) -> Map<String, serde_json::Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn it_reads_the_broker_its_node_and_who_asks() {
    let rig = Rig::start().await;
    let client = client(&rig);
    let overview = client.overview().await.unwrap();
    assert_eq!((overview.product_name.as_str(), overview.listeners.len()), ("DeepMQ", 2));
    let nodes = client.list_nodes().await.unwrap();
    assert_eq!(nodes[0].name, overview.node);
    assert!(nodes[0].os_pid > 0);
    client.get_node_info(&overview.node).await.unwrap();
    assert!(client.get_node_memory_footprint(&overview.node).await.unwrap().breakdown.is_some());
    assert_eq!(client.current_user().await.unwrap().name, "guest");
    assert_eq!(client.get_cluster_name().await.unwrap().name, overview.cluster_name);
    assert!(client.list_feature_flags().await.unwrap().0.is_empty());
    assert!(client.list_all_deprecated_features().await.unwrap().0.is_empty());
    assert_eq!(client.list_vhosts().await.unwrap().len(), 2);
    assert_eq!(client.get_vhost("mine").await.unwrap().name, "mine");
}

#[tokio::test]
async fn it_declares_lists_and_deletes_the_topology() {
    let rig = Rig::start().await;
    let client = client(&rig);
    let queue = QueueParams::new_durable_classic_queue("q", Some(map(json!({"x-max-length": 10}))));
    client.declare_queue("/", &queue).await.unwrap();
    let exchange = ExchangeParams::new("x", ExchangeType::Topic, true, false, None);
    client.declare_exchange("/", &exchange).await.unwrap();
    client.bind_queue("/", "q", "x", Some("a.#"), Some(map(json!({"k": "v"})))).await.unwrap();
    client.bind_exchange("/", "x", "amq.fanout", None, None).await.unwrap();

    let info = client.get_queue_info("/", "q").await.unwrap();
    assert_eq!((info.queue_type.as_str(), info.message_count), (QueueType::Classic.as_ref(), 0));
    assert_eq!(client.list_queues().await.unwrap().len(), 1);
    assert_eq!(client.list_queues_in("/").await.unwrap().len(), 1);
    client.list_queues_with_details().await.unwrap();
    assert_eq!(client.get_exchange_info("/", "x").await.unwrap().exchange_type, "topic");
    assert_eq!(client.list_exchanges_in("/").await.unwrap().len(), 7);
    let bindings = client.list_queue_bindings("/", "q").await.unwrap();
    assert_eq!(bindings.len(), 2);
    assert_eq!(client.list_bindings().await.unwrap().len(), 3);

    let binding = bindings.iter().find(|binding| binding.source == "x").unwrap();
    client.delete_binding(&BindingDeletionParams::from_binding_info(binding), false).await.unwrap();
    assert_eq!(client.list_queue_bindings("/", "q").await.unwrap().len(), 1);
    let to_exchange = client.list_exchange_bindings_with_destination("/", "x").await.unwrap();
    assert_eq!(to_exchange[0].destination_type, BindingDestinationType::Exchange);
    client.purge_queue("/", "q").await.unwrap();
    client.delete_queue("/", "q", false).await.unwrap();
    client.delete_exchange("/", "x", false).await.unwrap();
    assert!(client.get_queue_info("/", "q").await.is_err());
    client.delete_queue("/", "q", true).await.unwrap();
}

#[tokio::test]
async fn it_publishes_and_gets_messages() {
    let rig = Rig::start().await;
    let client = client(&rig);
    client.declare_queue("/", &QueueParams::new_durable_classic_queue("q", None)).await.unwrap();
    let properties = rabbitmq_http_client::requests::MessageProperties::default();
    assert!(client.publish_message("/", "amq.default", "q", "hello", properties).await.unwrap().routed);
    let messages = client.get_messages("/", "q", 10, "ack_requeue_false").await.unwrap();
    assert_eq!((messages.len(), messages[0].payload.as_str()), (1, "hello"));
}

#[tokio::test]
async fn it_lists_and_closes_connections_with_their_channels_and_consumers() {
    let rig = Rig::start().await;
    let client = client(&rig);
    let mut peer = rig.broker.peer().await;
    peer.declare(1, "q").await;
    peer.consume(1, "q", "tag").await;
    let connections = client.list_connections().await.unwrap();
    assert_eq!((connections.len(), connections[0].channel_count), (1, 1));
    let name = &connections[0].name;
    assert_eq!(client.get_connection_info(name).await.unwrap().username, "guest");
    assert_eq!(client.list_connections_in("/").await.unwrap().len(), 1);
    assert_eq!(client.list_user_connections("guest").await.unwrap().len(), 1);
    assert_eq!(client.list_channels().await.unwrap()[0].consumer_count, 1);
    assert_eq!(client.list_channels_in("/").await.unwrap().len(), 1);
    let channels = client.list_channels_on(name).await.unwrap();
    client.get_channel_info(&channels[0].name).await.unwrap();
    let consumers = client.list_consumers().await.unwrap();
    assert_eq!(consumers[0].consumer_tag, "tag");
    assert!(consumers[0].channel_details.is_some());
    assert_eq!(client.list_consumers_in("mine").await.unwrap().len(), 0);
    client.close_connection(name, Some("enough"), false).await.unwrap();
    peer.expect_connection_close(
        320,
        "CONNECTION_FORCED - enough",
        deepmq_amqp::codec::MethodId { class: 0, method: 0 },
    )
    .await;
}

#[tokio::test]
async fn it_checks_health() {
    let rig = Rig::start().await;
    let client = client(&rig);
    client.health_check_cluster_wide_alarms().await.unwrap();
    client.health_check_local_alarms().await.unwrap();
    client.health_check_if_node_is_quorum_critical().await.unwrap();
    client.health_check_port_listener(rig.address.port()).await.unwrap();
    assert!(client.health_check_port_listener(1).await.is_err());
    client
        .health_check_protocol_listener(rabbitmq_http_client::commons::SupportedProtocol::AMQP)
        .await
        .unwrap();
}
