//! Queues as declared: their flags, owner and arguments, and the rules of declaring and deleting them.
//!
//! Owns the queues' part of the topology. Must not know what a queue holds.

use super::arguments::{COMPARED, QUEUE_TYPE, QueueArguments, QueueKind};
use super::equivalence::{check_argument, check_flag, shown};
use super::identity::{BindingId, ConnectionId, QueueId};
use super::removal::Step;
use super::{
    Changes, Declared, Limit, RESERVED_PREFIX, Resource, Topology, TopologyError, check_limit, check_name,
};
use crate::value::{Name, Table, Value};

/// What a queue is to be declared as.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueSpec {
    /// Whether it outlives a restart; an exclusive queue never does.
    pub durable: bool,
    /// Whether it belongs to the declaring connection.
    pub exclusive: bool,
    /// Whether it goes with its last consumer, which is for the broker to see to.
    pub auto_delete: bool,
    /// Whether the server chose the name, which may start with `amq.` then.
    pub server_named: bool,
    /// See [`QueueArguments`].
    pub arguments: Table,
}

/// A declared queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: Name,
    /// Whether it outlives a restart; never if it has an owner.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// The connection it is exclusive to.
    pub owner: Option<ConnectionId>,
    /// All arguments it was declared with.
    pub arguments: Table,
    /// Those of them that are known.
    pub settings: QueueArguments,
}

impl Queue {
    fn check_access(&self, by: ConnectionId) -> Result<(), TopologyError> {
        if self.owner.is_none_or(|owner| owner == by) { Ok(()) } else { Err(self.locked()) }
    }

    fn check_equivalent(&self, spec: &QueueSpec, by: ConnectionId) -> Result<(), TopologyError> {
        if self.owner != spec.exclusive.then_some(by) {
            return Err(self.locked());
        }
        let resource = || Resource::queue(&self.name);
        check_flag(resource, "durable", shown(spec.durable && !spec.exclusive), shown(self.durable))?;
        check_flag(resource, "auto_delete", shown(spec.auto_delete), shown(self.auto_delete))?;
        let classic = Value::str("classic");
        for argument in COMPARED {
            let default = (argument == QUEUE_TYPE).then_some(&classic);
            check_argument(resource, argument, default, &spec.arguments, &self.arguments)?;
        }
        Ok(())
    }

    fn locked(&self) -> TopologyError {
        TopologyError::Locked { queue: (&*self.name).into() }
    }
}

/// A queue with the bindings that lead to it.
#[derive(Debug, Clone)]
pub(super) struct QueueNode {
    pub(super) definition: Queue,
    pub(super) incoming: Vec<BindingId>,
}

impl Topology {
    /// Declares a queue.
    ///
    /// # Errors
    /// It exists and is locked or not equivalent; its new name is reserved, empty or too long; an argument is invalid, or a
    /// property does not go with its type; or a limit is reached.
    pub fn declare_queue(
        &mut self,
        name: &str,
        spec: QueueSpec,
        by: ConnectionId,
    ) -> Result<(QueueId, Declared), TopologyError> {
        if let Some(id) = self.find_queue(name)
            && let Some(existing) = self.queue_spec(id)
        {
            existing.check_equivalent(&spec, by)?;
            return Ok((id, Declared::Existing));
        }
        let settings = self.check_new_queue(name, &spec)?;
        Ok((self.insert_queue(name, spec, settings, by), Declared::Created))
    }

    /// The queue of this name, as any operation of the connection `by` asks for it.
    ///
    /// # Errors
    /// There is none, or it is exclusive to another connection.
    pub fn queue(&self, name: &str, by: ConnectionId) -> Result<QueueId, TopologyError> {
        let id = self.find_queue(name).ok_or_else(|| TopologyError::NotFound(Resource::queue(name)))?;
        if let Some(queue) = self.queue_spec(id) {
            queue.check_access(by)?;
        }
        Ok(id)
    }

    /// The queue of this name, whoever it belongs to.
    pub fn find_queue(&self, name: &str) -> Option<QueueId> {
        self.queue_names.get(name.as_bytes()).map(QueueId)
    }

    /// What a queue was declared as.
    pub fn queue_spec(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id.0).map(|node| &node.definition)
    }

    /// All queues, in ascending order of their ids.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues.iter().map(|(id, node)| (QueueId(id), &node.definition))
    }

    /// The queues exclusive to a connection, in ascending order of their ids.
    pub fn queues_owned_by(&self, connection: ConnectionId) -> Vec<QueueId> {
        self.owned.get(&connection).into_iter().flatten().copied().collect()
    }

    /// Deletes a queue with all its bindings. That there is none is no error: nothing has changed then.
    ///
    /// Whether it may be deleted (its owner, its consumers, its messages) is for the broker to ask before.
    pub fn delete_queue(&mut self, id: QueueId) -> Changes {
        self.remove(Step::Queue(id))
    }

    fn check_new_queue(&self, name: &str, spec: &QueueSpec) -> Result<QueueArguments, TopologyError> {
        if name.is_empty() {
            return Err(TopologyError::UnnamedQueue);
        }
        if name.starts_with(RESERVED_PREFIX) && !spec.server_named {
            return Err(TopologyError::ReservedName(Resource::queue(name)));
        }
        check_name(name)?;
        self.check_arguments(name, spec.arguments.len())?;
        let settings = QueueArguments::parse(name, &spec.arguments)?;
        if settings.kind == QueueKind::Quorum {
            check_quorum(name, spec)?;
        }
        check_limit(Limit::Queues, name, self.queues.len() + 1, self.limits.queues_max)?;
        Ok(settings)
    }

    fn insert_queue(
        &mut self,
        name: &str,
        spec: QueueSpec,
        settings: QueueArguments,
        by: ConnectionId,
    ) -> QueueId {
        let name: Name = name.into();
        let definition = Queue {
            name: name.clone(),
            durable: spec.durable && !spec.exclusive,
            auto_delete: spec.auto_delete,
            owner: spec.exclusive.then_some(by),
            arguments: spec.arguments,
            settings,
        };
        let id = QueueId(self.queues.insert(QueueNode { definition, incoming: Vec::new() }));
        self.queue_names.insert(name, id.0);
        if spec.exclusive {
            self.owned.entry(by).or_default().insert(id);
        }
        self.changed();
        id
    }
}

fn check_quorum(name: &str, spec: &QueueSpec) -> Result<(), TopologyError> {
    if spec.server_named {
        return Err(TopologyError::ServerNamed { kind: QueueKind::Quorum });
    }
    let refused = [
        (spec.auto_delete, "auto-delete"),
        (spec.exclusive, "exclusive-owner"),
        (!spec.durable, "non-durable"),
    ];
    match refused.into_iter().find(|&(set, _)| set) {
        Some((_, property)) => Err(TopologyError::InvalidProperty { queue: name.into(), property }),
        None => Ok(()),
    }
}
