//! A channel as deliveries see it: its consumers, their tags, the open deliveries and the shared prefetch.
//!
//! Owns what must change together with the sending of a delivery. Must not know the wire.

use deepmq_broker::connection::ChannelInfo;
use deepmq_broker::queue::{Outcome, Queue, Settlements};
use deepmq_broker::traffic::MessageCounts;
use deepmq_broker::{Ledger, SourceId, UnknownTag};
use deepmq_model::Name;
use deepmq_model::queue::{ConsumerId, Position};
use deepmq_storage::seam::Monotonic;
use std::sync::Arc;
use std::time::Duration;

/// A consumer.
#[derive(Debug, Clone)]
pub(crate) struct OutConsumer {
    pub(crate) tag: Name,
    /// The tag with its length before it, as it stands in each delivery.
    short_tag: Box<[u8]>,
    pub(crate) queue: Arc<Queue>,
    no_ack: bool,
    /// Known once the queue has accepted the consumer.
    id: Option<ConsumerId>,
    source: Option<SourceId>,
}

/// What is known of a consumer before its queue has accepted it.
#[derive(Debug)]
pub(crate) struct NewConsumer {
    pub(crate) tag: Name,
    pub(crate) queue: Arc<Queue>,
    pub(crate) no_ack: bool,
}

/// The limit on open deliveries that all consumers of a channel share (basic.qos with `global`).
#[derive(Debug, Default)]
struct SharedPrefetch {
    /// 0: no limit.
    max: u32,
    /// Deliveries to consumers that are open or reserved.
    held: u32,
}

/// A channel.
#[derive(Debug, Default)]
pub(crate) struct OutChannel {
    ledger: Ledger,
    consumers: Vec<Option<OutConsumer>>,
    prefetch: SharedPrefetch,
    /// Deliveries that were promised to queues and have not come: they take room in the buffer.
    reserved: u32,
    /// Consumers refused because of the shared prefetch.
    paused: Vec<u32>,
    fetches: Vec<(Arc<Queue>, SourceId)>,
    /// The tag, with its length before it, of the consumer that replies go to.
    reply_tag: Option<Box<[u8]>>,
    counts: MessageCounts,
    /// Published since confirm.select; none before.
    confirmable: Option<u64>,
    /// The prefetch of consumers to come, for inspection.
    prefetch_count: u16,
    /// Publishes and settlements of the open transaction, for inspection; none outside of transaction mode.
    uncommitted: Option<(u64, u64)>,
}

impl OutConsumer {
    /// Its number at the queue.
    pub(crate) fn id(&self) -> Option<ConsumerId> {
        self.id
    }
}

/// A consumer tag with its length before it.
fn short(tag: &str) -> Box<[u8]> {
    let len = u8::try_from(tag.len()).expect("a tag came as a short string");
    [&[len], tag.as_bytes()].concat().into()
}

/// Hands out the delivery tags of one consumer's deliveries.
pub(crate) struct Tags<'a> {
    ledger: &'a mut Ledger,
    source: Option<SourceId>,
}

impl Tags<'_> {
    #[inline]
    pub(crate) fn next(&mut self, position: Position) -> u64 {
        match self.source {
            Some(source) => self.ledger.open_delivery(source, position),
            None => self.ledger.settled_delivery(),
        }
    }
}

impl OutChannel {
    pub(crate) fn info(&self, number: u16) -> ChannelInfo {
        ChannelInfo {
            number,
            consumers: self.consumers().count(),
            unacked: self.ledger.open(),
            confirms: self.confirmable.is_some(),
            transactional: self.uncommitted.is_some(),
            uncommitted: self.uncommitted.unwrap_or_default().0,
            uncommitted_acks: self.uncommitted.unwrap_or_default().1,
            unconfirmed: self.confirmable.unwrap_or_default().saturating_sub(self.counts.confirmed),
            prefetch_shared: self.prefetch.max,
            prefetch_count: self.prefetch_count,
            counts: self.counts,
        }
    }

    /// What it counted.
    pub(crate) fn counts(&self) -> MessageCounts {
        self.counts
    }

    /// From now on what is published is to be confirmed.
    pub(crate) fn confirm_from_now(&mut self) {
        self.confirmable.get_or_insert(0);
    }

    /// Notes how many publishes and settlements wait for a commit.
    pub(crate) fn note_uncommitted(&mut self, publishes: usize, settlements: usize) {
        self.uncommitted = Some((publishes as u64, settlements as u64));
    }

    /// Notes the prefetch of consumers to come.
    pub(crate) fn note_prefetch(&mut self, count: u16) {
        self.prefetch_count = count;
    }

    /// Counts what was published, returned and dropped.
    pub(crate) fn count_published(&mut self, counts: MessageCounts) {
        self.counts += counts;
        if let Some(confirmable) = &mut self.confirmable {
            *confirmable += counts.published;
        }
    }

    /// Counts confirms.
    pub(crate) fn count_confirmed(&mut self, count: u64) {
        self.counts.confirmed += count;
    }

    /// Counts deliveries to a consumer, of which so many came back before.
    pub(super) fn count_delivered(&mut self, index: u32, count: u64, redelivered: u64) {
        let no_ack = self.consumer(index).is_some_and(|consumer| consumer.no_ack);
        let delivered = if no_ack { &mut self.counts.delivered_no_ack } else { &mut self.counts.delivered };
        *delivered += count;
        self.counts.redelivered += redelivered;
    }

    /// Counts a fetch.
    pub(crate) fn count_fetched(&mut self, no_ack: bool, redelivered: bool) {
        let fetched = if no_ack { &mut self.counts.fetched_no_ack } else { &mut self.counts.fetched };
        *fetched += 1;
        self.counts.redelivered += u64::from(redelivered);
    }

    /// The consumers.
    pub(crate) fn consumers(&self) -> impl Iterator<Item = &OutConsumer> {
        self.consumers.iter().flatten()
    }

    /// The index of a consumer by its tag.
    pub(crate) fn find(&self, tag: &str) -> Option<u32> {
        let at =
            self.consumers.iter().position(|slot| slot.as_ref().is_some_and(|known| &*known.tag == tag))?;
        u32::try_from(at).ok()
    }

    /// Adds a consumer that its queue does not know yet; returns its index.
    pub(crate) fn add_consumer(&mut self, new: NewConsumer) -> u32 {
        let short_tag = short(&new.tag);
        let NewConsumer { tag, queue, no_ack } = new;
        let consumer = OutConsumer { tag, short_tag, queue, no_ack, id: None, source: None };
        let at = self.consumers.iter().position(Option::is_none).unwrap_or(self.consumers.len());
        match self.consumers.get_mut(at) {
            Some(slot) => *slot = Some(consumer),
            None => self.consumers.push(Some(consumer)),
        }
        u32::try_from(at).expect("consumers of a channel are limited")
    }

    /// Replies go to a consumer of this tag, or to none any more.
    pub(crate) fn expect_replies(&mut self, tag: Option<&str>) {
        self.reply_tag = tag.map(short);
    }

    /// A delivery tag for a reply, and the tag of the consumer it goes to.
    pub(super) fn reply(&mut self) -> Option<(u64, &[u8])> {
        let consumer_tag = self.reply_tag.as_deref()?;
        self.counts.delivered_no_ack += 1;
        Some((self.ledger.settled_delivery(), consumer_tag))
    }

    /// The queue accepted the consumer.
    pub(crate) fn accepted(&mut self, index: u32, id: ConsumerId) {
        let Some(Some(consumer)) = self.consumers.get_mut(index as usize) else { return };
        consumer.id = Some(id);
        if !consumer.no_ack {
            consumer.source = Some(self.ledger.add_source(consumer.queue.clone(), Some(id)));
        }
    }

    /// Removes a consumer; its open deliveries stay.
    pub(crate) fn remove_consumer(&mut self, index: u32) -> Option<OutConsumer> {
        let consumer = self.consumers.get_mut(index as usize)?.take()?;
        if let Some(source) = consumer.source {
            self.ledger.close_source(source);
        }
        Some(consumer)
    }

    pub(crate) fn consumer(&self, index: u32) -> Option<&OutConsumer> {
        self.consumers.get(index as usize)?.as_ref()
    }

    pub(crate) fn consumer_id(&self, index: u32) -> Option<ConsumerId> {
        self.consumer(index)?.id
    }

    /// Reserves up to `want` deliveries within the shared prefetch.
    pub(super) fn reserve(&mut self, index: u32, want: u32) -> u32 {
        let granted = self.reserve_prefetch(index, want);
        self.reserved += granted;
        granted
    }

    /// Deliveries that were reserved and have not come.
    pub(super) fn reserved(&self) -> u32 {
        self.reserved
    }

    /// So many of what was reserved came.
    pub(super) fn delivered(&mut self, count: u32) {
        self.reserved = self.reserved.saturating_sub(count);
    }

    fn reserve_prefetch(&mut self, index: u32, want: u32) -> u32 {
        let counts = self.consumer(index).is_some_and(|consumer| !consumer.no_ack);
        if self.prefetch.max == 0 || !counts {
            return want;
        }
        let granted = want.min(self.prefetch.max.saturating_sub(self.prefetch.held));
        self.prefetch.held += granted;
        if granted == 0 && !self.paused.contains(&index) {
            self.paused.push(index);
        }
        granted
    }

    pub(super) fn release(&mut self, index: u32, unused: u32) {
        self.reserved = self.reserved.saturating_sub(unused);
        let counts = self.consumer(index).is_some_and(|consumer| !consumer.no_ack);
        if self.prefetch.max > 0 && counts {
            self.prefetch.held = self.prefetch.held.saturating_sub(unused);
        }
    }

    /// What is needed to write deliveries to a consumer.
    #[inline]
    pub(super) fn deliver_to(&mut self, index: u32) -> Option<(Tags<'_>, &[u8])> {
        let consumer = self.consumers.get(index as usize)?.as_ref()?;
        Some((Tags { ledger: &mut self.ledger, source: consumer.source }, &consumer.short_tag))
    }

    /// A tag for a fetched message.
    pub(crate) fn fetched(&mut self, queue: &Arc<Queue>, position: Position, no_ack: bool) -> u64 {
        if no_ack {
            return self.ledger.settled_delivery();
        }
        let known =
            self.fetches.iter().find(|(known, _)| Arc::ptr_eq(known, queue)).map(|&(_, source)| source);
        let source = known.unwrap_or_else(|| {
            // One is remembered, for the client that polls one queue; an older one lives until it is settled.
            for (_, old) in self.fetches.drain(..) {
                self.ledger.close_source(old);
            }
            let source = self.ledger.add_source(queue.clone(), None);
            self.fetches.push((queue.clone(), source));
            source
        });
        self.ledger.open_delivery(source, position)
    }

    /// Settles a delivery, or all up to it.
    pub(crate) fn settle(
        &mut self,
        tag: u64,
        multiple: bool,
        outcome: Outcome,
        out: &mut Settlements,
    ) -> Result<(), UnknownTag> {
        let before = self.ledger.open();
        if multiple {
            self.ledger.settle_up_to(tag, outcome, out)?;
        } else {
            self.ledger.settle(tag, outcome, out)?;
        }
        let settled = before - self.ledger.open();
        if outcome == Outcome::Ack {
            self.counts.acked += settled as u64;
        }
        self.free_shared(settled);
        Ok(())
    }

    /// The queues that unsettled deliveries came from, or that consumers will get some from that they settle.
    pub(crate) fn timed_queues(&self) -> Vec<Arc<Queue>> {
        let mut queues = self.ledger.open_queues();
        for consumer in self.consumers().filter(|consumer| !consumer.no_ack) {
            if !queues.iter().any(|known| Arc::ptr_eq(known, &consumer.queue)) {
                queues.push(consumer.queue.clone());
            }
        }
        queues
    }

    /// Gives back deliveries that were unsettled for too long, see [`Ledger::lapse`]; returns the indexes of the consumers that
    /// held them.
    pub(crate) fn lapse(
        &mut self,
        now: Monotonic,
        allowed: &[(Arc<Queue>, Duration)],
        out: &mut Settlements,
    ) -> Vec<u32> {
        let before = self.ledger.open();
        let late = self.ledger.lapse(now, allowed, out);
        self.free_shared(before - self.ledger.open());
        let is_late = |consumer: &OutConsumer| {
            late.iter().any(|(queue, id)| consumer.id == Some(*id) && Arc::ptr_eq(queue, &consumer.queue))
        };
        let consumers = (0..).zip(&self.consumers);
        consumers.filter(|(_, slot)| slot.as_ref().is_some_and(is_late)).map(|(index, _)| index).collect()
    }

    /// So many deliveries count no more against the shared prefetch.
    fn free_shared(&mut self, settled: usize) {
        if self.prefetch.max > 0 {
            let settled = u32::try_from(settled).unwrap_or(u32::MAX);
            self.prefetch.held = self.prefetch.held.saturating_sub(settled);
        }
    }

    /// Whether a delivery with this tag is open.
    pub(crate) fn is_open(&self, tag: u64) -> bool {
        self.ledger.is_open(tag)
    }

    /// The latest open delivery among those `wanted`.
    pub(crate) fn last_open(&self, wanted: impl Fn(u64) -> bool) -> Option<u64> {
        self.ledger.last_open(wanted)
    }

    /// Sets the shared prefetch; what is open counts against it at once.
    pub(crate) fn limit_shared(&mut self, max: u32) {
        let held = u32::try_from(self.ledger.open()).unwrap_or(u32::MAX);
        self.prefetch = SharedPrefetch { max, held };
    }

    /// Consumers that paused because of the shared prefetch and may go on.
    pub(crate) fn unpaused(&mut self) -> Vec<(Arc<Queue>, ConsumerId)> {
        if self.paused.is_empty() || (self.prefetch.max > 0 && self.prefetch.held >= self.prefetch.max) {
            return Vec::new();
        }
        let paused = std::mem::take(&mut self.paused);
        let consumers = paused.into_iter().filter_map(|index| self.consumer(index));
        consumers.filter_map(|consumer| Some((consumer.queue.clone(), consumer.id?))).collect()
    }

    /// Ends the channel; returns the open deliveries, which go back.
    pub(super) fn close(mut self) -> Settlements {
        let mut open = Settlements::default();
        // With 0 it takes all there are and knows no error.
        let _ = self.ledger.settle_up_to(0, Outcome::Recover, &mut open);
        open
    }
}
