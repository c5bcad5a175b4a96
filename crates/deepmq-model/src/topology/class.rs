//! A hash of values that agrees with [`Value::equivalent`]: equivalent values hash alike.
//!
//! Owns that agreement, for the headers index and for finding a binding by its arguments.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;

use crate::value::{Table, Value};

/// Hashes `key` with the class of `value`.
pub(super) fn hash_pair(hasher: &RandomState, key: &str, value: &Value) -> u64 {
    let mut state = hasher.build_hasher();
    key.hash(&mut state);
    hash_class(value, &mut state);
    state.finish()
}

/// Hashes a table whatever the order of its entries.
pub(super) fn hash_table(hasher: &RandomState, table: &Table) -> u64 {
    table.iter().fold(0, |sum, (key, value)| sum.wrapping_add(hash_pair(hasher, key, value)))
}

/// Whether two tables without repeated keys have equivalent entries, in any order.
pub(super) fn same_entries(one: &Table, other: &Table) -> bool {
    one.len() == other.len()
        && one.iter().all(|(key, value)| other.get(key).is_some_and(|found| found.equivalent(value)))
}

/// The table without the repetitions of a key, of which only the first counts.
pub(super) fn without_repetitions(table: &Table) -> Table {
    let mut first = Table::new();
    for (key, value) in table.iter() {
        if first.get(key).is_none() {
            first.push(key, value.clone());
        }
    }
    first
}

fn hash_class(value: &Value, state: &mut impl Hasher) {
    if let Some(integer) = value.as_integer() {
        (0u8, integer).hash(state);
        return;
    }
    match value {
        Value::F32(float) => (1u8, f64::from(*float).to_bits()).hash(state),
        Value::F64(float) => (1u8, float.to_bits()).hash(state),
        Value::Str(bytes) => (2u8, bytes).hash(state),
        Value::Bytes(bytes) => (3u8, bytes).hash(state),
        Value::Bool(bool) => (4u8, bool).hash(state),
        Value::Timestamp(seconds) => (5u8, seconds).hash(state),
        Value::Decimal { scale, digits } => (6u8, scale, digits).hash(state),
        // Elements compare more strictly than their classes, so the number of them is all that is safe to tell.
        Value::Array(values) => (7u8, values.len()).hash(state),
        Value::Table(table) => (8u8, table.len()).hash(state),
        Value::Void
        | Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_) => 9u8.hash(state),
    }
}
