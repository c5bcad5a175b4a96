//! A vhost: its topology, and the queues behind it.
//!
//! Owns the catalogue and its lock, and keeps the model's declarations and the running queues in step. Must not know
//! who asks, beyond the connection's number. Lock order: catalogue, then queue, then subscriber.

mod burial;
mod draft;
mod exchange_traffic;
mod keeping;
mod looking;
mod publishing;
mod replies;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use draft::Draft;
pub use exchange_traffic::{ExchangeCounters, ExchangeTraffic};
pub(crate) use keeping::give_back;
pub use looking::RunningQueue;
pub use publishing::{Publication, PublishError, Routed};
pub use replies::Expecting;
pub(crate) use settings::VhostSettings;

use exchange_traffic::Traffics;
use keeping::Keeping;
use replies::Replies;

use crate::connection::ConnectionId;
use crate::durable::Durable;
use crate::durable::change::{Binding, What};
use crate::events::{BindingTo, Event, Events};
use crate::inspect::{BindingInfo, QueueInfo};
use crate::limits::Limits;
use crate::memory::Memory;
use crate::queue::{DeleteRefused, Home, Queue};
use crate::subscriber::{Subscription, Wakes};
use crate::timers::Timers;
use deepmq_model::topology::{
    self as model, Changes, Declared, Destination, Exchange, ExchangeKind, ExchangeSpec, Origin, QueueId,
    QueueSpec, Removed, ResourceKind, RouteError, RouteSet, Topology, TopologyError,
};
use deepmq_model::{Name, Table};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use std::sync::{Arc, Weak};

/// One vhost.
#[derive(Debug)]
pub struct Vhost {
    name: Name,
    events: Arc<Events>,
    /// What its queues share.
    home: Arc<Home>,
    generation: AtomicU64,
    replies: Arc<Replies>,
    keeping: Option<Keeping>,
    traffics: Traffics,
    /// Queues with dead letters that could not be placed, to be told when routes change.
    holders: Mutex<Vec<Weak<Queue>>>,
    catalogue: RwLock<Catalogue>,
}

#[derive(Debug)]
struct Catalogue {
    topology: Topology,
    settings: VhostSettings,
    /// The running queues by their `QueueId`.
    queues: Vec<Option<Arc<Queue>>>,
}

/// A binding as a client asks for it.
#[derive(Debug, Clone, Copy)]
pub struct BindingRequest<'a> {
    /// The exchange that messages come from.
    pub source: &'a str,
    /// Where they go.
    pub destination: Destination<'a>,
    /// The routing or binding key.
    pub key: &'a [u8],
    /// Arguments, which the headers exchange matches.
    pub arguments: &'a Table,
}

/// What is to hold for a queue to be deleted.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeleteIf {
    /// It has no consumers.
    pub unused: bool,
    /// It has no ready messages.
    pub empty: bool,
}

/// Why a queue is not deleted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeleteError {
    /// The connection may not touch it.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A condition that was asked for does not hold.
    #[error("the queue is in use or not empty")]
    Refused(DeleteRefused),
}

impl Catalogue {
    fn queue(&self, id: QueueId) -> Option<&Arc<Queue>> {
        self.queues.get(id.0 as usize)?.as_ref()
    }

    fn set(&mut self, id: QueueId, queue: Option<Arc<Queue>>) {
        let at = id.0 as usize;
        if at >= self.queues.len() {
            self.queues.resize(at + 1, None);
        }
        if let Some(slot) = self.queues.get_mut(at) {
            *slot = queue;
        }
    }
}

impl Vhost {
    pub(crate) fn new(
        name: Name,
        limits: &Limits,
        memory: Arc<Memory>,
        events: Arc<Events>,
        timers: Arc<Timers>,
        durable: Option<Arc<Durable>>,
    ) -> Arc<Self> {
        let topology = Topology::new(settings::topology_limits(limits));
        Arc::new_cyclic(|running| Self {
            home: Arc::new(Home {
                vhost: name.clone(),
                events: events.clone(),
                memory,
                timers,
                running: running.clone(),
            }),
            name,
            events,
            keeping: durable.map(Keeping::new),
            traffics: Traffics::default(),
            holders: Mutex::default(),
            generation: AtomicU64::new(topology.generation()),
            replies: Arc::default(),
            catalogue: RwLock::new(Catalogue {
                topology,
                settings: VhostSettings::default(),
                queues: Vec::new(),
            }),
        })
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// A number that grows with every change that can alter a route: a route found at one generation holds as long as
    /// it lasts.
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Catalogue> {
        self.catalogue.write()
    }

    /// Ends a change: publishers see the new generation before the change is answered.
    fn publish_generation(&self, catalogue: &Catalogue) {
        let generation = catalogue.topology.generation();
        if self.generation.swap(generation, AcqRel) != generation {
            self.stir_holders();
        }
    }

    /// Declares an exchange, or finds that an equivalent one exists.
    pub fn declare_exchange(&self, name: &str, spec: ExchangeSpec) -> Result<Declared, TopologyError> {
        let mut catalogue = self.write();
        let kind = spec.kind.name();
        let declared = catalogue.topology.declare_exchange(name, spec)?;
        if declared == Declared::Created {
            let alternate = catalogue.settings.alternate_of(name);
            catalogue.topology.set_alternate(name, alternate);
        }
        self.publish_generation(&catalogue);
        if declared == Declared::Created {
            let exchange = catalogue.topology.find_exchange(name).filter(|exchange| exchange.durable);
            self.keep(exchange.map(What::exchange), &[]);
            self.events.publish(&Event::ExchangeCreated {
                vhost: self.name.clone(),
                exchange: name.into(),
                kind,
            });
        }
        Ok(declared)
    }

    /// Checks that an exchange exists.
    pub fn check_exchange(&self, name: &str) -> Result<(), TopologyError> {
        self.catalogue.read().topology.exchange(name).map(|_| ())
    }

    /// The type of an exchange; none if there is none of that name.
    pub fn exchange_kind(&self, name: &str) -> Option<ExchangeKind> {
        self.catalogue.read().topology.find_exchange(name).map(|exchange| exchange.kind)
    }

    /// Deletes an exchange; that there is none is fine.
    pub fn delete_exchange(&self, name: &str, if_unused: bool) -> Result<(), TopologyError> {
        let mut catalogue = self.write();
        let changes = catalogue.topology.delete_exchange(name, if_unused)?;
        self.publish_generation(&catalogue);
        self.keep_removal(&changes, None);
        self.announce(&changes);
        Ok(())
    }

    /// Declares a queue, or finds that an equivalent one exists.
    pub fn declare_queue(
        &self,
        name: &str,
        spec: QueueSpec,
        by: ConnectionId,
    ) -> Result<(Arc<Queue>, Declared), TopologyError> {
        let mut catalogue = self.write();
        let spec = catalogue.with_default_type(name, spec);
        let (id, declared) = catalogue.topology.declare_queue(name, spec, by)?;
        if declared == Declared::Created {
            let declared = catalogue.topology.queue_spec(id).expect("it has just been declared");
            let durable = Some(declared).filter(|queue| queue.durable);
            let stored = self.stored_as(durable);
            if let (Some(declared), Some(stored)) = (durable, &stored) {
                self.keep([What::queue(declared, stored.number)], &[]);
            }
            let settings = catalogue.settings_for(declared);
            let queue = self.new_queue(declared, settings, stored);
            let name = declared.name.clone();
            catalogue.set(id, Some(queue));
            self.events.publish(&Event::QueueCreated { vhost: self.name.clone(), queue: name });
        }
        self.publish_generation(&catalogue);
        let queue = catalogue.queue(id).cloned().expect("a declared queue runs");
        if declared == Declared::Existing {
            queue.touch();
        }
        Ok((queue, declared))
    }

    /// Whether there is a queue of this name, whoever it belongs to.
    pub fn has_queue(&self, name: &str) -> bool {
        self.catalogue.read().topology.find_queue(name).is_some()
    }

    /// The queue of a name, if this connection may use it.
    pub fn queue(&self, name: &str, by: ConnectionId) -> Result<Arc<Queue>, TopologyError> {
        let catalogue = self.catalogue.read();
        let id = catalogue.topology.queue(name, by)?;
        Ok(catalogue.queue(id).cloned().expect("a declared queue runs"))
    }

    /// Deletes a queue. That there is none is fine. `answer` learns how many ready messages it had, before its consumers
    /// learn that it is gone: clients expect the answer first, as they get it from RabbitMQ. It must not call back into a vhost.
    pub fn delete_queue(
        &self,
        name: &str,
        by: ConnectionId,
        when: DeleteIf,
        answer: impl FnOnce(u64),
    ) -> Result<(), DeleteError> {
        let mut catalogue = self.write();
        let id = match catalogue.topology.queue(name, by) {
            Ok(id) => id,
            Err(TopologyError::NotFound(_)) => {
                answer(0);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut wakes = Wakes::default();
        self.delete(&mut catalogue, id, when, answer, &mut wakes).map_err(DeleteError::Refused)?;
        drop(catalogue);
        wakes.wake();
        Ok(())
    }

    /// Deletes an auto-delete queue that has just lost its last consumer.
    pub fn delete_if_abandoned(&self, queue: &Arc<Queue>) {
        let mut catalogue = self.write();
        let Some(id) = catalogue.topology.find_queue(queue.name()) else { return };
        let auto_delete = catalogue.topology.queue_spec(id).is_some_and(|queue| queue.auto_delete);
        if !auto_delete || !catalogue.queue(id).is_some_and(|running| Arc::ptr_eq(running, queue)) {
            return;
        }
        // It is refused if somebody has begun to consume meanwhile. There is no consumer to wake.
        let when = DeleteIf { unused: true, empty: false };
        let _ = self.delete(&mut catalogue, id, when, |_| {}, &mut Wakes::default());
    }

    /// Deletes a queue that nobody has used for too long, unless somebody uses it after all.
    pub(crate) fn delete_if_over(&self, queue: &Arc<Queue>, now: u64) {
        let (mut catalogue, mut wakes) = (self.write(), Wakes::default());
        let found = catalogue.topology.find_queue(queue.name());
        let Some(id) = found.filter(|&id| catalogue.queue(id).is_some_and(|known| Arc::ptr_eq(known, queue)))
        else {
            return;
        };
        if queue.is_over(now) {
            // It is refused if somebody has begun to consume meanwhile.
            let when = DeleteIf { unused: true, empty: false };
            let _ = self.delete(&mut catalogue, id, when, |_| {}, &mut wakes);
        }
        drop(catalogue);
        wakes.wake();
    }

    pub(crate) fn delete_queues_owned_by(&self, owner: ConnectionId) {
        let (mut catalogue, mut wakes) = (self.write(), Wakes::default());
        for id in catalogue.topology.queues_owned_by(owner) {
            // Without a condition nothing refuses it.
            let _ = self.delete(&mut catalogue, id, DeleteIf::default(), |_| {}, &mut wakes);
        }
        drop(catalogue);
        wakes.wake();
    }

    /// Deletes a queue, and tells its consumers and the listeners before its name can be taken again. `answer` learns first
    /// how many ready messages went with it.
    fn delete(
        &self,
        catalogue: &mut Catalogue,
        id: QueueId,
        when: DeleteIf,
        answer: impl FnOnce(u64),
        wakes: &mut Wakes,
    ) -> Result<(), DeleteRefused> {
        let Some(queue) = catalogue.queue(id).cloned() else { return Ok(()) };
        let deleted = queue.delete(when.unused, when.empty)?;
        let changes = catalogue.topology.delete_queue(id);
        self.keep_removal(&changes, queue.number());
        queue.forget_files();
        catalogue.set(id, None);
        self.publish_generation(catalogue);
        self.announce(&changes);
        answer(deleted.ready);
        self.farewell(queue.name(), deleted.subscriptions, wakes);
        Ok(())
    }

    /// Tells the consumers of a deleted queue, and the listeners.
    fn farewell(&self, queue: &Name, subscriptions: Vec<Subscription>, wakes: &mut Wakes) {
        for subscription in subscriptions {
            subscription.subscriber.cancelled(subscription.key);
            wakes.add(&subscription.subscriber);
            self.events.publish(&Event::ConsumerCancelled {
                vhost: self.name.clone(),
                queue: queue.clone(),
                tag: subscription.tag,
            });
        }
        self.events.publish(&Event::QueueDeleted { vhost: self.name.clone(), queue: queue.clone() });
    }

    /// Binds; true if there was no such binding.
    pub fn bind(&self, request: BindingRequest<'_>, by: ConnectionId) -> Result<bool, TopologyError> {
        let BindingRequest { source, destination, key, arguments } = request;
        let mut catalogue = self.write();
        let new = catalogue.topology.bind(source, destination, key, arguments, by)?;
        self.publish_generation(&catalogue);
        if new {
            let binding =
                Some(kept_binding(request)).filter(|binding| binding.is_durable(&catalogue.topology));
            self.keep(binding.map(What::Binding), &[]);
            let destination = binding_to(destination);
            let (vhost, source, key) = (self.name.clone(), source.into(), key.into());
            self.events.publish(&Event::BindingCreated { vhost, source, destination, key });
        }
        Ok(new)
    }

    /// Unbinds; that there is no such binding is fine.
    pub fn unbind(&self, request: BindingRequest<'_>, by: ConnectionId) -> Result<(), TopologyError> {
        let BindingRequest { source, destination, key, arguments } = request;
        let mut catalogue = self.write();
        let durable = kept_binding(request).is_durable(&catalogue.topology);
        let changes = catalogue.topology.unbind(source, destination, key, arguments, by)?;
        self.publish_generation(&catalogue);
        let gone = (durable && !changes.is_empty()).then(|| What::NoBinding(kept_binding(request)));
        self.keep(gone, &[]);
        self.keep_removal(&changes, None);
        self.announce(&changes);
        Ok(())
    }

    /// The queues that a message goes to, each once, appended to `queues`. `headers` is asked only where they matter:
    /// then the route is good for this one message.
    pub fn route(
        &self,
        exchange: &[u8],
        key: &[u8],
        headers: &mut dyn FnMut() -> Option<Table>,
        scratch: &mut RouteSet,
        queues: &mut Vec<Arc<Queue>>,
    ) -> Result<(), RouteError> {
        self.route_keys(exchange, &[key], headers, scratch, queues)
    }

    /// As [`Vhost::route`], for a message with several keys: each queue gets it once.
    pub fn route_keys(
        &self,
        exchange: &[u8],
        keys: &[&[u8]],
        headers: &mut dyn FnMut() -> Option<Table>,
        scratch: &mut RouteSet,
        queues: &mut Vec<Arc<Queue>>,
    ) -> Result<(), RouteError> {
        let catalogue = self.catalogue.read();
        catalogue.topology.route_keys(exchange, keys, Origin::Publisher, headers, scratch)?;
        queues.extend(scratch.queues().iter().filter_map(|&id| catalogue.queue(id).cloned()));
        Ok(())
    }

    fn announce(&self, changes: &Changes) {
        for removed in &changes.removed {
            let vhost = self.name.clone();
            self.events.publish(&match removed {
                // What became of its messages and consumers is told where they are.
                Removed::Queue(..) => continue,
                Removed::Exchange(exchange) => {
                    self.traffics.forget(&exchange.name);
                    Event::ExchangeDeleted { vhost, exchange: exchange.name.clone() }
                }
                Removed::Binding(binding) => Event::BindingDeleted {
                    vhost,
                    source: binding.source.clone(),
                    destination: match binding.destination_kind {
                        ResourceKind::Queue => BindingTo::Queue(binding.destination.clone()),
                        ResourceKind::Exchange => BindingTo::Exchange(binding.destination.clone()),
                    },
                    key: binding.key.clone(),
                },
            });
        }
    }

    /// Its queues.
    pub fn queues(&self) -> Vec<QueueInfo> {
        let catalogue = self.catalogue.read();
        let queues = catalogue.topology.queues();
        let info = |(id, queue): (QueueId, &model::Queue)| {
            Some(QueueInfo::new(queue, catalogue.queue(id)?, catalogue.policy_of(queue)))
        };
        queues.filter_map(info).collect()
    }

    /// Its queues as declared.
    pub fn queue_declarations(&self) -> Vec<model::Queue> {
        self.catalogue.read().topology.queues().map(|(_, queue)| queue.clone()).collect()
    }

    /// The counters of an exchange, for front-ends to add what they publish. They count nothing once the exchange is deleted.
    pub fn exchange_counters(&self, exchange: &str) -> Arc<ExchangeCounters> {
        self.traffics.counters(exchange)
    }

    /// What passed an exchange since it was declared.
    pub fn exchange_traffic(&self, exchange: &str) -> ExchangeTraffic {
        self.traffics.read(exchange)
    }

    /// Its exchanges.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.catalogue.read().topology.exchanges().cloned().collect()
    }

    /// Its bindings, the implicit ones to the default exchange included.
    pub fn bindings(&self) -> Vec<BindingInfo> {
        self.catalogue.read().topology.bindings().map(BindingInfo::from).collect()
    }

    /// How many queues there are.
    pub fn queue_count(&self) -> usize {
        self.catalogue.read().topology.queues().count()
    }

    /// How many exchanges there are.
    pub fn exchange_count(&self) -> usize {
        self.catalogue.read().topology.exchanges().count()
    }
}

fn kept_binding(request: BindingRequest<'_>) -> Binding {
    let (to, destination) = match request.destination {
        Destination::Queue(name) => (ResourceKind::Queue, name),
        Destination::Exchange(name) => (ResourceKind::Exchange, name),
    };
    Binding {
        source: request.source.into(),
        to,
        destination: destination.into(),
        key: request.key.into(),
        arguments: request.arguments.clone(),
    }
}

fn binding_to(destination: Destination<'_>) -> BindingTo {
    match destination {
        Destination::Queue(name) => BindingTo::Queue(name.into()),
        Destination::Exchange(name) => BindingTo::Exchange(name.into()),
    }
}
