//! Who may open a connection to a vhost, and a channel on it.
//!
//! Owns the order of the checks. Must not know how a refusal is worded to a peer.

use super::Broker;
use crate::connection::{ChannelSlot, ConnectionControl, ConnectionInfo, OverLimit};
use crate::events::Event;
use crate::vhost::Vhost;
use std::sync::Arc;

/// Why a connection is not opened. The texts are RabbitMQ's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnterRefused {
    /// There is no such vhost.
    #[error("vhost {0} not found")]
    NoVhost(String),
    /// The user has no permission in it.
    #[error("access to vhost '{vhost}' refused for user '{user}'")]
    NoAccess {
        /// The vhost.
        vhost: String,
        /// The user.
        user: String,
    },
    /// The vhost has as many connections as it may have.
    #[error("access to vhost '{vhost}' refused for user '{user}': connection limit ({max}) is reached")]
    VhostFull {
        /// The vhost.
        vhost: String,
        /// The user.
        user: String,
        /// The limit.
        max: usize,
    },
    /// The user has as many connections as it may have.
    #[error("connection refused for user '{user}': user connection limit ({max}) is reached")]
    UserFull {
        /// The user.
        user: String,
        /// The limit.
        max: usize,
    },
}

/// Why a channel is not opened: the user has as many as it may have, on all its connections together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("number of channels opened for user '{user}' has reached the maximum allowed user limit of {max}")]
pub struct TooManyChannels {
    /// The user.
    pub user: String,
    /// The limit.
    pub max: usize,
}

impl Broker {
    /// Registers an open connection to a vhost.
    ///
    /// # Errors
    /// If there is no such vhost, the user may not enter it, or a limit is reached.
    pub fn enter(
        &self,
        info: ConnectionInfo,
        control: Arc<dyn ConnectionControl>,
    ) -> Result<Arc<Vhost>, EnterRefused> {
        let (id, user, name) = (info.id, info.user.clone(), info.vhost.clone());
        let vhost = self.vhost(&name).ok_or_else(|| EnterRefused::NoVhost(name.to_string()))?;
        let max = |limit: Option<i64>| limit.and_then(|max| usize::try_from(max).ok());
        let limits = self.0.registry.read(|state| {
            let (of_vhost, of_user) = (state.vhost_limits(&name), state.user_limits(&user));
            (max(of_vhost.max_connections), max(of_user.max_connections))
        });
        let opened = Event::ConnectionOpened {
            connection: id,
            user: user.clone(),
            vhost: name.clone(),
            peer: info.peer.clone(),
        };
        self.0.connections.add(info, control, limits).map_err(|over| match over {
            OverLimit::Vhost(max) => {
                EnterRefused::VhostFull { vhost: name.to_string(), user: user.to_string(), max }
            }
            OverLimit::User(max) => EnterRefused::UserFull { user: user.to_string(), max },
        })?;
        // Asked only now: who deletes the user or the vhost after this finds the connection and closes it.
        let refused = if !self.vhost(&name).is_some_and(|now| Arc::ptr_eq(&now, &vhost)) {
            Some(EnterRefused::NoVhost(name.to_string()))
        } else if self.access(&user, &name).is_none() {
            Some(EnterRefused::NoAccess { vhost: name.to_string(), user: user.to_string() })
        } else {
            None
        };
        if let Some(refused) = refused {
            self.0.connections.remove(id);
            return Err(refused);
        }
        self.0.events.publish(&opened);
        Ok(vhost)
    }

    /// The right to one more channel on a connection of this user.
    ///
    /// # Errors
    /// If the user's limit is reached.
    pub fn admit_channel(&self, user: &str) -> Result<ChannelSlot, TooManyChannels> {
        let limit = self.get_user_limits(user).max_channels.and_then(|max| usize::try_from(max).ok());
        let max = limit.unwrap_or(usize::MAX);
        let slot = self.0.connections.admit_channel(user, max);
        slot.ok_or_else(|| TooManyChannels { user: user.to_owned(), max })
    }
}
