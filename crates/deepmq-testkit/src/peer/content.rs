//! Messages as they come: delivered, fetched, returned.
//!
//! Owns putting methods and contents together.

use super::RawPeer;
use super::expect::unexpected;
use deepmq_amqp::codec::Method;
use deepmq_amqp::codec::method::basic;

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Properties, encoded with their flags.
    pub properties: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
    /// How long the frames of the body were, in bytes.
    pub frame_sizes: Vec<usize>,
}

/// A delivered message.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The method.
    pub deliver: basic::Deliver<'static>,
    /// The message.
    pub content: Content,
}

/// A fetched message.
#[derive(Debug, Clone, PartialEq)]
pub struct Got {
    /// The method.
    pub get_ok: basic::GetOk<'static>,
    /// The message.
    pub content: Content,
}

/// A returned message.
#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// The method.
    pub returned: basic::Return<'static>,
    /// The message.
    pub content: Content,
}

impl Delivery {
    /// The body as text, with the tag and whether it was delivered before.
    pub fn seen(&self) -> (&str, u64, bool) {
        let body = str::from_utf8(&self.content.body).expect("the test published text");
        (body, self.deliver.delivery_tag, self.deliver.redelivered)
    }
}

impl Got {
    /// The body as text, with the tag and whether it was delivered before.
    pub fn seen(&self) -> (&str, u64, bool) {
        let body = str::from_utf8(&self.content.body).expect("the test published text");
        (body, self.get_ok.delivery_tag, self.get_ok.redelivered)
    }
}

impl RawPeer {
    /// The delivery that must come next.
    pub async fn delivery(&mut self, channel: u16) -> Delivery {
        match self.method(channel).await {
            Method::Basic(basic::Method::Deliver(deliver)) => {
                Delivery { deliver, content: self.content(channel).await }
            }
            other => unexpected("a delivery", &other),
        }
    }

    /// So many deliveries: bodies, delivery tags and whether they were delivered before.
    pub async fn deliveries(&mut self, channel: u16, count: usize) -> Vec<(String, u64, bool)> {
        let mut seen = Vec::with_capacity(count);
        for _ in 0..count {
            let delivery = self.delivery(channel).await;
            let (body, tag, redelivered) = delivery.seen();
            seen.push((body.to_owned(), tag, redelivered));
        }
        seen
    }

    /// The returned message that must come next.
    pub async fn returned(&mut self, channel: u16) -> Returned {
        match self.method(channel).await {
            Method::Basic(basic::Method::Return(returned)) => {
                Returned { returned, content: self.content(channel).await }
            }
            other => unexpected("a return", &other),
        }
    }

    /// Fetches a message; none if there is none.
    pub async fn get(&mut self, channel: u16, queue: &str, no_ack: bool) -> Option<Got> {
        match self.call(channel, basic::Get { ticket: 0, queue, no_ack }).await {
            Method::Basic(basic::Method::GetOk(get_ok)) => {
                Some(Got { get_ok, content: self.content(channel).await })
            }
            Method::Basic(basic::Method::GetEmpty(_)) => None,
            other => unexpected("a message or none", &other),
        }
    }
}
