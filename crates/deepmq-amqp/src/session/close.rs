//! How channels and connections end: who says close, and what may still be said after.
//!
//! Owns the clean-up. Everything a channel holds goes back or away before its close is sent.

use super::channel::Channel;
use super::{Failure, Phase, Session};
use crate::codec::method::{channel, connection};
use crate::codec::{Frame, FrameError, Method, ReplyCode};
use deepmq_broker::events::Event;
use std::time::Duration;

/// How long a peer that sent no frame is given to read why it is closed; RabbitMQ's value.
const LAST_WORD_DELAY: Duration = Duration::from_secs(1);

impl Session {
    /// Ends what a failure ends: the channel, or the connection.
    pub(super) fn fail(&mut self, channel: u16, failure: &Failure) {
        if channel == 0 || failure.code.is_hard() {
            self.close_connection(failure);
        } else {
            self.fail_channel(channel, failure);
        }
    }

    fn fail_channel(&mut self, number: u16, failure: &Failure) {
        let text = failure.text();
        tracing::info!(connection = self.id.0, channel = number, peer = %self.peer, reason = text, "channel closed");
        self.release_channel(number);
        if let Some(channel) = self.channels.get_mut(&number) {
            self.held.sub(channel.held_bytes());
            channel.start_closing();
        }
        self.send(
            number,
            channel::Close {
                reply_code: failure.code.code(),
                reply_text: &text,
                class_id: failure.method.class,
                method_id: failure.method.method,
            },
        );
    }

    /// Sends connection.close and waits for its answer.
    pub(super) fn close_connection(&mut self, failure: &Failure) {
        if self.is_closing() || (!self.takes_frames() && !self.stall.is_full()) {
            return;
        }
        let text = failure.text();
        tracing::warn!(connection = self.id.0, peer = %self.peer, reason = text, "connection closed");
        self.release_everything(&text);
        self.send(
            0,
            connection::Close {
                reply_code: failure.code.code(),
                reply_text: &text,
                class_id: failure.method.class,
                method_id: failure.method.method,
            },
        );
        self.phase = Phase::Closing;
    }

    /// Sends connection.close after bytes that are no frame. What follows them means nothing, the answer included, so none
    /// is waited for.
    pub(super) fn lose_track(&mut self, error: &FrameError) {
        self.close_connection(&Failure::hard(ReplyCode::FrameError, error.to_string()));
        self.phase = Phase::Closed { linger: LAST_WORD_DELAY };
    }

    /// Somebody in the broker wants the connection closed.
    pub(crate) fn handle_close_request(&mut self, reason: &str) {
        match self.phase {
            Phase::Open => self.close_connection(&Failure::hard(ReplyCode::ConnectionForced, reason)),
            Phase::Closing | Phase::Closed { .. } => {}
            _ => self.drop_connection(Duration::ZERO, reason),
        }
    }

    /// Says nothing more.
    pub(super) fn drop_connection(&mut self, linger: Duration, reason: &str) {
        self.release_everything(reason);
        self.phase = Phase::Closed { linger };
    }

    /// The socket is gone.
    pub(crate) fn handle_end(&mut self, reason: &str) {
        self.drop_connection(Duration::ZERO, reason);
        self.outbox.shut();
    }

    /// Gives back all that the connection holds. Does nothing the second time.
    fn release_everything(&mut self, reason: &str) {
        for number in self.channels.drain().map(|(number, _)| number).collect::<Vec<_>>() {
            self.release_channel(number);
        }
        self.stall.clear();
        self.held.clear();
        self.batch.forget_routes();
        if let Some(vhost) = self.vhost.take() {
            self.broker.close_connection(self.id, &vhost, self.ending.as_deref().unwrap_or(reason));
        }
    }

    /// Takes a channel's consumers off their queues, and puts its open deliveries back in order. In this order: what a
    /// queue hands out meanwhile is among the open deliveries then.
    fn release_channel(&mut self, number: u16) {
        let consumers: Option<Vec<_>> =
            self.outbox.channel(number, |channel, _| channel.consumers().cloned().collect());
        let consumers = consumers.unwrap_or_default();
        let abandoned: Vec<_> =
            consumers.iter().filter(|consumer| self.take_off(consumer)).map(|c| c.queue.clone()).collect();
        let Some(mut open) = self.outbox.close_channel(number) else { return };
        open.apply(&mut self.wakes);
        consumers.iter().for_each(|consumer| consumer.queue.hand_over(&mut self.wakes));
        self.wakes.wake();
        if let Some(vhost) = &self.vhost {
            abandoned.iter().for_each(|queue| vhost.delete_if_abandoned(queue));
        }
        self.confirming.forget(number);
        self.broker.events().publish(&Event::ChannelClosed { connection: self.id, channel: number });
    }

    /// Closes a channel on the client's wish.
    pub(super) fn on_channel_close(&mut self, number: u16) {
        self.release_channel(number);
        if let Some(channel) = self.channels.remove(&number) {
            self.held.sub(channel.held_bytes());
        }
        self.send(number, channel::CloseOk {});
    }

    /// Closes the connection on the client's wish.
    pub(super) fn on_connection_close(&mut self, close: &connection::Close<'_>) {
        self.ending.get_or_insert_with(|| format!("{} {}", close.reply_code, close.reply_text));
        self.release_everything("closed by the client");
        self.send(0, connection::CloseOk {});
        self.phase = Phase::Closed { linger: Duration::ZERO };
    }

    /// Whether frames on the channel are ignored but for the end of closing.
    pub(super) fn is_deaf(&self, channel: u16) -> bool {
        self.is_closing() || self.channels.get(&channel).is_some_and(Channel::is_closing)
    }

    /// Takes the only methods that matter on what is being closed.
    pub(super) fn while_closing(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        match Method::decode(frame.payload) {
            Ok(Method::Connection(connection::Method::CloseOk(_))) if self.is_closing() => {
                self.phase = Phase::Closed { linger: Duration::ZERO };
            }
            Ok(Method::Connection(connection::Method::Close(_))) if self.is_closing() => {
                self.send(0, connection::CloseOk {});
            }
            Ok(Method::Channel(channel::Method::CloseOk(_))) if !self.is_closing() => {
                self.channels.remove(&frame.channel);
            }
            Ok(Method::Channel(channel::Method::Close(_))) if !self.is_closing() => {
                self.send(frame.channel, channel::CloseOk {});
            }
            // It would wait for an answer for ever; RabbitMQ does not ignore it either.
            Ok(Method::Channel(channel::Method::Open(_))) if !self.is_closing() => {
                let failure = Failure::hard(ReplyCode::ChannelError, "second 'channel.open' seen");
                return Err(failure.of(channel::Open::ID));
            }
            _ => {}
        }
        Ok(())
    }
}
