//! How arguments and policies are merged, and what is too much.

use super::*;

fn declared(arguments: &[(&str, Value)]) -> QueueArguments {
    let table: Table = arguments.iter().map(|(key, value)| (*key, value.clone())).collect();
    QueueArguments::parse("q", &table).unwrap()
}

fn effective(arguments: &[(&str, Value)], policy: &[(&str, Value)]) -> Settings {
    let policy: Table = policy.iter().map(|(key, value)| (*key, value.clone())).collect();
    Settings::effective(&declared(arguments), &policy)
}

#[test]
fn of_two_numbers_the_smaller_counts_whoever_says_it() {
    type Field = fn(&Settings) -> Option<u64>;
    let fields: [(&str, &str, Field); 5] = [
        ("x-message-ttl", "message-ttl", |settings| settings.message_ttl),
        ("x-expires", "expires", |settings| settings.expires),
        ("x-consumer-timeout", "consumer-timeout", |settings| settings.consumer_timeout),
        ("x-max-length", "max-length", |settings| settings.max_length),
        ("x-max-length-bytes", "max-length-bytes", |settings| settings.max_length_bytes),
    ];
    for (argument, key, field) in fields {
        for (ours, theirs, counts) in [
            (None, None, None),
            (Some(7), None, Some(7)),
            (None, Some(7), Some(7)),
            (Some(7), Some(9), Some(7)),
            (Some(9), Some(7), Some(7)),
        ] {
            let arguments: Vec<_> = ours.map(|n| (argument, Value::I64(n))).into_iter().collect();
            let policy: Vec<_> = theirs.map(|n| (key, Value::I64(n))).into_iter().collect();
            assert_eq!(field(&effective(&arguments, &policy)), counts, "{argument} {ours:?} {theirs:?}");
        }
    }
}

#[test]
fn a_negative_delivery_limit_is_none_and_quorum_queues_have_one_of_their_own() {
    let quorum = ("x-queue-type", Value::str("quorum"));
    let limit = |n| ("x-delivery-limit", Value::I64(n));
    let policy = |n| [("delivery-limit", Value::I64(n))];
    assert_eq!(effective(&[], &[]).delivery_limit, None);
    assert_eq!(effective(std::slice::from_ref(&quorum), &[]).delivery_limit, Some(20));
    assert_eq!(effective(&[quorum.clone(), limit(-1)], &[]).delivery_limit, None);
    assert_eq!(effective(&[quorum, limit(3)], &policy(5)).delivery_limit, Some(3));
    assert_eq!(effective(&[limit(-1)], &policy(5)).delivery_limit, Some(5));
    assert_eq!(effective(&[limit(3)], &policy(-1)).delivery_limit, Some(3));
    assert!(!effective(&[], &[]).tells_returns && effective(&[limit(-1)], &[]).tells_returns);
}

#[test]
fn the_argument_beats_the_policy_but_for_the_overflow_of_quorum_queues() {
    let policy = [
        ("overflow", Value::str("reject-publish")),
        ("dead-letter-exchange", Value::str("theirs")),
        ("dead-letter-routing-key", Value::str("key")),
    ];
    let ours = [("x-overflow", Value::str("drop-head")), ("x-dead-letter-exchange", Value::str("ours"))];
    let classic = effective(&ours, &policy);
    assert_eq!(classic.overflow, Overflow::DropHead);
    let key = Some(b"key"[..].into());
    let to = DeadLetterTo { exchange: "ours".into(), routing_key: key, at_least_once: false };
    assert_eq!(classic.dead_letter, Some(to));
    let [overflow, _] = ours;
    let quorum = effective(&[overflow, ("x-queue-type", Value::str("quorum"))], &policy);
    assert_eq!(quorum.overflow, Overflow::RejectPublish);
    assert_eq!(&*quorum.dead_letter.unwrap().exchange, "theirs");
    assert_eq!(effective(&[], &[("dead-letter-routing-key", Value::str("key"))]).dead_letter, None);
}

#[test]
fn a_queue_is_too_long_from_one_above_either_limit() {
    let both = effective(&[("x-max-length", Value::I64(2)), ("x-max-length-bytes", Value::I64(10))], &[]);
    for (ready, bytes, exceeded) in [(2, 10, false), (3, 1, true), (1, 11, true)] {
        assert_eq!(both.is_exceeded(ready, bytes), exceeded, "{ready} {bytes}");
    }
    assert!(!Settings::default().is_exceeded(u64::MAX, u64::MAX) && !Settings::default().is_limited());
}

#[test]
fn a_message_is_undeliverable_once_it_came_back_more_often_than_the_limit() {
    let settings = effective(&[("x-delivery-limit", Value::I64(1))], &[]);
    assert!(!settings.is_undeliverable(1) && settings.is_undeliverable(2));
    assert!(!Settings::default().is_undeliverable(u32::MAX));
}

#[test]
fn dead_letters_are_sent_at_least_once_only_if_a_full_queue_refuses_what_is_published() {
    let text = Value::str;
    let to = ("x-dead-letter-exchange", text("dlx"));
    let refuses = ("x-overflow", text("reject-publish"));
    let strategy = |name| ("x-dead-letter-strategy", text(name));
    let policy = [("dead-letter-strategy", text("at-least-once"))];
    let kept = |arguments: &[_], policy: &[_]| {
        effective(&[std::slice::from_ref(&to), arguments].concat(), policy).dead_letter.unwrap().at_least_once
    };
    assert!(kept(&[refuses.clone(), strategy("at-least-once")], &[]));
    assert!(kept(std::slice::from_ref(&refuses), &policy));
    assert!(!kept(&[refuses.clone(), strategy("at-most-once")], &policy), "the argument beats the policy");
    assert!(!kept(std::slice::from_ref(&refuses), &[]));
    for overflow in ["drop-head", "reject-publish-dlx"] {
        assert!(!kept(&[("x-overflow", text(overflow)), strategy("at-least-once")], &[]), "{overflow}");
    }
    assert!(!kept(&[strategy("at-least-once")], &[]));
    assert_eq!(effective(&[refuses, strategy("at-least-once")], &[]).dead_letter, None);
}
