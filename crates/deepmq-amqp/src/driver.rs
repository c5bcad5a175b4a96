//! One connection's task: the only place where a session meets a socket and a timer.
//!
//! Owns reading, writing and waiting. Must not know what the bytes mean.

mod input;
mod pace;

use crate::goal::Reached;
use crate::outbox::{Outbox, Outgoing};
use crate::session::{Login, LoginOutcome, Next, Session};
use deepmq_broker::Broker;
use deepmq_broker::queue::Queue;
use deepmq_broker::subscriber::Wakes;
use deepmq_model::queue::ConsumerId;
use input::Input;
use pace::Pace;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long the answer to connection.close is waited for.
const CLOSE_OK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last bytes may take.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a connection without heartbeats looks whether it has memory to give back.
const IDLE_TICK: Duration = Duration::from_secs(10);

/// After a read of this many bytes other connections have their turn.
const YIELD_BYTES_MIN: usize = 16 * 1024;

/// What all connections of a listener share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) broker: Broker,
    /// Slow password verifications at once.
    pub(crate) logins: Arc<Semaphore>,
}

/// What a read brought.
enum Read {
    Nothing,
    Some,
    /// So much that there is likely more.
    Full,
}

/// Why a connection's task ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("closed")]
    Closed(Duration),
    #[error("the peer is gone: {0}")]
    Gone(#[from] io::Error),
    #[error("no handshake within the time limit")]
    HandshakeTimeout,
    #[error("missed heartbeats from client, timeout: {0:?}")]
    Silent(Duration),
    #[error("no answer to connection.close")]
    NoCloseOk,
}

/// A connection.
struct Driver {
    socket: TcpStream,
    shared: Arc<Shared>,
    session: Session,
    outbox: Arc<Outbox>,
    input: Input,
    outgoing: Outgoing,
    starved: Vec<(Arc<Queue>, ConsumerId)>,
    wakes: Wakes,
    timer: Pin<Box<Sleep>>,
    login: Option<JoinHandle<LoginOutcome>>,
    pace: Pace,
    free: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Since the last tick something came, something went; ticks without anything coming.
    received: bool,
    sent: bool,
    silent_ticks: u32,
    closing_since: Option<Instant>,
    opened: bool,
    tick_at: Instant,
    /// When it is looked for what is unsettled for too long, and how often.
    look_at: Option<Instant>,
    look_every: Option<Duration>,
}

/// Drives a connection to its end.
pub(crate) async fn drive(socket: TcpStream, session: Session, outbox: Arc<Outbox>, shared: Arc<Shared>) {
    let mut driver = Driver {
        timer: Box::pin(sleep(shared.broker.limits().handshake_timeout)),
        socket,
        session,
        outbox,
        shared,
        input: Input::default(),
        outgoing: Outgoing::default(),
        starved: Vec::new(),
        wakes: Wakes::default(),
        login: None,
        pace: Pace::default(),
        free: None,
        received: false,
        sent: false,
        silent_ticks: 0,
        closing_since: None,
        opened: false,
        tick_at: Instant::now(),
        look_at: None,
        look_every: None,
    };
    let end = poll_fn(|cx| driver.poll(cx)).await;
    driver.finish(end).await;
}

impl Driver {
    /// Does all there is to do, then waits for the next event.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match self.step(cx) {
                Ok(Read::Nothing) => return Poll::Pending,
                // Most likely the socket is empty now; asking costs no system call.
                Ok(Read::Some) => {}
                Ok(Read::Full) => {
                    // Others have their turn before the next read: consumers of what was just published, above all.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(end) => return Poll::Ready(end),
            }
        }
    }

    /// One round of reading, handling and writing.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<Read, End> {
        if let Some(reason) = self.outbox.take_close_wanted() {
            self.session.handle_close_request(&reason);
        }
        self.poll_timer(cx)?;
        self.poll_login(cx);
        self.poll_room(cx);
        self.poll_durable(cx);
        self.poll_paged_in(cx);
        let read = match self.session.next() {
            Next::Close(linger) => return Err(End::Closed(linger)),
            Next::Login(login) => {
                self.start_login(login, cx);
                Read::Nothing
            }
            Next::Wait => Read::Nothing,
            Next::Run if !self.pace.poll(cx) => Read::Nothing,
            Next::Run if self.outbox.is_clogged() => {
                self.write(cx)?;
                return Ok(if self.outbox.is_clogged() { Read::Nothing } else { Read::Some });
            }
            Next::Run => self.read(cx)?,
        };
        self.pace.wait_for(self.session.take_tickets());
        if self.session.take_published() && self.shared.broker.memory().is_tight() {
            self.pace.wait_for_memory(self.shared.broker.memory());
        }
        self.poll_durable(cx);
        self.write(cx)?;
        Ok(read)
    }

    /// Reads once and lets the session handle it.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<Read, End> {
        if self.login.is_some() {
            return Ok(Read::Nothing);
        }
        let session = &mut self.session;
        match self.input.poll_read(cx, &mut self.socket, |bytes| session.handle(bytes))? {
            Poll::Pending => Ok(Read::Nothing),
            Poll::Ready(0) => Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Poll::Ready(count) => {
                self.outbox.count_received(count);
                self.received = true;
                Ok(if count < YIELD_BYTES_MIN { Read::Some } else { Read::Full })
            }
        }
    }

    /// Sends until there is nothing more or the socket is full.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        loop {
            while !self.outgoing.is_empty() {
                let socket = Pin::new(&mut self.socket);
                let written = match self.outgoing.plain() {
                    Some(bytes) => socket.poll_write(cx, bytes)?,
                    None => socket.poll_write_vectored(cx, &self.outgoing.slices())?,
                };
                let Poll::Ready(count) = written else { return Ok(()) };
                self.outgoing.advance(count);
                self.outbox.count_sent(count);
                self.sent = true;
            }
            if !self.outbox.take(&mut self.outgoing, &mut self.starved, cx.waker()) {
                return Ok(());
            }
            for (queue, consumer) in self.starved.drain(..) {
                queue.resume(consumer, &mut self.wakes);
            }
            self.wakes.wake();
        }
    }

    fn start_login(&mut self, login: Login, cx: &mut Context<'_>) {
        let shared = self.shared.clone();
        let verify = async move {
            let _permit = shared.logins.acquire().await;
            let broker = shared.broker.clone();
            spawn_blocking(move || login.verify(broker.users())).await
        };
        // A panic while verifying is that task's; here it ends in a handshake that times out.
        self.login = Some(tokio::spawn(async move { verify.await.expect("verification does not panic") }));
        self.poll_login(cx);
    }

    fn poll_login(&mut self, cx: &mut Context<'_>) {
        let Some(login) = &mut self.login else { return };
        if let Poll::Ready(outcome) = Pin::new(login).poll(cx) {
            self.login = None;
            if let Ok(outcome) = outcome {
                self.session.handle_login(outcome);
                self.resume_input();
            }
        }
    }

    /// Handles what was read while nothing could be taken.
    fn resume_input(&mut self) {
        let session = &mut self.session;
        self.input.again(|bytes| session.handle(bytes));
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) {
        if !self.session.is_stalled() {
            return;
        }
        let broker = &self.shared.broker;
        let free = self.free.get_or_insert_with(|| {
            let broker = broker.clone();
            Box::pin(async move { broker.until_publishing().await })
        });
        if free.as_mut().poll(cx).is_ready() {
            self.free = None;
            self.session.handle_unblocked();
            self.resume_input();
            // If it stalled again, this registers for the next time.
            cx.waker().wake_by_ref();
        }
    }

    /// Goes on once a message that was asked for is read from disk.
    fn poll_paged_in(&mut self, cx: &mut Context<'_>) {
        while let Some(queue) = self.session.paged_out()
            && queue.poll_paged_in(cx.waker())
        {
            self.session.handle_paged_in();
            self.resume_input();
        }
    }

    /// Tells the client what has become durable.
    fn poll_durable(&mut self, cx: &mut Context<'_>) {
        let Some(durable) = self.shared.broker.durable() else { return };
        let journal = durable.journal();
        loop {
            let mut reached = false;
            for goal in self.session.waits_for().iter() {
                match journal.poll(goal.lsn, goal.durability, cx.waker()) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(())) => reached = true,
                    Poll::Ready(Err(failure)) => return self.session.handle_storage_failure(&failure),
                }
            }
            if !reached {
                return;
            }
            self.session.handle_durable(Reached::of(journal));
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if self.session.is_open() && !self.opened {
            self.opened = true;
            // The handshake's frames were long; many a connection says little after.
            self.trim();
            self.tick_at = Instant::now() + self.tick_every();
            self.rearm();
        }
        if self.opened && self.look_every != self.session.look_every() && self.closing_since.is_none() {
            self.look_next();
            self.rearm();
        }
        if self.session.is_closing() && self.closing_since.is_none() {
            self.closing_since = Some(Instant::now());
            self.timer.as_mut().reset(Instant::now() + CLOSE_OK_TIMEOUT);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.closing_since.is_some() {
                return Err(End::NoCloseOk);
            }
            if !self.opened {
                return Err(End::HandshakeTimeout);
            }
            let now = Instant::now();
            if now >= self.tick_at {
                self.tick(cx)?;
                self.tick_at = now + self.tick_every();
            }
            if self.look_at.is_some_and(|at| now >= at) {
                self.session.handle_timeouts();
                self.look_next();
            }
            self.rearm();
        }
        Ok(())
    }

    fn tick_every(&self) -> Duration {
        match self.session.heartbeat() {
            Duration::ZERO => IDLE_TICK,
            heartbeat => heartbeat / 2,
        }
    }

    fn look_next(&mut self) {
        self.look_every = self.session.look_every();
        self.look_at = self.look_every.map(|every| Instant::now() + every);
    }

    fn rearm(&mut self) {
        let next = self.look_at.map_or(self.tick_at, |look_at| look_at.min(self.tick_at));
        self.timer.as_mut().reset(next);
    }

    /// Half a heartbeat interval has passed.
    fn tick(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        // What a stalled connection sends is not read, and so its end would not be seen: what it holds would stay held.
        if self.session.is_stalled() && self.is_peer_gone(cx) {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        let heartbeat = self.session.heartbeat();
        if !std::mem::take(&mut self.sent) && !heartbeat.is_zero() {
            self.session.handle_tick();
        }
        if std::mem::take(&mut self.received) {
            self.silent_ticks = 0;
            return Ok(());
        }
        self.trim();
        // A stalled connection may be not read, and so look silent.
        self.silent_ticks = if self.session.is_stalled() { 0 } else { self.silent_ticks + 1 };
        if !heartbeat.is_zero() && self.silent_ticks > 4 {
            return Err(End::Silent(heartbeat));
        }
        Ok(())
    }

    /// Whether the peer has closed or lost the connection, without a read.
    fn is_peer_gone(&self, cx: &mut Context<'_>) -> bool {
        let ready = pin!(self.socket.ready(Interest::READABLE)).poll(cx);
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    fn trim(&mut self) {
        self.input.trim();
        self.outgoing.trim();
        self.outbox.trim();
    }

    /// Says what is left to say, and lets go.
    async fn finish(mut self, end: End) {
        match &end {
            End::Closed(_) => {}
            End::Gone(_) if !self.opened => {}
            End::Gone(_) | End::HandshakeTimeout | End::Silent(_) | End::NoCloseOk => {
                tracing::warn!(connection = self.session.id().0, reason = %end, "connection lost");
            }
        }
        if let End::Closed(linger) = end {
            // A peer that does not read its last bytes does not get them.
            let _ = timeout(LAST_WRITE_TIMEOUT, poll_fn(|cx| self.poll_last_write(cx))).await;
            if !linger.is_zero() {
                sleep(linger).await;
            }
        }
        self.session.handle_end(&end.to_string());
        if let Some(login) = self.login {
            login.abort();
        }
    }

    fn poll_last_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.write(cx) {
            Ok(()) if self.outgoing.is_empty() => Poll::Ready(()),
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(()),
        }
    }
}
