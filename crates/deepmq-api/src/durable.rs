//! Waiting for what was done to become durable, before who asked for it is told.
//!
//! Owns the wait. Must not know what was done.

use crate::api::Api;
use crate::error::ApiResult;
use deepmq_broker::Vhost;
use deepmq_storage::Lsn;

/// Waits for a record of the journal; at once without one, or in a broker that keeps nothing.
pub(crate) async fn until_durable(api: &Api, lsn: Option<Lsn>) -> ApiResult<()> {
    Ok(api.broker().durable_at(lsn).await?)
}

/// Waits for the changes of a vhost's topology so far.
pub(crate) async fn until_kept(api: &Api, vhost: &Vhost) -> ApiResult<()> {
    until_durable(api, vhost.last_change()).await
}
