//! Values and tables: the arguments of queues, exchanges and bindings, and the headers of messages.
//!
//! Owns the types and what it means for two values to be equal. Must not know how they are written on a wire.

use std::sync::Arc;

/// The name of a queue, exchange, vhost or user: UTF-8, at most 255 bytes.
pub type Name = Arc<str>;

/// A value of a table. The variants are those RabbitMQ's clients exchange; the letter of each on the AMQP wire is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `V`
    Void,
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s`
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l`, and `L` when read: RabbitMQ takes both for signed 64 bits
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: value = `digits` / 10^`scale`
    Decimal {
        /// Number of decimal places.
        scale: u8,
        /// The unscaled value.
        digits: u32,
    },
    /// `S`: any bytes, mostly UTF-8
    Str(Box<[u8]>),
    /// `x`
    Bytes(Box<[u8]>),
    /// `T`: seconds since 1970
    Timestamp(u64),
    /// `A`
    Array(Vec<Value>),
    /// `F`
    Table(Table),
}

impl Value {
    /// A string value.
    pub fn str(text: impl AsRef<str>) -> Self {
        Self::Str(text.as_ref().as_bytes().into())
    }

    /// The number, if this is any of the integer types: RabbitMQ treats them as one class.
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::I8(n) => Some(n.into()),
            Self::U8(n) => Some(n.into()),
            Self::I16(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::I32(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::I64(n) => Some(n),
            _ => None,
        }
    }

    /// The text, if this is a string of valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// RabbitMQ's name of the type, as its error texts give it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Void => "void",
            Self::Bool(_) => "bool",
            Self::I8(_) => "byte",
            Self::U8(_) => "unsignedbyte",
            Self::I16(_) => "short",
            Self::U16(_) => "unsignedshort",
            Self::I32(_) => "signedint",
            Self::U32(_) => "unsignedint",
            Self::I64(_) => "long",
            Self::F32(_) => "float",
            Self::F64(_) => "double",
            Self::Decimal { .. } => "decimal",
            Self::Str(_) => "longstr",
            Self::Bytes(_) => "binary",
            Self::Timestamp(_) => "timestamp",
            Self::Array(_) => "array",
            Self::Table(_) => "table",
        }
    }

    /// Equality as RabbitMQ's equivalence checks and headers exchange see it: integers of any width are one class,
    /// floats another; everything else must agree in type and value.
    pub fn equivalent(&self, other: &Self) -> bool {
        match (self.as_integer(), other.as_integer()) {
            (Some(a), Some(b)) => return a == b,
            (None, None) => {}
            _ => return false,
        }
        match (self.as_float(), other.as_float()) {
            (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
            (None, None) => self == other,
            _ => false,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::Table(table) => table.depth(),
            Self::Array(values) => 1 + values.iter().map(Self::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    fn as_float(&self) -> Option<f64> {
        match *self {
            Self::F32(n) => Some(n.into()),
            Self::F64(n) => Some(n),
            _ => None,
        }
    }
}

/// Named values in the order they were given. A key that appears twice counts as its first appearance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table(Vec<(Box<str>, Value)>);

impl Table {
    /// A table without entries.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an entry.
    pub fn push(&mut self, key: impl Into<Box<str>>, value: Value) {
        self.0.push((key.into(), value));
    }

    /// Puts an entry, in the place of the one with its key if there is one.
    pub fn set(&mut self, key: &str, value: Value) {
        match self.0.iter_mut().find(|(name, _)| &**name == key) {
            Some((_, old)) => *old = value,
            None => self.push(key, value),
        }
    }

    /// Removes all entries with this key; returns the value of the first.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let mut removed = self.0.extract_if(.., |(name, _)| &**name == key);
        let first = removed.next();
        removed.for_each(drop);
        first.map(|(_, value)| value)
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| &**name == key).map(|(_, value)| value)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// How many tables and arrays are nested in one another at most, this one included.
    pub fn depth(&self) -> usize {
        1 + self.0.iter().map(|(_, value)| value.depth()).max().unwrap_or(0)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Box<str>>> FromIterator<(K, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_width_are_one_class_and_floats_another() {
        assert!(Value::I8(5).equivalent(&Value::I64(5)));
        assert!(Value::U32(5).equivalent(&Value::I16(5)));
        assert!(!Value::I32(5).equivalent(&Value::F64(5.0)));
        assert!(Value::F32(0.5).equivalent(&Value::F64(0.5)));
        assert!(!Value::str("5").equivalent(&Value::I32(5)));
        assert!(!Value::I32(5).equivalent(&Value::I32(6)));
    }

    #[test]
    fn depth_counts_tables_and_arrays_on_the_longest_way_in() {
        let inner: Table = [("a", Value::Array(vec![Value::Void]))].into_iter().collect();
        let outer: Table = [("flat", Value::Void), ("t", Value::Table(inner))].into_iter().collect();
        assert_eq!((Table::new().depth(), outer.depth()), (1, 3));
    }

    #[test]
    fn an_entry_is_set_in_its_place_and_removed_with_all_of_its_key() {
        let mut table: Table =
            [("k", Value::I32(1)), ("l", Value::Void), ("k", Value::I32(2))].into_iter().collect();
        table.set("k", Value::I32(3));
        table.set("m", Value::I32(4));
        assert_eq!(table.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["k", "l", "k", "m"]);
        assert_eq!((table.remove("k"), table.remove("k"), table.len()), (Some(Value::I32(3)), None, 2));
    }

    #[test]
    fn the_first_of_two_entries_with_one_key_counts() {
        let table: Table = [("k", Value::I32(1)), ("k", Value::I32(2))].into_iter().collect();
        assert_eq!(table.get("k"), Some(&Value::I32(1)));
        assert_eq!(table.get("absent"), None);
    }
}
