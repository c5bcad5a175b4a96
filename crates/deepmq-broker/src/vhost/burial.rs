//! The way of dead letters: routed as RabbitMQ does (reference 2.5), placed in their new queues and settled in the old one with
//! one record of the journal.
//!
//! Owns that record, and which letters stay where they died: with the strategy at-least-once, those that not every queue has
//! taken. Must not be called with any lock held.

use super::Vhost;
use crate::backlog::BatchSize;
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::message::OwnedMessage;
use crate::queue::{Published, Queue};
use crate::subscriber::Wakes;
use deepmq_model::message::bytes::Writer;
use deepmq_model::message::death::{self, Death};
use deepmq_model::queue::DeadLetterTo;
use deepmq_model::topology::{Origin, RouteSet};
use deepmq_storage::{BatchBuilder, Durability};
use std::sync::{Arc, Weak};

/// A letter as it goes on, and what becomes of it.
#[derive(Debug, Default)]
struct Outbound {
    /// None: it goes nowhere.
    message: Option<OwnedMessage>,
    /// It must arrive, and not every queue has taken it, or there is none.
    stays: bool,
    /// Queues that took it, if it must arrive.
    reached: Vec<Weak<Queue>>,
}

/// Letters, and which of them each queue gets, by their places.
#[derive(Debug, Default)]
struct Mail {
    letters: Vec<Outbound>,
    bags: Vec<(Arc<Queue>, Vec<usize>)>,
    /// They must arrive: who does not take them is remembered.
    must_arrive: bool,
    /// Queues that refused letters, and what the shortest body takes, in bytes.
    refused: Vec<(Arc<Queue>, u64)>,
}

impl Mail {
    fn put(&mut self, queue: Arc<Queue>, place: usize) {
        match self.bags.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &queue)) {
            Some((_, bag)) => bag.push(place),
            None => self.bags.push((queue, vec![place])),
        }
    }

    /// A letter is routed nowhere. If it must arrive it stays; but that some queue has it is enough, if the others are no more.
    fn goes_nowhere(&mut self, place: usize, reached: &[Weak<Queue>]) {
        if let Some(letter) = self.letters.get_mut(place) {
            letter.stays = self.must_arrive && reached.is_empty();
        }
    }

    /// Hands each queue its letters, and notes for the journal those that are to survive.
    fn hand_over(&mut self, now: u64, batch: &mut BatchBuilder, wakes: &mut Wakes) {
        let mut indexes: Vec<Option<u32>> = vec![None; self.letters.len()];
        for (queue, bag) in std::mem::take(&mut self.bags) {
            let message = |&place: &usize| Some((place, self.letters.get(place)?.message.as_ref()?.borrow()));
            let messages = || bag.iter().filter_map(message);
            let bytes = messages().map(|(_, message)| message.packed_bytes()).sum();
            let size = BatchSize { count: bag.len(), bytes, expiring: false };
            let published = queue.publish(size, messages().map(|(_, message)| message), wakes);
            if let (Some(number), Some(first)) = (queue.number(), published.first) {
                let taken = (0..).zip(messages()).filter(|(index, _)| !published.has_refused(*index));
                for (position, (_, (place, message))) in (first.0..).zip(taken) {
                    let Some(index) = indexes.get_mut(place).filter(|_| message.persistent) else { continue };
                    let known = *index.get_or_insert_with(|| message.journal(now, batch));
                    batch.place(number, position, [known]);
                }
            }
            if self.must_arrive {
                self.note(&queue, &bag, &published);
            }
        }
    }

    /// Notes what a queue took, and what it did not: all if it was deleted, or those it refused.
    fn note(&mut self, queue: &Arc<Queue>, bag: &[usize], published: &Published) {
        let mut least = None;
        for (index, &place) in (0..).zip(bag) {
            let Some(letter) = self.letters.get_mut(place) else { continue };
            if published.first.is_some() && !published.has_refused(index) {
                letter.reached.push(Arc::downgrade(queue));
                continue;
            }
            letter.stays = true;
            let bytes = letter.message.as_ref().map_or(0, |message| message.body.len() as u64);
            least = Some(least.map_or(bytes, |least: u64| least.min(bytes)));
        }
        self.refused.extend(least.map(|bytes| (queue.clone(), bytes)));
    }

    /// Divides letters into those that stay, with what has them already, and those that leave.
    fn divide(&mut self, letters: Vec<DeadLetter>) -> (Vec<DeadLetter>, Vec<DeadLetter>) {
        let (mut stay, mut leave) = (Vec::new(), Vec::new());
        for (mut letter, outbound) in letters.into_iter().zip(&mut self.letters) {
            if outbound.stays {
                letter.reached.append(&mut outbound.reached);
                stay.push(letter);
            } else {
                leave.push(letter);
            }
        }
        (stay, leave)
    }
}

impl Vhost {
    /// Sends letters of one queue on. They are gone from there after, wherever they went; but for those that stay.
    pub(crate) fn send_dead_letters(&self, source: &Arc<Queue>, letters: DeadLetters, wakes: &mut Wakes) {
        let DeadLetters { to, mut letters } = letters;
        let (now, generation) = (self.home.timers.now(), self.generation());
        let mut mail = self.sort(source, &to, &letters, now);
        let durable = self.keeping.as_ref().map(|keeping| &keeping.durable);
        // No checkpoint may tell that they have left before the record tells where they are.
        let commit = durable.map(|durable| durable.commits().begin());
        let mut batch = BatchBuilder::new();
        mail.hand_over(now, &mut batch, wakes);
        if mail.letters.iter().any(|letter| letter.stays) {
            let (stay, leave) = mail.divide(letters);
            letters = leave;
            source.dead_letters_stay(stay, now, wakes);
            mail.refused.iter().for_each(|(queue, bytes)| queue.tell_of_room(source, *bytes));
            self.note_held(source, generation);
        }
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

    /// A queue holds letters that a change of the topology since this generation may help.
    fn note_held(&self, source: &Arc<Queue>, generation: u64) {
        {
            let mut holders = self.holders.lock();
            if !holders.iter().any(|known| known.as_ptr() == Arc::as_ptr(source)) {
                holders.push(Arc::downgrade(source));
            }
        }
        if self.generation() != generation {
            source.stir();
        }
    }

    /// Routes may be others now.
    pub(super) fn stir_holders(&self) {
        let holders = std::mem::take(&mut *self.holders.lock());
        holders.iter().filter_map(Weak::upgrade).for_each(|queue| queue.stir());
    }

    fn sort(&self, source: &Queue, to: &DeadLetterTo, letters: &[DeadLetter], now: u64) -> Mail {
        let mut mail = Mail { must_arrive: to.at_least_once, ..Mail::default() };
        mail.letters.resize_with(letters.len(), Outbound::default);
        let mut scratch = RouteSet::new();
        let catalogue = self.catalogue.read();
        for (place, DeadLetter { reason, message, reached, .. }) in letters.iter().enumerate() {
            let borrowed = message.borrow();
            let death = Death {
                queue: source.name(),
                reason: *reason,
                seconds: now / 1000,
                exchange: borrowed.exchange(),
                routing_key: borrowed.routing_key(),
            };
            let rekeyed = to.routing_key.is_some();
            let Ok(letter) = death::bury(&message.properties, message.dead_letter, &death, rekeyed) else {
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
                mail.goes_nowhere(place, reached);
                continue;
            }
            let queues = scratch.queues().iter().filter_map(|&id| catalogue.queue(id).cloned());
            let has_it =
                |queue: &Arc<Queue>| reached.iter().any(|known| known.as_ptr() == Arc::as_ptr(queue));
            let queues = queues.filter(|queue| !letter.goes_round(queue.name()));
            let mut queues = queues.filter(|queue| !has_it(queue)).peekable();
            if queues.peek().is_none() {
                mail.goes_nowhere(place, reached);
                continue;
            }
            let key = keys.first().copied().unwrap_or_default();
            queues.for_each(|queue| mail.put(queue, place));
            if let Some(outbound) = mail.letters.get_mut(place) {
                outbound.message = Some(OwnedMessage {
                    address: address(exchange, key),
                    properties: letter.properties,
                    body: message.body.clone(),
                    persistent: message.persistent,
                    dead_letter: true,
                });
            }
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
