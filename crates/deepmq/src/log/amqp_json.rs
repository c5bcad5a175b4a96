//! AMQP's properties and values as JSON.
//!
//! Owns the form: numbers and texts as themselves, bytes that are no text as `{"base64": "..."}`. Must not know messages.

use base64ct::{Base64, Encoding};
use deepmq_model::message::Properties;
use deepmq_model::message::properties::Text;
use deepmq_model::{Table, Value as Amqp};
use serde_json::{Map, Value, json};

/// A text, or what is to be one.
pub(super) fn text(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| binary(bytes), Value::from)
}

fn binary(bytes: &[u8]) -> Value {
    json!({ "base64": Base64::encode_string(bytes) })
}

/// Encoded properties, under the names AMQP gives them; null if they are none.
pub(super) fn properties(encoded: &[u8]) -> Value {
    let Ok(properties) = Properties::decode(encoded) else { return Value::Null };
    let texts = [
        ("content_type", &properties.content_type),
        ("content_encoding", &properties.content_encoding),
        ("correlation_id", &properties.correlation_id),
        ("reply_to", &properties.reply_to),
        ("expiration", &properties.expiration),
        ("message_id", &properties.message_id),
        ("type", &properties.kind),
        ("user_id", &properties.user_id),
        ("app_id", &properties.app_id),
        ("cluster_id", &properties.cluster_id),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, value): (_, &Option<Text>)| value.as_ref().map(|value| (name, text(value))));
    let others = [
        ("headers", properties.headers.as_ref().map(table)),
        ("delivery_mode", properties.delivery_mode.map(Value::from)),
        ("priority", properties.priority.map(Value::from)),
        ("timestamp", properties.timestamp.map(Value::from)),
    ];
    let others = others.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Value::Object(texts.chain(others).map(|(name, value)| (name.to_owned(), value)).collect())
}

fn table(table: &Table) -> Value {
    Value::Object(table.iter().map(|(key, value)| (key.to_owned(), amqp(value))).collect::<Map<_, _>>())
}

fn amqp(value: &Amqp) -> Value {
    match value {
        Amqp::Void => Value::Null,
        Amqp::Bool(bool) => (*bool).into(),
        Amqp::F32(float) => f64::from(*float).into(),
        Amqp::F64(float) => (*float).into(),
        Amqp::Decimal { scale, digits } => decimal(*scale, *digits).into(),
        Amqp::Str(bytes) => text(bytes),
        Amqp::Bytes(bytes) => binary(bytes),
        Amqp::Timestamp(seconds) => (*seconds).into(),
        Amqp::Array(values) => values.iter().map(amqp).collect(),
        Amqp::Table(inner) => table(inner),
        Amqp::I8(_)
        | Amqp::U8(_)
        | Amqp::I16(_)
        | Amqp::U16(_)
        | Amqp::I32(_)
        | Amqp::U32(_)
        | Amqp::I64(_) => value.as_integer().into(),
    }
}

/// A decimal number in full, which a float might not be.
fn decimal(scale: u8, digits: u32) -> String {
    let scale = usize::from(scale);
    let digits = format!("{digits:0>width$}", width = scale + 1);
    match digits.split_at_checked(digits.len() - scale) {
        Some((whole, "")) => whole.to_owned(),
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_has_its_name_and_every_value_its_form() {
        let nested: Table = [("deep", Amqp::Array(vec![Amqp::I8(-1), Amqp::Void]))].into_iter().collect();
        let headers: Table = [
            ("bool", Amqp::Bool(true)),
            ("float", Amqp::F32(0.5)),
            ("nan", Amqp::F64(f64::NAN)),
            ("price", Amqp::Decimal { scale: 2, digits: 5 }),
            ("whole", Amqp::Decimal { scale: 0, digits: 7 }),
            ("raw", Amqp::Bytes([1, 2].into())),
            ("latin", Amqp::Str([0xe9].into())),
            ("when", Amqp::Timestamp(u64::MAX)),
            ("nested", Amqp::Table(nested)),
        ]
        .into_iter()
        .collect();
        let words = |word: &str| Some(word.as_bytes().into());
        let all = Properties {
            content_type: words("ct"),
            content_encoding: words("ce"),
            headers: Some(headers),
            delivery_mode: Some(2),
            priority: Some(9),
            correlation_id: words("ci"),
            reply_to: words("rt"),
            expiration: words("60"),
            message_id: words("mi"),
            timestamp: Some(1),
            kind: words("t"),
            user_id: words("u"),
            app_id: words("a"),
            cluster_id: words("c"),
        };
        let mut encoded = Vec::new();
        all.encode(&mut encoded);
        let expected = json!({
            "content_type": "ct", "content_encoding": "ce", "delivery_mode": 2, "priority": 9,
            "correlation_id": "ci", "reply_to": "rt", "expiration": "60", "message_id": "mi", "timestamp": 1,
            "type": "t", "user_id": "u", "app_id": "a", "cluster_id": "c",
            "headers": {
                "bool": true, "float": 0.5, "nan": null, "price": "0.05", "whole": "7",
                "raw": { "base64": "AQI=" }, "latin": { "base64": "6Q==" }, "when": u64::MAX,
                "nested": { "deep": [-1, null] },
            },
        });
        assert_eq!(properties(&encoded), expected);
        assert_eq!(properties(&[0, 0]), json!({}));
        assert_eq!(properties(&[1]), Value::Null);
    }
}
