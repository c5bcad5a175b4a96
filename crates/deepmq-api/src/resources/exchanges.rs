//! Exchanges.
//!
//! Owns `/exchanges`, with the short paths into the default vhost. Must not know how an exchange matches.

use super::{DEFAULT_VHOST, declared, exchange_name};
use crate::api::Api;
use crate::arguments::Arguments;
use crate::auth::Caller;
use crate::durable::until_kept;
use crate::error::{ApiError, ApiResult};
use crate::listing::{ColumnsQuery, ListQuery, Listing, Named, list, one};
use crate::rates::Watched;
use crate::request::{At, Params, Payload};
use crate::request_id::note_change;
use crate::stats::Rate;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use deepmq_broker::{Vhost, permits};
use deepmq_model::access::Permission;
use deepmq_model::topology::{self as model, ExchangeKind, ExchangeSpec, ResourceKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// An exchange
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Exchange {
    /// Empty for the default exchange, which is `amq.default` in paths
    name: String,
    vhost: String,
    #[serde(rename = "type")]
    kind: &'static str,
    durable: bool,
    auto_delete: bool,
    /// It takes messages from other exchanges alone
    internal: bool,
    arguments: Arguments,
    /// The policy that counts for it
    policy: Option<String>,
    message_stats: ExchangeStats,
    user_who_performed_action: String,
}

/// What passed an exchange since it was declared, and how fast
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are RabbitMQ's")]
pub(crate) struct ExchangeStats {
    /// Messages that were published to it
    publish_in: u64,
    publish_in_details: Rate,
    /// Copies of them that went to queues
    publish_out: u64,
    publish_out_details: Rate,
}

/// What an exchange is to be
#[derive(Debug, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct ExchangeDeclaration {
    /// `direct`, `fanout`, `topic` or `headers`
    #[serde(rename = "type")]
    kind: String,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Arguments,
}

impl Default for ExchangeDeclaration {
    fn default() -> Self {
        Self {
            kind: "direct".into(),
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: Arguments::default(),
        }
    }
}

/// What must hold for an exchange to be deleted
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteExchange {
    /// It is the source of no binding
    if_unused: Option<bool>,
}

/// The exchanges of a vhost, or one of the default vhost
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(title = "ExchangesOrExchange")]
#[expect(dead_code, reason = "it describes what one of two handlers writes")]
pub(crate) enum ExchangesOrExchange {
    #[schema(title = "List")]
    List(Listing<Exchange>),
    One(Exchange),
}

#[derive(Debug)]
pub(super) struct Handle {
    exchange: model::Exchange,
    vhost: Arc<Vhost>,
}

impl Named for Handle {
    fn name(&self) -> &str {
        &self.exchange.name
    }
}

pub(super) fn handles(vhost: &Arc<Vhost>) -> Vec<Handle> {
    let mut exchanges = vhost.exchanges();
    exchanges.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    exchanges.into_iter().map(|exchange| Handle { exchange, vhost: vhost.clone() }).collect()
}

pub(super) fn show(api: &Api, handle: &Handle) -> Exchange {
    let exchange = &handle.exchange;
    Exchange {
        name: exchange.name.to_string(),
        vhost: handle.vhost.name().to_string(),
        kind: exchange.kind.name(),
        durable: exchange.durable,
        auto_delete: exchange.auto_delete,
        internal: exchange.internal,
        arguments: Arguments(exchange.arguments.clone()),
        policy: handle.vhost.policy_of_exchange(&exchange.name).policy.map(|name| name.to_string()),
        message_stats: stats(api, handle),
        user_who_performed_action: String::new(),
    }
}

fn stats(api: &Api, handle: &Handle) -> ExchangeStats {
    let passed = handle.vhost.exchange_traffic(&handle.exchange.name);
    let counters = [passed.published_in, passed.published_out, 0, 0, 0, 0, 0, 0, 0, 0];
    let watched = Watched::Exchange(Vhost::name(&handle.vhost).clone(), handle.exchange.name.clone());
    let [publish_in_details, publish_out_details, ..] =
        api.rates().sample(watched, counters, api.now()).rates.map(|rate| Rate { rate });
    ExchangeStats {
        publish_in: passed.published_in,
        publish_in_details,
        publish_out: passed.published_out,
        publish_out_details,
    }
}

fn shown(api: Api, query: &ListQuery, handles: Vec<Handle>) -> ApiResult<Response> {
    list(query, handles, move |handle| show(&api, handle))
}

fn find(vhost: &Arc<Vhost>, name: &str) -> ApiResult<Handle> {
    let exchange = vhost.find_exchange(exchange_name(name)).ok_or_else(ApiError::not_found)?;
    Ok(Handle { exchange, vhost: vhost.clone() })
}

/// All exchanges
#[utoipa::path(get, path = "/exchanges", tag = "exchanges", params(ListQuery),
    responses((status = 200, body = Listing<Exchange>)))]
pub(crate) async fn list_all(
    caller: Caller,
    State(api): State<Api>,
    Params(query): Params<ListQuery>,
) -> ApiResult<Response> {
    let handles = caller.vhosts(&api).iter().flat_map(handles).collect();
    shown(api, &query, handles)
}

/// The exchanges of a vhost; or, if there is no such vhost, the exchange of this name in the default vhost
#[utoipa::path(get, path = "/exchanges/{vhost}", tag = "exchanges", params(ListQuery),
    responses((status = 200, body = inline(ExchangesOrExchange))))]
pub(crate) async fn list_of_vhost(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(query): Params<ListQuery>,
    Params(columns): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    if api.broker().vhost(&name).is_some() {
        let handles = handles(&caller.see(&api, &name)?);
        return shown(api, &query, handles);
    }
    let vhost = caller.see(&api, DEFAULT_VHOST)?;
    Ok(one(&columns, &show(&api, &find(&vhost, &name)?)))
}

/// An exchange
#[utoipa::path(get, path = "/exchanges/{vhost}/{exchange}", tag = "exchanges", params(ColumnsQuery),
    responses((status = 200, body = Exchange)))]
pub(crate) async fn get(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Params(query): Params<ColumnsQuery>,
) -> ApiResult<Response> {
    let vhost = caller.see(&api, &vhost)?;
    Ok(one(&query, &show(&api, &find(&vhost, &name)?)))
}

/// Declare an exchange
#[utoipa::path(put, path = "/exchanges/{vhost}/{exchange}", tag = "exchanges", request_body = ExchangeDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "It is there already")))]
pub(crate) async fn put(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Payload(declaration): Payload<ExchangeDeclaration>,
) -> ApiResult<StatusCode> {
    declare(&api, &caller, &vhost, &name, declaration).await
}

/// Declare an exchange in the default vhost
#[utoipa::path(put, path = "/exchanges/{vhost}", tag = "exchanges", request_body = ExchangeDeclaration,
    responses((status = 201, description = "Created"), (status = 204, description = "It is there already")))]
pub(crate) async fn put_default(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Payload(declaration): Payload<ExchangeDeclaration>,
) -> ApiResult<StatusCode> {
    declare(&api, &caller, DEFAULT_VHOST, &name, declaration).await
}

async fn declare(
    api: &Api,
    caller: &Caller,
    vhost: &str,
    name: &str,
    given: ExchangeDeclaration,
) -> ApiResult<StatusCode> {
    let vhost = caller.enter(api, vhost)?;
    let spec = ExchangeSpec {
        kind: given.kind.parse::<ExchangeKind>()?,
        durable: given.durable,
        auto_delete: given.auto_delete,
        internal: given.internal,
        arguments: given.arguments.checked(api.broker().limits().table_depth_max)?,
    };
    let (access, exchange) = (caller.access(api, vhost.name())?, exchange_name(name));
    let exists = vhost.exchange_kind(exchange).is_some();
    permits::declare(&access, (ResourceKind::Exchange, exchange), exists, &spec.arguments)?;
    let made = vhost.declare_exchange(exchange, spec)?;
    until_kept(api, &vhost).await?;
    note_change(caller, "exchange declared", name);
    Ok(declared(made))
}

/// Delete an exchange with its bindings
#[utoipa::path(delete, path = "/exchanges/{vhost}/{exchange}", tag = "exchanges", params(DeleteExchange),
    responses((status = 204)))]
pub(crate) async fn delete(
    caller: Caller,
    State(api): State<Api>,
    At((vhost, name)): At<(String, String)>,
    Params(when): Params<DeleteExchange>,
) -> ApiResult<StatusCode> {
    remove(&api, &caller, &vhost, &name, &when).await
}

/// Delete an exchange of the default vhost with its bindings
#[utoipa::path(delete, path = "/exchanges/{vhost}", tag = "exchanges", params(DeleteExchange),
    responses((status = 204)))]
pub(crate) async fn delete_default(
    caller: Caller,
    State(api): State<Api>,
    At(name): At<String>,
    Params(when): Params<DeleteExchange>,
) -> ApiResult<StatusCode> {
    remove(&api, &caller, DEFAULT_VHOST, &name, &when).await
}

async fn remove(
    api: &Api,
    caller: &Caller,
    vhost: &str,
    name: &str,
    when: &DeleteExchange,
) -> ApiResult<StatusCode> {
    let vhost = caller.enter(api, vhost)?;
    caller.permit(api, vhost.name(), Permission::Configure, ResourceKind::Exchange, exchange_name(name))?;
    find(&vhost, name)?;
    vhost.delete_exchange(exchange_name(name), when.if_unused.unwrap_or_default())?;
    until_kept(api, &vhost).await?;
    note_change(caller, "exchange deleted", name);
    Ok(StatusCode::NO_CONTENT)
}
