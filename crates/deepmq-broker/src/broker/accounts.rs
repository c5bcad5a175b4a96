//! Users, their permissions and limits.
//!
//! Owns what a caller may leave out when it puts a user. Must not know who may administer.

use super::Broker;
use crate::registry::{
    Done, Edit, PermissionRecord, RegistryError, State, TopicPermissionRecord, UserLimits, UserRecord,
};
use crate::users::Password;
use deepmq_model::Name;
use deepmq_model::access::Access;
use std::sync::Arc;

/// The user for whom RabbitMQ allows logins from the same machine alone, unless it is told otherwise.
const GUEST: &str = "guest";

/// A user to be put.
#[derive(Debug, Clone)]
pub struct UserPut {
    /// Its name.
    pub name: Name,
    /// Its password. None: it keeps the one it has; a new user cannot log in with a password then.
    pub password: Option<Password>,
    /// Its tags.
    pub tags: Vec<Name>,
    /// Whether it may log in only from the machine the broker runs on. None: as before; of new users, `guest` alone.
    pub loopback_only: Option<bool>,
}

/// Whether a new user may log in from the broker's machine only, if nobody says otherwise.
pub(super) fn is_local(name: &str) -> bool {
    name == GUEST
}

impl Broker {
    /// All users by name.
    pub fn list_users(&self) -> Vec<UserRecord> {
        self.0.registry.read(State::users)
    }

    /// A user.
    pub fn get_user(&self, name: &str) -> Option<UserRecord> {
        self.0.registry.read(|state| state.user(name).cloned())
    }

    /// Creates a user, or changes it. Hashing a plain password blocks for tens of milliseconds. Who is logged in stays so.
    ///
    /// # Errors
    /// If the name is empty or too long, the password empty, or the registry full.
    pub fn put_user(&self, user: UserPut) -> Result<Done, RegistryError> {
        let UserPut { name, password, tags, loopback_only } = user;
        if matches!(&password, Some(Password::Plain(plain)) if plain.expose().is_empty()) {
            return Err(RegistryError::EmptyPassword);
        }
        let password = password.map(|password| self.0.users.hash(password));
        let hash = password.as_ref().map(|(hash, _)| (hash.to_string(), hash.algorithm().into()));
        let mut state = self.0.registry.write();
        let known = state.user(&name);
        let (password_hash, hashing_algorithm) = hash
            .or_else(|| known.map(|user| (user.password_hash.clone(), user.hashing_algorithm.clone())))
            .unwrap_or_else(|| (String::new(), crate::users::PasswordHash::nothing().algorithm().into()));
        let loopback_only =
            loopback_only.or_else(|| known.map(|user| user.loopback_only)).unwrap_or_else(|| is_local(&name));
        let record = UserRecord { name: name.clone(), password_hash, hashing_algorithm, tags, loopback_only };
        let done = self.edit_locked(&mut state, Edit::User(record))?;
        if let Some((hash, Some(plain))) = &password {
            self.0.users.remember(&name, hash, plain);
        }
        Ok(done)
    }

    /// Deletes a user with its permissions and limits, and closes its connections.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete_user(&self, name: &str) -> Result<Done, RegistryError> {
        self.edit(Edit::NoUser { name: name.into() })
    }

    /// The limits of a user; those that are not set are none.
    pub fn get_user_limits(&self, user: &str) -> UserLimits {
        self.0.registry.read(|state| state.user_limits(user))
    }

    /// Sets the limits of a user, all of them. They hold for connections and channels to come.
    ///
    /// # Errors
    /// If there is no such user, or the registry is full.
    pub fn put_user_limits(&self, user: &str, limits: UserLimits) -> Result<Done, RegistryError> {
        self.edit(Edit::UserLimits { user: user.into(), limits })
    }

    /// All permissions by vhost and user.
    pub fn list_permissions(&self) -> Vec<PermissionRecord> {
        self.0.registry.read(State::permissions)
    }

    /// The permission of a user in a vhost.
    pub fn get_permission(&self, vhost: &str, user: &str) -> Option<PermissionRecord> {
        let access = self.access(user, vhost)?;
        Some(PermissionRecord {
            user: access.user.clone(),
            vhost: access.vhost.clone(),
            configure: access.configure.text().clone(),
            write: access.write.text().clone(),
            read: access.read.text().clone(),
        })
    }

    /// Gives a user a permission in a vhost, in place of the one it has. It holds at once, for open connections too.
    ///
    /// # Errors
    /// If user or vhost do not exist, a pattern is none, or the registry is full.
    pub fn put_permission(&self, permission: PermissionRecord) -> Result<Done, RegistryError> {
        self.edit(Edit::Permission(permission))
    }

    /// Takes a user's permission in a vhost away: it may not enter any more. Open connections stay, but may do nothing.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete_permission(&self, vhost: &str, user: &str) -> Result<Done, RegistryError> {
        self.edit(Edit::NoPermission { vhost: vhost.into(), user: user.into() })
    }

    /// All topic permissions by vhost, user and exchange.
    pub fn list_topic_permissions(&self) -> Vec<TopicPermissionRecord> {
        self.0.registry.read(State::topic_permissions)
    }

    /// Narrows the routing keys of a topic exchange for a user. It holds at once.
    ///
    /// # Errors
    /// If user or vhost do not exist, a pattern is none, or the registry is full.
    pub fn put_topic_permission(&self, permission: TopicPermissionRecord) -> Result<Done, RegistryError> {
        self.edit(Edit::TopicPermission(permission))
    }

    /// Frees the routing keys of an exchange for a user again.
    ///
    /// # Errors
    /// If there is no such permission.
    pub fn delete_topic_permission(
        &self,
        vhost: &str,
        user: &str,
        exchange: &str,
    ) -> Result<Done, RegistryError> {
        let (vhost, user, exchange) = (vhost.into(), user.into(), exchange.into());
        self.edit(Edit::NoTopicPermission { vhost, user, exchange })
    }

    /// What a user may do in a vhost, at this moment; none if it may not enter it. It holds for one
    /// [`Broker::access_generation`].
    pub fn access(&self, user: &str, vhost: &str) -> Option<Arc<Access>> {
        self.0.registry.read(|state| state.access(&user.into(), &vhost.into())).map(Arc::new)
    }

    /// A number that grows with every edit that can alter what a user may do.
    pub fn access_generation(&self) -> u64 {
        self.0.registry.generation()
    }
}
