//! Opening a connection, whole or in steps.
//!
//! Owns the client's lines of the handshake.

use super::{RawPeer, encoded};
use deepmq_amqp::codec::frame::PROTOCOL_HEADER;
use deepmq_amqp::codec::method::{LongStr, channel, connection};
use deepmq_amqp::codec::{Method, MethodId};
use deepmq_model::{Table, Value};
use std::net::SocketAddr;

/// What a client says while it opens a connection.
#[derive(Debug, Clone)]
pub struct Handshake {
    /// In start-ok.
    pub client_properties: Table,
    /// In start-ok.
    pub mechanism: &'static str,
    /// In start-ok.
    pub response: Vec<u8>,
    /// In tune-ok; none: what the broker offers.
    pub tune: Option<connection::TuneOk>,
    /// In open.
    pub vhost: &'static str,
}

impl Default for Handshake {
    /// The user `guest`, all capabilities, vhost `/`.
    fn default() -> Self {
        let all = ["authentication_failure_close", "connection.blocked", "consumer_cancel_notify"];
        Self::capable_of(&all)
    }
}

impl Handshake {
    /// As default, but with these capabilities only.
    pub fn capable_of(capabilities: &[&str]) -> Self {
        let capabilities: Table = capabilities.iter().map(|&name| (name, Value::Bool(true))).collect();
        Self {
            client_properties: [("capabilities", Value::Table(capabilities))].into_iter().collect(),
            mechanism: "PLAIN",
            response: b"\0guest\0guest".to_vec(),
            tune: None,
            vhost: "/",
        }
    }

    /// Logs in as this user.
    #[must_use]
    pub fn login(self, user: &str, password: &str) -> Self {
        Self { response: format!("\0{user}\0{password}").into_bytes(), ..self }
    }

    /// Settles these limits.
    #[must_use]
    pub fn tune(self, channel_max: u16, frame_max: u32, heartbeat: u16) -> Self {
        Self { tune: Some(connection::TuneOk { channel_max, frame_max, heartbeat }), ..self }
    }
}

impl RawPeer {
    /// Connects and opens.
    pub async fn open(address: SocketAddr, handshake: &Handshake) -> Self {
        let mut peer = Self::connect(address).await;
        peer.start(handshake).await;
        peer.tune(handshake).await;
        peer.send(0, connection::Open { vhost: handshake.vhost, ..Default::default() }).await;
        peer.expect(0, connection::OpenOk::default()).await;
        peer
    }

    /// Sends the protocol header, takes start and sends start-ok.
    pub async fn start(&mut self, handshake: &Handshake) -> connection::Start<'static> {
        self.send_bytes(&PROTOCOL_HEADER).await;
        let Method::Connection(connection::Method::Start(start)) = self.method(0).await else {
            panic!("expected connection.start")
        };
        let start_ok = connection::StartOk {
            client_properties: handshake.client_properties.clone(),
            mechanism: handshake.mechanism,
            response: LongStr(&handshake.response),
            locale: "en_US",
        };
        self.send(0, start_ok).await;
        start
    }

    /// Takes tune and sends tune-ok.
    pub async fn tune(&mut self, handshake: &Handshake) -> connection::Tune {
        let Method::Connection(connection::Method::Tune(tune)) = self.method(0).await else {
            panic!("expected connection.tune")
        };
        let connection::Tune { channel_max, frame_max, heartbeat } = tune;
        let offered = connection::TuneOk { channel_max, frame_max, heartbeat };
        let tune_ok = handshake.tune.clone().unwrap_or(offered);
        self.frame_max = tune_ok.frame_max;
        self.send(0, tune_ok).await;
        tune
    }

    /// Opens a channel.
    pub async fn open_channel(&mut self, number: u16) {
        self.send(number, channel::Open::default()).await;
        self.expect(number, channel::OpenOk::default()).await;
    }

    /// Closes a channel.
    pub async fn close_channel(&mut self, number: u16) {
        self.send(number, channel::Close { reply_code: 200, ..Default::default() }).await;
        self.expect(number, channel::CloseOk {}).await;
    }

    /// Closes the connection and waits for its end.
    pub async fn close(mut self) {
        self.send(0, connection::Close { reply_code: 200, ..Default::default() }).await;
        self.expect(0, connection::CloseOk {}).await;
        self.expect_eof().await;
    }

    /// The bytes of a method frame, to be sent in pieces or together with others.
    pub fn bytes_of<'m>(channel: u16, method: impl Into<Method<'m>>) -> Vec<u8> {
        encoded(channel, method)
    }

    /// No method, as a close says that nothing in particular caused it.
    pub const NO_METHOD: MethodId = MethodId { class: 0, method: 0 };
}
