//! The headers CC and BCC: routing keys that a message has beside its own.
//!
//! Owns their form, and that nobody who gets the message sees BCC. Must not know how a key is routed. The rules are RabbitMQ's
//! (reference 1.6).

use super::bytes::{Malformed, Reader};
use super::properties::{Properties, Text, headers};
use super::table;
use crate::value::{Table, Value};

const CC: &str = "CC";
const BCC: &str = "BCC";

/// What the headers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carbon {
    /// The keys, those of CC first.
    pub keys: Vec<Text>,
    /// The properties without BCC, encoded, if there was one.
    pub stripped: Option<Vec<u8>>,
}

/// Why they say nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CarbonFault {
    /// A header is no array of strings. Displays as RabbitMQ's reason.
    #[error("{{unacceptable_type_in_header,\"{header}\",{type_name}}}")]
    Type {
        /// `CC` or `BCC`.
        header: &'static str,
        /// The type of what is wrong.
        type_name: &'static str,
    },
    /// The properties are not valid.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Reads the headers of validated properties; none if they have neither CC nor BCC.
///
/// # Errors
/// One of them is no array of strings.
pub fn carbon(properties: &[u8]) -> Result<Option<Carbon>, CarbonFault> {
    let Some(encoded) = headers(properties).filter(|headers| table::has_any(headers, [CC, BCC])) else {
        return Ok(None);
    };
    let headers = table::decode(&mut Reader::new(encoded))?;
    let mut keys = Vec::new();
    for header in [CC, BCC] {
        keys_of(&headers, header, &mut keys)?;
    }
    let stripped = headers.get(BCC).is_some().then(|| strip(properties, &headers)).transpose()?;
    Ok(Some(Carbon { keys, stripped }))
}

fn keys_of(headers: &Table, header: &'static str, keys: &mut Vec<Text>) -> Result<(), CarbonFault> {
    let fault = |value: &Value| CarbonFault::Type { header, type_name: value.type_name() };
    match headers.get(header) {
        None => Ok(()),
        Some(Value::Array(values)) => values.iter().try_for_each(|value| match value {
            Value::Str(key) => {
                keys.push(key.clone());
                Ok(())
            }
            other => Err(fault(other)),
        }),
        Some(other) => Err(fault(other)),
    }
}

fn strip(properties: &[u8], headers: &Table) -> Result<Vec<u8>, Malformed> {
    let mut properties = Properties::decode(properties)?;
    let seen = headers.iter().filter(|(key, _)| *key != BCC);
    properties.headers = Some(seen.map(|(key, value)| (key, value.clone())).collect());
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(headers: &[(&str, Value)]) -> Vec<u8> {
        let headers = (!headers.is_empty()).then(|| headers.iter().cloned().collect());
        let mut bytes = Vec::new();
        Properties { headers, delivery_mode: Some(2), ..Properties::default() }.encode(&mut bytes);
        bytes
    }

    fn strings(keys: &[&str]) -> Value {
        Value::Array(keys.iter().map(Value::str).collect())
    }

    #[test]
    fn keys_of_both_are_read_and_only_bcc_is_hidden() {
        let (cc, bcc) = (("CC", strings(&["a", "b"])), ("BCC", strings(&["c"])));
        let other = ("x", Value::I32(1));
        let keys = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().into()).collect::<Vec<Text>>();
        let both = carbon(&encoded(&[bcc.clone(), other.clone(), cc.clone()])).unwrap().unwrap();
        let stripped = Some(encoded(&[other.clone(), cc.clone()]));
        assert_eq!(both, Carbon { keys: keys(&["a", "b", "c"]), stripped });
        let one = carbon(&encoded(&[other.clone(), cc])).unwrap().unwrap();
        assert_eq!(one, Carbon { keys: keys(&["a", "b"]), stripped: None });
        assert_eq!(carbon(&encoded(&[other])), Ok(None));
        assert_eq!(carbon(&encoded(&[])), Ok(None));
    }

    #[test]
    fn what_is_no_array_of_strings_is_refused_with_its_type() {
        for (header, value, reason) in [
            ("CC", Value::str("a"), "{unacceptable_type_in_header,\"CC\",longstr}"),
            ("BCC", Value::I32(1), "{unacceptable_type_in_header,\"BCC\",signedint}"),
            ("CC", Value::Array(vec![Value::Bool(true)]), "{unacceptable_type_in_header,\"CC\",bool}"),
        ] {
            assert_eq!(carbon(&encoded(&[(header, value)])).unwrap_err().to_string(), reason);
        }
    }
}
