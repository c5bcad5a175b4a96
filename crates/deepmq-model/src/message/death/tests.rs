//! The headers of dead letters, and who goes round.

use super::*;

fn encoded(properties: &Properties) -> Vec<u8> {
    let mut bytes = Vec::new();
    properties.encode(&mut bytes);
    bytes
}

fn death(queue: &str, reason: Reason, seconds: u64) -> Death<'_> {
    Death { queue, reason, seconds, exchange: b"x", routing_key: b"key" }
}

fn strings(texts: &[&str]) -> Value {
    Value::Array(texts.iter().map(Value::str).collect())
}

/// The deaths told of, as reason, queue, count and time.
fn told(letter: &Letter) -> Vec<(String, String, i64, u64)> {
    let Some(Value::Array(deaths)) = letter.headers.get(DEATHS) else { return Vec::new() };
    let entries = deaths.iter().filter_map(|death| match death {
        Value::Table(entry) => Some(entry),
        _ => None,
    });
    let text = |entry: &Table, key| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    entries
        .map(|entry| {
            let Some(&Value::Timestamp(time)) = entry.get("time") else { panic!("a death has a time") };
            let count = entry.get("count").and_then(Value::as_integer).unwrap_or_default();
            (text(entry, "reason"), text(entry, "queue"), count, time)
        })
        .collect()
}

#[test]
fn a_first_death_is_told_whole_and_the_expiration_moves_into_it() {
    let headers: Table =
        [("mine", Value::I32(1)), ("CC", strings(&["cc"])), ("BCC", strings(&["bcc"]))].into_iter().collect();
    let properties =
        Properties { headers: Some(headers), expiration: Some(b"500"[..].into()), ..Properties::default() };
    let letter = bury(&encoded(&properties), false, &death("q", Reason::Expired, 9), false).unwrap();
    let entry: Table = [
        ("original-expiration", Value::str("500")),
        ("count", Value::I64(1)),
        ("reason", Value::str("expired")),
        ("queue", Value::str("q")),
        ("time", Value::Timestamp(9)),
        ("exchange", Value::str("x")),
        ("routing-keys", strings(&["key", "cc"])),
    ]
    .into_iter()
    .collect();
    let expected: Table = [
        ("mine", Value::I32(1)),
        ("CC", strings(&["cc"])),
        ("x-death", Value::Array(vec![Value::Table(entry)])),
        ("x-first-death-reason", Value::str("expired")),
        ("x-last-death-reason", Value::str("expired")),
        ("x-first-death-queue", Value::str("q")),
        ("x-last-death-queue", Value::str("q")),
        ("x-first-death-exchange", Value::str("x")),
        ("x-last-death-exchange", Value::str("x")),
    ]
    .into_iter()
    .collect();
    assert_eq!(letter.headers, expected);
    let decoded = Properties::decode(&letter.properties).unwrap();
    assert_eq!((decoded.headers, decoded.expiration), (Some(expected), None));
    assert_eq!(letter.keys, [b"key"[..].into(), b"cc"[..].into(), Text::from(&b"bcc"[..])]);
}

#[test]
fn the_same_death_again_is_counted_and_moves_to_the_front_with_its_first_time() {
    let first = bury(&[0, 0], false, &death("a", Reason::Rejected, 1), false).unwrap();
    let second = bury(&first.properties, true, &death("b", Reason::Expired, 2), false).unwrap();
    let third = bury(&second.properties, true, &death("a", Reason::Rejected, 3), false).unwrap();
    let row = |reason: &str, queue: &str, count, time| (reason.to_owned(), queue.to_owned(), count, time);
    assert_eq!(told(&third), [row("rejected", "a", 2, 1), row("expired", "b", 1, 2)]);
    let fourth = bury(&third.properties, true, &death("a", Reason::MaxLen, 4), false).unwrap();
    assert_eq!(told(&fourth).len(), 3);
    assert_eq!(fourth.headers.get("x-first-death-queue"), Some(&Value::str("a")));
    assert_eq!(fourth.headers.get("x-first-death-reason"), Some(&Value::str("rejected")));
    assert_eq!(fourth.headers.get("x-last-death-reason"), Some(&Value::str("maxlen")));
}

#[test]
fn what_a_client_says_of_deaths_is_not_believed() {
    let claimed = bury(&[0, 0], false, &death("elsewhere", Reason::Expired, 1), false).unwrap();
    let letter = bury(&claimed.properties, false, &death("q", Reason::Expired, 2), false).unwrap();
    assert_eq!(told(&letter), [("expired".to_owned(), "q".to_owned(), 1, 2)]);
    assert_eq!(letter.headers.get("x-first-death-queue"), Some(&Value::str("q")));
    assert!(!letter.goes_round("elsewhere") && letter.goes_round("q"));
}

#[test]
fn another_routing_key_ends_further_ones() {
    let headers: Table = [("CC", strings(&["cc"])), ("BCC", strings(&["bcc"]))].into_iter().collect();
    let properties = encoded(&Properties { headers: Some(headers), ..Properties::default() });
    let letter = bury(&properties, false, &death("q", Reason::MaxLen, 9), true).unwrap();
    assert_eq!((letter.headers.get("CC"), letter.headers.get("BCC")), (None, None));
}

#[test]
fn a_letter_goes_round_unless_it_was_rejected_on_the_way() {
    let expired = bury(&[0, 0], false, &death("a", Reason::Expired, 1), false).unwrap();
    let again = bury(&expired.properties, true, &death("b", Reason::DeliveryLimit, 2), false).unwrap();
    assert!(again.goes_round("a") && again.goes_round("b") && !again.goes_round("c"));
    let rejected = bury(&again.properties, true, &death("c", Reason::Rejected, 3), false).unwrap();
    assert!(!rejected.goes_round("a") && !rejected.goes_round("c"));
}
