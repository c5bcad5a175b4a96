//! Transactions.

use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::{basic, tx};
use deepmq_testkit::{RawPeer, TestBroker};

async fn in_transaction() -> (TestBroker, RawPeer) {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    peer.declare(1, "q").await;
    peer.select_tx(1).await;
    (broker, peer)
}

async fn commit(peer: &mut RawPeer) {
    peer.send(1, tx::Commit {}).await;
    peer.expect(1, tx::CommitOk {}).await;
}

async fn rollback(peer: &mut RawPeer) {
    peer.send(1, tx::Rollback {}).await;
    peer.expect(1, tx::RollbackOk {}).await;
}

#[tokio::test]
async fn publishes_wait_for_the_commit() {
    let (broker, mut peer) = in_transaction().await;
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 0);
    commit(&mut peer).await;
    assert_eq!(broker.depth("q").ready, 3);
    for body in ["0", "1", "2"] {
        assert_eq!(peer.get(1, "q", true).await.unwrap().seen().0, body);
    }
}

#[tokio::test]
async fn rolled_back_publishes_never_were() {
    let (broker, mut peer) = in_transaction().await;
    peer.publish(1, "", "q", "m").await;
    rollback(&mut peer).await;
    commit(&mut peer).await;
    assert_eq!(broker.depth("q").ready, 0);
}

#[tokio::test]
async fn settlements_wait_for_the_commit_and_deliveries_stay_open_after_a_rollback() {
    let (broker, mut peer) = in_transaction().await;
    peer.publish_all(1, "q", (0..3).map(|n| n.to_string())).await;
    commit(&mut peer).await;
    for _ in 0..3 {
        peer.get(1, "q", false).await.unwrap();
    }
    peer.ack(1, 1, false).await;
    peer.send(1, basic::Nack { delivery_tag: 2, multiple: false, requeue: true }).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").unacked, 3);
    rollback(&mut peer).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (0, 3));
    peer.ack(1, 1, false).await;
    peer.send(1, basic::Nack { delivery_tag: 2, multiple: false, requeue: true }).await;
    commit(&mut peer).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (1, 1));
}

#[tokio::test]
async fn a_transaction_that_is_not_committed_goes_with_its_channel() {
    let (broker, mut peer) = in_transaction().await;
    peer.publish(1, "", "q", "m").await;
    peer.close_channel(1).await;
    peer.open_channel(1).await;
    peer.expect_quiet(1).await;
    assert_eq!(broker.depth("q").ready, 0);
}

#[tokio::test]
async fn what_goes_nowhere_is_returned_before_commit_ok() {
    let (_broker, mut peer) = in_transaction().await;
    let publish = basic::Publish { routing_key: b"nowhere", mandatory: true, ..Default::default() };
    peer.publish_with(1, &publish, &[0, 0], b"m").await;
    peer.send(1, tx::Commit {}).await;
    assert_eq!(peer.returned(1).await.returned.reply_text, "NO_ROUTE");
    peer.expect(1, tx::CommitOk {}).await;
}

#[tokio::test]
async fn a_missing_exchange_is_noticed_at_the_publish() {
    let (_broker, mut peer) = in_transaction().await;
    peer.publish(1, "absent", "q", "m").await;
    let text = "NOT_FOUND - no exchange 'absent' in vhost '/'";
    peer.expect_channel_close(1, 404, text, basic::Publish::ID).await;
}

#[tokio::test]
async fn an_unknown_tag_is_noticed_at_once() {
    let (_broker, mut peer) = in_transaction().await;
    let text = "PRECONDITION_FAILED - unknown delivery tag 5";
    peer.refused(basic::Ack { delivery_tag: 5, multiple: false }, 406, text).await;
}

#[tokio::test]
async fn settling_twice_in_a_transaction_is_an_error_and_commits_nothing_twice() {
    let (broker, mut peer) = in_transaction().await;
    peer.publish(1, "", "q", "m").await;
    commit(&mut peer).await;
    peer.get(1, "q", false).await.unwrap();
    peer.ack(1, 1, false).await;
    peer.send(1, basic::Nack { delivery_tag: 1, multiple: false, requeue: true }).await;
    peer.expect_channel_close(1, 406, "PRECONDITION_FAILED - unknown delivery tag 1", basic::Nack::ID).await;
    peer.open_channel(1).await;
    peer.expect_quiet(1).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (1, 0));
}

#[tokio::test]
async fn acking_all_means_all_that_had_come_when_it_was_said() {
    let (broker, mut peer) = in_transaction().await;
    let mut publisher = broker.peer().await;
    publisher.publish_all(1, "q", (1..=5).map(|n| n.to_string())).await;
    publisher.expect_quiet(1).await;
    for _ in 0..3 {
        peer.get(1, "q", false).await.unwrap();
    }
    peer.send(1, basic::Nack { delivery_tag: 3, multiple: false, requeue: false }).await;
    for _ in 0..3 {
        peer.ack(1, 0, true).await;
    }
    peer.get(1, "q", false).await.unwrap();
    commit(&mut peer).await;
    assert_eq!((broker.depth("q").ready, broker.depth("q").unacked), (1, 1));
}

#[tokio::test]
async fn commit_and_rollback_need_a_select() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let methods: [Method<'_>; 2] = [tx::Commit {}.into(), tx::Rollback {}.into()];
    for method in methods {
        peer.refused(method, 406, "PRECONDITION_FAILED - channel is not transactional").await;
    }
    peer.select_tx(1).await;
    peer.select_tx(1).await;
}
