//! The registry as lists of records.
//!
//! Owns copies only. Everything is in ascending order of its key, so that two lists of the same are the same.

use super::super::edit::{Edit, LIMITS, OPERATOR_POLICY, VHOST_LIMITS};
use super::super::record::{
    GlobalParameter, Parameter, PermissionRecord, PolicyRecord, TopicPermissionRecord, UserLimits,
    UserRecord, VhostLimits, VhostRecord,
};
use super::State;
use deepmq_model::Name;
use deepmq_model::policy::PolicyRank;
use serde_json::{Value, json};

impl State {
    pub(crate) fn users(&self) -> Vec<UserRecord> {
        self.users.values().cloned().collect()
    }

    pub(crate) fn user(&self, name: &str) -> Option<&UserRecord> {
        self.users.get(name)
    }

    pub(crate) fn user_limits(&self, user: &str) -> UserLimits {
        self.user_limits.get(user).copied().unwrap_or_default()
    }

    pub(crate) fn vhosts(&self) -> Vec<VhostRecord> {
        self.vhosts.values().cloned().collect()
    }

    pub(crate) fn vhost(&self, name: &str) -> Option<&VhostRecord> {
        self.vhosts.get(name)
    }

    pub(crate) fn vhost_limits(&self, vhost: &str) -> VhostLimits {
        self.vhost_limits.get(vhost).copied().unwrap_or_default()
    }

    pub(crate) fn permissions(&self) -> Vec<PermissionRecord> {
        let record = |((vhost, user), granted): (&(Name, Name), &super::Granted)| PermissionRecord {
            user: user.clone(),
            vhost: vhost.clone(),
            configure: granted.configure.text().clone(),
            write: granted.write.text().clone(),
            read: granted.read.text().clone(),
        };
        self.permissions.iter().map(record).collect()
    }

    pub(crate) fn topic_permissions(&self) -> Vec<TopicPermissionRecord> {
        let record = |((vhost, user, exchange), granted): (&(Name, Name, Name), &super::TopicGranted)| {
            TopicPermissionRecord {
                user: user.clone(),
                vhost: vhost.clone(),
                exchange: exchange.clone(),
                write: granted.write.clone(),
                read: granted.read.clone(),
            }
        };
        self.topics.iter().map(record).collect()
    }

    pub(crate) fn policies(&self, rank: PolicyRank) -> Vec<PolicyRecord> {
        let of_rank = self.policies.iter().filter(|((of, ..), _)| *of == rank);
        of_rank.map(|(_, kept)| kept.record.clone()).collect()
    }

    pub(crate) fn policy(&self, rank: PolicyRank, vhost: &str, name: &str) -> Option<&PolicyRecord> {
        self.policies.get(&(rank, vhost.into(), name.into())).map(|kept| &kept.record)
    }

    /// All parameters, with operator policies and vhost limits among them as RabbitMQ has it.
    pub(crate) fn parameters(&self) -> Vec<Parameter> {
        let mut all = self.plain_parameters();
        all.extend(self.policies(PolicyRank::Operator).into_iter().map(|policy| Parameter {
            component: OPERATOR_POLICY.into(),
            vhost: policy.vhost,
            name: policy.name,
            value: json!({
                "pattern": &*policy.pattern,
                "apply-to": &*policy.apply_to,
                "definition": policy.definition,
                "priority": policy.priority,
            }),
        }));
        all.extend(self.vhost_limits.iter().map(|(vhost, limits)| Parameter {
            component: VHOST_LIMITS.into(),
            vhost: vhost.clone(),
            name: LIMITS.into(),
            value: serde_json::to_value(limits).unwrap_or(Value::Null),
        }));
        all.sort_by(|a, b| (&a.component, &a.vhost, &a.name).cmp(&(&b.component, &b.vhost, &b.name)));
        all
    }

    fn plain_parameters(&self) -> Vec<Parameter> {
        let record = |((component, vhost, name), value): (&(Name, Name, Name), &Value)| Parameter {
            component: component.clone(),
            vhost: vhost.clone(),
            name: name.clone(),
            value: value.clone(),
        };
        self.parameters.iter().map(record).collect()
    }

    pub(crate) fn global_parameters(&self) -> Vec<GlobalParameter> {
        let record =
            |(name, value): (&Name, &Value)| GlobalParameter { name: name.clone(), value: value.clone() };
        self.globals.iter().map(record).collect()
    }

    /// Everything, as edits that lead to it.
    pub(crate) fn tell(&self) -> Vec<Edit> {
        let user_limits = self.user_limits.iter();
        let vhost_limits = self.vhost_limits.iter();
        let mut edits: Vec<Edit> = self.users().into_iter().map(Edit::User).collect();
        edits.extend(user_limits.map(|(user, &limits)| Edit::UserLimits { user: user.clone(), limits }));
        edits.extend(self.vhosts().into_iter().map(Edit::Vhost));
        edits.extend(vhost_limits.map(|(vhost, &limits)| Edit::VhostLimits { vhost: vhost.clone(), limits }));
        edits.extend(self.permissions().into_iter().map(Edit::Permission));
        edits.extend(self.topic_permissions().into_iter().map(Edit::TopicPermission));
        edits.extend(self.policies(PolicyRank::User).into_iter().map(Edit::Policy));
        edits.extend(self.policies(PolicyRank::Operator).into_iter().map(Edit::OperatorPolicy));
        edits.extend(self.plain_parameters().into_iter().map(Edit::Parameter));
        edits.extend(self.global_parameters().into_iter().map(Edit::GlobalParameter));
        edits
    }
}
