//! The sending half of a connection: frames to go out, and the consumers they go to.
//!
//! Owns one bounded buffer, in which replies, confirms and deliveries are in the order they happened, and the open
//! deliveries of each channel, which belong under the same lock. Must not know sockets or how methods are handled.
//!
//! In: the session ([`Outbox::write`]) and queues ([`Subscriber`]). Out: [`Outbox::take`], by the driver.

mod channel;
mod outgoing;

pub(crate) use channel::{NewConsumer, OutChannel, OutConsumer};
pub(crate) use outgoing::{Outgoing, Part};

use crate::codec::{deliver, frame, method::basic};
use crate::goal::{Goal, Reached};
use deepmq_broker::connection::{ChannelInfo, ConnectionControl};
use deepmq_broker::message::{Body, Delivery, MessageRef};
use deepmq_broker::queue::{Queue, Settlements};
use deepmq_broker::subscriber::{ConsumerKey, Subscriber};
use deepmq_broker::traffic::{MessageCounts, Traffic};
use deepmq_model::Value;
use deepmq_model::message::properties;
use deepmq_model::queue::ConsumerId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

/// The frame limit before one is negotiated, in bytes: the least the specification allows.
const FRAME_BYTES_MIN: u32 = 4096;
/// What a delivery takes besides its message, in bytes, about.
const DELIVERY_OVERHEAD_BYTES: usize = 64;

/// What may wait to be sent beyond the room for deliveries before the connection is not read any more, in bytes: answers,
/// confirms and returns for a client that does not read them.
const ANSWERS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes_max: usize,
    /// Bytes from and to the peer; written by the connection's own task alone.
    received: AtomicU64,
    sent: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) frames: Frames,
    channels: HashMap<u16, OutChannel>,
    /// Answers that wait for the journal: where they begin in the buffer, and for what. All behind one waits too.
    gates: VecDeque<(usize, Goal)>,
    /// Consumers that were refused room, to be resumed.
    starved: Vec<(Arc<Queue>, ConsumerId)>,
    waker: Option<Waker>,
    /// Somebody wants the connection closed, for this reason.
    close_wanted: Option<Box<str>>,
    /// The client understands basic.cancel from the server.
    cancel_notify: bool,
    /// The connection is gone or going: nothing more is taken.
    closed: bool,
    /// What channels counted that are closed.
    past: MessageCounts,
}

/// Encoded frames, with long bodies by reference.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) buf: Vec<u8>,
    pub(crate) parts: Vec<Part>,
    part_bytes: usize,
    frame_max: u32,
}

impl Default for Frames {
    fn default() -> Self {
        Self { buf: Vec::new(), parts: Vec::new(), part_bytes: 0, frame_max: FRAME_BYTES_MIN }
    }
}

impl Frames {
    /// Takes off what begins at `at` of the buffer, where a frame begins.
    fn split_off(&mut self, at: usize) -> Self {
        let buf = self.buf.split_off(at);
        let first = self.parts.partition_point(|part| part.at < at);
        let mut parts = self.parts.split_off(first);
        parts.iter_mut().for_each(|part| part.at -= at);
        let part_bytes = parts.iter().map(|part| part.bytes.len()).sum();
        self.part_bytes -= part_bytes;
        Self { buf, parts, part_bytes, frame_max: self.frame_max }
    }

    fn len(&self) -> usize {
        self.buf.len() + self.part_bytes
    }

    /// Appends the header and body frames of a message.
    pub(crate) fn content(&mut self, channel: u16, message: &MessageRef<'_>) {
        match message.body {
            Body::Inline(body) => {
                crate::codec::content::write(
                    channel,
                    message.properties,
                    body,
                    self.frame_max,
                    &mut self.buf,
                );
            }
            Body::Shared(body) => {
                crate::codec::content::Header {
                    class: basic::CLASS,
                    body_size: body.len() as u64,
                    properties: message.properties,
                }
                .encode(channel, &mut self.buf);
                self.shared_body(channel, body);
            }
        }
    }

    fn shared_body(&mut self, channel: u16, body: &bytes::Bytes) {
        let max = frame::payload_bytes_max(self.frame_max);
        let mut rest = body.clone();
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(max));
            self.buf.extend_from_slice(&frame::body_header(channel, &part));
            self.part_bytes += part.len();
            self.parts.push(Part { at: self.buf.len(), bytes: part });
            self.buf.push(frame::END);
        }
    }

    #[inline]
    fn delivery(&mut self, head: &deliver::Delivery<'_>, body: Body<'_>) {
        match body {
            Body::Inline(body) => head.write(body, self.frame_max, &mut self.buf),
            Body::Shared(body) => {
                head.write_head(body.len() as u64, &mut self.buf);
                self.shared_body(head.channel, body);
            }
        }
    }
}

/// The properties as a consumer is to see them: with how often the message came back, where the queue tells that.
#[inline]
pub(crate) fn shown_properties<'a>(delivery: &Delivery<'a>) -> Cow<'a, [u8]> {
    let plain = delivery.message.properties;
    if !delivery.tells_returns || delivery.returns == 0 {
        return Cow::Borrowed(plain);
    }
    let count = Value::I64(delivery.returns.into());
    properties::with_header(plain, "x-delivery-count", count).map_or(Cow::Borrowed(plain), Cow::Owned)
}

impl Outbox {
    /// With room for so many bytes before consumers pause.
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        let (received, sent) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { bytes_max, received, sent, state: Mutex::default() })
    }

    /// What the handshake found out.
    pub(crate) fn negotiated(&self, frame_max: u32, cancel_notify: bool) {
        let mut state = self.state.lock();
        state.frames.frame_max = frame_max;
        state.cancel_notify = cancel_notify;
    }

    /// Counts bytes read.
    pub(crate) fn count_received(&self, bytes: usize) {
        self.received.store(self.received.load(Relaxed) + bytes as u64, Relaxed);
    }

    /// Counts bytes written.
    pub(crate) fn count_sent(&self, bytes: usize) {
        self.sent.store(self.sent.load(Relaxed) + bytes as u64, Relaxed);
    }

    /// Whether so much waits to be sent that nothing should be taken that makes it more.
    pub(crate) fn is_clogged(&self) -> bool {
        self.state.lock().frames.len() > self.bytes_max + ANSWERS_BYTES_MAX
    }

    /// Appends frames.
    pub(crate) fn write(&self, write: impl FnOnce(&mut Frames)) {
        let mut state = self.state.lock();
        if !state.closed {
            write(&mut state.frames);
        }
    }

    /// Appends frames that are not sent before `goal` is met, and so what is appended later.
    pub(crate) fn write_after(&self, goal: Goal, write: impl FnOnce(&mut Frames)) {
        let mut state = self.state.lock();
        if !state.closed {
            let at = state.frames.buf.len();
            state.gates.push_back((at, goal));
            write(&mut state.frames);
        }
    }

    /// What the first waiting answer waits for.
    pub(crate) fn waits_for(&self) -> Option<Goal> {
        self.state.lock().gates.front().map(|&(_, goal)| goal)
    }

    /// Lets go of answers that waited for what is reached now.
    pub(crate) fn release(&self, reached: Reached) {
        let gates = &mut self.state.lock().gates;
        while gates.front().is_some_and(|&(_, goal)| reached.meets(goal)) {
            gates.pop_front();
        }
    }

    /// Adds a channel.
    pub(crate) fn open_channel(&self, number: u16) {
        self.state.lock().channels.insert(number, OutChannel::default());
    }

    /// Works on a channel, if it is open.
    pub(crate) fn channel<R>(
        &self,
        number: u16,
        work: impl FnOnce(&mut OutChannel, &mut Frames) -> R,
    ) -> Option<R> {
        let mut state = self.state.lock();
        let State { channels, frames, .. } = &mut *state;
        channels.get_mut(&number).map(|channel| work(channel, frames))
    }

    /// Removes a channel, whose consumers are off their queues already; returns its open deliveries, which go back.
    pub(crate) fn close_channel(&self, number: u16) -> Option<Settlements> {
        let mut state = self.state.lock();
        let channel = state.channels.remove(&number)?;
        state.past += channel.counts();
        Some(channel.close())
    }

    /// Drops what was not sent, and takes nothing more.
    pub(crate) fn shut(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.frames = Frames::default();
    }

    /// Moves what is to be sent into `outgoing`, which must be empty, and the consumers that now have room into
    /// `starved`. Without anything to send, `waker` is woken once there is.
    pub(crate) fn take(
        &self,
        outgoing: &mut Outgoing,
        starved: &mut Vec<(Arc<Queue>, ConsumerId)>,
        waker: &Waker,
    ) -> bool {
        let mut state = self.state.lock();
        let gate = state.gates.front().map(|&(at, _)| at);
        if state.frames.buf.is_empty() || gate == Some(0) {
            if !state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                state.waker = Some(waker.clone());
            }
            return false;
        }
        let behind = gate.map(|at| state.frames.split_off(at));
        outgoing.swap(&mut state.frames);
        state.frames.part_bytes = 0;
        if let (Some(at), Some(behind)) = (gate, behind) {
            state.frames = behind;
            state.gates.iter_mut().for_each(|(gate, _)| *gate -= at);
        }
        starved.append(&mut state.starved);
        true
    }

    /// Why the connection is to be closed, if somebody wants it closed.
    pub(crate) fn take_close_wanted(&self) -> Option<Box<str>> {
        self.state.lock().close_wanted.take()
    }

    /// Gives memory back that a quiet connection does not need.
    pub(crate) fn trim(&self) {
        let mut state = self.state.lock();
        if state.frames.buf.is_empty() {
            state.frames.buf = Vec::new();
            state.frames.parts = Vec::new();
        }
    }
}

impl Subscriber for Outbox {
    fn reserve(&self, consumer: ConsumerKey, want: u32, message_bytes: usize, queue: &Arc<Queue>) -> u32 {
        let mut state = self.state.lock();
        let State { frames, channels, starved, .. } = &mut *state;
        let Some(channel) = channels.get_mut(&consumer.channel) else { return 0 };
        let Some(id) = channel.consumer_id(consumer.index) else { return 0 };
        let room =
            self.bytes_max.saturating_sub(frames.len()).div_ceil(message_bytes + DELIVERY_OVERHEAD_BYTES);
        let room = u32::try_from(room).unwrap_or(u32::MAX).saturating_sub(channel.reserved());
        if room == 0 {
            starved.push((queue.clone(), id));
            return 0;
        }
        channel.reserve(consumer.index, want.min(room))
    }

    fn release(&self, consumer: ConsumerKey, unused: u32) {
        self.channel(consumer.channel, |channel, _| channel.release(consumer.index, unused));
    }

    fn deliver(&self, consumer: ConsumerKey, deliveries: &mut dyn Iterator<Item = Delivery<'_>>) {
        let mut state = self.state.lock();
        let State { frames, channels, .. } = &mut *state;
        let Some(channel) = channels.get_mut(&consumer.channel) else { return };
        let Some((mut tags, consumer_tag)) = channel.deliver_to(consumer.index) else { return };
        let (mut count, mut redelivered) = (0, 0);
        for delivery in deliveries {
            count += 1;
            redelivered += u64::from(delivery.redelivered);
            let properties = shown_properties(&delivery);
            let head = deliver::Delivery {
                channel: consumer.channel,
                consumer_tag,
                delivery_tag: tags.next(delivery.position),
                redelivered: delivery.redelivered,
                address: delivery.message.address,
                properties: &properties,
            };
            frames.delivery(&head, delivery.message.body);
        }
        channel.delivered(count);
        channel.count_delivered(consumer.index, count.into(), redelivered);
    }

    fn reply(&self, number: u16, message: &MessageRef<'_>) -> bool {
        let mut state = self.state.lock();
        let State { frames, channels, closed, .. } = &mut *state;
        // It can wait nowhere else.
        if *closed || frames.len() > self.bytes_max {
            return false;
        }
        let Some((delivery_tag, consumer_tag)) = channels.get_mut(&number).and_then(OutChannel::reply) else {
            return false;
        };
        let head = deliver::Delivery {
            channel: number,
            consumer_tag,
            delivery_tag,
            redelivered: false,
            address: message.address,
            properties: message.properties,
        };
        frames.delivery(&head, message.body);
        true
    }

    fn cancelled(&self, consumer: ConsumerKey) {
        let mut state = self.state.lock();
        let State { frames, channels, cancel_notify, closed, .. } = &mut *state;
        let Some(channel) = channels.get_mut(&consumer.channel) else { return };
        let Some(gone) = channel.remove_consumer(consumer.index) else { return };
        if *cancel_notify && !*closed {
            basic::Cancel { consumer_tag: &gone.tag, no_wait: true }
                .encode(consumer.channel, &mut frames.buf);
        }
    }

    fn wake(&self) {
        let waker = self.state.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl ConnectionControl for Outbox {
    fn close(&self, reason: &str) {
        self.state.lock().close_wanted = Some(reason.into());
        self.wake();
    }

    fn channels(&self) -> Vec<ChannelInfo> {
        let state = self.state.lock();
        let mut channels: Vec<_> =
            state.channels.iter().map(|(&number, channel)| channel.info(number)).collect();
        channels.sort_unstable_by_key(|channel| channel.number);
        channels
    }

    fn traffic(&self) -> Traffic {
        let state = self.state.lock();
        let mut messages = state.past;
        state.channels.values().for_each(|channel| messages += channel.counts());
        let (received_bytes, sent_bytes) = (self.received.load(Relaxed), self.sent.load(Relaxed));
        Traffic { messages, received_bytes, sent_bytes }
    }
}
