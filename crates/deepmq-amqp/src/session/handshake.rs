//! From the protocol header to connection.open-ok.
//!
//! Owns the negotiation. Rules and texts are RabbitMQ's (reference: its connection reader), with the frame limit of
//! older versions: 4096 bytes are enough.

use super::login::{CHALLENGE, Credentials, Login, LoginOutcome, Response};
use super::server_properties::server_properties;
use super::{Failure, Phase, Session, Tuning};
use crate::codec::frame::PROTOCOL_HEADER;
use crate::codec::method::{LongStr, connection};
use crate::codec::{Method, ReplyCode};
use deepmq_broker::connection::ConnectionInfo;
use deepmq_broker::users::{Source, User};
use deepmq_model::{Table, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long a client that does not know connection.close as an answer waits for the end after a bad login. Keeps
/// it from trying again at once; RabbitMQ's value.
const SILENT_CLOSE_DELAY: Duration = Duration::from_secs(1);
/// The header of AMQP 0-9, which clients of 0-9-1 may send too.
const PROTOCOL_HEADER_0_9: [u8; 8] = *b"AMQP\x01\x01\x00\x09";
const LOCALES: &[u8] = b"en_US";

impl Session {
    /// Takes the protocol header; returns how many bytes that used.
    pub(super) fn on_protocol_header(&mut self, input: &[u8]) -> usize {
        let Some((header, _)) = input.split_first_chunk::<8>() else {
            if !PROTOCOL_HEADER.starts_with(input.get(..4).unwrap_or(input)) {
                self.refuse_protocol(input);
            }
            return 0;
        };
        if *header != PROTOCOL_HEADER && *header != PROTOCOL_HEADER_0_9 {
            self.refuse_protocol(input);
            return 0;
        }
        let offered = &self.broker.config().auth_mechanisms;
        let mechanisms = offered.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let start = connection::Start {
            version_major: 0,
            version_minor: 9,
            server_properties: server_properties(&self.broker),
            mechanisms: LongStr(mechanisms.as_bytes()),
            locales: LongStr(LOCALES),
        };
        self.send(0, start);
        self.phase = Phase::AwaitingStartOk;
        header.len()
    }

    fn refuse_protocol(&mut self, input: &[u8]) {
        let hint = match input {
            [0x16, ..] => "this looks like TLS, but the port is a plain one",
            [b'G', b'E', b'T', ..] | [b'P', b'O', b'S', ..] | [b'H', b'E', b'A', ..] => {
                "this looks like HTTP, but the port speaks AMQP 0-9-1"
            }
            [b'A', b'M', b'Q', b'P', ..] => "this version of AMQP is not supported, only 0-9-1 is",
            _ => "this is not AMQP",
        };
        tracing::warn!(connection = self.id.0, peer = %self.peer, hint, "protocol header refused");
        self.outbox.write(|frames| frames.buf.extend_from_slice(&PROTOCOL_HEADER));
        self.drop_connection(Duration::ZERO, "protocol header refused");
    }

    pub(super) fn on_handshake_method(&mut self, channel: u16, method: Method<'_>) -> Result<(), Failure> {
        let (0, Method::Connection(method)) = (channel, method) else {
            return Err(Failure::wrong_phase(self.phase_name()));
        };
        match (&self.phase, method) {
            (_, connection::Method::Close(close)) => self.on_connection_close(&close),
            (Phase::AwaitingStartOk, connection::Method::StartOk(ok)) => self.on_start_ok(ok)?,
            (Phase::AwaitingSecureOk(_), connection::Method::SecureOk(ok)) => self.on_secure_ok(&ok)?,
            (Phase::AwaitingTuneOk, connection::Method::TuneOk(ok)) => self.on_tune_ok(&ok)?,
            (Phase::AwaitingOpen, connection::Method::Open(open)) => self.on_open(&open)?,
            _ => return Err(Failure::wrong_phase(self.phase_name())),
        }
        Ok(())
    }

    /// The phase as RabbitMQ's texts call it.
    fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::AwaitingHeader | Phase::AwaitingStartOk => "starting",
            Phase::AwaitingSecureOk(_) | Phase::AuthenticatingSlowly => "securing",
            Phase::AwaitingTuneOk => "tuning",
            Phase::AwaitingOpen => "opening",
            Phase::Open => "running",
            Phase::Closing => "closing",
            Phase::Closed { .. } => "closed",
        }
    }

    fn on_start_ok(&mut self, ok: connection::StartOk<'_>) -> Result<(), Failure> {
        self.note_capabilities(&ok.client_properties);
        self.client.properties = ok.client_properties;
        let offered = &self.broker.config().auth_mechanisms;
        match Response::read(offered, ok.mechanism, ok.response.0)? {
            Response::Whole(credentials) => self.log_in(credentials),
            Response::Asks(user) => {
                self.send(0, connection::Secure { challenge: LongStr(CHALLENGE) });
                self.phase = Phase::AwaitingSecureOk(user);
            }
        }
        Ok(())
    }

    fn on_secure_ok(&mut self, ok: &connection::SecureOk<'_>) -> Result<(), Failure> {
        if let Phase::AwaitingSecureOk(user) = &mut self.phase {
            let user = std::mem::take(user);
            self.log_in(Credentials::answered(user, ok.response.0)?);
        }
        Ok(())
    }

    fn log_in(&mut self, credentials: Credentials) {
        let login = Login::new(credentials, self.peer.ip().to_canonical().is_loopback());
        if let Some(user) = login.verify_fast(self.broker.users()) {
            self.note_attempt(&user.name, true);
            self.on_user(user);
        } else {
            self.phase = Phase::AuthenticatingSlowly;
            self.login = Some(login);
        }
    }

    fn note_capabilities(&mut self, properties: &Table) {
        let Some(Value::Table(capabilities)) = properties.get("capabilities") else { return };
        let can = |name| matches!(capabilities.get(name), Some(Value::Bool(true)));
        self.client.blocked_notify = can("connection.blocked");
        self.client.cancel_notify = can("consumer_cancel_notify");
        self.client.failure_close = can("authentication_failure_close");
    }

    /// A password was verified, or not.
    pub(crate) fn handle_login(&mut self, outcome: LoginOutcome) {
        if !matches!(self.phase, Phase::AuthenticatingSlowly) {
            return;
        }
        let LoginOutcome { mechanism, user, verdict } = outcome;
        match verdict {
            Ok(user) => {
                self.note_attempt(&user.name, true);
                self.on_user(user);
            }
            Err(error) => {
                self.note_attempt(&user, false);
                tracing::warn!(connection = self.id.0, peer = %self.peer, user, %error, "login refused");
                self.refuse_login(mechanism);
            }
        }
    }

    fn note_attempt(&self, user: &str, succeeded: bool) {
        let address = self.peer.ip().to_canonical();
        let source = Source { protocol: "amqp091", address, user: user.into() };
        self.broker.users().attempts().note(source, succeeded);
    }

    fn refuse_login(&mut self, mechanism: &str) {
        if !self.client.failure_close {
            self.drop_connection(SILENT_CLOSE_DELAY, "login refused");
            return;
        }
        let text = format!(
            "Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
        );
        self.phase = Phase::AwaitingStartOk;
        self.close_connection(&Failure::soft(ReplyCode::AccessRefused, text));
    }

    fn on_user(&mut self, user: Arc<User>) {
        self.user = Some(user);
        let limits = self.broker.limits();
        let tune = connection::Tune {
            channel_max: limits.channels_per_connection_max,
            frame_max: limits.frame_bytes_max,
            heartbeat: whole_seconds(limits.heartbeat_interval),
        };
        self.send(0, tune);
        self.phase = Phase::AwaitingTuneOk;
    }

    fn on_tune_ok(&mut self, ok: &connection::TuneOk) -> Result<(), Failure> {
        let limits = self.broker.limits();
        negotiated("channel_max", ok.channel_max.into(), 1, limits.channels_per_connection_max.into())?;
        negotiated("frame_max", ok.frame_max, limits.frame_bytes_min, limits.frame_bytes_max)?;
        self.tuning = Tuning {
            channel_max: ok.channel_max,
            frame_max: ok.frame_max,
            heartbeat: Duration::from_secs(ok.heartbeat.into()),
        };
        self.outbox.negotiated(ok.frame_max, self.client.cancel_notify);
        self.phase = Phase::AwaitingOpen;
        Ok(())
    }

    fn on_open(&mut self, open: &connection::Open<'_>) -> Result<(), Failure> {
        let Some(user) = self.user.clone() else { return Err(Failure::wrong_phase("starting")) };
        let info = ConnectionInfo {
            id: self.id,
            protocol: "AMQP 0-9-1",
            peer: self.peer.to_string(),
            user: user.name.clone(),
            vhost: open.vhost.into(),
            client_properties: std::mem::take(&mut self.client.properties),
            connected_at: self.broker.seam().clock.wall(),
        };
        let entered = self.broker.enter(info, self.outbox.clone());
        let vhost = entered.map_err(|refused| Failure::hard(ReplyCode::NotAllowed, refused.to_string()))?;
        self.vhost = Some(vhost);
        self.phase = Phase::Open;
        self.send(0, connection::OpenOk::default());
        Ok(())
    }
}

/// A time in whole seconds, rounded up: a short one must not become 0, which means none.
fn whole_seconds(time: Duration) -> u16 {
    u16::try_from(time.as_millis().div_ceil(1000)).unwrap_or(u16::MAX)
}

/// Checks a limit that the client settled.
fn negotiated(what: &str, client: u32, min: u32, max: u32) -> Result<(), Failure> {
    let (relation, bound, limit) = match client {
        0 => ("higher", "maximum", max),
        n if n > max => ("higher", "maximum", max),
        n if n < min => ("lower", "minimum", min),
        _ => return Ok(()),
    };
    let text = format!("negotiated {what} = {client} is {relation} than the {bound} allowed value ({limit})");
    // RabbitMQ names the proposal, not the answer to it.
    Err(Failure::hard(ReplyCode::NotAllowed, text).of(connection::Tune::ID))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_interval_below_a_second_is_not_taken_for_none() {
        let seconds = |ms| whole_seconds(Duration::from_millis(ms));
        assert_eq!([0, 1, 500, 1000, 1500, 100_000_000].map(seconds), [0, 1, 1, 1, 2, u16::MAX]);
    }
}
