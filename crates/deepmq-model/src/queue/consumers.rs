//! The consumers of a queue: whose turn it is, and who is paused for what.
//!
//! Owns the rotation, priorities and prefetch. A consumer that cannot take a message is in no ring and costs nothing
//! until the one event that can change this wakes it.

use super::{ConsumeError, GRANT_MAX, Run};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// A consumer of one queue. Not reused while anything may still refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerId {
    slot: u32,
    generation: u32,
}

/// What a consumer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConsumerSpec {
    /// Messages count as settled once delivered.
    pub no_ack: bool,
    /// It wants to be the only one.
    pub exclusive: bool,
    /// Higher goes first (RabbitMQ's `x-priority`).
    pub priority: i32,
    /// Unacked messages it may hold; 0: any number.
    pub prefetch_count: u32,
}

/// Whether a consumer can take messages, and if not, why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// It can.
    No,
    /// It holds as many unacked messages as its prefetch allows.
    PrefetchFull,
    /// Its connection or channel takes no more for now.
    NoRoom,
}

/// What a consumer is to its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// One that takes turns with the others.
    Up,
    /// The only one that gets messages, of a queue with a single active consumer.
    SingleActive,
    /// It waits for the active one to go.
    Waiting,
}

/// Who the active consumer is, of a queue that has a single one.
#[derive(Debug, Default)]
struct Single {
    active: Option<ConsumerId>,
    /// It has gone, and what it held may still come back: nobody is active before that.
    vacated: bool,
}

/// One consumer.
#[derive(Debug)]
pub struct Consumer<C> {
    /// How the engine reaches it.
    pub handle: C,
    id: ConsumerId,
    spec: ConsumerSpec,
    /// Consumers that were there before it, ever.
    joined: u64,
    in_flight: u32,
    pause: Pause,
    /// Reserved and not yet assigned, within one dispatch.
    grant: u32,
    assigned: Vec<(Run, bool)>,
}

impl<C> Consumer<C> {
    /// Who it is.
    pub fn id(&self) -> ConsumerId {
        self.id
    }

    /// What it asked for.
    pub fn spec(&self) -> ConsumerSpec {
        self.spec
    }

    /// Unacked messages it holds.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether it can take messages.
    pub fn pause(&self) -> Pause {
        self.pause
    }

    pub(super) fn no_ack(&self) -> bool {
        self.spec.no_ack
    }

    pub(super) fn grant(&self) -> u32 {
        self.grant
    }

    /// How many more messages its prefetch allows.
    fn allowed(&self) -> u32 {
        if self.spec.no_ack || self.spec.prefetch_count == 0 {
            return u32::MAX;
        }
        self.spec.prefetch_count.saturating_sub(self.in_flight)
    }

    pub(super) fn assign(&mut self, run: Run, redelivered: bool) {
        self.grant -= run.count;
        if !self.spec.no_ack {
            self.in_flight += run.count;
        }
        match self.assigned.last_mut() {
            Some((last, again)) if *again == redelivered && last.end() == run.first => {
                last.count += run.count;
            }
            _ => self.assigned.push((run, redelivered)),
        }
    }
}

/// The consumers that can take a message, of one priority, in turn.
#[derive(Debug)]
struct Ring {
    priority: i32,
    slots: VecDeque<u32>,
}

#[derive(Debug)]
struct Slot<C> {
    generation: u32,
    consumer: Option<Consumer<C>>,
}

/// All consumers of a queue.
#[derive(Debug)]
pub struct Consumers<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
    /// By falling priority.
    rings: Vec<Ring>,
    /// Slots with something assigned or a reservation left.
    touched: Vec<u32>,
    len: usize,
    joined: u64,
    exclusive: bool,
    single: Option<Single>,
}

impl<C> Default for Consumers<C> {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<C> Consumers<C> {
    /// None yet; of those to come only one at a time gets messages if `single`.
    pub(super) fn new(single: bool) -> Self {
        Self {
            slots: vec![],
            free: vec![],
            rings: vec![],
            touched: vec![],
            len: 0,
            joined: 0,
            exclusive: false,
            single: single.then(Single::default),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What a consumer is to the queue.
    pub fn activity(&self, id: ConsumerId) -> Activity {
        match &self.single {
            None => Activity::Up,
            Some(single) if single.active == Some(id) => Activity::SingleActive,
            Some(_) => Activity::Waiting,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Consumer<C>> {
        self.slots.iter().filter_map(|slot| slot.consumer.as_ref())
    }

    pub(super) fn add(&mut self, spec: ConsumerSpec, handle: C) -> Result<ConsumerId, ConsumeError> {
        if self.exclusive || (spec.exclusive && (self.len > 0 || self.single.is_some())) {
            return Err(ConsumeError::ExclusiveUse);
        }
        let id = self.vacant();
        let consumer = Consumer {
            handle,
            id,
            spec,
            joined: self.joined,
            in_flight: 0,
            pause: Pause::NoRoom,
            grant: 0,
            assigned: Vec::new(),
        };
        self.joined += 1;
        if let Some(slot) = self.slots.get_mut(id.slot as usize) {
            slot.consumer = Some(consumer);
        }
        self.len += 1;
        self.exclusive = spec.exclusive;
        self.ring(spec.priority);
        self.elect();
        Ok(id)
    }

    /// Makes the consumer active that is to be, if none is: of the highest priority the one that came first.
    fn elect(&mut self) {
        if self.single.as_ref().is_none_or(|single| single.active.is_some() || single.vacated) {
            return;
        }
        let next = self.iter().max_by_key(|consumer| (consumer.spec.priority, Reverse(consumer.joined)));
        let Some((id, pause)) = next.map(|next| (next.id, next.pause)) else { return };
        if let Some(single) = &mut self.single {
            single.active = Some(id);
        }
        if pause == Pause::No {
            self.wake(id);
        }
    }

    /// What a consumer that has gone held has come back: another may be active in its place.
    pub(super) fn hand_over(&mut self) {
        if let Some(single) = &mut self.single {
            single.vacated = false;
        }
        self.elect();
    }

    fn vacant(&mut self) -> ConsumerId {
        if let Some(slot) = self.free.pop() {
            let generation = self.slots.get(slot as usize).map_or(0, |s| s.generation);
            return ConsumerId { slot, generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("consumers are limited far below this");
        self.slots.push(Slot { generation: 0, consumer: None });
        ConsumerId { slot, generation: 0 }
    }

    /// The ring of a priority, made if there is none.
    fn ring(&mut self, priority: i32) -> &mut Ring {
        let at = self.rings.partition_point(|ring| ring.priority > priority);
        if self.rings.get(at).is_none_or(|ring| ring.priority != priority) {
            self.rings.insert(at, Ring { priority, slots: VecDeque::new() });
        }
        self.rings.get_mut(at).expect("it was there or has just been inserted")
    }

    pub(super) fn remove(&mut self, id: ConsumerId) -> Option<Consumer<C>> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        let consumer = slot.consumer.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        self.len -= 1;
        self.exclusive &= !consumer.spec.exclusive;
        if let Some(single) = self.single.as_mut().filter(|single| single.active == Some(id)) {
            *single = Single { active: None, vacated: true };
        }
        let ring = self.ring(consumer.spec.priority);
        ring.slots.retain(|&other| other != id.slot);
        let priority = consumer.spec.priority;
        if !self.iter().any(|other| other.spec.priority == priority) {
            self.rings.retain(|ring| ring.priority != priority);
        }
        Some(consumer)
    }

    fn consumer(&mut self, id: ConsumerId) -> Option<&mut Consumer<C>> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.consumer.as_mut()
    }

    /// One of the consumer's messages was settled.
    pub(super) fn settled(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumer(id) else { return };
        consumer.in_flight = consumer.in_flight.saturating_sub(1);
        if consumer.pause == Pause::PrefetchFull {
            self.wake(id);
        }
    }

    pub(super) fn resume(&mut self, id: ConsumerId) {
        if self.consumer(id).is_some_and(|consumer| consumer.pause == Pause::NoRoom) {
            self.wake(id);
        }
    }

    fn wake(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumer(id) else { return };
        consumer.pause = Pause::No;
        let priority = consumer.spec.priority;
        if self.activity(id) == Activity::Waiting {
            return;
        }
        self.ring(priority).slots.push_back(id.slot);
    }

    /// The consumer whose turn it is, with a grant of at least one message, and whether it shares its turn with no
    /// other; those that cannot take any are paused.
    pub(super) fn next_able(
        &mut self,
        ready: u32,
        reserve: &mut impl FnMut(&C, u32) -> u32,
    ) -> Option<(&mut Consumer<C>, bool)> {
        let (slot, alone) = loop {
            let ring = self.rings.iter_mut().find(|ring| !ring.slots.is_empty())?;
            let index = *ring.slots.front()?;
            let Some(consumer) = self.slots.get_mut(index as usize).and_then(|slot| slot.consumer.as_mut())
            else {
                ring.slots.pop_front();
                continue;
            };
            if consumer.grant == 0 {
                let allowed = consumer.allowed();
                if allowed > 0 {
                    if consumer.assigned.is_empty() {
                        self.touched.push(index);
                    }
                    consumer.grant = reserve(&consumer.handle, ready.min(allowed).min(GRANT_MAX));
                }
                if consumer.grant == 0 {
                    consumer.pause = if allowed == 0 { Pause::PrefetchFull } else { Pause::NoRoom };
                    ring.slots.pop_front();
                    continue;
                }
            }
            ring.slots.rotate_left(1);
            break (index, ring.slots.len() == 1);
        };
        Some((self.slots.get_mut(slot as usize)?.consumer.as_mut()?, alone))
    }

    pub(super) fn drain_assigned(&mut self, each: &mut impl FnMut(&C, bool, &[(Run, bool)], u32)) {
        for index in self.touched.drain(..) {
            let Some(consumer) = self.slots.get_mut(index as usize).and_then(|slot| slot.consumer.as_mut())
            else {
                continue;
            };
            let unused = std::mem::take(&mut consumer.grant);
            each(&consumer.handle, consumer.spec.no_ack, &consumer.assigned, unused);
            consumer.assigned.clear();
        }
    }
}
