//! Signs of life, both ways. Time itself is under test here.

use deepmq_amqp::codec::frame::{self, Kind};
use deepmq_testkit::{Handshake, TestBroker};
use std::time::{Duration, Instant};
use tokio::time::sleep;

fn every_second() -> Handshake {
    Handshake::default().tune(10, 131_072, 1)
}

#[tokio::test]
async fn a_quiet_connection_gets_heartbeats_and_a_silent_peer_is_dropped_after_two_intervals() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer_with(&every_second()).await;
    let since = Instant::now();
    let mut heartbeats = 0;
    while let Some(frame) = peer.next_frame_of_any_kind().await {
        assert_eq!((frame.kind, frame.channel, frame.payload.len()), (Kind::Heartbeat, 0, 0));
        heartbeats += 1;
    }
    let silent = since.elapsed();
    assert!(heartbeats >= 2, "only {heartbeats} in {silent:?}");
    assert!(silent >= Duration::from_millis(1900) && silent < Duration::from_secs(4), "{silent:?}");
    assert_eq!(broker.broker().connections().len(), 0);
}

#[tokio::test]
async fn a_peer_that_sends_heartbeats_is_kept() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer_with(&every_second()).await;
    let mut heartbeat = Vec::new();
    frame::write_heartbeat(&mut heartbeat);
    for _ in 0..8 {
        peer.send_bytes(&heartbeat).await;
        sleep(Duration::from_millis(500)).await;
    }
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn without_heartbeats_nothing_is_sent() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer_with(&Handshake::default().tune(10, 131_072, 0)).await;
    sleep(Duration::from_millis(1200)).await;
    peer.expect_quiet(1).await;
}

#[tokio::test]
async fn a_heartbeat_belongs_to_channel_0() {
    let broker = TestBroker::start().await;
    let mut peer = broker.peer().await;
    let mut bytes = Vec::new();
    frame::write(Kind::Heartbeat, 1, &mut bytes, |_| {});
    peer.send_bytes(&bytes).await;
    let text = "UNEXPECTED_FRAME - type 8, all octets = <<>>";
    peer.expect_connection_close(505, text, deepmq_testkit::RawPeer::NO_METHOD).await;
}
