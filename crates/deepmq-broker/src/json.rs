//! Values and tables as JSON, as RabbitMQ's definitions and management write them.
//!
//! Owns what is lost on the way: JSON has one string, one integer and one float, so a value comes back as the widest of its
//! sort, which every comparison takes for the same. Must not know what the values are for.

use deepmq_model::{Table, Value};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value as Json};

/// A table of a JSON object, in the order of its keys.
pub fn table(object: &Map<String, Json>) -> Table {
    object.iter().map(|(key, json)| (key.as_str(), value(json))).collect()
}

/// A value of JSON. An integer over 63 bits becomes a float.
pub fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Void,
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| Value::F64(number.as_f64().unwrap_or(f64::NAN)), Value::I64)
        }
        Json::String(text) => Value::str(text),
        Json::Array(items) => Value::Array(items.iter().map(value).collect()),
        Json::Object(object) => Value::Table(table(object)),
    }
}

/// A JSON object of a table; of two entries with one key the first counts.
pub fn object(table: &Table) -> Map<String, Json> {
    let mut object = Map::new();
    for (key, value) in table.iter() {
        object.entry(key).or_insert_with(|| json(value));
    }
    object
}

/// JSON of a value. Bytes that are not UTF-8 are replaced; a float that is no number becomes null.
pub fn json(value: &Value) -> Json {
    match value {
        Value::Void => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::I8(n) => (*n).into(),
        Value::U8(n) => (*n).into(),
        Value::I16(n) => (*n).into(),
        Value::U16(n) => (*n).into(),
        Value::I32(n) => (*n).into(),
        Value::U32(n) => (*n).into(),
        Value::I64(n) => (*n).into(),
        Value::Timestamp(n) => (*n).into(),
        Value::F32(n) => float(f64::from(*n)),
        Value::F64(n) => float(*n),
        Value::Decimal { scale, digits } => float(f64::from(*digits) / 10f64.powi(i32::from(*scale))),
        Value::Str(bytes) | Value::Bytes(bytes) => Json::String(String::from_utf8_lossy(bytes).into_owned()),
        Value::Array(values) => Json::Array(values.iter().map(json).collect()),
        Value::Table(table) => Json::Object(object(table)),
    }
}

/// Reads an object. Erlang writes one as a list of pairs now and then, and an empty one as an empty list.
pub(crate) fn read_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Json>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Object(Map<String, Json>),
        Pairs(Vec<(String, Json)>),
    }
    match Given::deserialize(deserializer) {
        Ok(Given::Object(object)) => Ok(object),
        Ok(Given::Pairs(pairs)) => Ok(pairs.into_iter().collect()),
        Err(_) => Err(D::Error::custom("not an object")),
    }
}

fn float(number: f64) -> Json {
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_was() {
        let text = r#"{"a":1,"b":-2.5,"c":"é","d":[true,null,{}],"e":{"x":9007199254740993}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        let table = table(json.as_object().unwrap());
        assert_eq!(Json::Object(object(&table)), json);
        assert_eq!(table.get("a"), Some(&Value::I64(1)));
    }

    #[test]
    fn an_object_may_be_a_list_of_pairs() {
        #[derive(Deserialize)]
        struct Holder {
            #[serde(deserialize_with = "read_object")]
            object: Map<String, Json>,
        }
        let read =
            |text: &str| serde_json::from_str::<Holder>(text).map(|holder| Json::Object(holder.object));
        let expected = serde_json::json!({"a": 1, "b": [2]});
        assert_eq!(read(r#"{"object": {"a": 1, "b": [2]}}"#).unwrap(), expected);
        assert_eq!(read(r#"{"object": [["a", 1], ["b", [2]]]}"#).unwrap(), expected);
        assert_eq!(read(r#"{"object": []}"#).unwrap(), serde_json::json!({}));
        for wrong in [r#"{"object": [1]}"#, r#"{"object": "a"}"#, r#"{"object": [["a"]]}"#] {
            assert!(read(wrong).unwrap_err().to_string().contains("not an object"), "{wrong}");
        }
    }

    #[test]
    fn integers_of_all_widths_come_back_as_equivalent_ones() {
        for narrow in [Value::I8(-3), Value::U8(3), Value::I16(-3), Value::U32(3)] {
            assert!(value(&json(&narrow)).equivalent(&narrow), "{narrow:?}");
        }
    }
}
