//! Edits of the registry, as they are asked for and journalled.
//!
//! Owns their encoding, JSON, and the events that tell of them. Must not know what follows from them.

use super::RegistryError;
use super::record::{
    GlobalParameter, Parameter, PermissionRecord, PolicyRecord, TopicPermissionRecord, UserLimits,
    UserRecord, VhostLimits, VhostRecord,
};
use crate::events::Event;
use deepmq_model::Name;
use deepmq_model::policy::PolicyRank;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is to be put or deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Edit {
    User(UserRecord),
    NoUser { name: Name },
    UserLimits { user: Name, limits: UserLimits },
    Vhost(VhostRecord),
    NoVhost { name: Name },
    VhostLimits { vhost: Name, limits: VhostLimits },
    Permission(PermissionRecord),
    NoPermission { vhost: Name, user: Name },
    TopicPermission(TopicPermissionRecord),
    NoTopicPermission { vhost: Name, user: Name, exchange: Name },
    Policy(PolicyRecord),
    NoPolicy { vhost: Name, name: Name },
    OperatorPolicy(PolicyRecord),
    NoOperatorPolicy { vhost: Name, name: Name },
    Parameter(Parameter),
    NoParameter { component: Name, vhost: Name, name: Name },
    GlobalParameter(GlobalParameter),
    NoGlobalParameter { name: Name },
}

/// The components of parameters that stand for something else.
pub(super) const VHOST_LIMITS: &str = "vhost-limits";
pub(super) const POLICY: &str = "policy";
pub(super) const OPERATOR_POLICY: &str = "operator_policy";
/// The one name of a parameter of `vhost-limits`.
pub(super) const LIMITS: &str = "limits";

impl Edit {
    /// Puts a policy of either rank.
    pub(crate) fn policy(rank: PolicyRank, policy: PolicyRecord) -> Self {
        match rank {
            PolicyRank::User => Self::Policy(policy),
            PolicyRank::Operator => Self::OperatorPolicy(policy),
        }
    }

    /// Deletes a policy of either rank.
    pub(crate) fn no_policy(rank: PolicyRank, vhost: Name, name: Name) -> Self {
        match rank {
            PolicyRank::User => Self::NoPolicy { vhost, name },
            PolicyRank::Operator => Self::NoOperatorPolicy { vhost, name },
        }
    }

    /// Puts a parameter, or what it stands for.
    pub(crate) fn parameter(parameter: Parameter) -> Result<Self, RegistryError> {
        match &*parameter.component {
            VHOST_LIMITS => {
                // RabbitMQ writes no limits as an empty list.
                let limits = match &parameter.value {
                    Value::Array(none) if none.is_empty() => VhostLimits::default(),
                    value => read(&parameter, value.clone())?,
                };
                Ok(Self::VhostLimits { vhost: parameter.vhost, limits })
            }
            POLICY | OPERATOR_POLICY => {
                let mut value = parameter.value.clone();
                if let Value::Object(fields) = &mut value {
                    fields.insert("vhost".into(), Value::String(parameter.vhost.to_string()));
                    fields.insert("name".into(), Value::String(parameter.name.to_string()));
                }
                let policy = read(&parameter, value)?;
                let operator = &*parameter.component == OPERATOR_POLICY;
                Ok(if operator { Self::OperatorPolicy(policy) } else { Self::Policy(policy) })
            }
            _ => Ok(Self::Parameter(parameter)),
        }
    }

    /// Deletes a parameter, or what it stands for.
    pub(crate) fn no_parameter(component: Name, vhost: Name, name: Name) -> Self {
        match &*component {
            VHOST_LIMITS => Self::VhostLimits { vhost, limits: VhostLimits::default() },
            POLICY => Self::NoPolicy { vhost, name },
            OPERATOR_POLICY => Self::NoOperatorPolicy { vhost, name },
            _ => Self::NoParameter { component, vhost, name },
        }
    }

    /// The vhost whose running side it changes.
    pub(crate) fn settles(&self) -> Option<&Name> {
        match self {
            Self::Vhost(VhostRecord { name: vhost, .. })
            | Self::VhostLimits { vhost, .. }
            | Self::Policy(PolicyRecord { vhost, .. })
            | Self::NoPolicy { vhost, .. }
            | Self::OperatorPolicy(PolicyRecord { vhost, .. })
            | Self::NoOperatorPolicy { vhost, .. } => Some(vhost),
            _ => None,
        }
    }

    /// Whether it can alter what a user may do.
    pub(crate) fn alters_access(&self) -> bool {
        matches!(
            self,
            Self::NoUser { .. }
                | Self::NoVhost { .. }
                | Self::Permission(_)
                | Self::NoPermission { .. }
                | Self::TopicPermission(_)
                | Self::NoTopicPermission { .. }
        )
    }

    /// The event that tells of it, once it is made.
    pub(crate) fn event(&self, created: bool) -> Event {
        match self.clone() {
            Self::User(user) if created => Event::UserCreated { user: user.name },
            Self::User(user) => Event::UserChanged { user: user.name },
            Self::NoUser { name } => Event::UserDeleted { user: name },
            Self::UserLimits { user, .. } => Event::UserLimitsSet { user },
            Self::Vhost(vhost) if created => Event::VhostCreated { vhost: vhost.name },
            Self::Vhost(vhost) => Event::VhostChanged { vhost: vhost.name },
            Self::NoVhost { name } => Event::VhostDeleted { vhost: name },
            Self::VhostLimits { vhost, .. } => Event::VhostLimitsSet { vhost },
            Self::Permission(PermissionRecord { vhost, user, .. }) => Event::PermissionSet { vhost, user },
            Self::NoPermission { vhost, user } => Event::PermissionCleared { vhost, user },
            Self::TopicPermission(TopicPermissionRecord { vhost, user, exchange, .. }) => {
                Event::TopicPermissionSet { vhost, user, exchange }
            }
            Self::NoTopicPermission { vhost, user, exchange } => {
                Event::TopicPermissionCleared { vhost, user, exchange }
            }
            Self::Policy(PolicyRecord { vhost, name, .. }) => Event::PolicySet { vhost, policy: name },
            Self::NoPolicy { vhost, name } => Event::PolicyCleared { vhost, policy: name },
            Self::OperatorPolicy(PolicyRecord { vhost, name, .. }) => {
                Event::OperatorPolicySet { vhost, policy: name }
            }
            Self::NoOperatorPolicy { vhost, name } => Event::OperatorPolicyCleared { vhost, policy: name },
            Self::Parameter(Parameter { component, vhost, name, .. }) => {
                Event::ParameterSet { component, vhost, name }
            }
            Self::NoParameter { component, vhost, name } => {
                Event::ParameterCleared { component, vhost, name }
            }
            Self::GlobalParameter(GlobalParameter { name, .. }) => Event::GlobalParameterSet { name },
            Self::NoGlobalParameter { name } => Event::GlobalParameterCleared { name },
        }
    }

    /// As it is journalled.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("records have names for keys, and numbers that JSON can write")
    }

    /// Reads what was journalled; none if it is no edit this version knows.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

fn read<T: DeserializeOwned>(parameter: &Parameter, value: Value) -> Result<T, RegistryError> {
    serde_json::from_value(value).map_err(|error| RegistryError::ParameterValue {
        component: parameter.component.clone(),
        name: parameter.name.clone(),
        why: error.to_string(),
    })
}
