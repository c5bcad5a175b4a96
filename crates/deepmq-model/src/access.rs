//! What a user may do in a vhost: patterns of names to configure, write and read, and patterns of routing keys for topic
//! exchanges.
//!
//! Owns the decision and the text by which the default exchange is known. Must not know users' passwords or who asks.

use std::fmt;

use crate::pattern::{Pattern, PatternError};
use crate::topology::{Resource, ResourceKind};
use crate::value::Name;

/// The default exchange's name as patterns see it, for its own is empty.
pub const DEFAULT_EXCHANGE_NAME: &str = "amq.default";

/// What is to be done with a queue or exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Declare or delete it.
    Configure,
    /// Publish to it, or bind it as a destination.
    Write,
    /// Take messages from it, or bind it as a source.
    Read,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        })
    }
}

/// The patterns of one exchange's routing keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicAccess {
    /// The exchange.
    pub exchange: Name,
    /// Keys that may be published with.
    pub write: Pattern,
    /// Keys that may be bound with.
    pub read: Pattern,
}

/// What one user may do in one vhost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The user, as refusals name it.
    pub user: Name,
    /// The vhost.
    pub vhost: Name,
    /// Names to declare and delete.
    pub configure: Pattern,
    /// Names to publish to.
    pub write: Pattern,
    /// Names to take from.
    pub read: Pattern,
    /// Narrower rules for some exchanges; of an exchange without one, every key is allowed.
    pub topics: Vec<TopicAccess>,
}

/// Why something is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No permission of this sort for the name.
    #[error("{permission} access to {resource} in vhost '{vhost}' refused for user '{user}'")]
    Resource {
        /// What was asked for.
        permission: Permission,
        /// Of what.
        resource: Resource,
        /// Its vhost.
        vhost: Name,
        /// Who asked.
        user: Name,
    },
    /// No permission of this sort for the routing key.
    #[error(
        "{permission} access to topic '{key}' in exchange '{exchange}' in vhost '{vhost}' refused for user '{user}'"
    )]
    Topic {
        /// What was asked for.
        permission: Permission,
        /// The routing key.
        key: Box<str>,
        /// The exchange.
        exchange: Box<str>,
        /// Its vhost.
        vhost: Name,
        /// Who asked.
        user: Name,
    },
}

impl Access {
    /// Of a user without any permission.
    pub fn none(user: Name, vhost: Name) -> Self {
        let nothing = Pattern::nothing;
        Self { user, vhost, configure: nothing(), write: nothing(), read: nothing(), topics: Vec::new() }
    }

    /// Refuses what the user may not do with a queue or exchange, whether it exists or not.
    pub fn check(&self, permission: Permission, kind: ResourceKind, name: &str) -> Result<(), Refused> {
        let name = shown(kind, name);
        if self.pattern(permission).matches(name) {
            return Ok(());
        }
        Err(self.refused(permission, kind, name))
    }

    /// Refuses what the user may do nothing with: enough to ask whether it exists.
    pub fn check_any(&self, kind: ResourceKind, name: &str) -> Result<(), Refused> {
        let name = shown(kind, name);
        let any = [Permission::Configure, Permission::Write, Permission::Read];
        if any.into_iter().any(|permission| self.pattern(permission).matches(name)) {
            return Ok(());
        }
        Err(self.refused(Permission::Configure, kind, name))
    }

    /// Whether there is a rule for the routing keys of this exchange, which holds if it is a topic exchange.
    pub fn narrows(&self, exchange: &str) -> bool {
        self.topics.iter().any(|topic| &*topic.exchange == exchange)
    }

    /// Refuses a routing or binding key of a topic exchange.
    pub fn check_topic(&self, permission: Permission, exchange: &str, key: &[u8]) -> Result<(), Refused> {
        let Some(topic) = self.topics.iter().find(|topic| &*topic.exchange == exchange) else {
            return Ok(());
        };
        let key = String::from_utf8_lossy(key);
        let pattern = match permission {
            Permission::Read => &topic.read,
            Permission::Write | Permission::Configure => &topic.write,
        };
        if pattern.matches(&key) {
            return Ok(());
        }
        Err(Refused::Topic {
            permission,
            key: key.into(),
            exchange: exchange.into(),
            vhost: self.vhost.clone(),
            user: self.user.clone(),
        })
    }

    fn pattern(&self, permission: Permission) -> &Pattern {
        match permission {
            Permission::Configure => &self.configure,
            Permission::Write => &self.write,
            Permission::Read => &self.read,
        }
    }

    fn refused(&self, permission: Permission, kind: ResourceKind, name: &str) -> Refused {
        let resource = Resource { kind, name: name.into() };
        Refused::Resource { permission, resource, vhost: self.vhost.clone(), user: self.user.clone() }
    }
}

/// The pattern of a topic permission with `{username}` and `{vhost}` filled in, as they are.
///
/// # Errors
/// If it is no pattern then.
pub fn expand(pattern: &str, user: &str, vhost: &str) -> Result<Pattern, PatternError> {
    if pattern.contains('{') {
        return Pattern::new(pattern.replace("{username}", user).replace("{vhost}", vhost));
    }
    Pattern::new(pattern)
}

fn shown(kind: ResourceKind, name: &str) -> &str {
    if name.is_empty() && kind == ResourceKind::Exchange { DEFAULT_EXCHANGE_NAME } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ResourceKind::{Exchange, Queue};

    fn access(configure: &str, write: &str, read: &str) -> Access {
        let pattern = |text: &str| Pattern::new(text).unwrap();
        Access {
            configure: pattern(configure),
            write: pattern(write),
            read: pattern(read),
            ..Access::none("joe".into(), "/".into())
        }
    }

    #[test]
    fn each_permission_has_names_of_its_own() {
        let access = access("^a", "^b", "");
        assert_eq!(access.check(Permission::Configure, Queue, "a"), Ok(()));
        assert_eq!(access.check(Permission::Write, Exchange, "b"), Ok(()));
        let text = |refused: Result<(), Refused>| refused.unwrap_err().to_string();
        assert_eq!(
            text(access.check(Permission::Read, Queue, "a")),
            "read access to queue 'a' in vhost '/' refused for user 'joe'"
        );
        assert_eq!(
            text(access.check(Permission::Write, Exchange, "")),
            "write access to exchange 'amq.default' in vhost '/' refused for user 'joe'"
        );
        assert_eq!(access.check_any(Queue, "b"), Ok(()));
        assert!(access.check_any(Queue, "c").is_err());
    }

    #[test]
    fn the_default_exchange_is_known_to_patterns_by_a_name() {
        assert_eq!(access("", r"^amq\.default$", "").check(Permission::Write, Exchange, ""), Ok(()));
    }

    #[test]
    fn keys_are_free_unless_there_is_a_rule_for_their_exchange() {
        let topic = TopicAccess {
            exchange: "amq.topic".into(),
            write: expand("^{username}-{vhost}\\.", "joe", "v").unwrap(),
            read: Pattern::nothing(),
        };
        let access = Access { topics: vec![topic], ..access(".*", ".*", ".*") };
        assert!(access.narrows("amq.topic") && !access.narrows("other"));
        assert_eq!(access.check_topic(Permission::Write, "other", b"any"), Ok(()));
        assert_eq!(access.check_topic(Permission::Write, "amq.topic", b"joe-v.x"), Ok(()));
        let refused = access.check_topic(Permission::Write, "amq.topic", b"ann.x").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "write access to topic 'ann.x' in exchange 'amq.topic' in vhost '/' refused for user 'joe'"
        );
        assert!(access.check_topic(Permission::Read, "amq.topic", b"joe-v.x").is_err());
    }
}
