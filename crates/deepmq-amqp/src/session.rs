//! A connection as a state machine without I/O: bytes in, frames and broker calls out.
//!
//! Owns the phase of the connection, its channels, and what a read's worth of frames amounts to. Must not know sockets,
//! timers or tasks.
//!
//! In: [`Session::handle`] with what was read, [`Session::handle_tick`], [`Session::handle_login`],
//! [`Session::handle_close_request`], [`Session::handle_end`]. Out: the [`Outbox`], and [`Session::next`] for what the
//! driver is to do.

mod access;
mod channel;
mod close;
mod confirming;
mod connection;
mod consume;
mod content;
mod declare;
mod failure;
mod handshake;
mod held;
mod journalling;
mod login;
mod publish;
mod refusals;
mod reply_to;
mod router;
mod server_properties;
mod settle;
mod stall;
mod timeouts;
mod transaction;

pub(crate) use failure::Failure;
pub(crate) use login::{Login, LoginOutcome};

use crate::codec::method::{self, basic, exchange, queue};
use crate::codec::{Frame, Method, MethodError, MethodId, ReplyCode, frame, frame::Kind};
use crate::goal::{Goal, Goals, Reached};
use crate::outbox::Outbox;
use crate::translate;
use access::Permits;
use channel::Channel;
use confirming::Confirming;
use deepmq_broker::connection::{Admission, ConnectionId};
use deepmq_broker::queue::{Queue, Settlements, Ticket};
use deepmq_broker::subscriber::Wakes;
use deepmq_broker::users::User;
use deepmq_broker::{Broker, Vhost};
use deepmq_model::{Name, Table};
use deepmq_storage::StorageFailure;
use hashbrown::HashMap;
use held::Held;
use publish::Batch;
use settle::PendingAcks;
use stall::Stall;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The longest frame payload taken before the limits are negotiated, in bytes: enough for a token as password.
const HANDSHAKE_FRAME_BYTES_MAX: u32 = 16 * 1024;

/// Where a connection is in its life.
#[derive(Debug)]
enum Phase {
    AwaitingHeader,
    AwaitingStartOk,
    /// This user was asked for the password.
    AwaitingSecureOk(String),
    /// A password is being verified, which takes a while.
    AuthenticatingSlowly,
    AwaitingTuneOk,
    AwaitingOpen,
    Open,
    /// The server has sent connection.close.
    Closing,
    /// Nothing more is said or heard; after a delay if there is one.
    Closed {
        linger: Duration,
    },
}

/// What the driver does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Send what there is, and read.
    Run,
    /// As `Run`, but stop reading until messages' memory is free.
    Wait,
    /// Verify a password, and give the outcome to [`Session::handle_login`].
    Login(Login),
    /// Send what there is, wait so long, and drop the connection.
    Close(Duration),
}

/// Who is at the other end, as far as known.
#[derive(Debug, Default)]
struct Client {
    properties: Table,
    /// It wants connection.blocked.
    blocked_notify: bool,
    /// It wants basic.cancel.
    cancel_notify: bool,
    /// It understands connection.close as the answer to a bad login.
    failure_close: bool,
}

/// What was negotiated.
#[derive(Debug, Clone, Copy)]
struct Tuning {
    channel_max: u16,
    frame_max: u32,
    heartbeat: Duration,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    broker: Broker,
    outbox: Arc<Outbox>,
    id: ConnectionId,
    /// Counts the connection until it is gone.
    _admission: Admission,
    peer: SocketAddr,
    phase: Phase,
    client: Client,
    tuning: Tuning,
    user: Option<Arc<User>>,
    vhost: Option<Arc<Vhost>>,
    permits: Permits,
    login: Option<Login>,
    channels: HashMap<u16, Channel>,
    batch: Batch,
    acks: PendingAcks,
    settlements: Settlements,
    wakes: Wakes,
    stall: Stall,
    held: Held,
    confirming: Confirming,
    /// The disk does not keep up: nothing is read before it has come so far.
    disk_behind: Option<Goal>,
    /// The message that was asked for last is read from disk: nothing is taken before it is there.
    paged_out: Option<Arc<Queue>>,
    /// How often it is to be looked whether deliveries are unsettled for too long.
    look_every: Option<Duration>,
    /// Something was published since the driver asked.
    published: bool,
    /// Queues that fell behind, and this publisher's turn at each.
    tickets: Vec<(Arc<Queue>, Ticket)>,
    /// Why the connection ended, for the log and the event.
    ending: Option<String>,
}

impl Session {
    pub(crate) fn new(broker: Broker, outbox: Arc<Outbox>, peer: SocketAddr, admission: Admission) -> Self {
        let limits = broker.limits();
        let tuning = Tuning {
            channel_max: limits.channels_per_connection_max,
            frame_max: limits.frame_bytes_max.min(HANDSHAKE_FRAME_BYTES_MAX),
            heartbeat: Duration::ZERO,
        };
        Self {
            held: Held::new(broker.memory().clone(), limits.message_bytes_max),
            id: admission.id(),
            _admission: admission,
            broker,
            outbox,
            peer,
            phase: Phase::AwaitingHeader,
            client: Client::default(),
            tuning,
            user: None,
            vhost: None,
            permits: Permits::default(),
            login: None,
            channels: HashMap::new(),
            batch: Batch::default(),
            acks: PendingAcks::default(),
            settlements: Settlements::default(),
            wakes: Wakes::default(),
            stall: Stall::default(),
            confirming: Confirming::default(),
            disk_behind: None,
            paged_out: None,
            look_every: None,
            published: false,
            tickets: Vec::new(),
            ending: None,
        }
    }

    /// The connection's number.
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// The negotiated heartbeat interval; zero: none.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.tuning.heartbeat
    }

    /// Whether the handshake is over.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Whether connection.close was sent and waits for its answer.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing)
    }

    /// What to do next.
    pub(crate) fn next(&mut self) -> Next {
        if let Phase::Closed { linger } = self.phase {
            return Next::Close(linger);
        }
        if let Some(login) = self.login.take() {
            return Next::Login(login);
        }
        let waits = self.stall.is_full() || self.disk_behind.is_some() || self.paged_out.is_some();
        if waits { Next::Wait } else { Next::Run }
    }

    /// Takes what was read, from the first byte that was not used before; returns how many bytes are used up.
    pub(crate) fn handle(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        if matches!(self.phase, Phase::AwaitingHeader) {
            at = self.on_protocol_header(input);
        }
        while self.takes_frames() {
            let rest = input.get(at..).unwrap_or_default();
            match frame::parse(rest, self.tuning.frame_max) {
                Ok(Some((frame, len))) => {
                    let used = self.on_frame(&frame, len, at, input);
                    // The basic.get that met a message on disk is taken again.
                    at += if self.paged_out.is_some() { 0 } else { used };
                }
                Ok(None) => break,
                Err(error) => {
                    self.finish_read(input);
                    self.lose_track(&error);
                    break;
                }
            }
        }
        self.finish_read(input);
        at
    }

    /// Looks at what was gathered from this read.
    fn finish_read(&mut self, input: &[u8]) {
        self.flush_acks();
        self.flush_batch(input);
        self.wakes.wake();
    }

    /// The queues that a publisher should wait for, as a courtesy to their consumers.
    pub(crate) fn take_tickets(&mut self) -> impl Iterator<Item = (Arc<Queue>, Ticket)> {
        self.tickets.drain(..)
    }

    /// Whether anything was published since this was asked last.
    pub(crate) fn take_published(&mut self) -> bool {
        std::mem::take(&mut self.published)
    }

    /// The queue whose first message must be in memory before anything is taken.
    pub(crate) fn paged_out(&self) -> Option<&Arc<Queue>> {
        self.paged_out.as_ref()
    }

    /// It is.
    pub(crate) fn handle_paged_in(&mut self) {
        self.paged_out = None;
        self.take_parked();
    }

    /// How far the journal must come before the client is told something, or heard again.
    pub(crate) fn waits_for(&self) -> Goals {
        let (confirm, answer) = (self.confirming.waits_for(), self.outbox.waits_for());
        confirm.into_iter().chain(answer).chain(self.disk_behind).collect()
    }

    /// The journal has come so far.
    pub(crate) fn handle_durable(&mut self, reached: Reached) {
        self.disk_behind = self.disk_behind.filter(|&goal| !reached.meets(goal));
        self.outbox.release(reached);
        self.confirming.release(reached, &self.outbox);
    }

    /// Nothing becomes durable any more.
    pub(crate) fn handle_storage_failure(&mut self, failure: &StorageFailure) {
        tracing::error!(connection = self.id.0, %failure, "what was published or declared is not durable");
        self.drop_connection(Duration::ZERO, "the storage has failed");
    }

    /// Sends a heartbeat.
    pub(crate) fn handle_tick(&mut self) {
        self.outbox.write(|frames| frame::write_heartbeat(&mut frames.buf));
    }

    fn takes_frames(&self) -> bool {
        match self.phase {
            Phase::AwaitingStartOk
            | Phase::AwaitingSecureOk(_)
            | Phase::AwaitingTuneOk
            | Phase::AwaitingOpen
            | Phase::Open
            | Phase::Closing => !self.stall.is_full() && self.paged_out.is_none(),
            Phase::AwaitingHeader | Phase::AuthenticatingSlowly | Phase::Closed { .. } => false,
        }
    }

    /// Handles the frame at `at` of `input`; returns how many bytes that used, which for a whole publish is more than
    /// the frame.
    fn on_frame(&mut self, frame: &Frame<'_>, len: usize, at: usize, input: &[u8]) -> usize {
        if self.is_open() {
            if self.park_if_stalled(frame, input.get(at..at + len).unwrap_or_default()) {
                return len;
            }
            if frame.kind == Kind::Method {
                if let Some(used) = self.publish_in_place(frame, len, at, input) {
                    return used;
                }
                if self.gather_ack(frame) {
                    return len;
                }
            }
        }
        if let Err(failure) = self.handle_frame(frame, input) {
            self.finish_read(input);
            self.fail(frame.channel, &failure);
        }
        len
    }

    fn handle_frame(&mut self, frame: &Frame<'_>, input: &[u8]) -> Result<(), Failure> {
        match frame.kind {
            _ if self.is_closing() && frame.kind != Kind::Method => Ok(()),
            Kind::Heartbeat if frame.channel == 0 => Ok(()),
            Kind::Heartbeat => {
                let text = format!("type 8, {0} octets = {0:#}", frame::Snippet::new(frame.payload));
                Err(Failure::hard(ReplyCode::UnexpectedFrame, text))
            }
            Kind::Method => self.on_method_frame(frame, input),
            Kind::Header => self.on_header_frame(frame),
            Kind::Body => self.on_body_frame(frame),
        }
    }

    fn on_method_frame(&mut self, frame: &Frame<'_>, input: &[u8]) -> Result<(), Failure> {
        // What was gathered happened before this method.
        self.finish_read(input);
        if self.is_deaf(frame.channel) {
            return self.while_closing(frame);
        }
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(MethodError::Unknown(id)) => return Err(Failure::unimplemented().of(id)),
            Err(MethodError::Malformed { id, what }) => {
                return Err(Failure::hard(ReplyCode::SyntaxError, what.to_string()).of(id));
            }
        };
        let id = method.id();
        self.check_tables(&method)
            .and_then(|()| self.on_method(frame.channel, method))
            .map_err(|failure| failure.of(id))
    }

    /// Refuses tables deeper than the limit.
    fn check_tables(&self, asked: &Method<'_>) -> Result<(), Failure> {
        let table = match asked {
            Method::Connection(method::connection::Method::StartOk(ok)) => &ok.client_properties,
            Method::Exchange(exchange::Method::Declare(declare)) => &declare.arguments,
            Method::Exchange(exchange::Method::Bind(bind)) => &bind.arguments,
            Method::Exchange(exchange::Method::Unbind(unbind)) => &unbind.arguments,
            Method::Queue(queue::Method::Declare(declare)) => &declare.arguments,
            Method::Queue(queue::Method::Bind(bind)) => &bind.arguments,
            Method::Queue(queue::Method::Unbind(unbind)) => &unbind.arguments,
            Method::Basic(basic::Method::Consume(consume)) => &consume.arguments,
            _ => return Ok(()),
        };
        translate::check_depth(table.depth() <= self.broker.limits().table_depth_max)
    }

    fn on_method(&mut self, channel: u16, method: Method<'_>) -> Result<(), Failure> {
        if !self.is_open() {
            return self.on_handshake_method(channel, method);
        }
        match method {
            Method::Connection(method) => self.on_connection_method(channel, method),
            Method::Channel(method) => self.on_channel_method(channel, method),
            _ if channel == 0 => Err(Failure::wrong_phase("running")),
            method => {
                self.expect_no_content(channel)?;
                self.on_class_method(channel, method)
            }
        }
    }

    fn on_class_method(&mut self, channel: u16, method: Method<'_>) -> Result<(), Failure> {
        match method {
            Method::Connection(_) | Method::Channel(_) => Err(Failure::unimplemented()),
            Method::Access(method) => self.on_access_method(channel, method),
            Method::Exchange(method) => self.on_exchange_method(channel, method),
            Method::Queue(method) => self.on_queue_method(channel, method),
            Method::Basic(method) => self.on_basic_method(channel, method),
            Method::Confirm(method) => self.on_confirm_method(channel, method),
            Method::Tx(method) => self.on_tx_method(channel, method),
        }
    }

    /// The vhost, once the connection is open.
    fn vhost(&self) -> Result<Arc<Vhost>, Failure> {
        self.vhost.clone().ok_or_else(|| Failure::wrong_phase("starting"))
    }

    /// Appends a method to what is to be sent.
    fn send<'m>(&self, channel: u16, method: impl Into<Method<'m>>) {
        let method = method.into();
        self.outbox.write(|frames| method.encode(channel, &mut frames.buf));
    }
}

/// A name as RabbitMQ takes it: without carriage returns and line feeds.
fn clean(name: &str) -> std::borrow::Cow<'_, str> {
    if name.contains(['\r', '\n']) { name.replace(['\r', '\n'], "").into() } else { name.into() }
}

/// A name that the server makes up: `prefix` and 22 characters that nobody guesses.
fn generated_name(prefix: &str, broker: &Broker) -> Name {
    let mut random = [0; 16];
    broker.seam().random.fill(&mut random);
    let mut name = String::with_capacity(prefix.len() + 22);
    name.push_str(prefix);
    for chunk in random.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            name.push(base64_url(word >> (18 - 6 * place)));
        }
    }
    name.into()
}

fn base64_url(sextet: u32) -> char {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    ALPHABET.get(sextet as usize & 63).copied().map_or('-', char::from)
}

/// Method number of nothing, for failures that no method caused.
const NO_METHOD: MethodId = MethodId { class: 0, method: 0 };

#[cfg(test)]
mod tests;
