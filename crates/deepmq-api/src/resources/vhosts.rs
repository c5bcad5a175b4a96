//! Vhosts.
//!
//! Owns `/vhosts`. Must not know what is in one, beyond sums.

use super::overview::Sums;
use crate::api::Api;
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::rates::Watched;
use crate::request::{At, Params};
use crate::stats::{MessageStats, Rate, depth_rates};
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Vhost {
    name: String,
    description: String,
    tags: Vec<String>,
    default_queue_type: String,
    metadata: Metadata,
    tracing: bool,
    protected_from_deletion: bool,
    /// Each node, and whether it runs there
    cluster_state: BTreeMap<String, &'static str>,
    messages: u64,
    messages_details: Rate,
    messages_ready: u64,
    messages_ready_details: Rate,
    messages_unacknowledged: u64,
    messages_unacknowledged_details: Rate,
    message_stats: MessageStats,
}

/// What people say of a vhost
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Metadata {
    description: String,
    tags: Vec<String>,
    default_queue_type: String,
}

impl Named for Arc<deepmq_broker::Vhost> {
    fn name(&self) -> &str {
        deepmq_broker::Vhost::name(self)
    }
}

fn show(api: &Api, vhost: &Arc<deepmq_broker::Vhost>) -> Vhost {
    let name = deepmq_broker::Vhost::name(vhost);
    let sums = Sums::of(&vhost.running_queues());
    let watched = Watched::Totals(format!("depth of vhost {name}").into());
    let [messages, ready, unacked] = depth_rates(api, watched, sums.depth.ready, sums.depth.unacked);
    Vhost {
        name: name.to_string(),
        description: String::new(),
        tags: Vec::new(),
        default_queue_type: "classic".into(),
        metadata: Metadata {
            description: String::new(),
            tags: Vec::new(),
            default_queue_type: "classic".into(),
        },
        tracing: false,
        protected_from_deletion: false,
        cluster_state: BTreeMap::from([(api.node().to_owned(), "running")]),
        messages: sums.depth.ready + sums.depth.unacked,
        messages_details: messages,
        messages_ready: sums.depth.ready,
        messages_ready_details: ready,
        messages_unacknowledged: sums.depth.unacked,
        messages_unacknowledged_details: unacked,
        message_stats: MessageStats::sample(api, Watched::Vhost(name.clone()), &sums.counts).0,
    }
}

/// All vhosts
#[utoipa::path(get, path = "/vhosts", tag = "vhosts", params(ListQuery),
    responses((status = 200, body = Listing<Vhost>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let vhosts = caller.vhosts(&api);
    list(&query, vhosts, move |vhost| show(&api, vhost))
}

/// A vhost
#[utoipa::path(get, path = "/vhosts/{vhost}", tag = "vhosts", params(ColumnsQuery),
    responses((status = 200, body = Vhost)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &name)?;
    Ok(one(&query, &show(&api, &vhost)))
}
