//! Fetching single messages.

use deepmq_amqp::codec::method::basic;
use deepmq_testkit::TestBroker;

#[tokio::test]
async fn get_tells_how_many_are_left_and_shares_tags_with_deliveries() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.declare(1, "r").await;
    peer.publish_all(1, "q", ["a".to_owned(), "b".to_owned()]).await;
    peer.publish_all(1, "r", ["c".to_owned()]).await;
    let got = peer.get(1, "q", false).await.unwrap();
    let expected = basic::GetOk {
        delivery_tag: 1,
        redelivered: false,
        exchange: "",
        routing_key: b"q",
        message_count: 1,
    };
    assert_eq!((got.get_ok, got.content.body), (expected, b"a".to_vec()));
    peer.consume(1, "r", "c").await;
    assert_eq!(peer.delivery(1).await.seen(), ("c", 2, false));
    let got = peer.get(1, "q", true).await.unwrap();
    assert_eq!((got.get_ok.delivery_tag, got.get_ok.message_count), (3, 0));
    peer.refused(
        basic::Ack { delivery_tag: 3, multiple: false },
        406,
        "PRECONDITION_FAILED - unknown delivery tag 3",
    )
    .await;
}

#[tokio::test]
async fn an_empty_queue_is_no_error() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.send(1, basic::Get { queue: "q", ..Default::default() }).await;
    peer.expect(1, basic::GetEmpty { cluster_id: "" }).await;
}

#[tokio::test]
async fn a_missing_queue_is() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let text = "NOT_FOUND - no queue 'absent' in vhost '/'";
    peer.refused(basic::Get { queue: "absent", ..Default::default() }, 404, text).await;
}

#[tokio::test]
async fn prefetch_does_not_limit_it() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    peer.qos(1, 1, true).await;
    peer.qos(1, 1, false).await;
    for _ in 0..3 {
        assert!(peer.get(1, "q", false).await.is_some());
    }
    assert_eq!(broker.depth("q").unacked, 3);
}
