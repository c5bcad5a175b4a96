//! The user who asks, by what its tags let it see and do.
//!
//! Owns RabbitMQ's meaning of the tags: an administrator is all, monitoring sees all vhosts, a policymaker sets policies, and
//! each of them manages. Must not know single resources.

use crate::api::Api;
use crate::error::{ApiError, ApiResult};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use deepmq_broker::Vhost;
use deepmq_broker::users::User;
use deepmq_model::access::{Access, Permission};
use deepmq_model::topology::ResourceKind;
use std::sync::Arc;

/// Who asks. As an argument of a handler: anybody who may manage.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<User>);

/// Who asks, and may see everything.
#[derive(Debug, Clone)]
pub(crate) struct Monitor;

/// Who asks, and may set policies and parameters.
#[derive(Debug, Clone)]
pub(crate) struct PolicyMaker(pub(crate) Caller);

/// Who asks, and may do everything.
#[derive(Debug, Clone)]
pub(crate) struct Admin(pub(crate) Caller);

impl Caller {
    pub(crate) fn new(user: Arc<User>) -> Self {
        Self(user)
    }

    pub(crate) fn user(&self) -> &User {
        &self.0
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.0.has_tag("administrator")
    }

    pub(crate) fn is_monitor(&self) -> bool {
        self.is_admin() || self.0.has_tag("monitoring")
    }

    pub(crate) fn may_manage(&self) -> bool {
        self.is_monitor() || self.0.has_tag("policymaker") || self.0.has_tag("management")
    }

    /// Whether what is in a vhost is shown.
    pub(crate) fn sees(&self, api: &Api, vhost: &str) -> bool {
        self.is_monitor() || api.broker().access(&self.0.name, vhost).is_some()
    }

    /// The vhosts that are shown.
    pub(crate) fn vhosts(&self, api: &Api) -> Vec<Arc<Vhost>> {
        let mut vhosts = api.broker().vhosts();
        vhosts.retain(|vhost| self.sees(api, vhost.name()));
        vhosts
    }

    /// A vhost, to look into.
    pub(crate) fn see(&self, api: &Api, vhost: &str) -> ApiResult<Arc<Vhost>> {
        Self::find(api, vhost, self.sees(api, vhost))
    }

    /// A vhost, to change something in it, which takes access to it whatever the tags.
    pub(crate) fn enter(&self, api: &Api, vhost: &str) -> ApiResult<Arc<Vhost>> {
        // An administrator may give itself that access, and so learns whether there is something to give it to.
        let allowed = api.broker().access(&self.0.name, vhost).is_some();
        Self::find(api, vhost, allowed || (self.is_admin() && api.broker().vhost(vhost).is_none()))
    }

    /// Asks for a permission, as AMQP would.
    pub(crate) fn permit(
        &self,
        api: &Api,
        vhost: &str,
        permission: Permission,
        kind: ResourceKind,
        name: &str,
    ) -> ApiResult<()> {
        Ok(self.access(api, vhost)?.check(permission, kind, name)?)
    }

    /// What it may do in a vhost.
    pub(crate) fn access(&self, api: &Api, vhost: &str) -> ApiResult<Arc<Access>> {
        api.broker().access(&self.0.name, vhost).ok_or_else(Self::outside)
    }

    fn outside() -> ApiError {
        ApiError::not_authorized("User not authorised to access virtual host")
    }

    fn find(api: &Api, vhost: &str, allowed: bool) -> ApiResult<Arc<Vhost>> {
        let found = api.broker().vhost(vhost);
        match (found, allowed) {
            (Some(vhost), true) => Ok(vhost),
            // Who may not see it must not learn whether it exists; who manages all may.
            (None, true) => Err(ApiError::not_found()),
            (_, false) => Err(Self::outside()),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| ApiError::unknown_caller(true))
    }
}

impl<S: Sync> FromRequestParts<S> for Monitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if caller.is_monitor() { Ok(Self) } else { Err(ApiError::not_authorized("Not monitor user")) }
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if caller.is_admin() {
            Ok(Self(caller))
        } else {
            Err(ApiError::not_authorized("Not administrator user"))
        }
    }
}

impl<S: Sync> FromRequestParts<S> for PolicyMaker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if caller.is_admin() || caller.user().has_tag("policymaker") {
            Ok(Self(caller))
        } else {
            Err(ApiError::not_authorized("Not policymaker user"))
        }
    }
}
