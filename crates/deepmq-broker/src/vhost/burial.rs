//! The way of dead letters: routed as RabbitMQ does (reference 2.5), placed in their new queues and settled in the old one with
//! one record of the journal.
//!
//! Owns that record. Must not be called with any lock held.

use super::Vhost;
use crate::backlog::BatchSize;
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::message::OwnedMessage;
use crate::queue::Queue;
use crate::subscriber::Wakes;
use deepmq_model::message::bytes::Writer;
use deepmq_model::message::death::{self, Death};
use deepmq_model::queue::DeadLetterTo;
use deepmq_model::topology::{Origin, RouteSet};
use deepmq_storage::{BatchBuilder, Durability};
use std::sync::Arc;

/// Letters as they go on, and which of them each queue gets.
#[derive(Debug, Default)]
struct Mail {
    messages: Vec<OwnedMessage>,
    bags: Vec<(Arc<Queue>, Vec<usize>)>,
}

impl Mail {
    fn put(&mut self, queue: Arc<Queue>, message: usize) {
        match self.bags.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &queue)) {
            Some((_, bag)) => bag.push(message),
            None => self.bags.push((queue, vec![message])),
        }
    }

    /// Hands each queue its letters, and notes for the journal those that are to survive.
    fn hand_over(&self, now: u64, batch: &mut BatchBuilder, wakes: &mut Wakes) {
        let mut indexes: Vec<Option<u32>> = vec![None; self.messages.len()];
        for (queue, bag) in &self.bags {
            let messages = || bag.iter().filter_map(|&at| Some((at, self.messages.get(at)?)));
            let bytes = messages().map(|(_, message)| message.borrow().packed_bytes()).sum();
            let size = BatchSize { count: bag.len(), bytes, expiring: false };
            let published = queue.publish(size, messages().map(|(_, message)| message.borrow()), wakes);
            let (Some(number), Some(first)) = (queue.number(), published.first) else { continue };
            let taken = (0..).zip(messages()).filter(|(index, _)| !published.refused.contains(index));
            for (position, (_, (at, message))) in (first.0..).zip(taken) {
                let Some(index) = indexes.get_mut(at).filter(|_| message.borrow().persistent) else {
                    continue;
                };
                let known = *index.get_or_insert_with(|| message.borrow().journal(now, batch));
                batch.place(number, position, [known]);
            }
        }
    }
}

impl Vhost {
    /// Sends letters of one queue on. They are gone from there after, wherever they went.
    pub(crate) fn send_dead_letters(&self, source: &Arc<Queue>, letters: DeadLetters, wakes: &mut Wakes) {
        let DeadLetters { to, letters } = letters;
        let now = self.home.timers.now();
        let mail = self.sort(source, &to, &letters, now);
        let durable = self.keeping.as_ref().map(|keeping| &keeping.durable);
        // No checkpoint may tell that they have left before the record tells where they are.
        let commit = durable.map(|durable| durable.commits().begin());
        let mut batch = BatchBuilder::new();
        mail.hand_over(now, &mut batch, wakes);
        source.dead_letters_left(&letters, wakes);
        let (Some(durable), Some(commit)) = (durable, commit) else { return };
        wakes.settled.take_into(&mut batch);
        if batch.is_empty() {
            return;
        }
        match durable.append(&mut batch, Durability::Os) {
            Ok(appended) => commit.appended(appended.lsn),
            // The broker stops for the failure itself; the letters are where they died when it starts again.
            Err(error) => tracing::debug!(%error, "dead letters were not journalled"),
        }
    }

    fn sort(&self, source: &Queue, to: &DeadLetterTo, letters: &[DeadLetter], now: u64) -> Mail {
        let (mut mail, mut scratch) = (Mail::default(), RouteSet::new());
        let catalogue = self.catalogue.read();
        for DeadLetter { reason, message, .. } in letters {
            let message = message.borrow();
            let death = Death {
                queue: source.name(),
                reason: *reason,
                seconds: now / 1000,
                exchange: message.exchange(),
                routing_key: message.routing_key(),
            };
            let rekeyed = to.routing_key.is_some();
            let Ok(letter) = death::bury(message.properties, message.dead_letter, &death, rekeyed) else {
                // Whatever is in a queue was valid when it was published.
                continue;
            };
            let keys: Vec<&[u8]> = match &to.routing_key {
                Some(key) => vec![key],
                None => letter.keys.iter().map(|key| &**key).collect(),
            };
            let mut headers = || Some(letter.headers.clone());
            let exchange = to.exchange.as_bytes();
            let routed =
                catalogue.topology.route_keys(exchange, &keys, Origin::Broker, &mut headers, &mut scratch);
            if routed.is_err() {
                tracing::debug!(exchange = &*to.exchange, "there is no such exchange for dead letters");
                continue;
            }
            let queues = scratch.queues().iter().filter_map(|&id| catalogue.queue(id).cloned());
            let mut queues = queues.filter(|queue| !letter.goes_round(queue.name())).peekable();
            if queues.peek().is_none() {
                continue;
            }
            let key = keys.first().copied().unwrap_or_default();
            mail.messages.push(OwnedMessage {
                address: address(exchange, key),
                properties: letter.properties.clone(),
                dead_letter: true,
                ..message.into()
            });
            let at = mail.messages.len() - 1;
            queues.for_each(|queue| mail.put(queue, at));
        }
        mail
    }
}

fn address(exchange: &[u8], key: &[u8]) -> Vec<u8> {
    let mut address = Vec::with_capacity(2 + exchange.len() + key.len());
    let mut writer = Writer::new(&mut address);
    writer.short(exchange);
    writer.short(key);
    address
}
