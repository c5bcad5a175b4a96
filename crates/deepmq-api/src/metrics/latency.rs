//! How long the journal took: for syncs, and for what waited for them.
//!
//! Owns the names. Must not know how it is measured.

use super::text::Text;
use crate::api::Api;

/// Nothing, in a broker that keeps nothing.
pub(super) fn write(api: &Api, text: &mut Text) {
    let Some(durable) = api.broker().durable() else { return };
    let latencies = durable.journal().latencies();
    text.histogram("deepmq_sync_seconds", "How long syncs of the journal took.", &latencies.syncs);
    text.histogram(
        "deepmq_confirm_seconds",
        "How long the first of what was synced together waited: the longest wait of a confirm for the disk.",
        &latencies.commits,
    );
}
