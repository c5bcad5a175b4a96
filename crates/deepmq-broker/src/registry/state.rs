//! The state of the registry: what there is, and what may be put beside it.
//!
//! Owns the checks of an edit and what goes with what: a user's permissions with the user, a vhost's with the vhost. Must not
//! know who asks, or what is running.

mod lists;

use super::edit::Edit;
use super::error::RegistryError;
use super::record::{
    GlobalParameter, Parameter, PermissionRecord, PolicyRecord, TopicPermissionRecord, UserLimits,
    UserRecord, VhostLimits, VhostRecord,
};
use crate::json;
use crate::users::PasswordHash;
use deepmq_model::access::{Access, TopicAccess, expand};
use deepmq_model::policy::{self, Policies, Policy, PolicyRank};
use deepmq_model::topology::NAME_BYTES_MAX;
use deepmq_model::{Name, Pattern};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that is administered.
#[derive(Debug, Clone)]
pub(crate) struct State {
    entries_max: usize,
    users: BTreeMap<Name, UserRecord>,
    user_limits: BTreeMap<Name, UserLimits>,
    vhosts: BTreeMap<Name, VhostRecord>,
    vhost_limits: BTreeMap<Name, VhostLimits>,
    /// By vhost and user.
    permissions: BTreeMap<(Name, Name), Granted>,
    /// By vhost, user and exchange.
    topics: BTreeMap<(Name, Name, Name), TopicGranted>,
    /// By rank, vhost and name.
    policies: BTreeMap<(PolicyRank, Name, Name), Kept>,
    /// By component, vhost and name.
    parameters: BTreeMap<(Name, Name, Name), Value>,
    globals: BTreeMap<Name, Value>,
}

#[derive(Debug, Clone)]
struct Granted {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
}

#[derive(Debug, Clone)]
struct TopicGranted {
    /// As they were written.
    write: Name,
    read: Name,
    /// With everything filled in.
    access: TopicAccess,
}

#[derive(Debug, Clone)]
struct Kept {
    record: PolicyRecord,
    policy: Policy,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            entries_max: usize::MAX,
            users: BTreeMap::new(),
            user_limits: BTreeMap::new(),
            vhosts: BTreeMap::new(),
            vhost_limits: BTreeMap::new(),
            permissions: BTreeMap::new(),
            topics: BTreeMap::new(),
            policies: BTreeMap::new(),
            parameters: BTreeMap::new(),
            globals: BTreeMap::new(),
        }
    }

    /// Makes an edit; says whether it put what was not there before.
    ///
    /// # Errors
    /// If something it is about does not exist, or it is not sound: nothing has changed then.
    pub(crate) fn apply(&mut self, edit: Edit) -> Result<bool, RegistryError> {
        match edit {
            Edit::User(user) => self.put_user(user),
            Edit::NoUser { name } => self.delete_user(&name),
            Edit::UserLimits { user, limits } => {
                self.check_user(&user)?;
                if limits == UserLimits::default() {
                    return Ok(self.user_limits.remove(&user).is_none());
                }
                self.check_room(self.user_limits.contains_key(&user))?;
                Ok(self.user_limits.insert(user, limits).is_none())
            }
            Edit::Vhost(vhost) => self.put_vhost(vhost),
            Edit::NoVhost { name } => self.delete_vhost(&name),
            Edit::VhostLimits { vhost, limits } => {
                self.check_vhost(&vhost)?;
                if limits == VhostLimits::default() {
                    return Ok(self.vhost_limits.remove(&vhost).is_none());
                }
                self.check_room(self.vhost_limits.contains_key(&vhost))?;
                Ok(self.vhost_limits.insert(vhost, limits).is_none())
            }
            Edit::Permission(permission) => self.put_permission(permission),
            Edit::NoPermission { vhost, user } => {
                let name = format!("{user} in {vhost}");
                gone("permission", &name, self.permissions.remove(&(vhost, user)))
            }
            Edit::TopicPermission(permission) => self.put_topic_permission(permission),
            Edit::NoTopicPermission { vhost, user, exchange } => {
                let name = format!("{user} for {exchange} in {vhost}");
                gone("topic permission", &name, self.topics.remove(&(vhost, user, exchange)))
            }
            Edit::Policy(policy) => self.put_policy(PolicyRank::User, policy),
            Edit::NoPolicy { vhost, name } => {
                let key = (PolicyRank::User, vhost, name.clone());
                gone("policy", &name, self.policies.remove(&key))
            }
            Edit::OperatorPolicy(policy) => self.put_policy(PolicyRank::Operator, policy),
            Edit::NoOperatorPolicy { vhost, name } => {
                let key = (PolicyRank::Operator, vhost, name.clone());
                gone("operator policy", &name, self.policies.remove(&key))
            }
            Edit::Parameter(parameter) => self.put_parameter(parameter),
            Edit::NoParameter { component, vhost, name } => {
                gone("parameter", &name.clone(), self.parameters.remove(&(component, vhost, name)))
            }
            Edit::GlobalParameter(GlobalParameter { name, value }) => {
                check_name("global parameter", &name)?;
                self.check_room(self.globals.contains_key(&name))?;
                Ok(self.globals.insert(name, value).is_none())
            }
            Edit::NoGlobalParameter { name } => gone("global parameter", &name, self.globals.remove(&name)),
        }
    }

    fn put_user(&mut self, user: UserRecord) -> Result<bool, RegistryError> {
        check_name("user", &user.name)?;
        PasswordHash::read(&user.hashing_algorithm, &user.password_hash)?;
        self.check_room(self.users.contains_key(&user.name))?;
        Ok(self.users.insert(user.name.clone(), user).is_none())
    }

    fn delete_user(&mut self, name: &Name) -> Result<bool, RegistryError> {
        gone("user", name, self.users.remove(name))?;
        self.user_limits.remove(name);
        self.permissions.retain(|(_, user), _| user != name);
        self.topics.retain(|(_, user, _), _| user != name);
        Ok(false)
    }

    fn put_vhost(&mut self, vhost: VhostRecord) -> Result<bool, RegistryError> {
        check_name("vhost", &vhost.name)?;
        if let Some(kind) = vhost.default_queue_type.as_ref().filter(|kind| !is_queue_type(kind)) {
            return Err(RegistryError::QueueType(kind.clone()));
        }
        self.check_room(self.vhosts.contains_key(&vhost.name))?;
        Ok(self.vhosts.insert(vhost.name.clone(), vhost).is_none())
    }

    fn delete_vhost(&mut self, name: &Name) -> Result<bool, RegistryError> {
        gone("vhost", name, self.vhosts.remove(name))?;
        self.vhost_limits.remove(name);
        self.permissions.retain(|(vhost, _), _| vhost != name);
        self.topics.retain(|(vhost, ..), _| vhost != name);
        self.policies.retain(|(_, vhost, _), _| vhost != name);
        self.parameters.retain(|(_, vhost, _), _| vhost != name);
        Ok(false)
    }

    fn put_permission(&mut self, permission: PermissionRecord) -> Result<bool, RegistryError> {
        let PermissionRecord { user, vhost, configure, write, read } = permission;
        self.check_vhost(&vhost)?;
        self.check_user(&user)?;
        let granted = Granted {
            configure: pattern("configure", configure)?,
            write: pattern("write", write)?,
            read: pattern("read", read)?,
        };
        let key = (vhost, user);
        self.check_room(self.permissions.contains_key(&key))?;
        Ok(self.permissions.insert(key, granted).is_none())
    }

    fn put_topic_permission(&mut self, permission: TopicPermissionRecord) -> Result<bool, RegistryError> {
        let TopicPermissionRecord { user, vhost, exchange, write, read } = permission;
        self.check_vhost(&vhost)?;
        self.check_user(&user)?;
        let expanded = |field, text: &Name| {
            expand(text, &user, &vhost).map_err(|error| RegistryError::Pattern { field, error })
        };
        let access = TopicAccess {
            exchange: exchange.clone(),
            write: expanded("write", &write)?,
            read: expanded("read", &read)?,
        };
        let key = (vhost, user, exchange);
        self.check_room(self.topics.contains_key(&key))?;
        Ok(self.topics.insert(key, TopicGranted { write, read, access }).is_none())
    }

    fn put_policy(&mut self, rank: PolicyRank, record: PolicyRecord) -> Result<bool, RegistryError> {
        check_name("policy", &record.name)?;
        self.check_vhost(&record.vhost)?;
        let definition = json::table(&record.definition);
        policy::check_definition(&definition, rank)?;
        let policy = Policy {
            name: record.name.clone(),
            pattern: pattern("pattern", record.pattern.clone())?,
            apply_to: record.apply_to.parse()?,
            priority: record.priority,
            definition,
        };
        let key = (rank, record.vhost.clone(), record.name.clone());
        self.check_room(self.policies.contains_key(&key))?;
        Ok(self.policies.insert(key, Kept { record, policy }).is_none())
    }

    fn put_parameter(&mut self, parameter: Parameter) -> Result<bool, RegistryError> {
        let Parameter { component, vhost, name, value } = parameter;
        check_name("component", &component)?;
        check_name("parameter", &name)?;
        self.check_vhost(&vhost)?;
        let key = (component, vhost, name);
        self.check_room(self.parameters.contains_key(&key))?;
        Ok(self.parameters.insert(key, value).is_none())
    }

    fn check_user(&self, name: &Name) -> Result<(), RegistryError> {
        self.users.get(name).map(drop).ok_or_else(|| RegistryError::missing("user", &**name))
    }

    fn check_vhost(&self, name: &Name) -> Result<(), RegistryError> {
        self.vhosts.get(name).map(drop).ok_or_else(|| RegistryError::missing("vhost", &**name))
    }

    /// Sets how many entries there may be from now on; those there are stay.
    pub(crate) fn limit_entries(&mut self, max: usize) {
        self.entries_max = max;
    }

    /// Refuses to grow over the limit; what is there can always be replaced.
    fn check_room(&self, replaces: bool) -> Result<(), RegistryError> {
        if replaces {
            return Ok(());
        }
        let entries = self.users.len()
            + self.user_limits.len()
            + self.vhosts.len()
            + self.vhost_limits.len()
            + self.permissions.len()
            + self.topics.len()
            + self.policies.len()
            + self.parameters.len()
            + self.globals.len();
        if entries < self.entries_max { Ok(()) } else { Err(RegistryError::Full { max: self.entries_max }) }
    }

    /// What a user may do in a vhost; none if it may not enter it.
    pub(crate) fn access(&self, user: &Name, vhost: &Name) -> Option<Access> {
        let granted = self.permissions.get(&(vhost.clone(), user.clone()))?;
        let first = (vhost.clone(), user.clone(), "".into());
        let of_both = |((v, u, _), _): &(&(Name, Name, Name), &TopicGranted)| v == vhost && u == user;
        let topics = self.topics.range(first..).take_while(of_both).map(|(_, topic)| topic.access.clone());
        Some(Access {
            user: user.clone(),
            vhost: vhost.clone(),
            configure: granted.configure.clone(),
            write: granted.write.clone(),
            read: granted.read.clone(),
            topics: topics.collect(),
        })
    }

    /// The policies of a vhost, compiled.
    pub(crate) fn policies_of(&self, vhost: &Name) -> Policies {
        let of = |rank| {
            let first = (rank, vhost.clone(), Name::from(""));
            let same = move |(of, v, _): &(PolicyRank, Name, Name)| *of == rank && v == vhost;
            let kept = self.policies.range(first..).take_while(move |(key, _)| same(key));
            kept.map(|(_, kept)| kept.policy.clone()).collect()
        };
        Policies::new(of(PolicyRank::User), of(PolicyRank::Operator))
    }
}

fn pattern(field: &'static str, text: Name) -> Result<Pattern, RegistryError> {
    Pattern::new(text).map_err(|error| RegistryError::Pattern { field, error })
}

fn gone<T>(kind: &'static str, name: &str, removed: Option<T>) -> Result<bool, RegistryError> {
    removed.map(|_| false).ok_or_else(|| RegistryError::missing(kind, name))
}

fn check_name(kind: &'static str, name: &str) -> Result<(), RegistryError> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) { Ok(()) } else { Err(RegistryError::Name { kind }) }
}

fn is_queue_type(name: &str) -> bool {
    matches!(name, "classic" | "quorum")
}
