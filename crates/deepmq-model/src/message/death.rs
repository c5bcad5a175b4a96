//! What becomes of a message that dies in a queue: the headers that tell of it, and the keys it goes on with.
//!
//! Owns `x-death` and its kin (reference 2.5). Must not know where the dead letter goes, or when messages die.

#[cfg(test)]
mod tests;

use super::bytes::Malformed;
use super::properties::{Properties, Text};
use crate::value::{Table, Value};

const DEATHS: &str = "x-death";
/// The headers that tell of the first and of the last death.
const FIRST: [&str; 3] = ["x-first-death-reason", "x-first-death-queue", "x-first-death-exchange"];
const LAST: [&str; 3] = ["x-last-death-reason", "x-last-death-queue", "x-last-death-exchange"];

/// Why a message died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A consumer rejected it.
    Rejected,
    /// Its time was over.
    Expired,
    /// The queue was too long.
    MaxLen,
    /// It came back too often.
    DeliveryLimit,
}

impl Reason {
    /// As the headers name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLen => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// A death.
#[derive(Debug, Clone, Copy)]
pub struct Death<'a> {
    /// The queue the message died in.
    pub queue: &'a str,
    /// Why.
    pub reason: Reason,
    /// When, in seconds since 1970.
    pub seconds: u64,
    /// The exchange it had been published to.
    pub exchange: &'a [u8],
    /// The routing key it had been published with.
    pub routing_key: &'a [u8],
}

/// What goes on of a message that died.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Its properties, encoded.
    pub properties: Vec<u8>,
    /// The routing keys it had, the main one first, then those of CC and BCC.
    pub keys: Vec<Text>,
    /// Its headers, for exchanges that look at them.
    pub headers: Table,
}

impl Letter {
    /// Whether it has been in this queue before and nobody has rejected it since, so that it would go round for ever.
    pub fn goes_round(&self, queue: &str) -> bool {
        let Some(Value::Array(deaths)) = self.headers.get(DEATHS) else { return false };
        let places = deaths.iter().filter_map(place_of);
        places.take_while(|(_, rejected)| !rejected).any(|(known, _)| *known == *queue.as_bytes())
    }
}

/// Writes a death into the properties of a message. `again` says that the message is a dead letter already: what it tells of
/// deaths is the broker's own word only then. `rekeyed` says that it goes on with another routing key, which ends CC and BCC.
///
/// # Errors
/// The properties are not valid.
pub fn bury(properties: &[u8], again: bool, death: &Death<'_>, rekeyed: bool) -> Result<Letter, Malformed> {
    let mut properties = Properties::decode(properties)?;
    let expiration = properties.expiration.take();
    let mut headers = properties.headers.take().unwrap_or_default();
    let (cc, bcc) = (keys_of(&headers, "CC"), keys_of(&headers, "BCC"));
    let own = std::iter::once(Text::from(death.routing_key));
    let shown: Vec<Text> = own.chain(cc).collect();
    let mut deaths = match headers.remove(DEATHS) {
        Some(Value::Array(deaths)) if again => deaths,
        _ => Vec::new(),
    };
    note(&mut deaths, death, expiration, &shown);
    headers.set(DEATHS, Value::Array(deaths));
    let exchange = Value::Str(death.exchange.into());
    let values = [Value::str(death.reason.name()), Value::str(death.queue), exchange];
    for ((first, last), value) in FIRST.into_iter().zip(LAST).zip(values) {
        if !again || headers.get(first).is_none() {
            headers.set(first, value.clone());
        }
        headers.set(last, value);
    }
    headers.remove("BCC");
    if rekeyed {
        headers.remove("CC");
    }
    properties.headers = Some(headers);
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    let headers = properties.headers.unwrap_or_default();
    Ok(Letter { properties: encoded, keys: shown.into_iter().chain(bcc).collect(), headers })
}

/// Puts a death at the front: one more of those of its queue and reason, or a new one.
fn note(deaths: &mut Vec<Value>, death: &Death<'_>, expiration: Option<Text>, keys: &[Text]) {
    let known = deaths.iter().position(|known| is_of(known, death));
    let entry = match known.map(|at| deaths.remove(at)) {
        Some(Value::Table(mut entry)) => {
            let count = entry.get("count").and_then(Value::as_integer).unwrap_or_default();
            entry.set("count", Value::I64(count.saturating_add(1)));
            entry
        }
        _ => first_of(death, expiration, keys),
    };
    deaths.insert(0, Value::Table(entry));
}

fn first_of(death: &Death<'_>, expiration: Option<Text>, keys: &[Text]) -> Table {
    let mut entry = Table::new();
    if let Some(expiration) = expiration {
        entry.push("original-expiration", Value::Str(expiration));
    }
    entry.push("count", Value::I64(1));
    entry.push("reason", Value::str(death.reason.name()));
    entry.push("queue", Value::str(death.queue));
    entry.push("time", Value::Timestamp(death.seconds));
    entry.push("exchange", Value::Str(death.exchange.into()));
    entry.push("routing-keys", Value::Array(keys.iter().cloned().map(Value::Str).collect()));
    entry
}

fn is_of(known: &Value, death: &Death<'_>) -> bool {
    let Value::Table(entry) = known else { return false };
    let says = |key, value: &str| entry.get(key).and_then(Value::as_str) == Some(value);
    says("queue", death.queue) && says("reason", death.reason.name())
}

/// The queue of a death, and whether the message was rejected there.
fn place_of(death: &Value) -> Option<(&[u8], bool)> {
    let Value::Table(entry) = death else { return None };
    let Some(Value::Str(queue)) = entry.get("queue") else { return None };
    let rejected = entry.get("reason").and_then(Value::as_str) == Some(Reason::Rejected.name());
    Some((queue, rejected))
}

/// The further routing keys in a header.
fn keys_of(headers: &Table, header: &str) -> Vec<Text> {
    let Some(Value::Array(keys)) = headers.get(header) else { return Vec::new() };
    let key = |value: &Value| match value {
        Value::Str(key) => Some(key.clone()),
        _ => None,
    };
    keys.iter().filter_map(key).collect()
}
