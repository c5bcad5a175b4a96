//! A channel: open or closing, its modes, and the methods of its class.
//!
//! Owns what a channel remembers between methods. Its deliveries are the outbox's business.

use super::content::Content;
use super::reply_to::ReplyConsumer;
use super::transaction::Transaction;
use super::{Failure, Session};
use crate::codec::ReplyCode;
use crate::codec::method::{access, channel, confirm};
use deepmq_broker::connection::ChannelSlot;
use deepmq_broker::events::Event;
use deepmq_model::Name;

/// What is promised about the channel's publishes.
#[derive(Debug, Default)]
pub(super) enum Mode {
    #[default]
    Plain,
    /// Each is confirmed; the number of the last one taken.
    Confirm { last: u64 },
    /// They and the settlements wait for tx.commit.
    Tx(Transaction),
}

/// A channel.
#[derive(Debug, Default)]
pub(super) struct Channel {
    closing: bool,
    /// Counts it among its user's.
    _slot: Option<ChannelSlot>,
    /// A publish of which not all frames have come.
    pub(super) content: Option<Content>,
    pub(super) mode: Mode,
    /// The queue that an empty name stands for.
    pub(super) last_queue: Option<Name>,
    /// The prefetch of consumers to come.
    pub(super) prefetch_count: u16,
    /// The consumer of direct replies.
    pub(super) replies: Option<ReplyConsumer>,
}

impl Channel {
    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// What it holds of messages that are not published, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let waiting = match &self.mode {
            Mode::Tx(transaction) => transaction.bytes(),
            Mode::Plain | Mode::Confirm { .. } => 0,
        };
        self.content.as_ref().map_or(0, Content::body_bytes) + waiting
    }

    /// From now on only the answer to channel.close matters.
    pub(super) fn start_closing(&mut self) {
        *self = Self { closing: true, ..Self::default() };
    }
}

impl Session {
    pub(super) fn channel_mut(&mut self, number: u16) -> Result<&mut Channel, Failure> {
        self.channels
            .get_mut(&number)
            .ok_or_else(|| Failure::hard(ReplyCode::ChannelError, "expected 'channel.open'"))
    }

    pub(super) fn on_channel_method(
        &mut self,
        number: u16,
        method: channel::Method<'_>,
    ) -> Result<(), Failure> {
        if number == 0 {
            return Err(Failure::wrong_phase("running"));
        }
        if let channel::Method::Open(_) = method {
            return self.on_channel_open(number);
        }
        let content = self.channel_mut(number)?.content.is_some();
        match method {
            channel::Method::Close(_) => self.on_channel_close(number),
            _ if content => self.expect_no_content(number)?,
            channel::Method::Flow(channel::Flow { active: true }) => {
                self.send(number, channel::FlowOk { active: true });
            }
            channel::Method::Flow(_) => return Err(Failure::hard(ReplyCode::NotImplemented, "active=false")),
            // Late answers to what the server never asks or has forgotten.
            channel::Method::FlowOk(_) | channel::Method::CloseOk(_) => {}
            channel::Method::Open(_) | channel::Method::OpenOk(_) => return Err(Failure::unimplemented()),
        }
        Ok(())
    }

    fn on_channel_open(&mut self, number: u16) -> Result<(), Failure> {
        if self.channels.contains_key(&number) {
            return Err(Failure::hard(ReplyCode::ChannelError, "second 'channel.open' seen"));
        }
        // As RabbitMQ has it, the limit is on how many there are, not on their numbers.
        let (open, max) = (self.channels.len(), self.tuning.channel_max);
        if open >= usize::from(max) {
            let text =
                format!("number of channels opened ({open}) has reached the negotiated channel_max ({max})");
            return Err(Failure::hard(ReplyCode::NotAllowed, text));
        }
        let user = self.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
        let slot = self.broker.admit_channel(&user);
        let slot = slot.map_err(|refused| Failure::hard(ReplyCode::NotAllowed, refused.to_string()))?;
        let prefetch_count = self.broker.config().default_consumer_prefetch;
        self.channels.insert(number, Channel { _slot: Some(slot), prefetch_count, ..Channel::default() });
        self.outbox.open_channel(number);
        self.outbox.channel(number, |channel, _| channel.note_prefetch(prefetch_count));
        self.broker.events().publish(&Event::ChannelOpened { connection: self.id, channel: number });
        self.send(number, channel::OpenOk::default());
        Ok(())
    }

    pub(super) fn on_access_method(
        &mut self,
        number: u16,
        method: access::Method<'_>,
    ) -> Result<(), Failure> {
        self.channel_mut(number)?;
        match method {
            access::Method::Request(_) => {
                self.send(number, access::RequestOk { ticket: 1 });
                Ok(())
            }
            access::Method::RequestOk(_) => Err(Failure::unimplemented()),
        }
    }

    pub(super) fn on_confirm_method(&mut self, number: u16, method: confirm::Method) -> Result<(), Failure> {
        let channel = self.channel_mut(number)?;
        let confirm::Method::Select(select) = method else { return Err(Failure::unimplemented()) };
        match channel.mode {
            Mode::Plain => {
                channel.mode = Mode::Confirm { last: 0 };
                self.outbox.channel(number, |channel, _| channel.confirm_from_now());
            }
            Mode::Confirm { .. } => {}
            Mode::Tx(_) => return Err(Failure::precondition("cannot switch from tx to confirm mode")),
        }
        if !select.no_wait {
            self.send(number, confirm::SelectOk {});
        }
        Ok(())
    }
}
