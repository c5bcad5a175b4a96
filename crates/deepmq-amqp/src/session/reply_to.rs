//! Direct reply-to: requests whose replies come back over the channel they were sent on, without a queue.
//!
//! Owns RabbitMQ's rules and texts for the pseudo-queue (reference 1.6, 2.3). Must not know how a reply finds its way.

use super::{Failure, Session, clean, generated_name};
use crate::codec::ReplyCode;
use crate::codec::method::{basic, queue};
use deepmq_broker::vhost::Expecting;
use deepmq_model::Name;
use deepmq_model::message::properties;

/// What a client consumes from and gives as reply-to; with a dot and a secret after it, the address of one channel.
pub(super) const REPLY_TO: &str = "amq.rabbitmq.reply-to";
const PREFIX: &str = "amq.rabbitmq.reply-to.";

/// Whether this is the address of a channel that waits, or waited, for replies.
#[inline]
pub(super) fn is_address(routing_key: &[u8]) -> bool {
    routing_key.starts_with(PREFIX.as_bytes())
}

/// Whether the name is none of a real queue.
pub(super) fn is_pseudo(queue: &str) -> bool {
    queue == REPLY_TO || is_address(queue.as_bytes())
}

/// A channel's consumer of replies.
#[derive(Debug)]
pub(super) struct ReplyConsumer {
    tag: Name,
    expecting: Expecting,
}

impl Session {
    pub(super) fn on_consume_replies(
        &mut self,
        number: u16,
        consume: &basic::Consume<'_>,
    ) -> Result<(), Failure> {
        if !consume.no_ack {
            return Err(Failure::precondition("reply consumer cannot acknowledge"));
        }
        if self.channel_mut(number)?.replies.is_some() {
            return Err(Failure::precondition("reply consumer already set"));
        }
        let tag: Name = match clean(consume.consumer_tag) {
            tag if tag.is_empty() => generated_name("amq.ctag-", &self.broker),
            tag => tag.as_ref().into(),
        };
        self.check_tag(number, &tag)?;
        self.outbox.channel(number, |channel, frames| {
            channel.expect_replies(Some(&tag));
            if !consume.no_wait {
                basic::ConsumeOk { consumer_tag: &tag }.encode(number, &mut frames.buf);
            }
        });
        let address = generated_name(PREFIX, &self.broker);
        let expecting = self.vhost()?.expect_replies(address, self.outbox.clone(), number);
        self.channel_mut(number)?.replies = Some(ReplyConsumer { tag, expecting });
        Ok(())
    }

    /// Refuses a consumer tag that is taken.
    pub(super) fn check_tag(&mut self, number: u16, tag: &str) -> Result<(), Failure> {
        let for_replies =
            self.channel_mut(number)?.replies.as_ref().is_some_and(|replies| &*replies.tag == tag);
        let taken = self.outbox.channel(number, |channel, _| channel.find(tag).is_some()).unwrap_or(false);
        if taken || for_replies {
            let text = format!("attempt to reuse consumer tag '{tag}'");
            return Err(Failure::hard(ReplyCode::NotAllowed, text));
        }
        Ok(())
    }

    /// Cancels the consumer of replies, if this is its tag.
    pub(super) fn cancel_replies(&mut self, number: u16, tag: &str) -> Result<(), Failure> {
        let replies = &mut self.channel_mut(number)?.replies;
        if replies.take_if(|replies| &*replies.tag == tag).is_some() {
            self.outbox.channel(number, |channel, _| channel.expect_replies(None));
        }
        Ok(())
    }

    /// The properties of a request with the channel's own address as reply-to.
    pub(super) fn with_own_address(&mut self, number: u16, encoded: &[u8]) -> Result<Vec<u8>, Failure> {
        let Some(replies) = &self.channel_mut(number)?.replies else {
            return Err(Failure::precondition("fast reply consumer does not exist"));
        };
        Ok(properties::with_reply_to(encoded, replies.expecting.address().as_bytes()))
    }

    /// Answers a declaration of the pseudo-queue: it is there as long as its channel waits.
    pub(super) fn on_declare_replies(
        &mut self,
        number: u16,
        name: &Name,
        no_wait: bool,
    ) -> Result<(), Failure> {
        let vhost = self.vhost()?;
        if &**name != REPLY_TO && !vhost.expects_replies(name) {
            let text = format!("no queue '{name}' in vhost '{}'", vhost.name());
            return Err(Failure::soft(ReplyCode::NotFound, text));
        }
        self.channel_mut(number)?.last_queue = Some(name.clone());
        if !no_wait {
            self.send(number, queue::DeclareOk { queue: name, message_count: 0, consumer_count: 1 });
        }
        Ok(())
    }
}

/// Refuses to bind or unbind the pseudo-queue.
pub(super) fn refuse_binding(queue: &str) -> Result<(), Failure> {
    if is_pseudo(queue) {
        let text = "cannot bind or unbind to a volatile (direct reply-to) queue";
        return Err(Failure::soft(ReplyCode::AccessRefused, text));
    }
    Ok(())
}
