//! For tests: a broker inside the test's own process, and peers that say exactly what they are told to.
//!
//! Owns no rule of the protocol: what a test expects, it says itself. A peer fails the test, with what came instead, as
//! soon as something else comes, the connection ends, or nothing comes within [`PATIENCE`].
//!
//! ```text
//! TestBroker::start() -> broker.peer() -> RawPeer: send, call, expect, refused, fatal
//! ```

#![expect(clippy::panic, reason = "what is wrong here is for the test to fail with")]

mod broker;
mod peer;

pub use broker::TestBroker;
pub use peer::{Content, Delivery, Got, Handshake, RawPeer, Received, Returned};

use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a peer waits for anything: never reached in a test that passes.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Waits for what no answer tells of: looks again and again until it holds.
pub async fn until(holds: impl Fn() -> bool) {
    let looking = async {
        while !holds() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("what was waited for did not come to hold");
}
