//! The broker under test: the one AMQP_URL names, or one of its own in this process.
//!
//! Owns that one fact; must not know any client library.

use deepmq_broker::{Broker, BrokerConfig};
use deepmq_storage::Seam;
use std::future::pending;
use std::sync::LazyLock;
use tokio::net::TcpListener;

/// Runs until the test program ends, on a thread of its own: each test has another runtime.
static IN_PROCESS: LazyLock<String> = LazyLock::new(|| {
    let (tell, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let broker =
                Broker::start(BrokerConfig::default(), Seam::real()).expect("the defaults are sound");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            tell.send(listener.local_addr().expect("it is bound")).expect("the test waits for it");
            deepmq_amqp::serve(listener, broker, pending()).await;
        });
    });
    format!("amqp://guest:guest@{}/%2f", address.recv().expect("the broker starts"))
});

/// The broker's `amqp://` URL.
pub(crate) fn url() -> String {
    std::env::var("AMQP_URL").unwrap_or_else(|_| IN_PROCESS.clone())
}

/// A name no other test uses, so that tests share no state on the broker.
pub(crate) fn unique(word: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("check.{word}.{}.{number}", std::process::id())
}
