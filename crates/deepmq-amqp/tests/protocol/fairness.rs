//! That everybody gets a share, and nobody can take it away.

use deepmq_amqp::codec::method::basic;
use deepmq_testkit::TestBroker;

#[tokio::test]
async fn four_consumers_share_exactly_and_in_order() {
    const EACH: usize = 1000;
    let broker = TestBroker::start().await;
    let mut publisher = broker.peer().await;
    publisher.declare(1, "q").await;
    let mut consumers = Vec::new();
    for _ in 0..4 {
        let mut consumer = broker.peer().await;
        consumer.consume(1, "q", "c").await;
        consumers.push(consumer);
    }
    publisher.publish_all(1, "q", (0..4 * EACH).map(|n| n.to_string())).await;
    let mut all = Vec::new();
    for consumer in &mut consumers {
        let seen = consumer.deliveries(1, EACH).await;
        let numbers: Vec<usize> = seen.iter().map(|(body, _, _)| body.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        all.extend(numbers);
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(0..4 * EACH));
    for consumer in &mut consumers {
        consumer.expect_quiet(1).await;
    }
}

#[tokio::test]
async fn a_peer_that_never_reads_costs_only_its_buffer_and_others_go_on() {
    const COUNT: u64 = 2000;
    const BODY_BYTES: usize = 16 << 10;
    let broker = TestBroker::start_with(|config| config.limits.output_buffer_bytes_max = 128 << 10).await;
    let (mut publisher, mut deaf, mut reader) =
        (broker.peer().await, broker.peer().await, broker.peer().await);
    publisher.declare(1, "q").await;
    publisher.select_confirms(1).await;
    deaf.consume(1, "q", "deaf").await;
    reader.consume_with(1, basic::Consume { queue: "q", no_ack: true, ..Default::default() }).await;
    let publish = async {
        for _ in 0..COUNT {
            publisher.publish(1, "", "q", vec![b'x'; BODY_BYTES]).await;
        }
        publisher.expect_confirmed_up_to(1, COUNT).await;
    };
    let read = async {
        let mut received = 0;
        while received + broker.depth("q").unacked < COUNT {
            reader.delivery(1).await;
            received += 1;
        }
        received
    };
    let ((), received) = tokio::join!(publish, read);
    let depth = broker.depth("q");
    assert_eq!((depth.ready, depth.unacked), (0, COUNT - received));
    // Its buffer, and what the two sockets' buffers took.
    let held = depth.unacked * BODY_BYTES as u64;
    assert!(held < 16 << 20, "{held} bytes for a peer that does not read");
    drop(deaf);
    // What it held goes to the one that reads.
    for _ in received..COUNT {
        reader.delivery(1).await;
    }
}
