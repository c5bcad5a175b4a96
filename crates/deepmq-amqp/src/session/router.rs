//! Where a connection's publishes go: routes by exchange and routing key, remembered for one generation of the topology.
//!
//! Owns the memory of routes, one bucket per queue, in which a read's messages for that queue are gathered, and what passes
//! each exchange. A route is only remembered of what the user may publish to. Must not know messages.

use deepmq_broker::queue::Queue;
use deepmq_broker::vhost::{ExchangeCounters, ExchangeTraffic};
use deepmq_broker::{Vhost, permits};
use deepmq_model::Table;
use deepmq_model::access::{Access, Refused};
use deepmq_model::message::properties::Text;
use deepmq_model::topology::{RouteError, RouteSet};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Routes remembered at most: enough for a publisher's working set, little beside a buffer.
const ROUTES_MAX: usize = 2048;

/// The messages of a read for one queue, by their place in the batch.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) queue: Arc<Queue>,
    pub(super) messages: Vec<u32>,
    /// What they take packed, in bytes.
    pub(super) bytes: usize,
}

/// Where messages of an address go.
#[derive(Debug, Clone, Default)]
struct Route {
    /// The place of the exchange among those published to.
    exchange: u32,
    /// The buckets of the queues.
    buckets: SmallVec<[u32; 2]>,
}

/// Routes and buckets.
#[derive(Debug, Default)]
pub(super) struct Router {
    generation: u64,
    /// What the user may do.
    access: Option<Arc<Access>>,
    routes: HashMap<Box<[u8]>, Route, foldhash::fast::RandomState>,
    /// The route of the last message, which mostly is that of the next.
    last_address: Vec<u8>,
    last: Route,
    buckets: Vec<Bucket>,
    bucket_of: HashMap<usize, u32, foldhash::fast::RandomState>,
    /// Buckets with messages.
    filled: Vec<u32>,
    /// The exchanges published to.
    exchanges: Vec<Arc<ExchangeCounters>>,
    exchange_of: HashMap<Box<[u8]>, u32, foldhash::fast::RandomState>,
    /// Messages that went by the last route, one after the other.
    run: u64,
    /// What passed exchanges in this batch before that.
    passed: SmallVec<[(u32, ExchangeTraffic); 2]>,
    scratch: RouteSet,
    queues: Vec<Arc<Queue>>,
}

impl Router {
    /// Forgets what may have become wrong. Only between batches.
    pub(super) fn refresh(&mut self, generation: u64, access: Arc<Access>) {
        let permits = self.access.as_ref().is_some_and(|known| Arc::ptr_eq(known, &access));
        if self.generation != generation || !permits {
            self.forget();
            self.generation = generation;
            self.access = Some(access);
        }
    }

    pub(super) fn forget(&mut self) {
        debug_assert!(self.filled.is_empty(), "buckets are emptied before they are forgotten");
        self.routes.clear();
        self.last_address.clear();
        self.last = Route::default();
        self.buckets.clear();
        self.bucket_of.clear();
        self.exchanges.clear();
        self.exchange_of.clear();
        self.generation = 0;
        self.access = None;
    }

    /// Puts a message into the bucket of each queue it goes to; returns how many those are.
    #[inline]
    pub(super) fn put(
        &mut self,
        vhost: &Vhost,
        address: &Address<'_>,
        headers: &mut dyn FnMut() -> Option<Table>,
        message: u32,
        bytes: usize,
    ) -> Result<usize, Unroutable> {
        if address.whole != self.last_address || self.last_address.is_empty() {
            self.find(vhost, address, headers)?;
        }
        Ok(self.fill(message, bytes))
    }

    /// As [`Router::put`], of a message with further keys, each of which the user must be allowed to publish with.
    pub(super) fn put_all(
        &mut self,
        vhost: &Vhost,
        address: &Address<'_>,
        further: &[Text],
        headers: &mut dyn FnMut() -> Option<Table>,
        (message, bytes): (u32, usize),
    ) -> Result<usize, Unroutable> {
        let keys: Vec<&[u8]> =
            std::iter::once(address.routing_key).chain(further.iter().map(|key| &**key)).collect();
        keys.iter().try_for_each(|key| self.permit(vhost, address.exchange, key))?;
        self.end_run();
        // It is the route of this message alone.
        self.last_address.clear();
        self.queues.clear();
        vhost.route_keys(address.exchange, &keys, headers, &mut self.scratch, &mut self.queues)?;
        self.note_last(vhost, address.exchange);
        Ok(self.fill(message, bytes))
    }

    /// Refuses a key that the user may not publish with.
    pub(super) fn permit(&self, vhost: &Vhost, exchange: &[u8], key: &[u8]) -> Result<(), Unroutable> {
        let Some(access) = &self.access else { return Ok(()) };
        permits::publish(access, vhost, &String::from_utf8_lossy(exchange), key).map_err(Unroutable::Refused)
    }

    /// Puts a message into the buckets of the last route; returns how many those are.
    #[inline]
    fn fill(&mut self, message: u32, bytes: usize) -> usize {
        self.run += 1;
        for &index in &self.last.buckets {
            let Some(bucket) = self.buckets.get_mut(index as usize) else { continue };
            if bucket.messages.is_empty() {
                self.filled.push(index);
            }
            bucket.messages.push(message);
            bucket.bytes += bytes;
        }
        self.last.buckets.len()
    }

    /// Makes the route of an address the last one.
    fn find(
        &mut self,
        vhost: &Vhost,
        address: &Address<'_>,
        headers: &mut dyn FnMut() -> Option<Table>,
    ) -> Result<(), Unroutable> {
        self.end_run();
        if let Some(route) = self.routes.get(address.whole) {
            self.last.clone_from(route);
            self.last_address.clear();
            self.last_address.extend_from_slice(address.whole);
            return Ok(());
        }
        self.last_address.clear();
        self.permit(vhost, address.exchange, address.routing_key)?;
        let mut by_headers = false;
        let mut noting = || {
            by_headers = true;
            headers()
        };
        self.queues.clear();
        vhost.route(
            address.exchange,
            address.routing_key,
            &mut noting,
            &mut self.scratch,
            &mut self.queues,
        )?;
        self.note_last(vhost, address.exchange);
        if !by_headers {
            if self.routes.len() >= ROUTES_MAX {
                self.routes.clear();
            }
            self.routes.insert(address.whole.into(), self.last.clone());
            self.last_address.extend_from_slice(address.whole);
        }
        Ok(())
    }

    /// Makes the route to the queues found the last one.
    fn note_last(&mut self, vhost: &Vhost, exchange: &[u8]) {
        self.last = Route { exchange: self.exchange(vhost, exchange), buckets: SmallVec::new() };
        for queue in self.queues.drain(..) {
            let next = u32::try_from(self.buckets.len()).unwrap_or(u32::MAX);
            let bucket = *self.bucket_of.entry(key(&queue)).or_insert(next);
            if bucket == next {
                self.buckets.push(Bucket { queue, messages: Vec::new(), bytes: 0 });
            }
            self.last.buckets.push(bucket);
        }
    }

    /// The place of an exchange that exists among those published to.
    fn exchange(&mut self, vhost: &Vhost, name: &[u8]) -> u32 {
        if let Some(&known) = self.exchange_of.get(name) {
            return known;
        }
        let new = u32::try_from(self.exchanges.len()).unwrap_or(u32::MAX);
        self.exchanges.push(vhost.exchange_counters(&String::from_utf8_lossy(name)));
        self.exchange_of.insert(name.into(), new);
        new
    }

    /// Notes what went by the last route, before there is another.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run == 0 {
            return;
        }
        let (exchange, copies) = (self.last.exchange, self.last.buckets.len() as u64);
        let new = ExchangeTraffic { published_in: run, published_out: run * copies };
        match self.passed.iter_mut().rev().find(|(known, _)| *known == exchange) {
            Some((_, sum)) => *sum += new,
            None => self.passed.push((exchange, new)),
        }
    }

    /// Counts the batch at its exchanges. What is drained without was not published.
    pub(super) fn count_at_exchanges(&mut self) {
        self.end_run();
        for (exchange, passed) in self.passed.drain(..) {
            if let Some(counters) = self.exchanges.get(exchange as usize) {
                counters.add(passed);
            }
        }
    }

    /// Takes each filled bucket in turn, and empties it.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&Bucket)) {
        for index in self.filled.drain(..) {
            let Some(bucket) = self.buckets.get_mut(index as usize) else { continue };
            each(bucket);
            bucket.messages.clear();
            bucket.bytes = 0;
        }
        self.run = 0;
        self.passed.clear();
    }
}

/// Why a message is not taken.
#[derive(Debug)]
pub(super) enum Unroutable {
    /// The user may not publish it.
    Refused(Refused),
    /// There is no such exchange, or not for clients.
    Route(RouteError),
}

impl From<Refused> for Unroutable {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<RouteError> for Unroutable {
    fn from(error: RouteError) -> Self {
        Self::Route(error)
    }
}

/// Exchange and routing key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address<'a> {
    /// Both, each with its length before it.
    pub(super) whole: &'a [u8],
    pub(super) exchange: &'a [u8],
    pub(super) routing_key: &'a [u8],
}

/// A queue's identity as long as a bucket holds it.
fn key(queue: &Arc<Queue>) -> usize {
    Arc::as_ptr(queue).addr()
}
