//! Vhosts and what is set for them: limits, policies, parameters.
//!
//! Owns the API. Must not know what a setting does.

use super::Broker;
use crate::registry::{
    Done, Edit, GlobalParameter, Parameter, PolicyRecord, RegistryError, State, VhostLimits, VhostRecord,
};
use deepmq_model::policy::PolicyRank;

impl Broker {
    /// What is known of all vhosts, by name. See [`Broker::vhosts`] for what is in them.
    pub fn list_vhosts(&self) -> Vec<VhostRecord> {
        self.0.registry.read(State::vhosts)
    }

    /// What is known of a vhost.
    pub fn get_vhost(&self, name: &str) -> Option<VhostRecord> {
        self.0.registry.read(|state| state.vhost(name).cloned())
    }

    /// Creates a vhost, or changes what is known of it. Nobody may enter a new one until [`Broker::put_permission`].
    ///
    /// # Errors
    /// If the name is empty or too long, the default queue type unknown, or the registry full.
    pub fn put_vhost(&self, vhost: VhostRecord) -> Result<Done, RegistryError> {
        self.edit(Edit::Vhost(vhost))
    }

    /// Deletes a vhost with everything in it and everything said of it, and closes its connections.
    ///
    /// # Errors
    /// If there is none, or it is protected.
    pub fn delete_vhost(&self, name: &str) -> Result<Done, RegistryError> {
        let mut state = self.0.registry.write();
        if state.vhost(name).is_some_and(|vhost| vhost.protected_from_deletion) {
            return Err(RegistryError::Protected { vhost: name.into() });
        }
        self.edit_locked(&mut state, Edit::NoVhost { name: name.into() })
    }

    /// Protects a vhost from deletion, or takes that back.
    ///
    /// # Errors
    /// If there is none.
    pub fn protect_vhost(&self, name: &str, protected: bool) -> Result<Done, RegistryError> {
        let mut state = self.0.registry.write();
        let known = state.vhost(name).cloned().ok_or_else(|| RegistryError::missing("vhost", name))?;
        self.edit_locked(&mut state, Edit::Vhost(VhostRecord { protected_from_deletion: protected, ..known }))
    }

    /// The limits of a vhost; those that are not set are none.
    pub fn get_vhost_limits(&self, vhost: &str) -> VhostLimits {
        self.0.registry.read(|state| state.vhost_limits(vhost))
    }

    /// Sets the limits of a vhost, all of them. They hold for connections and queues to come.
    ///
    /// # Errors
    /// If there is no such vhost, or the registry is full.
    pub fn put_vhost_limits(&self, vhost: &str, limits: VhostLimits) -> Result<Done, RegistryError> {
        self.edit(Edit::VhostLimits { vhost: vhost.into(), limits })
    }

    /// All policies of a rank, by vhost and name.
    pub fn list_policies(&self, rank: PolicyRank) -> Vec<PolicyRecord> {
        self.0.registry.read(|state| state.policies(rank))
    }

    /// A policy.
    pub fn get_policy(&self, rank: PolicyRank, vhost: &str, name: &str) -> Option<PolicyRecord> {
        self.0.registry.read(|state| state.policy(rank, vhost, name).cloned())
    }

    /// Puts a policy, in place of the one of its name. It holds at once, for what exists too.
    ///
    /// # Errors
    /// If the vhost does not exist, the pattern is none, the definition is wrong, or the registry is full.
    pub fn put_policy(&self, rank: PolicyRank, policy: PolicyRecord) -> Result<Done, RegistryError> {
        self.edit(Edit::policy(rank, policy))
    }

    /// Deletes a policy.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete_policy(&self, rank: PolicyRank, vhost: &str, name: &str) -> Result<Done, RegistryError> {
        self.edit(Edit::no_policy(rank, vhost.into(), name.into()))
    }

    /// All parameters by component, vhost and name, with operator policies and the limits of vhosts among them, as RabbitMQ
    /// has it.
    pub fn list_parameters(&self) -> Vec<Parameter> {
        self.0.registry.read(State::parameters)
    }

    /// A parameter.
    pub fn get_parameter(&self, component: &str, vhost: &str, name: &str) -> Option<Parameter> {
        let wanted = |parameter: &Parameter| {
            (&*parameter.component, &*parameter.vhost, &*parameter.name) == (component, vhost, name)
        };
        self.list_parameters().into_iter().find(wanted)
    }

    /// Puts a parameter. Of the components `policy`, `operator_policy` and `vhost-limits` it is put as what it stands for.
    ///
    /// # Errors
    /// If the vhost does not exist, a name or the value is wrong, or the registry is full.
    pub fn put_parameter(&self, parameter: Parameter) -> Result<Done, RegistryError> {
        self.edit(Edit::parameter(parameter)?)
    }

    /// Deletes a parameter, or what it stands for.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete_parameter(&self, component: &str, vhost: &str, name: &str) -> Result<Done, RegistryError> {
        self.edit(Edit::no_parameter(component.into(), vhost.into(), name.into()))
    }

    /// All parameters of the whole broker, by name.
    pub fn list_global_parameters(&self) -> Vec<GlobalParameter> {
        self.0.registry.read(State::global_parameters)
    }

    /// A parameter of the whole broker.
    pub fn get_global_parameter(&self, name: &str) -> Option<GlobalParameter> {
        self.list_global_parameters().into_iter().find(|parameter| &*parameter.name == name)
    }

    /// Puts a parameter of the whole broker.
    ///
    /// # Errors
    /// If the name is empty or too long, or the registry full.
    pub fn put_global_parameter(&self, parameter: GlobalParameter) -> Result<Done, RegistryError> {
        self.edit(Edit::GlobalParameter(parameter))
    }

    /// Deletes a parameter of the whole broker.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete_global_parameter(&self, name: &str) -> Result<Done, RegistryError> {
        self.edit(Edit::NoGlobalParameter { name: name.into() })
    }
}
