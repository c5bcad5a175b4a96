//! Nonsense in every phase of a connection: it ends properly or goes on, and the broker serves the next one.

use deepmq_amqp::codec::frame::{self, Kind, PROTOCOL_HEADER};
use deepmq_amqp::codec::method::{basic, connection, queue};
use deepmq_storage::seam::{Random, SeededRandom};
use deepmq_testkit::{Handshake, RawPeer, TestBroker};

/// How far a connection is when the nonsense begins.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Header,
    StartOk,
    TuneOk,
    Open,
    Connection,
    Channel,
    Content,
    Closing,
}

const PHASES: [Phase; 8] = [
    Phase::Header,
    Phase::StartOk,
    Phase::TuneOk,
    Phase::Open,
    Phase::Connection,
    Phase::Channel,
    Phase::Content,
    Phase::Closing,
];

async fn peer_in(phase: Phase, broker: &TestBroker) -> RawPeer {
    let handshake = Handshake::default();
    let mut peer = RawPeer::connect(broker.address()).await;
    match phase {
        Phase::Header => {}
        Phase::StartOk => peer.send_bytes(&PROTOCOL_HEADER).await,
        Phase::TuneOk => drop(peer.start(&handshake).await),
        Phase::Open => {
            peer.start(&handshake).await;
            peer.tune(&handshake).await;
        }
        Phase::Connection => peer = RawPeer::open(broker.address(), &handshake).await,
        Phase::Channel | Phase::Content | Phase::Closing => {
            peer = broker.peer().await;
            peer.consume(1, "q", "c").await;
            if let Phase::Content = phase {
                peer.send(1, basic::Publish { routing_key: b"q", ..Default::default() }).await;
            }
            if let Phase::Closing = phase {
                peer.send(1, connection::Open::default()).await;
            }
        }
    }
    peer
}

/// Random bytes, every other time in a frame that looks like a method's.
fn nonsense(random: &SeededRandom, seed: usize) -> Vec<u8> {
    let mut dice = [0; 6];
    random.fill(&mut dice);
    let [size, times, kind, channel, class, method] = dice;
    let mut bytes = vec![0; 1 + usize::from(size) * (1 + usize::from(times % 8))];
    random.fill(&mut bytes);
    if !seed.is_multiple_of(2) {
        return bytes;
    }
    let kind = [Kind::Method, Kind::Header, Kind::Body, Kind::Heartbeat].into_iter().cycle().nth(kind.into());
    let class = [10, 20, 50, 60].into_iter().cycle().nth(class.into());
    let mut out = Vec::new();
    frame::write(kind.unwrap_or(Kind::Method), (channel % 3).into(), &mut out, |writer| {
        writer.u16(class.unwrap_or_default());
        writer.u16(u16::from(method % 12) * 10);
        writer.raw(&bytes);
    });
    out
}

#[tokio::test]
async fn nonsense_ends_a_connection_or_not_but_never_the_broker() {
    let broker = TestBroker::start().await;
    broker.peer().await.declare(1, "q").await;
    let random = SeededRandom::new(1);
    let mut peers = Vec::new();
    for phase in PHASES {
        for seed in 0..40 {
            let bytes = nonsense(&random, seed);
            let mut peer = peer_in(phase, &broker).await;
            peer.try_send_bytes(&bytes).await;
            peers.push(tokio::spawn(async move {
                peer.try_send_bytes(&bytes).await;
                peer.try_finish_sending().await;
                let answer = peer.rest().await;
                assert!(answer.len() < 20_000, "{} bytes of answers in {phase:?}", answer.len());
            }));
        }
    }
    for peer in peers {
        peer.await.unwrap();
    }
    let mut fresh = broker.peer().await;
    fresh.publish(1, "", "q", "m").await;
    assert!(fresh.get(1, "q", true).await.is_some());
    fresh.send(1, queue::Delete { queue: "q", if_unused: true, ..Default::default() }).await;
    fresh.expect(1, queue::DeleteOk { message_count: 0 }).await;
    assert_eq!(broker.broker().connections().len(), 1);
}
