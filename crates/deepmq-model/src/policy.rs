//! Policies: settings for all queues and exchanges whose names match a pattern.
//!
//! Owns which policy counts for what, what of a policy and an operator's policy results, and which keys there are. Must not
//! know what follows from a setting. The rules are RabbitMQ's (reference 1.7).

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{DefinitionFault, check_definition};

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use crate::pattern::Pattern;
use crate::topology::QueueKind;
use crate::value::{Name, Table, Value};

/// Who made a policy: an operator's overrides what users ask for, and has fewer keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PolicyRank {
    /// A policy.
    User,
    /// An operator policy.
    Operator,
}

/// What a policy can be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A queue.
    Queue(QueueKind),
    /// An exchange.
    Exchange,
}

/// What a policy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApplyTo {
    /// `all`
    #[default]
    All,
    /// `queues` of any type
    Queues,
    /// `classic_queues`
    ClassicQueues,
    /// `quorum_queues`
    QuorumQueues,
    /// `streams`, which do not exist here
    Streams,
    /// `exchanges`
    Exchanges,
}

impl ApplyTo {
    /// The name operators give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Queues => "queues",
            Self::ClassicQueues => "classic_queues",
            Self::QuorumQueues => "quorum_queues",
            Self::Streams => "streams",
            Self::Exchanges => "exchanges",
        }
    }

    fn includes(self, target: Target) -> bool {
        match self {
            Self::All => true,
            Self::Queues => matches!(target, Target::Queue(_)),
            Self::ClassicQueues => target == Target::Queue(QueueKind::Classic),
            Self::QuorumQueues => target == Target::Queue(QueueKind::Quorum),
            Self::Streams => false,
            Self::Exchanges => target == Target::Exchange,
        }
    }
}

impl fmt::Display for ApplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names nothing a policy can be for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("apply-to {0:?} is none of all, queues, classic_queues, quorum_queues, streams, exchanges")]
pub struct UnknownTarget(pub String);

impl FromStr for ApplyTo {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        let all = [
            Self::All,
            Self::Queues,
            Self::ClassicQueues,
            Self::QuorumQueues,
            Self::Streams,
            Self::Exchanges,
        ];
        all.into_iter().find(|target| target.name() == name).ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}

/// A policy of either rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Its name, unique in its vhost and rank.
    pub name: Name,
    /// The names it is for.
    pub pattern: Pattern,
    /// The things it is for.
    pub apply_to: ApplyTo,
    /// Of several policies for one thing, the one with the highest counts.
    pub priority: i64,
    /// Its settings.
    pub definition: Table,
}

/// What holds for one queue or exchange.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EffectivePolicy {
    /// The policy that counts.
    pub policy: Option<Name>,
    /// The operator policy that counts.
    pub operator_policy: Option<Name>,
    /// What results from both.
    pub definition: Table,
}

/// All policies of one vhost.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    user: Vec<Policy>,
    operator: Vec<Policy>,
}

impl Policies {
    /// Those of users and those of operators, in any order.
    pub fn new(mut user: Vec<Policy>, mut operator: Vec<Policy>) -> Self {
        // The first that matches counts. RabbitMQ leaves open which of two equal ones it is; here it is the first by name.
        for policies in [&mut user, &mut operator] {
            policies.sort_by(|a, b| (Reverse(a.priority), &a.name).cmp(&(Reverse(b.priority), &b.name)));
        }
        Self { user, operator }
    }

    /// What holds for a queue or exchange.
    pub fn effective(&self, target: Target, name: &str) -> EffectivePolicy {
        let first = |policies: &'_ [Policy]| {
            let of = |policy: &&Policy| policy.apply_to.includes(target) && policy.pattern.matches(name);
            policies.iter().position(|policy| of(&policy))
        };
        let policy = first(&self.user).and_then(|at| self.user.get(at));
        let operator = first(&self.operator).and_then(|at| self.operator.get(at));
        EffectivePolicy {
            policy: policy.map(|policy| policy.name.clone()),
            operator_policy: operator.map(|policy| policy.name.clone()),
            definition: merge(policy.map(|p| &p.definition), operator.map(|p| &p.definition)),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.user.is_empty() && self.operator.is_empty()
    }
}

/// What of a policy and an operator's results: all keys of both, and of a key in both the stricter.
pub fn merge(policy: Option<&Table>, operator: Option<&Table>) -> Table {
    let (Some(policy), Some(operator)) = (policy, operator) else {
        return policy.or(operator).cloned().unwrap_or_default();
    };
    let both = policy.iter().map(|(key, value)| {
        let merged = operator.get(key).map_or(value, |bound| keys::stricter(key, value, bound));
        (key, merged.clone())
    });
    let added = operator.iter().filter(|(key, _)| policy.get(key).is_none());
    both.chain(added.map(|(key, value): (&str, &Value)| (key, value.clone()))).collect()
}
