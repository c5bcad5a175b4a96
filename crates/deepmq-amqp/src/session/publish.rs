//! Publishes: taken in place from what was read, gathered, and handed to each queue once per read.
//!
//! Owns the batch and the confirms that follow it. Must not know how a queue keeps messages.

use super::channel::Mode;
use super::content::{Content, Owned};
use super::journalling::Journalling;
use super::refusals::Refusals;
use super::reply_to::{self, REPLY_TO};
use super::router::{Address, Router, Unroutable};
use super::{Failure, Session};
use crate::codec::content::{BASIC, Header};
use crate::codec::frame::{self, HEADER_BYTES, Kind};
use crate::codec::method::basic;
use crate::codec::publish::{PublishArgs, split_address};
use crate::codec::{Frame, ReplyCode};
use crate::goal::Goal;
use crate::translate::{self, PropertyRules};
use bytes::Bytes;
use deepmq_broker::BatchSize;
use deepmq_broker::events::Event;
use deepmq_broker::message::{Body, MessageRef, SHARED_BODY_BYTES_MIN};
use deepmq_broker::traffic::MessageCounts;
use deepmq_model::message::bytes::Reader;
use deepmq_model::message::carbon::carbon;
use deepmq_model::message::properties::{self, Text, flag};
use deepmq_model::message::table;
use smallvec::SmallVec;

/// The properties that can say where a message goes, or a reply to it.
const ADDRESSING: u16 = flag::HEADERS | flag::REPLY_TO;

/// Bytes that lie in what was read, or in the batch's own memory.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
    own: bool,
}

#[derive(Debug, Clone, Copy)]
enum BodyAt {
    Span(Span),
    /// Its place among the shared bodies.
    Shared(u32),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    address: Span,
    properties: Span,
    body: BodyAt,
    channel: u16,
    persistent: bool,
}

/// A message to be published, in its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) address: &'a [u8],
    pub(super) properties: &'a [u8],
    /// As a whole body that can be shared.
    pub(super) body: &'a Bytes,
    pub(super) mandatory: bool,
}

/// The messages of one read.
#[derive(Debug, Default)]
struct Messages {
    entries: Vec<Entry>,
    own: Vec<u8>,
    shared: Vec<Bytes>,
}

/// What is published in one read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    messages: Messages,
    router: Router,
    journalling: Journalling,
    /// Channels in confirm mode that published, with the number of the first and the last message to confirm.
    confirms: SmallVec<[(u16, u64, u64); 4]>,
    /// Messages that a full queue refused.
    refusals: Refusals,
    /// Some have an expiration.
    expiring: bool,
    /// Some are persistent.
    persistent: bool,
    /// What each channel published.
    counts: SmallVec<[(u16, MessageCounts); 4]>,
}

impl Messages {
    /// Copies bytes into the batch.
    fn keep(&mut self, bytes: &[u8]) -> Span {
        let span = Span { start: index(self.own.len()), len: index(bytes.len()), own: true };
        self.own.extend_from_slice(bytes);
        span
    }

    fn share(&mut self, body: Bytes) -> BodyAt {
        self.shared.push(body);
        BodyAt::Shared(index(self.shared.len() - 1))
    }

    fn bytes<'a>(&'a self, span: Span, input: &'a [u8]) -> &'a [u8] {
        let from = if span.own { &self.own } else { input };
        let start = span.start as usize;
        from.get(start..start + span.len as usize).unwrap_or_default()
    }

    #[inline]
    fn message<'a>(&'a self, entry: &Entry, input: &'a [u8]) -> MessageRef<'a> {
        MessageRef {
            address: self.bytes(entry.address, input),
            properties: self.bytes(entry.properties, input),
            body: match entry.body {
                BodyAt::Span(span) => Body::Inline(self.bytes(span, input)),
                BodyAt::Shared(at) => self.shared.get(at as usize).map_or(Body::Inline(&[]), Body::Shared),
            },
            persistent: entry.persistent,
            dead_letter: false,
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.own.clear();
        self.shared.clear();
    }
}

impl Batch {
    pub(super) fn forget_routes(&mut self) {
        self.messages.clear();
        self.confirms.clear();
        self.refusals.clear();
        self.counts.clear();
        self.router.drain(|_| {});
        self.router.forget();
    }

    /// Counts a message of a channel that went to so many queues.
    #[inline]
    fn count(&mut self, channel: u16, queues: usize, mandatory: bool) {
        let unroutable = u64::from(queues == 0);
        let mut new = MessageCounts { published: 1, ..MessageCounts::default() };
        *(if mandatory { &mut new.returned } else { &mut new.dropped }) = unroutable;
        match self.counts.iter_mut().rev().find(|(known, _)| *known == channel) {
            Some((_, counts)) => {
                counts.published += 1;
                counts.returned += new.returned;
                counts.dropped += new.dropped;
            }
            None => self.counts.push((channel, new)),
        }
    }

    fn confirm(&mut self, channel: u16, number: u64) {
        match self.confirms.iter_mut().rev().find(|(known, ..)| *known == channel) {
            Some((_, _, last)) => *last = number,
            None => self.confirms.push((channel, number, number)),
        }
    }
}

/// Whether a message has delivery mode 2.
#[inline]
fn is_persistent(encoded: &[u8]) -> bool {
    match encoded {
        [0, 0] => false,
        [0x10, 0, mode] => *mode == 2,
        _ => properties::delivery_mode(encoded) == Some(2),
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a read and a message are each limited to less than 4 GiB")
}

impl Session {
    /// Takes a basic.publish whose header and body are there too; returns how many bytes the three frames use. None:
    /// it is something else, or not that simple.
    #[inline]
    pub(super) fn publish_in_place(
        &mut self,
        method: &Frame<'_>,
        method_len: usize,
        at: usize,
        input: &[u8],
    ) -> Option<usize> {
        let args = PublishArgs::parse(method.payload)?;
        let number = method.channel;
        let header_at = at + method_len;
        let (header_frame, header_len) =
            frame::parse(input.get(header_at..)?, self.tuning.frame_max).ok()??;
        if (header_frame.kind, header_frame.channel) != (Kind::Header, number) {
            return None;
        }
        let header = Header::decode(header_frame.payload).ok()?;
        let body_at = header_at + header_len;
        let (body, end) = if header.body_size == 0 {
            (&[][..], body_at)
        } else {
            let (body, len) = frame::parse(input.get(body_at..)?, self.tuning.frame_max).ok()??;
            let whole = body.payload.len() as u64 == header.body_size;
            if (body.kind, body.channel) != (Kind::Body, number) || !whole {
                return None;
            }
            (body.payload, body_at + len)
        };
        let simple = !args.immediate
            && header.class == BASIC
            && header.body_size <= self.broker.limits().message_bytes_max
            && properties::validate(header.properties).is_ok();
        let channel = self.channels.get(&number)?;
        if !simple || channel.is_closing() || channel.content.is_some() || matches!(channel.mode, Mode::Tx(_))
        {
            return None;
        }
        let span = |start: usize, len: usize| Span { start: index(start), len: index(len), own: false };
        let entry = Entry {
            // After class, method and the ticket; after class, weight and body size.
            address: span(at + HEADER_BYTES + 6, args.address.len()),
            properties: span(header_at + HEADER_BYTES + 12, header.properties.len()),
            body: if body.len() < SHARED_BODY_BYTES_MIN {
                BodyAt::Span(span(body_at + HEADER_BYTES, body.len()))
            } else {
                self.batch.messages.share(Bytes::copy_from_slice(body))
            },
            channel: number,
            persistent: is_persistent(header.properties),
        };
        let address = Address { whole: args.address, exchange: args.exchange, routing_key: args.routing_key };
        if let Err(failure) = self.accept(entry, &address, args.mandatory, input) {
            self.finish_read(input);
            self.fail(number, &failure.of(basic::Publish::ID));
        }
        Some(end - at)
    }

    /// Takes a basic.publish whose header is to come.
    pub(super) fn on_publish(&mut self, number: u16, publish: &basic::Publish<'_>) -> Result<(), Failure> {
        if publish.immediate {
            return Err(Failure::hard(ReplyCode::NotImplemented, "immediate=true"));
        }
        let mut address = Vec::with_capacity(2 + publish.exchange.len() + publish.routing_key.len());
        let mut writer = crate::codec::Writer::new(&mut address);
        writer.short(publish.exchange.as_bytes());
        writer.short(publish.routing_key);
        self.channel_mut(number)?.content = Some(Content::new(&address, publish.mandatory));
        Ok(())
    }

    /// Takes a publish that came in pieces.
    pub(super) fn publish_owned(&mut self, number: u16, whole: Owned) -> Result<(), Failure> {
        let channel = self.channel_mut(number)?;
        if matches!(channel.mode, Mode::Tx(_)) {
            return self.publish_later(number, whole).map_err(|failure| failure.of(basic::Publish::ID));
        }
        self.publish_parts(number, &whole.parts()).map_err(|failure| failure.of(basic::Publish::ID))
    }

    /// Puts a message that is not in what was read into the batch.
    pub(super) fn publish_parts(&mut self, number: u16, parts: &Parts<'_>) -> Result<(), Failure> {
        let (exchange, routing_key) = split_address(parts.address).unwrap_or_default();
        let entry = Entry {
            address: self.batch.messages.keep(parts.address),
            properties: self.batch.messages.keep(parts.properties),
            body: if parts.body.len() < SHARED_BODY_BYTES_MIN {
                BodyAt::Span(self.batch.messages.keep(parts.body))
            } else {
                self.batch.messages.share(parts.body.clone())
            },
            channel: number,
            persistent: is_persistent(parts.properties),
        };
        let address = Address { whole: parts.address, exchange, routing_key };
        self.accept(entry, &address, parts.mandatory, &[])
    }

    /// Routes a message and gathers it for its queues.
    #[inline]
    fn accept(
        &mut self,
        mut entry: Entry,
        address: &Address<'_>,
        mandatory: bool,
        input: &[u8],
    ) -> Result<(), Failure> {
        let number = entry.channel;
        if self.batch.messages.entries.is_empty() {
            self.refresh_router()?;
        }
        let mut further = Vec::new();
        if properties::flags(self.batch.messages.bytes(entry.properties, input)) & ADDRESSING != 0 {
            further = self.readdress(number, &mut entry, input)?;
        }
        let vhost = self.vhost.as_ref().ok_or_else(|| Failure::wrong_phase("starting"))?;
        let rules = PropertyRules::new(self.user.as_deref(), self.broker.limits());
        let Batch { messages, router, expiring, .. } = &mut self.batch;
        let message = messages.message(&entry, input);
        *expiring |= translate::check_properties(message.properties, rules)? & flag::EXPIRATION != 0;
        let mut headers = || {
            let encoded = properties::headers(message.properties)?;
            table::decode(&mut Reader::new(encoded)).ok()
        };
        let place = index(messages.entries.len());
        let placed = (place, message.packed_bytes());
        let routed = if address.exchange.is_empty() && reply_to::is_address(address.routing_key) {
            let permitted = router.permit(vhost, address.exchange, address.routing_key);
            permitted.map(|()| vhost.reply(address.routing_key, &message).into())
        } else if further.is_empty() {
            router.put(vhost, address, &mut headers, placed.0, placed.1)
        } else {
            router.put_all(vhost, address, &further, &mut headers, placed)
        };
        let queues = routed.map_err(|error| match error {
            Unroutable::Refused(refused) => translate::access_refused(refused),
            Unroutable::Route(error) => translate::route_error(error, address.exchange, vhost.name()),
        })?;
        self.batch.persistent |= entry.persistent;
        self.batch.messages.entries.push(entry);
        self.batch.count(number, queues, mandatory);
        if queues == 0 && mandatory {
            self.give_back(number, &entry, address, input);
        }
        if self.broker.events().messages_wanted() {
            self.announce_publish(&entry, address, (queues, mandatory), input);
        }
        if let Some(Mode::Confirm { last }) = self.channels.get_mut(&number).map(|channel| &mut channel.mode)
        {
            *last += 1;
            self.batch.confirm(number, *last);
        }
        Ok(())
    }

    /// Replaces properties that say where a message goes, or a reply to it; returns the further keys they name.
    #[cold]
    fn readdress(&mut self, number: u16, entry: &mut Entry, input: &[u8]) -> Result<Vec<Text>, Failure> {
        let encoded = self.batch.messages.bytes(entry.properties, input);
        let carbon = carbon(encoded).map_err(|fault| translate::carbon_fault(&fault))?;
        let (further, stripped) = carbon.map(|carbon| (carbon.keys, carbon.stripped)).unwrap_or_default();
        let mut changed = stripped;
        let known = changed.as_deref().unwrap_or(encoded);
        if properties::reply_to(known) == Some(REPLY_TO.as_bytes()) {
            let known = known.to_vec();
            changed = Some(self.with_own_address(number, &known)?);
        }
        if let Some(changed) = changed {
            entry.properties = self.batch.messages.keep(&changed);
        }
        Ok(further)
    }

    /// Forgets routes that a change of the topology or of permissions made wrong.
    fn refresh_router(&mut self) -> Result<(), Failure> {
        let generation = self.vhost.as_ref().map(|vhost| vhost.generation());
        let access = self.access()?;
        self.batch.router.refresh(generation.unwrap_or_default(), access);
        Ok(())
    }

    /// Returns a message that goes to no queue.
    #[cold]
    fn give_back(&self, number: u16, entry: &Entry, address: &Address<'_>, input: &[u8]) {
        let message = self.batch.messages.message(entry, input);
        self.outbox.write(|frames| {
            let exchange = String::from_utf8_lossy(address.exchange);
            basic::Return {
                reply_code: ReplyCode::NoRoute.code(),
                reply_text: ReplyCode::NoRoute.name(),
                exchange: &exchange,
                routing_key: address.routing_key,
            }
            .encode(number, &mut frames.buf);
            frames.content(number, &message);
        });
    }

    #[cold]
    fn announce_publish(
        &self,
        entry: &Entry,
        address: &Address<'_>,
        (queues, mandatory): (usize, bool),
        input: &[u8],
    ) {
        let Some(vhost) = self.vhost.as_ref().map(|vhost| vhost.name().clone()) else { return };
        let (exchange, routing_key): (Box<[u8]>, Box<[u8]>) =
            (address.exchange.into(), address.routing_key.into());
        let bytes = self.batch.messages.message(entry, input).body.len();
        let events = self.broker.events();
        events.publish(&Event::MessagePublished {
            vhost: vhost.clone(),
            exchange: exchange.clone(),
            routing_key: routing_key.clone(),
            bytes,
        });
        match queues {
            0 if mandatory => events.publish(&Event::MessageReturned { vhost, exchange, routing_key }),
            0 => {}
            _ => events.publish(&Event::MessageRouted { vhost, exchange, routing_key, queues }),
        }
    }

    /// Hands what was gathered to the queues, and confirms it.
    pub(super) fn flush_batch(&mut self, input: &[u8]) {
        if self.hand_over(input) {
            let goal = self.journal();
            let Batch { confirms, refusals, .. } = &mut self.batch;
            self.confirming.add(goal, refusals.divide(confirms.drain(..)), &self.outbox);
            refusals.clear();
        }
    }

    /// Hands what was gathered to the queues; false: there was nothing.
    pub(super) fn hand_over(&mut self, input: &[u8]) -> bool {
        let Batch { messages, router, journalling, counts, confirms, refusals, expiring, persistent } =
            &mut self.batch;
        if messages.entries.is_empty() {
            return false;
        }
        for (number, counts) in counts.drain(..) {
            self.outbox.channel(number, |channel, _| channel.count_published(counts));
        }
        self.published = true;
        router.count_at_exchanges();
        let (wakes, tickets, arrived) =
            (&mut self.wakes, &mut self.tickets, self.broker.durable().map_or(0, |_| self.broker.now()));
        let (expiring, persistent) = (std::mem::take(expiring), std::mem::take(persistent));
        router.drain(|bucket| {
            let entries = bucket.messages.iter().filter_map(|&at| messages.entries.get(at as usize));
            let size = BatchSize { count: bucket.messages.len(), bytes: bucket.bytes, expiring };
            let entries = entries.map(|entry| messages.message(entry, input));
            let published = bucket.queue.publish(size, entries, wakes);
            if let Some(ticket) = published.ticket {
                tickets.push((bucket.queue.clone(), ticket));
            }
            let queue = bucket.queue.number().zip(bucket.queue.durability());
            if let (true, Some(queue), Some(first)) = (persistent, queue, published.first) {
                let refused = &published.refused;
                let taken = (0..)
                    .zip(&bucket.messages)
                    .filter(|(index, _)| refused.is_empty() || !refused.contains(index));
                let entries = taken.filter_map(|(_, &at)| Some((at, messages.entries.get(at as usize)?)));
                let kept = |entry: &Entry| entry.persistent.then(|| messages.message(entry, input));
                journalling.place(queue, first, arrived, entries.map(|(at, entry)| (at, kept(entry))));
            }
            refusals.note(published.refused.iter().filter_map(|&at| bucket.messages.get(at as usize)));
        });
        refusals.number(messages.entries.iter().map(|entry| entry.channel), confirms);
        messages.clear();
        true
    }

    /// Journals what was handed over. Returns what must be reached before anybody is told.
    pub(super) fn journal(&mut self) -> Option<Goal> {
        let (goal, behind) = self.batch.journalling.append(self.broker.durable()?)?;
        if behind {
            self.disk_behind = Some(goal);
        }
        Some(goal)
    }

    /// Takes back what was gathered and not handed over.
    pub(super) fn drop_batch(&mut self) {
        self.batch.messages.clear();
        (self.batch.expiring, self.batch.persistent) = (false, false);
        self.batch.counts.clear();
        self.batch.router.drain(|_| {});
    }

    /// Whether a full queue refused anything of what was handed over.
    pub(super) fn any_refused(&mut self) -> bool {
        let any = !self.batch.refusals.is_empty();
        self.batch.refusals.clear();
        any
    }

    /// Journals settlements together with what was handed over before them.
    pub(super) fn journal_with_settlements(&mut self) -> Option<Goal> {
        self.batch.journalling.take_settlements(&mut self.wakes, self.broker.durable()?);
        self.journal()
    }
}
