//! Arguments for tests: a pool that every method draws its own from.
//!
//! Owns which part of the pool fits which type. Must not know any method.

use deepmq_model::Table;

use super::LongStr;
use crate::codec::Reader;

/// Random bytes and text to make arguments of. When the bytes are used up, zeros follow.
pub(super) struct Sample<'a> {
    pub(super) bytes: Reader<'a>,
    pub(super) texts: &'a [String],
    pub(super) tables: &'a [Table],
}

impl<'a> Sample<'a> {
    fn number<const N: usize>(&mut self) -> [u8; N] {
        self.bytes.array().unwrap_or([0; N])
    }

    fn piece(&mut self) -> &'a [u8] {
        let [len] = self.number();
        self.bytes.take(usize::from(len % 32)).unwrap_or(&[])
    }
}

pub(super) trait Drawn<'r> {
    fn draw(sample: &mut Sample<'r>) -> Self;
}

macro_rules! integer {
    ($($type:ty)+) => {$(
        impl<'r> Drawn<'r> for $type {
            fn draw(sample: &mut Sample<'r>) -> Self {
                Self::from_be_bytes(sample.number())
            }
        }
    )+};
}

integer!(u8 u16 u32 u64);

impl<'r> Drawn<'r> for bool {
    fn draw(sample: &mut Sample<'r>) -> Self {
        u8::draw(sample) & 1 == 1
    }
}

impl<'a, 'r: 'a> Drawn<'r> for &'a str {
    fn draw(sample: &mut Sample<'r>) -> Self {
        let [at] = sample.number();
        &sample.texts[usize::from(at) % sample.texts.len()]
    }
}

impl<'a, 'r: 'a> Drawn<'r> for &'a [u8] {
    fn draw(sample: &mut Sample<'r>) -> Self {
        sample.piece()
    }
}

impl<'a, 'r: 'a> Drawn<'r> for LongStr<'a> {
    fn draw(sample: &mut Sample<'r>) -> Self {
        Self(sample.piece())
    }
}

impl<'r> Drawn<'r> for Table {
    fn draw(sample: &mut Sample<'r>) -> Self {
        let [at] = sample.number();
        sample.tables[usize::from(at) % sample.tables.len()].clone()
    }
}
