//! Many connections that do nothing: they are served, and told at the end.

use deepmq_testkit::{RawPeer, TestBroker};

const CONNECTIONS: usize = 1000;

#[tokio::test]
async fn a_thousand_idle_connections_are_served_and_closed_at_shutdown() {
    let broker = TestBroker::start().await;
    let mut peers = Vec::new();
    for _ in 0..CONNECTIONS {
        peers.push(broker.peer().await);
    }
    assert_eq!(broker.broker().connections().len(), CONNECTIONS);
    for peer in &mut peers {
        peer.expect_quiet(1).await;
    }
    let closed: Vec<_> = peers
        .into_iter()
        .map(|mut peer| {
            tokio::spawn(async move {
                let text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
                peer.expect_connection_close(320, text, RawPeer::NO_METHOD).await;
            })
        })
        .collect();
    broker.stop().await;
    for peer in closed {
        peer.await.unwrap();
    }
}
