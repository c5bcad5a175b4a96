//! Why an edit of the registry is refused.
//!
//! Owns the refusals. Nothing has changed then. Must not know how a front-end answers.

use deepmq_model::policy::{DefinitionFault, UnknownTarget};
use deepmq_model::{Name, PatternError};

use crate::users::HashError;

/// Why an edit is refused. Who asked for it can mend it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RegistryError {
    /// What is to be deleted, or what the edit is about, does not exist.
    #[error("{kind} '{name}' does not exist")]
    NotFound {
        /// `user`, `vhost`, `permission`, `topic permission`, `policy`, `operator policy`, `parameter`, `global parameter`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A vhost is not to be deleted.
    #[error("Refusing to delete virtual host '{vhost}' because it is protected from deletion")]
    Protected {
        /// Its name.
        vhost: Name,
    },
    /// A name is empty or too long.
    #[error("the name of a {kind} must have 1 to 255 bytes")]
    Name {
        /// What was to have it.
        kind: &'static str,
    },
    /// A pattern is not a regular expression.
    #[error("{field}: {error}")]
    Pattern {
        /// `configure`, `write`, `read` or `pattern`.
        field: &'static str,
        /// What is wrong.
        error: PatternError,
    },
    /// A policy's definition is wrong.
    #[error("definition: {0}")]
    Definition(#[from] DefinitionFault),
    /// A policy is for nothing there is.
    #[error(transparent)]
    ApplyTo(#[from] UnknownTarget),
    /// A stored password cannot be read.
    #[error("password_hash: {0}")]
    Hash(#[from] HashError),
    /// A password that nobody can log in with.
    #[error("the password must not be empty")]
    EmptyPassword,
    /// A default queue type that does not exist.
    #[error("default_queue_type {0:?} is none of classic, quorum")]
    QueueType(Name),
    /// The value of a parameter that stands for something else is not of its form.
    #[error("the value of {component} '{name}' is wrong: {why}")]
    ParameterValue {
        /// The component.
        component: Name,
        /// The parameter.
        name: Name,
        /// What is wrong.
        why: String,
    },
    /// There are as many entries as the broker's limit allows.
    #[error("the limit of {max} users, vhosts, permissions, policies and parameters together is reached")]
    Full {
        /// The limit.
        max: usize,
    },
}

impl RegistryError {
    pub(crate) fn missing(kind: &'static str, name: impl Into<String>) -> Self {
        Self::NotFound { kind, name: name.into() }
    }
}
