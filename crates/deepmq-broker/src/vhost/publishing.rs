//! Publishing one message at a time, for front-ends that have no batch.
//!
//! Owns the order of its effects: route, append, journal. Must not know who publishes; the fast way is a front-end's own.

use super::{ExchangeTraffic, Vhost};
use crate::backlog::BatchSize;
use crate::message::{Body, MessageRef, SHARED_BODY_BYTES_MIN};
use crate::subscriber::Wakes;
use bytes::Bytes;
use deepmq_model::message::bytes::{Reader, Writer};
use deepmq_model::message::carbon::{CarbonFault, carbon};
use deepmq_model::message::{properties, table};
use deepmq_model::topology::{RouteError, RouteSet};
use deepmq_storage::{BatchBuilder, Durability, Lsn};

/// A message to be published.
#[derive(Debug, Clone)]
pub struct Publication<'a> {
    /// The exchange; empty for the default one. At most 255 bytes.
    pub exchange: &'a str,
    /// The routing key, at most 255 bytes.
    pub routing_key: &'a str,
    /// Encoded and valid properties.
    pub properties: &'a [u8],
    /// The body.
    pub body: Bytes,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routed {
    /// How many queues have it.
    pub queues: usize,
    /// The record of the journal to wait for before the publisher is told, if it is to survive a restart.
    pub lsn: Option<Lsn>,
}

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// There is no such exchange, or it is internal.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// What its headers say of further routing keys is malformed.
    #[error("invalid message: {0}")]
    Carbon(#[from] CarbonFault),
}

impl Vhost {
    /// Publishes a message to the queues it is routed to. That there are none is no error.
    ///
    /// # Errors
    /// There is no such exchange, it is internal, or the headers CC and BCC are malformed.
    pub fn publish(&self, message: &Publication<'_>) -> Result<Routed, PublishError> {
        let mut headers = || {
            let encoded = properties::headers(message.properties)?;
            table::decode(&mut Reader::new(encoded)).ok()
        };
        let (exchange, key) = (message.exchange.as_bytes(), message.routing_key.as_bytes());
        let carbon = carbon(message.properties)?;
        let further = carbon.iter().flat_map(|carbon| &carbon.keys).map(|key| &**key);
        let keys: Vec<&[u8]> = std::iter::once(key).chain(further).collect();
        let mut queues = Vec::new();
        self.route_keys(exchange, &keys, &mut headers, &mut RouteSet::new(), &mut queues)?;
        let passed = ExchangeTraffic { published_in: 1, published_out: queues.len() as u64 };
        self.exchange_counters(message.exchange).add(passed);
        let stripped = carbon.as_ref().and_then(|carbon| carbon.stripped.as_deref());
        let mut address = Vec::with_capacity(2 + exchange.len() + key.len());
        let mut writer = Writer::new(&mut address);
        writer.short(exchange);
        writer.short(key);
        let whole = MessageRef {
            address: &address,
            properties: stripped.unwrap_or(message.properties),
            body: if message.body.len() < SHARED_BODY_BYTES_MIN {
                Body::Inline(&message.body)
            } else {
                Body::Shared(&message.body)
            },
            persistent: properties::delivery_mode(message.properties) == Some(2),
            dead_letter: false,
        };
        if exchange.is_empty() && self.reply(key, &whole) {
            return Ok(Routed { queues: 1, lsn: None });
        }
        let expiring = properties::expiration(message.properties).is_some();
        let size = BatchSize { count: 1, bytes: whole.packed_bytes(), expiring };
        let (mut wakes, mut places) = (Wakes::default(), Vec::new());
        for queue in &queues {
            let published = queue.publish(size, std::iter::once(whole), &mut wakes);
            places.extend(queue.number().zip(published.first).filter(|_| whole.persistent));
        }
        let lsn = self.journal(&whole, &places);
        wakes.wake();
        Ok(Routed { queues: queues.len(), lsn })
    }

    /// Journals a persistent message at its places. A failed journal is waited for in vain, and says so then.
    fn journal(
        &self,
        message: &MessageRef<'_>,
        places: &[(u64, deepmq_model::queue::Position)],
    ) -> Option<Lsn> {
        let durable = &self.keeping.as_ref()?.durable;
        if places.is_empty() {
            return None;
        }
        let mut batch = BatchBuilder::default();
        batch.begin();
        let index = message.journal(self.home.timers.now(), &mut batch);
        for (queue, position) in places {
            batch.place(*queue, position.0, [index]);
        }
        let appended = durable.append(&mut batch, Durability::Fsync);
        Some(appended.map_or(Lsn(u64::MAX), |appended| appended.lsn))
    }
}
