//! Arguments and headers as JSON: the model's tables, with RabbitMQ's choice of types.
//!
//! Owns the mapping in both directions, and the bounds on what a client gives. Must not know what an argument means.

use crate::error::{ApiError, ApiResult};
use deepmq_model::message::table;
use deepmq_model::{Table, Value};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A table: an object whose members are strings, numbers, booleans, null, arrays and objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Arguments(pub(crate) Table);

impl Arguments {
    /// The table, if it can be encoded and is not nested deeper than `depth_max`.
    pub(crate) fn checked(self, depth_max: usize) -> ApiResult<Table> {
        if self.0.depth() > depth_max {
            return Err(ApiError::bad_request("a table is nested deeper than the limit"));
        }
        let mut encoded = Vec::new();
        table::encode(&self.0, &mut encoded);
        table::validate(&encoded).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(self.0)
    }
}

impl PartialSchema for Arguments {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(true))).into()
    }
}

impl ToSchema for Arguments {}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_table(&self.0, serializer)
    }
}

fn write_table<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (key, value) in table.iter() {
        map.serialize_entry(key, &Shown(value))?;
    }
    map.end()
}

/// A value as JSON.
struct Shown<'a>(&'a Value);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Void => serializer.serialize_unit(),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::F32(float) => serializer.serialize_f64(f64::from(*float)),
            Value::F64(float) => serializer.serialize_f64(*float),
            Value::Decimal { scale, digits } => {
                serializer.serialize_f64(f64::from(*digits) / 10f64.powi((*scale).into()))
            }
            Value::Str(bytes) | Value::Bytes(bytes) => {
                serializer.serialize_str(&String::from_utf8_lossy(bytes))
            }
            Value::Timestamp(seconds) => serializer.serialize_u64(*seconds),
            Value::Array(values) => {
                let mut seq = serializer.serialize_seq(Some(values.len()))?;
                values.iter().try_for_each(|value| seq.serialize_element(&Shown(value)))?;
                seq.end()
            }
            Value::Table(table) => write_table(table, serializer),
            integer => serializer.serialize_i64(integer.as_integer().unwrap_or_default()),
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Given::deserialize(deserializer)?.0 {
            Value::Table(table) => Ok(Self(table)),
            Value::Void => Ok(Self::default()),
            // RabbitMQ's own tools write an empty table as an empty array.
            Value::Array(values) if values.is_empty() => Ok(Self::default()),
            _ => Err(de::Error::custom("arguments are an object")),
        }
    }
}

/// A value from JSON.
struct Given(Value);

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor).map(Self)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a table")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Void)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(Value::Bool(bool))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::I64(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        i64::try_from(number).map(Value::I64).map_err(|_| E::custom("a number is beyond 64 bits with a sign"))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(Value::F64(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Given(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut table = Table::new();
        while let Some((key, Given(value))) = map.next_entry::<String, Given>()? {
            if key.len() > deepmq_model::topology::NAME_BYTES_MAX {
                return Err(de::Error::custom("a key is longer than 255 bytes"));
            }
            table.push(key, value);
        }
        Ok(Value::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Table, String> {
        serde_json::from_str::<Arguments>(json).map(|read| read.0).map_err(|error| error.to_string())
    }

    #[test]
    fn json_comes_back_as_it_was_given() {
        let json = r#"{"s":"ü","i":-5,"f":1.5,"t":true,"n":null,"a":[1,"x",[]],"o":{"k":{}}}"#;
        assert_eq!(serde_json::to_string(&Arguments(read(json).unwrap())).unwrap(), json);
        assert_eq!(read("[]"), Ok(Table::new()));
    }

    #[test]
    fn types_that_json_does_not_have_are_shown_by_their_value() {
        let table: Table = [
            ("small", Value::I8(-1)),
            ("bytes", Value::Bytes(b"raw".as_slice().into())),
            ("time", Value::Timestamp(7)),
            ("money", Value::Decimal { scale: 2, digits: 150 }),
            ("nan", Value::F64(f64::NAN)),
        ]
        .into_iter()
        .collect();
        let shown = serde_json::to_string(&Arguments(table)).unwrap();
        assert_eq!(shown, r#"{"small":-1,"bytes":"raw","time":7,"money":1.5,"nan":null}"#);
    }

    #[test]
    fn what_no_table_can_hold_is_refused() {
        for json in ["7", "[1]", r#"{"n":9223372036854775808}"#] {
            assert!(read(json).is_err(), "{json}");
        }
        assert!(read(&format!("{{\"{}\":1}}", "k".repeat(256))).unwrap_err().contains("255"));
        assert!(read(&format!("{{\"{}\":1}}", "k".repeat(255))).is_ok());
    }

    #[test]
    fn a_table_is_checked_for_depth_and_size() {
        let nested = |levels: usize| format!("{}{}", "{\"a\":".repeat(levels), "1") + &"}".repeat(levels);
        let arguments = |json: &str| Arguments(read(json).unwrap());
        assert!(arguments(&nested(5)).checked(5).is_ok());
        assert!(arguments(&nested(6)).checked(5).is_err());
        let long = format!("{{\"k\":\"{}\"}}", "x".repeat(1 << 20));
        assert!(arguments(&long).checked(64).is_err());
    }
}
