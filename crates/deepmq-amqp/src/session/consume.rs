//! Consuming: qos, consume, cancel, get.
//!
//! Owns the order of announcing a consumer and feeding it. Must not know how messages are handed out.

#[cfg(test)]
mod tests;

use super::reply_to::REPLY_TO;
use super::settle::Verdict;
use super::{Failure, Session, clean, generated_name};
use crate::codec::ReplyCode;
use crate::codec::method::basic;
use crate::outbox::{NewConsumer, OutConsumer, shown_properties};
use crate::translate;
use deepmq_broker::events::Event;
use deepmq_broker::message::MessageRef;
use deepmq_broker::queue::{Fetched, Outcome, Queue, SubscribeError, Unsubscribed};
use deepmq_broker::subscriber::{ConsumerKey, Subscription};
use deepmq_model::access::Permission;
use deepmq_model::queue::{ConsumeError, ConsumerSpec};
use deepmq_model::topology::{Resource, ResourceKind, TopologyError};
use deepmq_model::{Name, Table};
use std::sync::Arc;

impl Session {
    pub(super) fn on_basic_method(&mut self, number: u16, method: basic::Method<'_>) -> Result<(), Failure> {
        self.channel_mut(number)?;
        let verdict = |tag, multiple, outcome| Verdict { tag, multiple, outcome };
        match method {
            basic::Method::Publish(publish) => self.on_publish(number, &publish),
            basic::Method::Ack(ack) => {
                self.on_verdict(number, verdict(ack.delivery_tag, ack.multiple, Outcome::Ack))
            }
            basic::Method::Nack(nack) => {
                let outcome = Outcome::Nack { requeue: nack.requeue };
                self.on_verdict(number, verdict(nack.delivery_tag, nack.multiple, outcome))
            }
            basic::Method::Reject(reject) => {
                let outcome = Outcome::Reject { requeue: reject.requeue };
                self.on_verdict(number, verdict(reject.delivery_tag, false, outcome))
            }
            basic::Method::Qos(qos) => self.on_qos(number, &qos),
            basic::Method::Consume(consume) => self.on_consume(number, &consume),
            basic::Method::Cancel(cancel) => self.on_cancel(number, &cancel),
            basic::Method::Get(get) => self.on_get(number, &get),
            basic::Method::RecoverAsync(recover) => self.on_recover(number, recover.requeue),
            basic::Method::Recover(recover) => {
                self.on_recover(number, recover.requeue)?;
                self.send(number, basic::RecoverOk {});
                Ok(())
            }
            // The answer to the server's own cancel, which waits for none.
            basic::Method::CancelOk(_) => Ok(()),
            basic::Method::QosOk(_)
            | basic::Method::ConsumeOk(_)
            | basic::Method::Return(_)
            | basic::Method::Deliver(_)
            | basic::Method::GetOk(_)
            | basic::Method::GetEmpty(_)
            | basic::Method::RecoverOk(_) => Err(Failure::unimplemented()),
        }
    }

    fn on_qos(&mut self, number: u16, qos: &basic::Qos) -> Result<(), Failure> {
        if qos.prefetch_size != 0 {
            let text = format!("prefetch_size!=0 ({})", qos.prefetch_size);
            return Err(Failure::hard(ReplyCode::NotImplemented, text));
        }
        if qos.global {
            let unpaused = self.outbox.channel(number, |channel, _| {
                channel.limit_shared(qos.prefetch_count.into());
                channel.unpaused()
            });
            for (queue, consumer) in unpaused.into_iter().flatten() {
                queue.resume(consumer, &mut self.wakes);
            }
        } else {
            self.channel_mut(number)?.prefetch_count = qos.prefetch_count;
            self.outbox.channel(number, |channel, _| channel.note_prefetch(qos.prefetch_count));
        }
        self.send(number, basic::QosOk {});
        Ok(())
    }

    fn on_consume(&mut self, number: u16, consume: &basic::Consume<'_>) -> Result<(), Failure> {
        let vhost = self.vhost()?;
        let queue_name = self.queue_name(number, consume.queue)?;
        if &*queue_name == REPLY_TO {
            return self.on_consume_replies(number, consume);
        }
        self.permit(Permission::Read, ResourceKind::Queue, &queue_name)?;
        let queue =
            vhost.queue(&queue_name, self.id).map_err(|e| translate::topology_error(&e, vhost.name()))?;
        let priority = priority(&consume.arguments, &queue)?;
        let tag: Name = match clean(consume.consumer_tag) {
            tag if tag.is_empty() => generated_name("amq.ctag-", &self.broker),
            tag => tag.as_ref().into(),
        };
        self.check_tag(number, &tag)?;
        let spec = ConsumerSpec {
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            priority,
            prefetch_count: self.channel_mut(number)?.prefetch_count.into(),
        };
        let max = self.broker.limits().consumers_per_channel_max;
        let new = NewConsumer { tag: tag.clone(), queue: queue.clone(), no_ack: consume.no_ack };
        let index = self
            .outbox
            .channel(number, |channel, _| {
                if channel.consumers().count() >= max {
                    let text = format!("reached maximum ({max}) of consumers per channel");
                    return Err(Failure::hard(ReplyCode::NotAllowed, text));
                }
                Ok(channel.add_consumer(new))
            })
            .ok_or_else(|| Failure::hard(ReplyCode::ChannelError, "expected 'channel.open'"))??;
        let key = ConsumerKey { channel: number, index };
        let subscription =
            Subscription { subscriber: self.outbox.clone(), key, connection: self.id, tag: tag.clone() };
        let id = match queue.subscribe(spec, subscription) {
            Ok(id) => id,
            Err(error) => {
                self.outbox.channel(number, |channel, _| channel.remove_consumer(index));
                return Err(subscribe_error(error, &queue));
            }
        };
        self.outbox.channel(number, |channel, frames| {
            channel.accepted(index, id);
            if !consume.no_wait {
                basic::ConsumeOk { consumer_tag: &tag }.encode(number, &mut frames.buf);
            }
        });
        self.broker.events().publish(&Event::ConsumerCreated {
            vhost: vhost.name().clone(),
            queue: queue.name().clone(),
            tag,
        });
        if !consume.no_ack {
            self.expect_settling(&queue);
        }
        queue.resume(id, &mut self.wakes);
        Ok(())
    }

    fn on_cancel(&mut self, number: u16, cancel: &basic::Cancel<'_>) -> Result<(), Failure> {
        let tag = clean(cancel.consumer_tag);
        self.cancel_replies(number, &tag)?;
        let found = self.outbox.channel(number, |channel, _| {
            let index = channel.find(&tag)?;
            Some((index, channel.consumer(index)?.clone()))
        });
        let found = found.flatten();
        // Off the queue first: what is handed out meanwhile still finds its consumer.
        let abandoned = found.as_ref().filter(|(_, consumer)| self.take_off(consumer));
        self.outbox.channel(number, |channel, frames| {
            if let Some((index, _)) = &found {
                channel.remove_consumer(*index);
            }
            if !cancel.no_wait {
                basic::CancelOk { consumer_tag: &tag }.encode(number, &mut frames.buf);
            }
        });
        if let Some((_, consumer)) = abandoned {
            self.vhost()?.delete_if_abandoned(&consumer.queue);
        }
        if let Some((_, consumer)) = &found {
            consumer.queue.hand_over(&mut self.wakes);
        }
        Ok(())
    }

    /// Takes a consumer off its queue; true if it was the last.
    pub(super) fn take_off(&self, consumer: &OutConsumer) -> bool {
        let Some(id) = consumer.id() else { return false };
        let left = consumer.queue.unsubscribe(id);
        if left == Unsubscribed::Unknown {
            return false;
        }
        self.broker.events().publish(&Event::ConsumerCancelled {
            vhost: consumer.queue.vhost().clone(),
            queue: consumer.queue.name().clone(),
            tag: consumer.tag.clone(),
        });
        left == Unsubscribed::Last
    }

    fn on_get(&mut self, number: u16, get: &basic::Get<'_>) -> Result<(), Failure> {
        let vhost = self.vhost()?;
        let name = self.queue_name(number, get.queue)?;
        self.permit(Permission::Read, ResourceKind::Queue, &name)?;
        let queue = vhost.queue(&name, self.id).map_err(|e| translate::topology_error(&e, vhost.name()))?;
        let outbox = &self.outbox;
        let got = queue.fetch(
            get.no_ack,
            |delivery, left| {
                outbox.channel(number, |channel, frames| {
                    channel.count_fetched(get.no_ack, delivery.redelivered);
                    let exchange = String::from_utf8_lossy(delivery.message.exchange());
                    basic::GetOk {
                        delivery_tag: channel.fetched(&queue, delivery.position, get.no_ack),
                        redelivered: delivery.redelivered,
                        exchange: &exchange,
                        routing_key: delivery.message.routing_key(),
                        message_count: u32::try_from(left).unwrap_or(u32::MAX),
                    }
                    .encode(number, &mut frames.buf);
                    let properties = shown_properties(&delivery);
                    let message = MessageRef { properties: &properties, ..delivery.message };
                    frames.content(number, &message);
                });
            },
            &mut self.wakes,
        );
        match got {
            Fetched::Message(()) if get.no_ack => {}
            Fetched::Message(()) => self.expect_settling(&queue),
            Fetched::Empty => self.send(number, basic::GetEmpty::default()),
            Fetched::PagedOut => self.paged_out = Some(queue),
            Fetched::SingleActive => return Err(locked_by_consumer(&queue)),
        }
        Ok(())
    }
}

/// RabbitMQ's `x-priority`: any integer, negative ones included.
fn priority(arguments: &Table, queue: &Queue) -> Result<i32, Failure> {
    let Some(value) = arguments.get("x-priority") else { return Ok(0) };
    let clamp = |n: i64| i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX });
    value.as_integer().map(clamp).ok_or_else(|| {
        Failure::precondition(format!(
            "invalid arg 'x-priority' for queue '{}' in vhost '{}': \"expected integer, got {}\"",
            queue.name(),
            queue.vhost(),
            value.type_name()
        ))
    })
}

/// RabbitMQ's refusal of a fetch from a queue with a single active consumer.
fn locked_by_consumer(queue: &Queue) -> Failure {
    let (name, vhost, kind) = (queue.name(), queue.vhost(), queue.profile().kind);
    let text = format!(
        "cannot obtain access to locked queue '{name}' in vhost '{vhost}'. basic.get operations are not supported by \
         {kind} queues with single active consumer"
    );
    Failure::soft(ReplyCode::ResourceLocked, text)
}

fn subscribe_error(error: SubscribeError, queue: &Arc<Queue>) -> Failure {
    match error {
        SubscribeError::Gone => {
            translate::topology_error(&TopologyError::NotFound(Resource::queue(queue.name())), queue.vhost())
        }
        SubscribeError::Refused(ConsumeError::ExclusiveUse) => Failure::soft(
            ReplyCode::AccessRefused,
            format!("queue '{}' in vhost '{}' in exclusive use", queue.name(), queue.vhost()),
        ),
    }
}
