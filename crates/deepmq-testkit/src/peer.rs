//! A client that is only a socket: it says what it is told to and shows what comes.
//!
//! Owns reading and writing frames, with a bound on every wait. Must not know which answers are right.

mod content;
mod expect;
mod handshake;
mod shorthand;

pub use content::{Content, Delivery, Got, Returned};
pub use handshake::Handshake;

use crate::PATIENCE;
use deepmq_amqp::codec::frame::{self, Kind};
use deepmq_amqp::codec::{Method, content::Header};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const READ_BYTES: usize = 64 * 1024;

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// What the payload is.
    pub kind: Kind,
    /// The channel.
    pub channel: u16,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Received {
    /// The method in it. It borrows from memory that is never freed: a test ends before that matters, and methods are
    /// easy to compare.
    pub fn method(self) -> Method<'static> {
        assert_eq!(self.kind, Kind::Method, "not a method: {self:?}");
        Method::decode(self.payload.leak()).expect("the broker encodes methods well")
    }
}

/// A client's end of a connection.
#[derive(Debug)]
pub struct RawPeer {
    socket: TcpStream,
    /// What was read, and how much of that was taken.
    input: Vec<u8>,
    taken: usize,
    /// The largest frame to send, in bytes.
    frame_max: u32,
}

impl RawPeer {
    /// Connects, and says nothing yet.
    pub async fn connect(address: SocketAddr) -> Self {
        let socket = bounded("a connection", TcpStream::connect(address)).await.expect("the broker listens");
        socket.set_nodelay(true).expect("the socket is open");
        Self { socket, input: Vec::new(), taken: 0, frame_max: 131_072 }
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        bounded("room to send", self.socket.write_all(bytes)).await.expect("the broker reads");
    }

    /// Sends bytes to a broker that may have closed the connection already.
    pub async fn try_send_bytes(&mut self, bytes: &[u8]) {
        // It shows in what is read next.
        let _ = bounded("room to send", self.socket.write_all(bytes)).await;
    }

    /// Sends a method.
    pub async fn send<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        self.send_bytes(&encoded(channel, method)).await;
    }

    /// Sends the header and the body frames of a message.
    pub async fn send_content(&mut self, channel: u16, properties: &[u8], body: &[u8]) {
        let mut out = Vec::new();
        deepmq_amqp::codec::content::write(channel, properties, body, self.frame_max, &mut out);
        self.send_bytes(&out).await;
    }

    /// Says that nothing more comes from here, to a broker that may have closed the connection already.
    pub async fn try_finish_sending(&mut self) {
        // It shows in what is read next.
        let _ = self.socket.shutdown().await;
    }

    /// The next frame, heartbeats left out; none at the end of the connection.
    pub async fn next_frame(&mut self) -> Option<Received> {
        loop {
            let frame = self.next_frame_of_any_kind().await;
            if frame.as_ref().is_none_or(|frame| frame.kind != Kind::Heartbeat) {
                return frame;
            }
        }
    }

    /// The next frame; none at the end of the connection.
    pub async fn next_frame_of_any_kind(&mut self) -> Option<Received> {
        loop {
            let rest = self.input.split_at(self.taken).1;
            if let Some((frame, len)) = frame::parse(rest, 0).expect("the broker encodes frames well") {
                let (kind, channel, payload) = (frame.kind, frame.channel, frame.payload.to_vec());
                self.taken += len;
                return Some(Received { kind, channel, payload });
            }
            if self.read().await == 0 {
                return None;
            }
        }
    }

    /// Bytes as they come, at least one unless the connection has ended.
    pub async fn receive_bytes(&mut self) -> Vec<u8> {
        if self.taken == self.input.len() {
            self.read().await;
        }
        self.input.split_off(std::mem::take(&mut self.taken))
    }

    /// The method that must come next.
    pub async fn method(&mut self, channel: u16) -> Method<'static> {
        let frame = self.next_frame().await.expect("a method, but the connection has ended");
        assert_eq!(frame.channel, channel, "of {frame:?}");
        frame.method()
    }

    /// Sends a method and returns what comes.
    pub async fn call<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) -> Method<'static> {
        self.send(channel, method).await;
        self.method(channel).await
    }

    /// The content that must come next.
    pub async fn content(&mut self, channel: u16) -> Content {
        let frame = self.next_frame().await.expect("a content header, but the connection has ended");
        assert_eq!((frame.kind, frame.channel), (Kind::Header, channel), "of {frame:?}");
        let header = Header::decode(&frame.payload).expect("the broker encodes headers well");
        let size = usize::try_from(header.body_size).expect("a test's message is small");
        let (mut body, mut frame_sizes) = (Vec::with_capacity(size), Vec::new());
        while body.len() < size {
            let frame = self.next_frame().await.expect("a body, but the connection has ended");
            assert_eq!((frame.kind, frame.channel), (Kind::Body, channel));
            frame_sizes.push(frame.payload.len() + frame::EMPTY_FRAME_BYTES);
            body.extend_from_slice(&frame.payload);
        }
        assert_eq!(body.len(), size, "more body than announced");
        Content { properties: header.properties.to_vec(), body, frame_sizes }
    }

    /// Reads once; 0 at the end of the connection, however it ended.
    async fn read(&mut self) -> usize {
        if self.taken > READ_BYTES || self.taken == self.input.len() {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        self.input.reserve(READ_BYTES);
        match bounded("anything", self.socket.read_buf(&mut self.input)).await {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => 0,
            Err(error) => panic!("cannot read: {error}"),
        }
    }
}

/// A method frame as bytes.
pub(crate) fn encoded<'m>(channel: u16, method: impl Into<Method<'m>>) -> Vec<u8> {
    let mut out = Vec::new();
    method.into().encode(channel, &mut out);
    out
}

async fn bounded<T>(what: &str, wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}: nothing within {PATIENCE:?}"))
}
