//! Which policy counts, and what results.

use super::*;

fn table(entries: &[(&str, Value)]) -> Table {
    entries.iter().map(|(key, value)| (*key, value.clone())).collect()
}

fn policy(name: &str, pattern: &str, apply_to: ApplyTo, priority: i64) -> Policy {
    let definition = table(&[("max-length", Value::I64(priority))]);
    Policy { name: name.into(), pattern: Pattern::new(pattern).unwrap(), apply_to, priority, definition }
}

const CLASSIC: Target = Target::Queue(QueueKind::Classic);
const QUORUM: Target = Target::Queue(QueueKind::Quorum);

#[test]
fn the_matching_policy_of_the_highest_priority_counts_alone() {
    let all = ApplyTo::All;
    let policies = vec![policy("low", "^q", all, 1), policy("high", "^q1", all, 2), policy("b", "x", all, 9)];
    let policies = Policies::new(policies, vec![]);
    let named = |name: &str| policies.effective(CLASSIC, name).policy.map(|name| name.to_string());
    assert_eq!(named("q1").as_deref(), Some("high"));
    assert_eq!(named("q2").as_deref(), Some("low"));
    assert_eq!(named("other"), None);
    assert_eq!(policies.effective(CLASSIC, "q1").definition, table(&[("max-length", Value::I64(2))]));
}

#[test]
fn of_equal_priorities_the_first_by_name_counts() {
    let policies =
        Policies::new(vec![policy("b", ".*", ApplyTo::All, 0), policy("a", ".*", ApplyTo::All, 0)], vec![]);
    assert_eq!(policies.effective(CLASSIC, "q").policy.as_deref(), Some("a"));
}

#[test]
fn a_policy_is_only_for_what_it_applies_to() {
    let counts = |apply_to, target| {
        Policies::new(vec![policy("p", ".*", apply_to, 0)], vec![]).effective(target, "n").policy.is_some()
    };
    let targets = [CLASSIC, QUORUM, Target::Exchange];
    let table = [
        (ApplyTo::All, [true, true, true]),
        (ApplyTo::Queues, [true, true, false]),
        (ApplyTo::ClassicQueues, [true, false, false]),
        (ApplyTo::QuorumQueues, [false, true, false]),
        (ApplyTo::Streams, [false, false, false]),
        (ApplyTo::Exchanges, [false, false, true]),
    ];
    for (apply_to, expected) in table {
        assert_eq!(targets.map(|target| counts(apply_to, target)), expected, "{apply_to}");
        assert_eq!(apply_to.name().parse(), Ok(apply_to));
    }
    assert!("Queues".parse::<ApplyTo>().is_err());
}

#[test]
fn of_a_policy_and_an_operators_the_stricter_value_counts() {
    let merged = |key: &str, user: Value, operator: Value| {
        let (user, operator) = (table(&[(key, user)]), table(&[(key, operator)]));
        merge(Some(&user), Some(&operator)).get(key).cloned().unwrap()
    };
    let int = Value::I64;
    for key in ["max-length", "max-length-bytes", "message-ttl", "expires", "delivery-limit"] {
        assert_eq!(merged(key, int(5), int(7)), int(5), "{key}");
        assert_eq!(merged(key, int(7), int(5)), int(5), "{key}");
    }
    assert_eq!(merged("delivery-limit", int(-1), int(5)), int(5));
    assert_eq!(merged("delivery-limit", int(5), int(-1)), int(5));
    assert_eq!(merged("target-group-size", int(3), int(5)), int(5));
    let text = Value::str;
    assert_eq!(merged("overflow", text("drop-head"), text("reject-publish")), text("reject-publish"));
}

#[test]
fn keys_of_one_side_alone_are_kept() {
    let user = table(&[("max-length", Value::I64(1)), ("dead-letter-exchange", Value::str("x"))]);
    let operator = table(&[("expires", Value::I64(2)), ("max-length", Value::I64(3))]);
    let both = table(&[
        ("max-length", Value::I64(1)),
        ("dead-letter-exchange", Value::str("x")),
        ("expires", Value::I64(2)),
    ]);
    assert_eq!(merge(Some(&user), Some(&operator)), both);
    assert_eq!(merge(None, Some(&operator)), operator);
    assert_eq!(merge(Some(&user), None), user);
    assert_eq!(merge(None, None), Table::new());
}

#[test]
fn a_definition_is_checked_key_by_key() {
    use DefinitionFault as F;
    let check = |key: &str, value: Value, rank| check_definition(&table(&[(key, value)]), rank);
    assert_eq!(check("message-ttl", Value::I64(0), PolicyRank::User), Ok(()));
    assert_eq!(check("ha-mode", Value::str("all"), PolicyRank::User), Ok(()));
    assert_eq!(check("max-length", Value::I64(1), PolicyRank::Operator), Ok(()));
    assert_eq!(check_definition(&Table::new(), PolicyRank::User), Err(F::Empty));
    assert_eq!(check("nope", Value::Void, PolicyRank::User), Err(F::UnknownKey("nope".into())));
    let only_users = check("dead-letter-exchange", Value::str("x"), PolicyRank::Operator);
    assert_eq!(only_users, Err(F::NotForOperators("dead-letter-exchange".into())));
    for (key, value, must_be) in [
        ("message-ttl", Value::I64(-1), "a non-negative integer"),
        ("expires", Value::I64(0), "a positive integer"),
        ("max-length", Value::str("1"), "a non-negative integer"),
        ("overflow", Value::str("drop"), "one of drop-head, reject-publish, reject-publish-dlx"),
        ("dead-letter-exchange", Value::I64(1), "a string"),
    ] {
        let fault = F::Value { key: key.into(), must_be };
        assert_eq!(check(key, value, PolicyRank::User), Err(fault), "{key}");
    }
}
