//! Where the broker under test is. Owns that one fact; must not know any client library.

/// The broker's `amqp://` URL from AMQP_URL, or nothing, said aloud, when no broker is given.
#[expect(clippy::print_stdout, reason = "a skipped test must not look like a passed one")]
pub(crate) fn url() -> Option<String> {
    let url = std::env::var("AMQP_URL").ok();
    if url.is_none() {
        println!("skipped: AMQP_URL names no broker");
    }
    url
}

/// A name no other test uses, so that tests share no state on the broker.
pub(crate) fn unique(word: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("check.{word}.{}.{number}", std::process::id())
}
