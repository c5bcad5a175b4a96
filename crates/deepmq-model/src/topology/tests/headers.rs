//! The headers index against the plain meaning of `x-match`.

use proptest::prelude::*;

use super::*;
use crate::topology::headers::HeadersIndex;
use crate::topology::identity::Target;

/// Whether a message with these headers goes over a binding with these arguments.
fn matches(arguments: &Table, headers: &Table) -> bool {
    let mut topology = topology();
    topology.with_queue("q");
    topology.bind("amq.headers", Destination::Queue("q"), b"", arguments, ME).unwrap();
    !topology.routed_with("amq.headers", "ignored", headers).is_empty()
}

/// What `x-match` means, said without regard to cost.
fn naive(arguments: &Table, headers: &Table) -> bool {
    let wants = arguments.get("x-match").and_then(Value::as_str).unwrap_or("all");
    let mut pairs = arguments
        .iter()
        .filter(|&(key, _)| key != "x-match" && (wants.ends_with("-with-x") || !key.starts_with("x-")))
        .map(|(key, value)| match headers.get(key) {
            Some(found) => *value == Value::Void || value.equivalent(found),
            None => false,
        });
    if wants.starts_with("all") { pairs.all(|found| found) } else { pairs.any(|found| found) }
}

#[test]
fn x_match_decides_how_many_pairs_must_match() {
    let (one, two) = (("a", Value::I32(1)), ("b", text("x")));
    let both = table([one.clone(), two.clone()]);
    let half = table([one.clone(), ("b", text("y"))]);
    let with = |wants: &str| table([("x-match", text(wants)), one.clone(), two.clone()]);
    assert!(matches(&both, &both), "all is the default");
    assert!(!matches(&both, &half));
    assert!(matches(&with("all"), &both));
    assert!(!matches(&with("all"), &half));
    assert!(matches(&with("any"), &half));
    assert!(!matches(&with("any"), &Table::new()));
}

#[test]
fn without_pairs_all_matches_everything_and_any_nothing() {
    let headers = table([("a", Value::I32(1))]);
    for headers in [Table::new(), headers] {
        assert!(matches(&Table::new(), &headers));
        assert!(matches(&table([("x-match", text("all")), ("x-tra", text("ignored"))]), &headers));
        assert!(!matches(&table([("x-match", text("any"))]), &headers));
    }
}

#[test]
fn a_void_pair_asks_for_the_key_alone() {
    let arguments = table([("a", Value::Void)]);
    assert!(matches(&arguments, &table([("a", text("whatever"))])));
    assert!(matches(&arguments, &table([("a", Value::Void)])));
    assert!(!matches(&arguments, &table([("b", text("whatever"))])));
}

#[test]
fn values_match_within_their_class() {
    let cases = [
        (Value::I32(5), Value::I64(5), true),
        (Value::U8(5), Value::I8(5), true),
        (Value::I32(5), Value::F64(5.0), false),
        (Value::F32(0.5), Value::F64(0.5), true),
        (Value::I32(5), text("5"), false),
        (text("5"), Value::Bytes(b"5".as_slice().into()), false),
        (Value::Bool(true), Value::Bool(false), false),
        (Value::Timestamp(5), Value::I64(5), false),
        (Value::Array(vec![text("a")]), Value::Array(vec![text("a")]), true),
        (Value::Array(vec![text("a")]), Value::Array(vec![text("b")]), false),
        (Value::F64(f64::NAN), Value::F64(f64::NAN), true),
        (Value::Decimal { scale: 1, digits: 2 }, Value::Decimal { scale: 1, digits: 2 }, true),
        (Value::Table(table([("k", text("a"))])), Value::Table(table([("k", text("a"))])), true),
    ];
    for (bound, sent, expected) in cases {
        let found = matches(&table([("k", bound.clone())]), &table([("k", sent.clone())]));
        assert_eq!(found, expected, "{bound:?} with {sent:?}");
    }
}

#[test]
fn x_keys_count_only_when_asked_for() {
    let headers = table([("x-k", Value::I32(1))]);
    let with = |wants: &str, value| table([("x-match", text(wants)), ("x-k", Value::I32(value))]);
    assert!(matches(&with("all", 2), &headers));
    assert!(!matches(&with("all-with-x", 2), &headers));
    assert!(matches(&with("all-with-x", 1), &headers));
    assert!(!matches(&with("any", 1), &headers));
    assert!(matches(&with("any-with-x", 1), &headers));
}

#[test]
fn of_a_repeated_header_the_first_counts() {
    let headers = table([("a", Value::I32(1)), ("a", Value::I32(2))]);
    assert!(matches(&table([("a", Value::I32(1))]), &headers));
    assert!(!matches(&table([("a", Value::I32(2))]), &headers));
}

#[test]
fn a_pair_that_many_rules_share_is_not_what_they_are_listed_under() {
    let mut index = HeadersIndex::default();
    for i in 0..1000 {
        let arguments = table([("shared", text("same")), ("own", Value::I32(i))]);
        index.insert(&arguments, Target::Queue(QueueId(0)));
    }
    assert_eq!(index.longest_bucket(), 1);
}

fn value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        Value::Void,
        Value::I32(1),
        Value::I64(1),
        Value::I64(2),
        Value::F64(1.0),
        Value::str("1"),
        Value::Bool(true),
        Value::Array(vec![Value::I32(1)]),
        Value::Array(vec![Value::I64(1)]),
    ])
}

fn pairs() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let key = prop::sample::select(vec!["a", "b", "c", "x-d"]);
    prop::collection::vec((key, value()), 0..5)
}

fn arguments() -> impl Strategy<Value = Table> {
    let wants = prop::sample::select(vec!["", "all", "any", "all-with-x", "any-with-x"]);
    (wants, pairs()).prop_map(|(wants, mut pairs)| {
        let mut seen = BTreeSet::new();
        pairs.retain(|&(key, _)| seen.insert(key));
        if !wants.is_empty() {
            pairs.push(("x-match", Value::str(wants)));
        }
        pairs.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn the_index_agrees_with_the_naive_matcher(
        rules in prop::collection::vec(arguments(), 1..24),
        messages in prop::collection::vec(pairs(), 1..12),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut topology = topology();
        for (i, arguments) in rules.iter().enumerate() {
            let queue = format!("q{i:02}");
            topology.with_queue(&queue);
            topology.bind("amq.headers", Destination::Queue(&queue), b"", arguments, ME).unwrap();
        }
        let mut left: BTreeSet<usize> = (0..rules.len()).collect();
        for round in std::iter::once(None).chain(gone.iter().map(Some)) {
            if let Some(index) = round {
                let i = index.index(rules.len());
                left.remove(&i);
                let queue = format!("q{i:02}");
                topology.unbind("amq.headers", Destination::Queue(&queue), b"", &rules[i], ME).unwrap();
            }
            for message in &messages {
                let headers: Table = message.iter().cloned().collect();
                let expected: Vec<String> =
                    left.iter().filter(|&&i| naive(&rules[i], &headers)).map(|i| format!("q{i:02}")).collect();
                prop_assert_eq!(topology.routed_with("amq.headers", "", &headers), expected);
            }
        }
        for i in 0..rules.len() {
            topology.delete_queue(topology.find_queue(&format!("q{i:02}")).unwrap());
        }
        topology.assert_bare();
    }
}
