//! Waiting for what was done to become durable, before who asked for it is told.
//!
//! Owns the wait. Must not know what was done.

use crate::api::Api;
use crate::error::ApiResult;
use deepmq_broker::Vhost;
use deepmq_storage::{Durability, Lsn};
use std::future::poll_fn;

/// Waits for a record of the journal; at once without one, or in a broker that keeps nothing.
pub(crate) async fn until_durable(api: &Api, lsn: Option<Lsn>) -> ApiResult<()> {
    let (Some(durable), Some(lsn)) = (api.broker().durable(), lsn) else { return Ok(()) };
    let journal = durable.journal();
    Ok(poll_fn(|cx| journal.poll(lsn, Durability::Fsync, cx.waker())).await?)
}

/// Waits for the changes of a vhost's topology so far.
pub(crate) async fn until_kept(api: &Api, vhost: &Vhost) -> ApiResult<()> {
    until_durable(api, vhost.last_change()).await
}
