//! Removal: what goes when a binding, exchange or queue goes.
//!
//! Owns the cascade: the bindings of what is removed go with it, and an auto-delete exchange goes with the last binding of
//! which it is the source.

use super::identity::{BindingId, ExchangeId};
use super::{Binding, Exchange, Queue, QueueId, Topology};

/// One thing removed.
#[derive(Debug, Clone, PartialEq)]
pub enum Removed {
    /// A binding.
    Binding(Binding),
    /// An exchange, after all its bindings.
    Exchange(Exchange),
    /// A queue, after all its bindings.
    Queue(QueueId, Box<Queue>),
}

/// All that a removal took, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// What is gone.
    pub removed: Vec<Removed>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }
}

/// One step of a removal.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Binding(BindingId),
    /// An exchange with its bindings.
    Exchange(ExchangeId),
    /// A queue with its bindings.
    Queue(QueueId),
    /// An exchange whose bindings are gone.
    BareExchange(ExchangeId),
    /// A queue whose bindings are gone.
    BareQueue(QueueId),
}

impl Topology {
    /// Does a step and all that follow from it. A stack, not recursion: auto-delete exchanges may be chained at will.
    pub(super) fn remove(&mut self, step: Step) -> Changes {
        let mut changes = Changes::default();
        let mut steps = vec![step];
        while let Some(step) = steps.pop() {
            match step {
                Step::Binding(id) => changes.removed.extend(self.remove_binding(id, &mut steps)),
                Step::Exchange(id) => self.plan_exchange(id, &mut steps),
                Step::Queue(id) => self.plan_queue(id, &mut steps),
                Step::BareExchange(id) => {
                    changes.removed.extend(self.remove_exchange(id).map(Removed::Exchange));
                }
                Step::BareQueue(id) => {
                    let queue = self.remove_queue(id);
                    changes.removed.extend(queue.map(|queue| Removed::Queue(id, Box::new(queue))));
                }
            }
        }
        changes
    }

    fn plan_exchange(&self, id: ExchangeId, steps: &mut Vec<Step>) {
        let Some(exchange) = self.exchanges.get(id.0) else { return };
        steps.push(Step::BareExchange(id));
        let bindings = exchange.incoming.iter().chain(&exchange.outgoing);
        steps.extend(bindings.rev().map(|&binding| Step::Binding(binding)));
    }

    fn plan_queue(&self, id: QueueId, steps: &mut Vec<Step>) {
        let Some(queue) = self.queues.get(id.0) else { return };
        steps.push(Step::BareQueue(id));
        steps.extend(queue.incoming.iter().rev().map(|&binding| Step::Binding(binding)));
    }

    fn remove_binding(&mut self, id: BindingId, steps: &mut Vec<Step>) -> Option<Removed> {
        let (binding, source) = self.unlink(id)?;
        if self
            .exchanges
            .get(source.0)
            .is_some_and(|node| node.definition.auto_delete && node.outgoing.is_empty())
        {
            steps.push(Step::Exchange(source));
        }
        Some(Removed::Binding(binding))
    }

    fn remove_exchange(&mut self, id: ExchangeId) -> Option<Exchange> {
        let node = self.exchanges.remove(id.0)?;
        self.exchange_names.remove(&node.definition.name);
        self.changed();
        Some(node.definition)
    }

    fn remove_queue(&mut self, id: QueueId) -> Option<Queue> {
        let queue = self.queues.remove(id.0)?.definition;
        self.queue_names.remove(&queue.name);
        if let Some(owner) = queue.owner
            && let Some(owned) = self.owned.get_mut(&owner)
        {
            owned.remove(&id);
            if owned.is_empty() {
                self.owned.remove(&owner);
            }
        }
        self.changed();
        Some(queue)
    }
}
