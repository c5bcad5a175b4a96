//! The key that names one of several bindings between the same ends.
//!
//! Owns its form, which is RabbitMQ's: `~` for an empty routing key without arguments, the quoted routing key, and with
//! arguments a hash behind another `~`. Must not know bindings beyond that.

use deepmq_model::message::table;
use deepmq_model::{Table, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// All but letters, digits and these, so that `~` divides.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The key of a binding.
pub(super) fn of(routing_key: &[u8], arguments: &Table) -> String {
    if routing_key.is_empty() && arguments.is_empty() {
        return "~".to_owned();
    }
    let key = percent_encode(routing_key, QUOTED).to_string();
    if !arguments.is_empty() {
        return format!("{key}~{:016x}", hash(arguments));
    }
    key
}

/// Whether this is `key` without its quoting, which is what a path leaves of it if a client did not quote it once more.
pub(super) fn is_unquoted(given: &str, key: &str) -> bool {
    percent_decode_str(key).eq(given.bytes())
}

/// FNV-1a over the arguments in the order of their keys: the same in every process, as a name must be.
fn hash(arguments: &Table) -> u64 {
    let mut sorted: Vec<(&str, &Value)> = arguments.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    let mut encoded = Vec::new();
    table::encode(&sorted.into_iter().map(|(key, value)| (key, value.clone())).collect(), &mut encoded);
    encoded
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_routing_keys_and_arguments_apart() {
        let none = Table::new();
        assert_eq!(of(b"", &none), "~");
        assert_eq!(of(b"a.b-c_D1", &none), "a.b-c_D1");
        assert_eq!(of(b"~ /#\xff", &none), "%7E%20%2F%23%FF");
        let one: Table = [("a", Value::I64(1)), ("b", Value::I64(2))].into_iter().collect();
        let turned: Table = [("b", Value::I64(2)), ("a", Value::I64(1))].into_iter().collect();
        assert_eq!(of(b"k", &one), of(b"k", &turned));
        assert!(of(b"", &one).starts_with('~') && of(b"", &one).len() == 17);
        assert_ne!(of(b"", &one), of(b"", &[("a", Value::I64(2))].into_iter().collect()));
    }
}
