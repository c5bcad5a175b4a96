//! The encoding of field tables, with the type letters RabbitMQ and its clients use.
//!
//! Owns the letters and the limits of nesting and size. Must not know what any key means.
//!
//! ```text
//! table = length:u32 *( key:short-string value )      array = length:u32 *value      value = letter:u8 data
//! ```

use super::bytes::{Malformed, Reader, Writer};
use crate::value::{Table, Value};

/// How many tables and arrays may be nested in one another, the outermost included.
pub const DEPTH_MAX: usize = 64;

/// The longest table, in encoded bytes without its length prefix.
pub const TABLE_BYTES_MAX: usize = 1 << 20;

/// Reads a table with its length prefix.
///
/// # Errors
/// [`Malformed`] if it breaks the encoding or one of the limits.
pub fn decode(reader: &mut Reader<'_>) -> Result<Table, Malformed> {
    decode_table(reader, DEPTH_MAX)
}

/// Appends `table` with its length prefix. The limits are the caller's to keep: only decoding enforces them.
pub fn encode(table: &Table, out: &mut Vec<u8>) {
    write(table, &mut Writer::new(out));
}

/// Checks that `bytes` are exactly one table that [`decode`] would accept. Allocates nothing.
///
/// # Errors
/// [`Malformed`] as [`decode`], or if bytes are left over.
pub fn validate(bytes: &[u8]) -> Result<(), Malformed> {
    let mut reader = Reader::new(bytes);
    skip(&mut reader)?;
    reader.finish()
}

/// Moves past a table, checking it as [`decode`] does. Allocates nothing.
///
/// # Errors
/// [`Malformed`] as [`decode`].
pub fn skip(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    skip_table(reader, DEPTH_MAX)
}

/// Whether at most `levels` tables and arrays are nested in one another in an encoded table. Allocates nothing.
pub fn is_within(bytes: &[u8], levels: usize) -> bool {
    skip_table(&mut Reader::new(bytes), levels).is_ok()
}

/// The value of `key` in an encoded table (with its length prefix), decoding that value alone. `None` if there is no such key or
/// the bytes before it are malformed.
pub fn find(bytes: &[u8], key: &str) -> Option<Value> {
    let mut entries = contents(&mut Reader::new(bytes)).ok()?;
    while !entries.is_empty() {
        if entries.short().ok()? == key.as_bytes() {
            return decode_value(&mut entries, DEPTH_MAX - 1).ok();
        }
        skip_value(&mut entries, DEPTH_MAX - 1).ok()?;
    }
    None
}

/// Whether an encoded table (with its length prefix) has any of these keys. Allocates nothing.
pub fn has_any<const N: usize>(bytes: &[u8], keys: [&str; N]) -> bool {
    let Ok(mut entries) = contents(&mut Reader::new(bytes)) else { return false };
    while let Ok(key) = entries.short() {
        if keys.iter().any(|wanted| key == wanted.as_bytes()) {
            return true;
        }
        if skip_value(&mut entries, DEPTH_MAX - 1).is_err() {
            return false;
        }
    }
    false
}

/// The inside of a table or array, whose length is checked before anything in it is looked at.
fn contents<'a>(reader: &mut Reader<'a>) -> Result<Reader<'a>, Malformed> {
    let inside = reader.long()?;
    if inside.len() > TABLE_BYTES_MAX {
        return Err(Malformed::new("a table is longer than the limit"));
    }
    Ok(Reader::new(inside))
}

/// `levels` more may be nested; this takes one of them.
fn descend(levels: usize) -> Result<usize, Malformed> {
    levels.checked_sub(1).ok_or(Malformed::new("a table is nested deeper than the limit"))
}

fn decode_table(reader: &mut Reader<'_>, levels: usize) -> Result<Table, Malformed> {
    let levels = descend(levels)?;
    let mut entries = contents(reader)?;
    let mut table = Table::new();
    while !entries.is_empty() {
        let key = entries.short_text()?;
        table.push(key, decode_value(&mut entries, levels)?);
    }
    Ok(table)
}

fn decode_array(reader: &mut Reader<'_>, levels: usize) -> Result<Vec<Value>, Malformed> {
    let levels = descend(levels)?;
    let mut items = contents(reader)?;
    let mut array = Vec::new();
    while !items.is_empty() {
        array.push(decode_value(&mut items, levels)?);
    }
    Ok(array)
}

fn decode_value(reader: &mut Reader<'_>, levels: usize) -> Result<Value, Malformed> {
    Ok(match reader.u8()? {
        b'V' => Value::Void,
        b't' => Value::Bool(reader.u8()? != 0),
        b'b' => Value::I8(i8::from_be_bytes(reader.array()?)),
        b'B' => Value::U8(reader.u8()?),
        b's' => Value::I16(i16::from_be_bytes(reader.array()?)),
        b'u' => Value::U16(reader.u16()?),
        b'I' => Value::I32(i32::from_be_bytes(reader.array()?)),
        b'i' => Value::U32(reader.u32()?),
        b'l' | b'L' => Value::I64(i64::from_be_bytes(reader.array()?)),
        b'f' => Value::F32(f32::from_be_bytes(reader.array()?)),
        b'd' => Value::F64(f64::from_be_bytes(reader.array()?)),
        b'D' => Value::Decimal { scale: reader.u8()?, digits: reader.u32()? },
        b'S' => Value::Str(reader.long()?.into()),
        b'x' => Value::Bytes(reader.long()?.into()),
        b'T' => Value::Timestamp(reader.u64()?),
        b'A' => Value::Array(decode_array(reader, levels)?),
        b'F' => Value::Table(decode_table(reader, levels)?),
        _ => return Err(UNKNOWN_TYPE),
    })
}

const UNKNOWN_TYPE: Malformed = Malformed::new("a table holds a value of unknown type");

fn skip_table(reader: &mut Reader<'_>, levels: usize) -> Result<(), Malformed> {
    let levels = descend(levels)?;
    let mut entries = contents(reader)?;
    while !entries.is_empty() {
        entries.short_text()?;
        skip_value(&mut entries, levels)?;
    }
    Ok(())
}

fn skip_array(reader: &mut Reader<'_>, levels: usize) -> Result<(), Malformed> {
    let levels = descend(levels)?;
    let mut items = contents(reader)?;
    while !items.is_empty() {
        skip_value(&mut items, levels)?;
    }
    Ok(())
}

fn skip_value(reader: &mut Reader<'_>, levels: usize) -> Result<(), Malformed> {
    let len = match reader.u8()? {
        b'V' => 0,
        b't' | b'b' | b'B' => 1,
        b's' | b'u' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'l' | b'L' | b'd' | b'T' => 8,
        b'S' | b'x' => return reader.long().map(drop),
        b'A' => return skip_array(reader, levels),
        b'F' => return skip_table(reader, levels),
        _ => return Err(UNKNOWN_TYPE),
    };
    reader.take(len).map(drop)
}

/// Writes `table` with its length prefix.
pub fn write(table: &Table, writer: &mut Writer<'_>) {
    writer.sized(|writer| {
        for (key, value) in table.iter() {
            writer.short_text(key);
            encode_value(value, writer);
        }
    });
}

fn encode_value(value: &Value, writer: &mut Writer<'_>) {
    writer.u8(letter(value));
    match value {
        Value::Void => {}
        Value::Bool(value) => writer.u8((*value).into()),
        Value::I8(number) => writer.raw(&number.to_be_bytes()),
        Value::U8(number) => writer.u8(*number),
        Value::I16(number) => writer.raw(&number.to_be_bytes()),
        Value::U16(number) => writer.u16(*number),
        Value::I32(number) => writer.raw(&number.to_be_bytes()),
        Value::U32(number) => writer.u32(*number),
        Value::I64(number) => writer.raw(&number.to_be_bytes()),
        Value::F32(number) => writer.raw(&number.to_be_bytes()),
        Value::F64(number) => writer.raw(&number.to_be_bytes()),
        Value::Decimal { scale, digits } => {
            writer.u8(*scale);
            writer.u32(*digits);
        }
        Value::Str(bytes) | Value::Bytes(bytes) => writer.long(bytes),
        Value::Timestamp(seconds) => writer.u64(*seconds),
        Value::Array(items) => {
            writer.sized(|writer| items.iter().for_each(|item| encode_value(item, writer)));
        }
        Value::Table(table) => write(table, writer),
    }
}

fn letter(value: &Value) -> u8 {
    match value {
        Value::Void => b'V',
        Value::Bool(_) => b't',
        Value::I8(_) => b'b',
        Value::U8(_) => b'B',
        Value::I16(_) => b's',
        Value::U16(_) => b'u',
        Value::I32(_) => b'I',
        Value::U32(_) => b'i',
        Value::I64(_) => b'l',
        Value::F32(_) => b'f',
        Value::F64(_) => b'd',
        Value::Decimal { .. } => b'D',
        Value::Str(_) => b'S',
        Value::Bytes(_) => b'x',
        Value::Timestamp(_) => b'T',
        Value::Array(_) => b'A',
        Value::Table(_) => b'F',
    }
}

#[cfg(test)]
mod tests;
