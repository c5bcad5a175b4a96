//! How the type of an argument tells its encoding.
//!
//! Owns that relation. Must not know any method.

use deepmq_model::Table;
use deepmq_model::message::table;

use crate::codec::{Malformed, Reader, Writer};

/// An argument of a method, readable from bytes that live for `'r`.
pub(super) trait Field<'r>: Sized {
    fn read(reader: &mut Reader<'r>) -> Result<Self, Malformed>;
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! integer {
    ($($type:ident)+) => {$(
        impl<'r> Field<'r> for $type {
            fn read(reader: &mut Reader<'r>) -> Result<Self, Malformed> {
                reader.$type()
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.$type(*self);
            }
        }
    )+};
}

integer!(u8 u16 u32 u64);

/// A name or text: a short string of UTF-8.
impl<'a, 'r: 'a> Field<'r> for &'a str {
    fn read(reader: &mut Reader<'r>) -> Result<Self, Malformed> {
        reader.short_text()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.short_text(self);
    }
}

/// A routing key: a short string of any bytes.
impl<'a, 'r: 'a> Field<'r> for &'a [u8] {
    fn read(reader: &mut Reader<'r>) -> Result<Self, Malformed> {
        reader.short()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.short(self);
    }
}

/// A long string, of any bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LongStr<'a>(pub &'a [u8]);

impl<'a, 'r: 'a> Field<'r> for LongStr<'a> {
    fn read(reader: &mut Reader<'r>) -> Result<Self, Malformed> {
        reader.long().map(Self)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.long(self.0);
    }
}

impl<'r> Field<'r> for Table {
    fn read(reader: &mut Reader<'r>) -> Result<Self, Malformed> {
        table::decode(reader)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        table::write(self, writer);
    }
}
