//! Changes of what is durable beside messages, as they are kept: in the journal one by one, in the snapshot one after the
//! other.
//!
//! Owns their encoding, which is that of AMQP's short strings and tables, so that arguments come back exactly as they
//! were; edits of the registry are JSON among them. Must not know when or where they are kept.

use crate::registry::Edit;
use deepmq_model::message::bytes::{Malformed, Reader, Writer};
use deepmq_model::message::table;
use deepmq_model::topology::{Exchange, ExchangeKind, ExchangeSpec, Queue, ResourceKind};
use deepmq_model::{Name, Table};

/// A change of one vhost, or of the registry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// The vhost; empty for the registry.
    pub(crate) vhost: Name,
    /// What changed.
    pub(crate) what: What,
}

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// An exchange was declared.
    Exchange { name: Name, spec: ExchangeSpec },
    /// It is gone.
    NoExchange { name: Name },
    /// A queue was declared; `number` is how the store knows it.
    Queue { name: Name, number: u64, auto_delete: bool, arguments: Table },
    /// It is gone.
    NoQueue { name: Name },
    /// A binding was made.
    Binding(Binding),
    /// It is gone.
    NoBinding(Binding),
    /// The registry was edited.
    Registry(Edit),
}

/// A binding between two durable ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Binding {
    pub(crate) source: Name,
    pub(crate) to: ResourceKind,
    pub(crate) destination: Name,
    pub(crate) key: Box<[u8]>,
    pub(crate) arguments: Table,
}

const EXCHANGE: u8 = 1;
const NO_EXCHANGE: u8 = 2;
const QUEUE: u8 = 3;
const NO_QUEUE: u8 = 4;
const BINDING: u8 = 5;
const NO_BINDING: u8 = 6;
const REGISTRY: u8 = 7;

const UNKNOWN: Malformed = Malformed::new("the kind of a change is unknown");
const UNKNOWN_EDIT: Malformed = Malformed::new("an edit of users, vhosts or policies is unknown");

impl What {
    /// The declaration of an exchange.
    pub(crate) fn exchange(exchange: &Exchange) -> Self {
        let spec = ExchangeSpec {
            kind: exchange.kind,
            durable: exchange.durable,
            auto_delete: exchange.auto_delete,
            internal: exchange.internal,
            arguments: exchange.arguments.clone(),
        };
        Self::Exchange { name: exchange.name.clone(), spec }
    }

    /// The declaration of a queue.
    pub(crate) fn queue(queue: &Queue, number: u64) -> Self {
        Self::Queue {
            name: queue.name.clone(),
            number,
            auto_delete: queue.auto_delete,
            arguments: queue.arguments.clone(),
        }
    }
}

impl Change {
    /// An edit of the registry.
    pub(crate) fn registry(edit: Edit) -> Self {
        Self { vhost: "".into(), what: What::Registry(edit) }
    }

    /// Appends the change.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.short_text(&self.vhost);
        match &self.what {
            What::Exchange { name, spec } => {
                writer.u8(EXCHANGE);
                writer.short_text(name);
                writer.short_text(spec.kind.name());
                writer.bits([spec.durable, spec.auto_delete, spec.internal]);
                table::write(&spec.arguments, &mut writer);
            }
            What::Queue { name, number, auto_delete, arguments } => {
                writer.u8(QUEUE);
                writer.short_text(name);
                writer.u64(*number);
                writer.bits([*auto_delete]);
                table::write(arguments, &mut writer);
            }
            What::NoExchange { name } => {
                writer.u8(NO_EXCHANGE);
                writer.short_text(name);
            }
            What::NoQueue { name } => {
                writer.u8(NO_QUEUE);
                writer.short_text(name);
            }
            What::Binding(binding) => {
                writer.u8(BINDING);
                binding.encode(&mut writer);
            }
            What::NoBinding(binding) => {
                writer.u8(NO_BINDING);
                binding.encode(&mut writer);
            }
            What::Registry(edit) => {
                writer.u8(REGISTRY);
                writer.long(&edit.encode());
            }
        }
    }

    /// Reads the next change.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let vhost = reader.short_text()?.into();
        let what = match reader.u8()? {
            EXCHANGE => decode_exchange(reader)?,
            NO_EXCHANGE => What::NoExchange { name: reader.short_text()?.into() },
            QUEUE => {
                let (name, number) = (reader.short_text()?.into(), reader.u64()?);
                let [auto_delete] = reader.bits()?;
                What::Queue { name, number, auto_delete, arguments: table::decode(reader)? }
            }
            NO_QUEUE => What::NoQueue { name: reader.short_text()?.into() },
            BINDING => What::Binding(Binding::decode(reader)?),
            NO_BINDING => What::NoBinding(Binding::decode(reader)?),
            REGISTRY => What::Registry(Edit::decode(reader.long()?).ok_or(UNKNOWN_EDIT)?),
            _ => return Err(UNKNOWN),
        };
        Ok(Self { vhost, what })
    }

    /// Reads changes that follow one another.
    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        let (mut reader, mut changes) = (Reader::new(bytes), Vec::new());
        while !reader.is_empty() {
            changes.push(Self::decode(&mut reader)?);
        }
        Ok(changes)
    }
}

fn decode_exchange(reader: &mut Reader<'_>) -> Result<What, Malformed> {
    let name = reader.short_text()?.into();
    let kind: ExchangeKind = reader.short_text()?.parse().map_err(|_| UNKNOWN)?;
    let [durable, auto_delete, internal] = reader.bits()?;
    let arguments = table::decode(reader)?;
    Ok(What::Exchange { name, spec: ExchangeSpec { kind, durable, auto_delete, internal, arguments } })
}

impl Binding {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.short_text(&self.source);
        writer.bits([self.to == ResourceKind::Exchange]);
        writer.short_text(&self.destination);
        writer.short(&self.key);
        table::write(&self.arguments, writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let source = reader.short_text()?.into();
        let [exchange] = reader.bits()?;
        Ok(Self {
            source,
            to: if exchange { ResourceKind::Exchange } else { ResourceKind::Queue },
            destination: reader.short_text()?.into(),
            key: reader.short()?.into(),
            arguments: table::decode(reader)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepmq_model::Value;

    #[test]
    fn every_change_comes_back_as_it_was() {
        let arguments: Table =
            [("x-int", Value::I8(-3)), ("x-bytes", Value::Bytes([0, 255].into()))].into_iter().collect();
        let binding = Binding {
            source: "amq.topic".into(),
            to: ResourceKind::Queue,
            destination: "q".into(),
            key: [b'a', 0xff].into(),
            arguments: arguments.clone(),
        };
        let spec = ExchangeSpec {
            internal: true,
            arguments: arguments.clone(),
            ..ExchangeSpec::durable(ExchangeKind::Headers)
        };
        let changes: Vec<Change> = [
            What::Exchange { name: "x".into(), spec },
            What::Queue { name: "q".into(), number: u64::MAX - 1, auto_delete: true, arguments },
            What::Binding(binding.clone()),
            What::NoBinding(Binding { to: ResourceKind::Exchange, ..binding }),
            What::NoQueue { name: "q".into() },
            What::NoExchange { name: "x".into() },
            What::Registry(Edit::NoVhost { name: "/".into() }),
        ]
        .map(|what| Change { vhost: "/".into(), what })
        .into();
        let mut encoded = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut encoded));
        assert_eq!(Change::decode_all(&encoded), Ok(changes));
        for cut in 1..encoded.len() {
            // A cut between two changes is no error, one within a change is; neither may panic.
            let _ = Change::decode_all(&encoded[..cut]);
        }
        assert!(Change::decode_all(&encoded[..encoded.len() - 1]).is_err());
    }
}
