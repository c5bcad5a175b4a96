//! The basic properties of a message in encoded form, as in a content header after the body size.
//!
//! Owns their order, their flags and cheap look-ups of single ones. Must not know what the broker does with a property.
//!
//! ```text
//! properties = flags:u16 *value      a value for each flag set, from the highest flag down
//! ```

use super::bytes::{Malformed, Reader, Writer};
use super::table;
use crate::value::{Table, Value};

/// The flag of each property. The two lowest bits stay clear: the last announces more flags, and there are none.
pub mod flag {
    /// `content-type`, a short string
    pub const CONTENT_TYPE: u16 = 1 << 15;
    /// `content-encoding`, a short string
    pub const CONTENT_ENCODING: u16 = 1 << 14;
    /// `headers`, a table
    pub const HEADERS: u16 = 1 << 13;
    /// `delivery-mode`, an octet: 2 is persistent
    pub const DELIVERY_MODE: u16 = 1 << 12;
    /// `priority`, an octet
    pub const PRIORITY: u16 = 1 << 11;
    /// `correlation-id`, a short string
    pub const CORRELATION_ID: u16 = 1 << 10;
    /// `reply-to`, a short string
    pub const REPLY_TO: u16 = 1 << 9;
    /// `expiration`, a short string: milliseconds in decimal
    pub const EXPIRATION: u16 = 1 << 8;
    /// `message-id`, a short string
    pub const MESSAGE_ID: u16 = 1 << 7;
    /// `timestamp`, seconds since 1970
    pub const TIMESTAMP: u16 = 1 << 6;
    /// `type`, a short string
    pub const TYPE: u16 = 1 << 5;
    /// `user-id`, a short string
    pub const USER_ID: u16 = 1 << 4;
    /// `app-id`, a short string
    pub const APP_ID: u16 = 1 << 3;
    /// `cluster-id`, a short string, deprecated
    pub const CLUSTER_ID: u16 = 1 << 2;
}

const RESERVED: u16 = 0b11;

/// Checks that `bytes` are exactly one set of properties that [`Properties::decode`] would accept. Allocates nothing.
///
/// # Errors
/// [`Malformed`] if they break the encoding, announce more flags, or leave bytes over.
#[inline]
pub fn validate(bytes: &[u8]) -> Result<(), Malformed> {
    // What most publishers send: nothing at all, or the delivery mode alone.
    match bytes {
        [0, 0] | [0x10, 0, _] => Ok(()),
        _ => validate_each(bytes),
    }
}

fn validate_each(bytes: &[u8]) -> Result<(), Malformed> {
    let mut reader = Reader::new(bytes);
    let flags = read_flags(&mut reader)?;
    for flag in each(flags) {
        if flag == flag::HEADERS { table::skip(&mut reader)? } else { skip(flag, &mut reader)? }
    }
    reader.finish()
}

fn read_flags(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    match reader.u16()? {
        flags if flags & RESERVED == 0 => Ok(flags),
        _ => Err(Malformed::new("the properties have flags beyond those of class basic")),
    }
}

/// The flags set in `flags`, from the highest down.
fn each(mut flags: u16) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let highest = flags.checked_ilog2().map(|place| 1 << place)?;
        flags ^= highest;
        Some(highest)
    })
}

/// Moves past the value of one property without looking into it.
fn skip(flag: u16, reader: &mut Reader<'_>) -> Result<(), Malformed> {
    match flag {
        flag::HEADERS => reader.long().map(drop),
        flag::DELIVERY_MODE | flag::PRIORITY => reader.u8().map(drop),
        flag::TIMESTAMP => reader.u64().map(drop),
        _ => reader.short().map(drop),
    }
}

/// A reader at the value of the property `wanted`, if it is set.
#[inline]
fn seek(bytes: &[u8], wanted: u16) -> Option<Reader<'_>> {
    let flags = flags(bytes);
    if flags & wanted == 0 {
        return None;
    }
    let mut reader = Reader::new(bytes.get(2..)?);
    let before = flags & !(wanted | (wanted - 1));
    for flag in each(before) {
        skip(flag, &mut reader).ok()?;
    }
    Some(reader)
}

/// Which properties are set, as an or of the constants in [`flag`]; 0 if the bytes are too short.
#[inline]
pub fn flags(bytes: &[u8]) -> u16 {
    Reader::new(bytes).u16().unwrap_or(0)
}

/// The delivery mode in validated properties.
#[inline]
pub fn delivery_mode(bytes: &[u8]) -> Option<u8> {
    seek(bytes, flag::DELIVERY_MODE)?.u8().ok()
}

/// The priority in validated properties.
#[inline]
pub fn priority(bytes: &[u8]) -> Option<u8> {
    seek(bytes, flag::PRIORITY)?.u8().ok()
}

/// The expiration in validated properties: by intent, milliseconds in decimal; unchecked here.
#[inline]
pub fn expiration(bytes: &[u8]) -> Option<&[u8]> {
    seek(bytes, flag::EXPIRATION)?.short().ok()
}

/// The user id in validated properties.
#[inline]
pub fn user_id(bytes: &[u8]) -> Option<&[u8]> {
    seek(bytes, flag::USER_ID)?.short().ok()
}

/// The reply-to in validated properties.
#[inline]
pub fn reply_to(bytes: &[u8]) -> Option<&[u8]> {
    seek(bytes, flag::REPLY_TO)?.short().ok()
}

/// Validated properties with another reply-to in the place of theirs; as they are if they have none.
pub fn with_reply_to(bytes: &[u8], reply_to: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(bytes.len() + reply_to.len());
    let after = seek(bytes, flag::REPLY_TO).and_then(|mut reader| {
        let at = bytes.len() - reader.rest().len();
        encoded.extend_from_slice(bytes.get(..at)?);
        Writer::new(&mut encoded).short(reply_to);
        reader.short().ok()?;
        Some(reader.rest())
    });
    encoded.extend_from_slice(after.unwrap_or(bytes));
    encoded
}

/// The encoded headers in validated properties, their length prefix included: see [`table::find`] and [`table::decode`].
#[inline]
pub fn headers(bytes: &[u8]) -> Option<&[u8]> {
    let at = seek(bytes, flag::HEADERS)?.rest();
    let inside = Reader::new(at).long().ok()?;
    at.get(..4 + inside.len())
}

/// Validated properties with a header more, or another value of one.
///
/// # Errors
/// [`Malformed`] if they are not valid.
pub fn with_header(bytes: &[u8], key: &str, value: Value) -> Result<Vec<u8>, Malformed> {
    let mut properties = Properties::decode(bytes)?;
    properties.headers.get_or_insert_default().set(key, value);
    let mut encoded = Vec::with_capacity(bytes.len() + key.len() + 16);
    properties.encode(&mut encoded);
    Ok(encoded)
}

/// Bytes of a property that is a short string; RabbitMQ asks for no UTF-8 here.
pub type Text = Box<[u8]>;

/// All properties, decoded.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the constants in `flag` tell what each is")]
pub struct Properties {
    pub content_type: Option<Text>,
    pub content_encoding: Option<Text>,
    pub headers: Option<Table>,
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<Text>,
    pub reply_to: Option<Text>,
    pub expiration: Option<Text>,
    pub message_id: Option<Text>,
    pub timestamp: Option<u64>,
    pub kind: Option<Text>,
    pub user_id: Option<Text>,
    pub app_id: Option<Text>,
    pub cluster_id: Option<Text>,
}

impl Properties {
    /// Decodes all of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] exactly where [`validate`] says so.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut source = Source { flags: read_flags(&mut reader)?, reader };
        let properties = Self {
            content_type: source.text(flag::CONTENT_TYPE)?,
            content_encoding: source.text(flag::CONTENT_ENCODING)?,
            headers: source.value(flag::HEADERS, table::decode)?,
            delivery_mode: source.value(flag::DELIVERY_MODE, Reader::u8)?,
            priority: source.value(flag::PRIORITY, Reader::u8)?,
            correlation_id: source.text(flag::CORRELATION_ID)?,
            reply_to: source.text(flag::REPLY_TO)?,
            expiration: source.text(flag::EXPIRATION)?,
            message_id: source.text(flag::MESSAGE_ID)?,
            timestamp: source.value(flag::TIMESTAMP, Reader::u64)?,
            kind: source.text(flag::TYPE)?,
            user_id: source.text(flag::USER_ID)?,
            app_id: source.text(flag::APP_ID)?,
            cluster_id: source.text(flag::CLUSTER_ID)?,
        };
        source.reader.finish()?;
        Ok(properties)
    }

    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u16(self.flags());
        write_texts(&mut writer, [&self.content_type, &self.content_encoding]);
        if let Some(headers) = &self.headers {
            table::write(headers, &mut writer);
        }
        [self.delivery_mode, self.priority].into_iter().flatten().for_each(|octet| writer.u8(octet));
        write_texts(&mut writer, [&self.correlation_id, &self.reply_to, &self.expiration, &self.message_id]);
        if let Some(seconds) = self.timestamp {
            writer.u64(seconds);
        }
        write_texts(&mut writer, [&self.kind, &self.user_id, &self.app_id, &self.cluster_id]);
    }

    fn flags(&self) -> u16 {
        [
            (self.content_type.is_some(), flag::CONTENT_TYPE),
            (self.content_encoding.is_some(), flag::CONTENT_ENCODING),
            (self.headers.is_some(), flag::HEADERS),
            (self.delivery_mode.is_some(), flag::DELIVERY_MODE),
            (self.priority.is_some(), flag::PRIORITY),
            (self.correlation_id.is_some(), flag::CORRELATION_ID),
            (self.reply_to.is_some(), flag::REPLY_TO),
            (self.expiration.is_some(), flag::EXPIRATION),
            (self.message_id.is_some(), flag::MESSAGE_ID),
            (self.timestamp.is_some(), flag::TIMESTAMP),
            (self.kind.is_some(), flag::TYPE),
            (self.user_id.is_some(), flag::USER_ID),
            (self.app_id.is_some(), flag::APP_ID),
            (self.cluster_id.is_some(), flag::CLUSTER_ID),
        ]
        .into_iter()
        .fold(0, |flags, (set, flag)| if set { flags | flag } else { flags })
    }
}

fn write_texts<const N: usize>(writer: &mut Writer<'_>, texts: [&Option<Text>; N]) {
    texts.into_iter().flatten().for_each(|text| writer.short(text));
}

struct Source<'a> {
    flags: u16,
    reader: Reader<'a>,
}

impl<'a> Source<'a> {
    fn value<T>(
        &mut self,
        flag: u16,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.flags & flag == 0 { Ok(None) } else { read(&mut self.reader).map(Some) }
    }

    fn text(&mut self, flag: u16) -> Result<Option<Text>, Malformed> {
        self.value(flag, |reader| reader.short().map(Text::from))
    }
}

#[cfg(test)]
mod tests;
