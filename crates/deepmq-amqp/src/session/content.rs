//! Publishes whose frames do not all come in one read, or whose body takes several frames.
//!
//! Owns their assembly. What comes whole is taken in place, in `publish`.

use super::publish::Parts;
use super::{Failure, Session};
use crate::codec::content::{BASIC, Header};
use crate::codec::method::basic;
use crate::codec::{Frame, ReplyCode};
use bytes::Bytes;
use deepmq_broker::message::SHARED_BODY_BYTES_MIN;
use deepmq_model::message::properties;

/// Room made for a body before any of it has come, in bytes: what is announced is not yet sent.
const BODY_ROOM_BYTES_MAX: usize = 256 * 1024;

/// A publish in the making.
#[derive(Debug)]
pub(super) struct Content {
    address: Box<[u8]>,
    mandatory: bool,
    header: Option<Announced>,
}

#[derive(Debug)]
struct Announced {
    properties: Box<[u8]>,
    body_bytes: usize,
    body: Vec<u8>,
}

/// A publish that has come whole.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) address: Box<[u8]>,
    pub(super) properties: Box<[u8]>,
    pub(super) body: Bytes,
    pub(super) mandatory: bool,
}

impl Owned {
    pub(super) fn parts(&self) -> Parts<'_> {
        Parts {
            address: &self.address,
            properties: &self.properties,
            body: &self.body,
            mandatory: self.mandatory,
        }
    }

    /// What it takes of memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.address.len() + self.properties.len() + self.body.len()
    }
}

impl Content {
    pub(super) fn new(address: &[u8], mandatory: bool) -> Self {
        Self { address: address.into(), mandatory, header: None }
    }

    /// What has come of the body, in bytes.
    pub(super) fn body_bytes(&self) -> usize {
        self.header.as_ref().map_or(0, |announced| announced.body.len())
    }

    fn finish(self) -> Option<Owned> {
        let Announced { properties, mut body, .. } = self.header?;
        if body.len() >= SHARED_BODY_BYTES_MIN {
            body.shrink_to_fit();
        }
        Some(Owned { address: self.address, properties, body: body.into(), mandatory: self.mandatory })
    }
}

/// A frame that comes where none of its kind is due.
fn stray() -> Failure {
    Failure::hard(ReplyCode::UnexpectedFrame, "expected method frame, got non method frame instead")
}

/// Another frame than the one due in the middle of a publish.
fn unexpected(text: impl Into<String>) -> Failure {
    Failure::hard(ReplyCode::UnexpectedFrame, text).of(basic::Publish::ID)
}

impl Session {
    /// Refuses a method where a header or a body is due.
    pub(super) fn expect_no_content(&mut self, number: u16) -> Result<(), Failure> {
        match &self.channel_mut(number)?.content {
            None => Ok(()),
            Some(Content { header: None, .. }) => {
                Err(unexpected("expected content header for class 60, got non content header frame instead"))
            }
            Some(_) => Err(unexpected("expected content body, got non content body frame instead")),
        }
    }

    pub(super) fn on_header_frame(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        if self.is_deaf(frame.channel) {
            return Ok(());
        }
        let max = self.broker.limits().message_bytes_max;
        let content = self.channels.get_mut(&frame.channel).and_then(|channel| channel.content.as_mut());
        let content = content.ok_or_else(stray)?;
        if content.header.is_some() {
            return Err(unexpected("expected content body, got non content body frame instead"));
        }
        let header = Header::decode(frame.payload).map_err(|what| syntax(&what))?;
        if header.class != BASIC {
            let class = header.class;
            return Err(unexpected(format!(
                "expected content header for class 60, got one for class {class} instead"
            )));
        }
        properties::validate(header.properties).map_err(|what| syntax(&what))?;
        let body_bytes = within(header.body_size, max)?;
        content.header = Some(Announced {
            properties: header.properties.into(),
            body_bytes,
            body: Vec::with_capacity(body_bytes.min(BODY_ROOM_BYTES_MAX)),
        });
        if body_bytes == 0 { self.finish_content(frame.channel) } else { Ok(()) }
    }

    pub(super) fn on_body_frame(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        if self.is_deaf(frame.channel) {
            return Ok(());
        }
        let content = self.channels.get_mut(&frame.channel).and_then(|channel| channel.content.as_mut());
        let content = content.ok_or_else(stray)?;
        let Some(announced) = &mut content.header else {
            return Err(unexpected(
                "expected content header for class 60, got non content header frame instead",
            ));
        };
        if frame.payload.len() > announced.body_bytes - announced.body.len() {
            let text = "content body frame exceeds remaining content size";
            return Err(Failure::hard(ReplyCode::FrameError, text).of(basic::Publish::ID));
        }
        announced.body.extend_from_slice(frame.payload);
        let whole = announced.body.len() == announced.body_bytes;
        self.held.add(frame.payload.len())?;
        if whole { self.finish_content(frame.channel) } else { Ok(()) }
    }

    fn finish_content(&mut self, number: u16) -> Result<(), Failure> {
        let channel = self.channel_mut(number)?;
        let Some(whole) = channel.content.take().and_then(Content::finish) else { return Ok(()) };
        self.held.sub(whole.body.len());
        self.publish_owned(number, whole)
    }
}

fn syntax(what: &impl ToString) -> Failure {
    Failure::hard(ReplyCode::SyntaxError, what.to_string()).of(basic::Publish::ID)
}

/// Checks a body's announced size, in bytes.
fn within(size: u64, max: u64) -> Result<usize, Failure> {
    if size > max {
        let text = format!("message size {size} is larger than configured max size {max}");
        return Err(Failure::precondition(text).of(basic::Publish::ID));
    }
    usize::try_from(size).map_err(|_| Failure::hard(ReplyCode::ResourceError, "message size"))
}
