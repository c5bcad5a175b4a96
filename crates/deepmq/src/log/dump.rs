//! `deepmq log dump`.
//!
//! Owns the lines and which of them are asked for. Must not know how a directory is read.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use anyhow::{anyhow, bail};
use base64ct::{Base64, Encoding};
use deepmq_broker::decode_page;
use deepmq_broker::durable::QueueNames;
use deepmq_broker::message::{Body, MessageRef};
use deepmq_storage::{BlockRef, Dumped, RangeSet, Seam, dump};
use serde::Serialize;
use serde_json::Value;

use super::amqp_json::{properties, text};
use super::{Dump, Outcome};

/// One line. Fields that a type does not have are left out.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    queue: Owner<'a>,
    seq: u64,
    #[serde(flatten)]
    rest: Rest,
}

/// Whose line it is.
#[derive(Debug, Serialize)]
struct Owner<'a> {
    vhost: Option<&'a str>,
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Rest {
    Nothing {},
    Message { exchange: Value, routing_key: Value, properties: Value, data: String, checksum: String },
}

/// What is printed, and what was so far.
struct Printer<'a, W> {
    asked: &'a Dump,
    out: &'a mut W,
    told: io::Result<()>,
    names: QueueNames,
    damage: Vec<String>,
    /// A listing beside a running broker may come to the same message twice.
    printed: BTreeMap<u64, RangeSet>,
}

/// Prints what is asked for; returns also whether printing worked.
pub(super) fn run(asked: &Dump, out: &mut impl Write) -> anyhow::Result<(io::Result<()>, Outcome)> {
    let mut printer = Printer {
        asked,
        out,
        told: Ok(()),
        names: QueueNames::default(),
        damage: Vec::new(),
        printed: BTreeMap::new(),
    };
    dump(&Seam::real(), &asked.dir, |piece| printer.piece(&piece))?;
    let Printer { told, names, damage, printed, .. } = printer;
    let (vhost, dir) = (asked.vhost.as_deref(), asked.dir.display());
    if let Some(queue) = &asked.queue
        && printed.is_empty()
        && !names.knows(queue, vhost)
    {
        let place = vhost.map_or_else(String::new, |vhost| format!(" in vhost '{vhost}'"));
        bail!("{dir} knows no queue '{queue}'{place}");
    }
    let outcome = match damage.as_slice() {
        [] => Outcome::Sound,
        damage => Outcome::Damaged(anyhow!("not all could be read: {}", damage.join("; "))),
    };
    Ok((told, outcome))
}

impl<W: Write> Printer<'_, W> {
    fn piece(&mut self, piece: &Dumped<'_>) {
        match piece {
            Dumped::Snapshot(bytes) | Dumped::Topology(_, bytes) => {
                if let Err(error) = self.names.learn(bytes) {
                    self.damage.push(format!("the topology can not be read: {error}"));
                }
            }
            Dumped::Settled { queue, sequences } => {
                sequences.clone().for_each(|seq| self.line(*queue, seq, "del", || Rest::Nothing {}));
            }
            Dumped::Message { queue, sequence, message } => {
                let message = MessageRef {
                    dead_letter: false,
                    address: message.address,
                    properties: message.properties,
                    body: Body::Inline(message.body),
                    persistent: true,
                };
                self.line(*queue, *sequence, "msg", || Rest::of(&message));
            }
            Dumped::Block { queue, block, content, needed } => match content {
                Ok(page) => self.page(*queue, block, page, needed),
                // What nobody needs may have been given back.
                Err(damage) if self.is_asked(*queue) && !needed.is_empty() => {
                    self.damage.push(damage.describe(|queue| self.names.describe(queue)));
                }
                Err(_) => {}
            },
        }
    }

    /// The messages of a segment's block.
    fn page(&mut self, queue: u64, block: &BlockRef, page: &[u8], needed: &[Range<u64>]) {
        let decoded = decode_page(page, |at, message| {
            let seq = block.sequences.start + at as u64;
            match message.filter(|_| needed.iter().any(|range| range.contains(&seq))) {
                Some(message) => self.line(queue, seq, "msg", || Rest::of(&message)),
                None => self.line(queue, seq, "del", || Rest::Nothing {}),
            }
        });
        if let Err(error) = decoded {
            let (queue, Range { start, end }) = (self.names.describe(queue), &block.sequences);
            self.damage.push(format!("{start}..{end} of {queue} can not be read: {error}"));
        }
    }

    fn line(&mut self, queue: u64, seq: u64, kind: &'static str, rest: impl FnOnce() -> Rest) {
        if self.told.is_err() || !self.is_asked(queue) {
            return;
        }
        let printed = self.printed.entry(queue).or_default();
        if printed.contains(seq) {
            return;
        }
        printed.insert(seq..seq.saturating_add(1));
        let name = self.names.get(queue);
        let owner = Owner {
            vhost: name.map(|name| &*name.vhost),
            queue: name.map(|name| &*name.queue),
            number: name.is_none().then(|| number(queue)),
        };
        let line = Line { kind, queue: owner, seq, rest: rest() };
        self.told = serde_json::to_writer(&mut *self.out, &line)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
    }

    fn is_asked(&self, queue: u64) -> bool {
        let Dump { queue: wanted, vhost, .. } = self.asked;
        let name = self.names.get(queue);
        let of_vhost = vhost.as_deref().is_none_or(|vhost| name.is_some_and(|name| &*name.vhost == vhost));
        let of_name = wanted.as_deref().is_none_or(|wanted| match name {
            Some(name) => &*name.queue == wanted,
            None => number(queue) == wanted,
        });
        of_vhost && of_name
    }
}

impl Rest {
    fn of(message: &MessageRef<'_>) -> Self {
        let body = message.body.bytes();
        Self::Message {
            exchange: text(message.exchange()),
            routing_key: text(message.routing_key()),
            properties: properties(message.properties),
            data: Base64::encode_string(body),
            checksum: format!("crc32c:{:08x}", crc32c::crc32c(body)),
        }
    }
}

/// A queue's number as damage and file names have it.
fn number(queue: u64) -> String {
    format!("{queue:016x}")
}
