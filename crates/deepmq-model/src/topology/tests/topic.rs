//! The topic trie against the plain meaning of its wildcards.

use proptest::prelude::*;

use super::*;
use crate::topology::identity::{BindingId, Target};
use crate::topology::trie::TopicTrie;

/// What `*` and `#` mean, said without regard to cost.
fn naive(pattern: &[&[u8]], key: &[&[u8]]) -> bool {
    match (pattern.split_first(), key.split_first()) {
        (None, None) => true,
        (Some((&b"#", rest)), _) => (0..=key.len()).any(|skipped| naive(rest, &key[skipped..])),
        (None, Some(_)) | (Some(_), None) => false,
        (Some((&word, rest)), Some((&found, key))) => (word == b"*" || word == found) && naive(rest, key),
    }
}

fn split(key: &str) -> Vec<&[u8]> {
    if key.is_empty() { Vec::new() } else { key.as_bytes().split(|&byte| byte == b'.').collect() }
}

fn matches(pattern: &str, key: &str) -> bool {
    let mut trie = TopicTrie::new();
    trie.insert(pattern.as_bytes(), Target::Queue(QueueId(0)), BindingId(0));
    let mut found = false;
    trie.matches(key.as_bytes(), &mut |_| found = true);
    found
}

#[test]
fn wildcards_mean_one_word_and_any_number_of_words() {
    let cases = [
        ("a.b", "a.b", true),
        ("a.b", "a.b.c", false),
        ("a.*", "a.b", true),
        ("a.*", "a", false),
        ("a.*", "a.", true),
        ("*", "", false),
        ("#", "", true),
        ("", "", true),
        ("", ".", false),
        ("*.*", ".", true),
        ("#", "a.b.c", true),
        ("a.#", "a", true),
        ("#.a", "a", true),
        ("#.a", "b.c.a", true),
        ("a.#.b", "a.b", true),
        ("a.#.b", "a.x.y.b", true),
        ("a.#.b", "a", false),
        ("a.#.a", "a", false),
        ("#.#", "", true),
        ("#.b.#", "a.b.c", true),
        ("#.b.#", "a.c", false),
        ("#.*.#", "", false),
        ("#.a.#.a", "a", false),
        ("a*.b", "ax.b", false),
    ];
    for (pattern, key, expected) in cases {
        assert_eq!(matches(pattern, key), expected, "{pattern} with {key}");
        assert_eq!(naive(&split(pattern), &split(key)), expected, "naively: {pattern} with {key}");
    }
}

#[test]
fn hostile_keys_and_patterns_end_soon() {
    let mut trie = TopicTrie::new();
    let key = "a.".repeat(127);
    for words in 0..120 {
        let pattern = format!("#.{}#.{}b", "a.".repeat(words), "*.".repeat(120 - words));
        trie.insert(pattern.as_bytes(), Target::Queue(QueueId(0)), BindingId(0));
    }
    let mut found = 0;
    trie.matches(key.as_bytes(), &mut |_| found += 1);
    assert_eq!(found, 0);
}

fn pattern() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["a", "b", "c", "", "*", "#", "longer than sixteen bytes"]);
    let hashes = |words: &Vec<&str>| words.iter().filter(|&&word| word == "#").count() <= 2;
    prop::collection::vec(word, 0..6)
        .prop_filter("at most two hashes", hashes)
        .prop_map(|words| words.join("."))
}

fn key() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["a", "b", "c", "", "longer than sixteen bytes"]);
    prop::collection::vec(word, 0..7).prop_map(|words| words.join("."))
}

proptest! {
    #[test]
    fn the_trie_agrees_with_the_naive_matcher(
        patterns in prop::collection::vec(pattern(), 1..24),
        keys in prop::collection::vec(key(), 1..12),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut topology = topology();
        for (i, pattern) in patterns.iter().enumerate() {
            topology.with_queue(&format!("q{i:02}"));
            topology.bind_queue("amq.topic", &format!("q{i:02}"), pattern);
        }
        let mut left: BTreeSet<usize> = (0..patterns.len()).collect();
        for round in std::iter::once(None).chain(gone.iter().map(Some)) {
            if let Some(index) = round {
                let i = index.index(patterns.len());
                left.remove(&i);
                let queue = format!("q{i:02}");
                let key = patterns[i].as_bytes();
                topology.unbind("amq.topic", Destination::Queue(&queue), key, &Table::new(), ME).unwrap();
            }
            for key in &keys {
                let expected: Vec<String> = left
                    .iter()
                    .filter(|&&i| naive(&split(&patterns[i]), &split(key)))
                    .map(|i| format!("q{i:02}"))
                    .collect();
                prop_assert_eq!(topology.routed("amq.topic", key), expected);
            }
        }
        for i in 0..patterns.len() {
            topology.delete_queue(topology.find_queue(&format!("q{i:02}")).unwrap());
        }
        topology.assert_bare();
    }
}
