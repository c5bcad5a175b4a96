//! What of a vhost survives: told to the journal as it changes, and taken back at the start.
//!
//! Owns the rule what is durable: exchanges and queues declared so, and bindings between two of them. Must not know how it
//! is written.

use super::{Catalogue, DeleteIf, Vhost};
use crate::durable::change::{Binding, Change, What};
use crate::durable::{Durable, DurableError, Recovery};
use crate::queue::{Queue, StoredAs};
use crate::subscriber::Wakes;
use deepmq_model::queue::{PositionSet, Profile, Settings};
use deepmq_model::topology::{
    self as model, Changes, ConnectionId, Destination, QueueId, QueueSpec, Removed, ResourceKind, Topology,
    TopologyError,
};
use deepmq_storage::{Durability, Lsn};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What was declared before the start belongs to no connection.
pub(super) const NOBODY: ConnectionId = ConnectionId(0);

/// The durable side of a vhost.
#[derive(Debug)]
pub(super) struct Keeping {
    pub(super) durable: Arc<Durable>,
    /// The last change that was journalled.
    last: AtomicU64,
    /// The vhost is deleted: what happens to it now happened just before, and is kept nowhere.
    closed: AtomicBool,
}

impl Keeping {
    pub(super) fn new(durable: Arc<Durable>) -> Self {
        Self { durable, last: AtomicU64::new(0), closed: AtomicBool::new(false) }
    }
}

impl Vhost {
    /// A record of the journal that tells all changes of the durable topology so far: they are answered once it is
    /// durable. None in a broker that keeps nothing.
    pub fn last_change(&self) -> Option<Lsn> {
        self.keeping.as_ref().map(|keeping| Lsn(keeping.last.load(Relaxed)))
    }

    fn open_keeping(&self) -> Option<&Keeping> {
        self.keeping.as_ref().filter(|keeping| !keeping.closed.load(Relaxed))
    }

    /// A record of the journal tells changes that were not journalled one by one.
    pub(super) fn kept_up_to(&self, lsn: Lsn) {
        if let Some(keeping) = &self.keeping {
            keeping.last.store(lsn.0, Relaxed);
        }
    }

    /// Ends everything in a vhost that is being deleted: its queues drop their messages and tell their consumers. `record`
    /// journals the end, given the numbers of its durable queues; nothing of the vhost is journalled after that.
    pub(crate) fn close(&self, record: impl FnOnce(&[u64]) -> Option<Lsn>, wakes: &mut Wakes) -> Option<Lsn> {
        let mut catalogue = self.write();
        let numbers: Vec<_> = catalogue.queues.iter().flatten().filter_map(|queue| queue.number()).collect();
        // Before the queues are told: their files may go once this is durable.
        let lsn = record(&numbers);
        if let (Some(keeping), Some(lsn)) = (&self.keeping, lsn) {
            keeping.closed.store(true, Relaxed);
            keeping.last.store(lsn.0, Relaxed);
        }
        let queues: Vec<_> = catalogue.topology.queues().map(|(id, _)| id).collect();
        for id in queues {
            // Without a condition nothing refuses it.
            let _ = self.delete(&mut catalogue, id, DeleteIf::default(), |_| {}, wakes);
        }
        lsn
    }

    /// How a new queue is known to the store; `declared` if it is durable.
    pub(super) fn stored_as(&self, declared: Option<&model::Queue>) -> Option<StoredAs> {
        let number = self.open_keeping()?.durable.new_number();
        self.known_as(number, declared)
    }

    fn known_as(&self, number: u64, declared: Option<&model::Queue>) -> Option<StoredAs> {
        let durable = self.keeping.as_ref()?.durable.clone();
        let durability = declared.map_or(Durability::Os, |declared| durable.durability(&declared.settings));
        Some(StoredAs { durable, number, survives: declared.is_some(), durability })
    }

    /// Journals changes. To be called with the catalogue locked, so that their order is that of the changes.
    pub(super) fn keep(&self, changes: impl IntoIterator<Item = What>, deleted: &[u64]) {
        let Some(keeping) = self.open_keeping() else { return };
        let changes: Vec<_> =
            changes.into_iter().map(|what| Change { vhost: self.name.clone(), what }).collect();
        if changes.is_empty() {
            return;
        }
        match keeping.durable.record(&changes, deleted) {
            Ok(lsn) => keeping.last.store(lsn.0, Relaxed),
            // The journal has failed, and the broker is about to stop; who waits for the change learns that.
            Err(error) => {
                tracing::error!(%error, vhost = &*self.name, "a change was not journalled");
                keeping.last.store(u64::MAX, Relaxed);
            }
        }
    }

    /// Journals what was removed, but for the bindings that go with a durable end.
    pub(super) fn keep_removal(&self, changes: &Changes, number: Option<u64>) {
        if self.keeping.is_none() {
            return;
        }
        let gone = changes.removed.iter().filter_map(|removed| match removed {
            Removed::Exchange(exchange) if exchange.durable => {
                Some(What::NoExchange { name: exchange.name.clone() })
            }
            Removed::Queue(_, queue) if queue.durable => Some(What::NoQueue { name: queue.name.clone() }),
            Removed::Exchange(_) | Removed::Queue(..) | Removed::Binding(_) => None,
        });
        self.keep(gone, number.as_slice());
    }

    /// The durable topology, as changes that lead to it.
    pub(crate) fn tell(&self) -> Vec<Change> {
        let catalogue = self.catalogue.read();
        let topology = &catalogue.topology;
        let declared = |name: &str| !name.is_empty() && !name.starts_with("amq.");
        let exchanges = topology.exchanges().filter(|exchange| exchange.durable && declared(&exchange.name));
        let queues = topology.queues().filter_map(|(id, queue)| {
            let number = catalogue.queue(id)?.number()?;
            Some(What::queue(queue, number))
        });
        let bindings = topology.bindings().filter(|binding| !binding.implicit).filter_map(|binding| {
            let binding = Binding {
                source: binding.source.clone(),
                to: binding.destination_kind,
                destination: binding.destination.clone(),
                key: binding.key.into(),
                arguments: binding.arguments.clone(),
            };
            binding.is_durable(topology).then_some(What::Binding(binding))
        });
        let all = exchanges.map(What::exchange).chain(queues).chain(bindings);
        all.map(|what| Change { vhost: self.name.clone(), what }).collect()
    }

    /// Makes a change that was journalled in an earlier life.
    pub(crate) fn apply(&self, what: What) -> Result<(), TopologyError> {
        let mut catalogue = self.write();
        let topology = &mut catalogue.topology;
        match what {
            // It is no change of a vhost.
            What::Registry(_) => return Ok(()),
            What::Exchange { name, spec } => topology.declare_exchange(&name, spec).map(drop)?,
            What::NoExchange { name } => topology.delete_exchange(&name, false).map(drop)?,
            What::Binding(binding) => topology
                .bind(&binding.source, binding.destination(), &binding.key, &binding.arguments, NOBODY)
                .map(drop)?,
            What::NoBinding(binding) => topology
                .unbind(&binding.source, binding.destination(), &binding.key, &binding.arguments, NOBODY)
                .map(drop)?,
            What::NoQueue { name } => {
                if let Some(id) = topology.find_queue(&name) {
                    topology.delete_queue(id);
                    catalogue.set(id, None);
                }
            }
            What::Queue { name, number, auto_delete, arguments } => {
                // The last word on a name counts: a snapshot may tell of a later queue than the journal after it.
                if let Some(id) = topology.find_queue(&name) {
                    let queue = self.kept_queue(&catalogue, id, number);
                    catalogue.set(id, queue);
                    return Ok(());
                }
                let server_named = name.starts_with("amq.");
                let spec =
                    QueueSpec { durable: true, exclusive: false, auto_delete, server_named, arguments };
                let (id, _) = topology.declare_queue(&name, spec, NOBODY)?;
                let queue = self.kept_queue(&catalogue, id, number);
                catalogue.set(id, queue);
            }
        }
        self.publish_generation(&catalogue);
        Ok(())
    }

    fn kept_queue(&self, catalogue: &Catalogue, id: QueueId, number: u64) -> Option<Arc<Queue>> {
        let declared = catalogue.topology.queue_spec(id)?;
        let stored = self.known_as(number, Some(declared));
        Some(self.new_queue(declared, catalogue.settings_for(declared), stored))
    }

    /// A queue at run time, as declared.
    pub(super) fn new_queue(
        &self,
        declared: &model::Queue,
        settings: Settings,
        stored: Option<StoredAs>,
    ) -> Arc<Queue> {
        let profile = Profile::of(&declared.settings);
        Queue::new(&self.home, declared.name.clone(), (profile, settings), stored)
    }

    /// Its queues at run time.
    pub(crate) fn running_queues(&self) -> Vec<Arc<Queue>> {
        self.catalogue.read().queues.iter().flatten().cloned().collect()
    }
}

impl Binding {
    pub(super) fn destination(&self) -> Destination<'_> {
        match self.to {
            ResourceKind::Queue => Destination::Queue(&self.destination),
            ResourceKind::Exchange => Destination::Exchange(&self.destination),
        }
    }

    /// Whether both its ends are durable.
    pub(super) fn is_durable(&self, topology: &Topology) -> bool {
        let exchange = |name| topology.find_exchange(name).is_some_and(|exchange| exchange.durable);
        let destination = match self.to {
            ResourceKind::Exchange => exchange(&self.destination),
            ResourceKind::Queue => topology
                .find_queue(&self.destination)
                .and_then(|id| topology.queue_spec(id))
                .is_some_and(|queue| queue.durable),
        };
        destination && exchange(&self.source)
    }
}

/// While messages are taken over, it is looked at what is to be paged out each time so much more memory is used.
const LOOK_BYTES: usize = 4 * 1024 * 1024;

/// Gives recovered messages back to their queues; returns how many, and the numbers of queues that no vhost knows. What memory
/// does not hold is paged out on the way.
pub(crate) fn give_back(
    recovery: &Recovery,
    queues: &[Arc<Queue>],
    durable: &Durable,
) -> Result<(u64, Vec<u64>), DurableError> {
    let known: BTreeMap<u64, &Arc<Queue>> =
        queues.iter().filter_map(|queue| Some((queue.number()?, queue))).collect();
    let mut kept = recovery.queues();
    let (mut messages, mut paged, mut look_at) = (0, Ok(()), LOOK_BYTES);
    let mut noted = Ok(());
    let mut restore_stored = |queue: &Arc<Queue>, range: Range<u64>| {
        if queue.profile().lasting_priorities && noted.is_ok() {
            noted = durable.note_stored(queue, range.clone());
        }
        queue.restore_stored(range);
    };
    recovery.replay(|number, position, message, arrived| {
        let Some(queue) = known.get(&number) else { return };
        let stored = kept.get_mut(&number).map(|kept| &mut kept.stored);
        let before: Vec<_> = stored.into_iter().flat_map(|stored| stored.before(position)).collect();
        before.into_iter().for_each(|range| restore_stored(queue, range));
        queue.restore(position, message, arrived);
        messages += 1;
        // Each look is at all queues.
        if durable.memory().used() > look_at && paged.is_ok() {
            paged = durable.page_out(queues);
            look_at = durable.memory().used() + LOOK_BYTES;
        }
    })?;
    match paged {
        // Then they stay in memory.
        Err(failure) if failure.is_out_of_space() => {
            tracing::warn!(%failure, "the messages of the journal are not paged out");
        }
        paged => paged?,
    }
    let mut unknown = Vec::new();
    for (number, mut kept) in kept {
        let Some(queue) = known.get(&number) else {
            unknown.push(number);
            continue;
        };
        kept.stored.before(kept.next).for_each(|range| restore_stored(queue, range));
        let (returned, fresh) = divide(&kept.messages, &kept.handed_out, !recovery.is_clean());
        queue.restored(kept.next, returned, fresh, &kept.returns);
    }
    noted?;
    Ok((messages, unknown))
}

/// Divides messages into those that were handed out, as far as is known, and the others. After a crash all may have been.
fn divide(messages: &PositionSet, handed_out: &PositionSet, all: bool) -> (PositionSet, PositionSet) {
    if all {
        return (messages.clone(), PositionSet::default());
    }
    let mut kept = PositionSet::default();
    let mut handed = handed_out.ranges().peekable();
    for (mut start, end) in messages.ranges() {
        while let Some(&(from, to)) = handed.peek().filter(|(from, _)| *from < end) {
            kept.insert_range(start, from.max(start).min(end));
            start = to.max(start);
            if to > end {
                break;
            }
            handed.next();
        }
        kept.insert_range(start, end);
    }
    (handed_out.clone(), kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepmq_model::queue::Position;

    fn set(ranges: &[(u64, u64)]) -> PositionSet {
        let mut set = PositionSet::default();
        ranges.iter().for_each(|&(start, end)| set.insert_range(Position(start), Position(end)));
        set
    }

    #[test]
    fn messages_are_divided_by_whether_they_were_handed_out() {
        let all = set(&[(0, 10), (20, 30)]);
        let out = set(&[(0, 2), (5, 6), (8, 10), (20, 30)]);
        assert_eq!(divide(&all, &out, false), (out, set(&[(2, 5), (6, 8)])));
        assert_eq!(divide(&all, &set(&[]), false), (set(&[]), all.clone()));
        assert_eq!(divide(&all, &set(&[(1, 2)]), true), (all, set(&[])));
    }
}
