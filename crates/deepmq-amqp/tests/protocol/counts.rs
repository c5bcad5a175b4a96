//! What the broker counts of a connection, as who looks into it sees.

use deepmq_amqp::codec::method::basic;
use deepmq_broker::traffic::MessageCounts;
use deepmq_testkit::{TestBroker, until};

#[tokio::test]
async fn each_message_is_counted_by_what_became_of_it_and_stays_counted_after_the_end() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish(1, "", "nowhere", "dropped before confirms").await;
    peer.select_confirms(1).await;
    peer.publish(1, "", "q", "a").await;
    peer.publish(1, "", "q", "b").await;
    peer.expect_confirmed_up_to(1, 2).await;
    let lost = basic::Publish { routing_key: b"nowhere", mandatory: true, ..Default::default() };
    peer.publish_with(1, &lost, &[0, 0], b"m").await;
    peer.returned(1).await;
    peer.expect(1, basic::Ack { delivery_tag: 3, multiple: false }).await;
    peer.get(1, "q", true).await.unwrap();
    peer.consume(1, "q", "c").await;
    peer.delivery(1).await;
    peer.ack(1, 2, false).await;
    until(|| broker.depth("q").unacked == 0).await;

    let expected = MessageCounts {
        published: 4,
        confirmed: 3,
        returned: 1,
        dropped: 1,
        delivered: 1,
        fetched_no_ack: 1,
        acked: 1,
        ..MessageCounts::default()
    };
    let connections = broker.broker().connections();
    let [channel] = broker.broker().channels(connections[0].id)[..] else { panic!("one channel") };
    assert_eq!((channel.counts, channel.confirms, channel.unconfirmed), (expected, true, 0));
    assert!(broker.broker().traffic_of(connections[0].id).unwrap().received_bytes > 100);
    drop(peer);
    until(|| broker.broker().connections().is_empty()).await;
    let traffic = broker.broker().traffic();
    assert_eq!(traffic.messages, expected);
    assert!(traffic.received_bytes > 100 && traffic.sent_bytes > 100, "{traffic:?}");
    let churn = broker.broker().events().churn();
    assert_eq!((churn.connections_opened, churn.connections_closed, churn.queues_created), (1, 1, 1));
    assert_eq!((churn.channels_opened, churn.channels_closed), (1, 1));
}
