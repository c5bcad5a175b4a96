//! The headers exchange: an index of its bindings by the header a message must have.
//!
//! Owns `x-match` and its meaning. Must not know what a target is.
//!
//! A rule that wants all of its pairs is listed under one of them, the one with the fewest rules at that time; a rule that
//! wants any is listed under each. A void pair is listed under its key alone. A message looks up its own headers, and
//! only the rules found there are compared with it.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::class::hash_pair;
use super::error::TopologyError;
use super::identity::Target;
use super::slab::Slab;
use crate::value::{Table, Value};

const MATCH: &str = "x-match";

/// The bucket of rules without pairs, which match every message.
const EVERY: u64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    All,
    Any,
}

#[derive(Debug, Clone)]
struct Pair {
    key: Box<str>,
    key_hash: u64,
    /// None: the key need only be there.
    value: Option<Value>,
}

/// Where a rule is listed.
#[derive(Debug, Clone, Copy)]
struct Listing {
    bucket: u64,
    position: u32,
}

#[derive(Debug, Clone)]
struct Rule {
    wants: Wants,
    pairs: Box<[Pair]>,
    target: Target,
    listings: SmallVec<[Listing; 1]>,
}

/// An entry of a bucket: a rule and which of its listings this is.
type Entry = (u32, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct HeadersIndex {
    rules: Slab<Rule>,
    buckets: HashMap<u64, Vec<Entry>>,
    hasher: RandomState,
}

/// A message's headers, sorted by the hash of their keys; the first of a repeated key stands first.
type Headers<'t> = SmallVec<[(u64, &'t str, &'t Value); 16]>;

/// What `x-match` says: whether all pairs must match, and whether keys that start with `x-` count.
fn parse_match(arguments: &Table) -> Result<(Wants, bool), TopologyError> {
    let Some(value) = arguments.get(MATCH) else { return Ok((Wants::All, false)) };
    let Value::Str(text) = value else {
        return Err(TopologyError::InvalidMatchType { type_name: value.type_name() });
    };
    match &**text {
        b"all" => Ok((Wants::All, false)),
        b"any" => Ok((Wants::Any, false)),
        b"all-with-x" => Ok((Wants::All, true)),
        b"any-with-x" => Ok((Wants::Any, true)),
        other => Err(TopologyError::InvalidMatch { value: String::from_utf8_lossy(other).into_owned() }),
    }
}

impl HeadersIndex {
    /// Refuses a bad `x-match`.
    pub(super) fn check(arguments: &Table) -> Result<(), TopologyError> {
        parse_match(arguments).map(|_| ())
    }

    /// Adds a rule of checked arguments, and answers the slot by which to remove it.
    pub(super) fn insert(&mut self, arguments: &Table, target: Target) -> u32 {
        let (wants, with_x) = parse_match(arguments).unwrap_or((Wants::All, false));
        let pairs: Box<[Pair]> = arguments
            .iter()
            .filter(|(key, _)| *key != MATCH && (with_x || !key.starts_with("x-")))
            .map(|(key, value)| Pair {
                key: key.into(),
                key_hash: self.hasher.hash_one(key),
                value: (*value != Value::Void).then(|| value.clone()),
            })
            .collect();
        let buckets = self.choose_buckets(wants, &pairs);
        let rule = self.rules.insert(Rule { wants, pairs, target, listings: SmallVec::new() });
        for bucket in buckets {
            self.list(rule, bucket);
        }
        rule
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(rule) = self.rules.remove(slot) else { return };
        for Listing { bucket, position } in rule.listings {
            self.delist(bucket, position);
        }
    }

    /// Tells the targets of every rule the message matches; one may be told more than once.
    pub(super) fn matches(&self, message: &Table, found: &mut impl FnMut(Target)) {
        let headers = self.sorted(message);
        self.try_bucket(EVERY, &headers, found);
        for &(key_hash, key, value) in &headers {
            self.try_bucket(listed_under(key_hash), &headers, found);
            self.try_bucket(listed_under(hash_pair(&self.hasher, key, value)), &headers, found);
        }
    }

    fn try_bucket(&self, bucket: u64, headers: &Headers<'_>, found: &mut impl FnMut(Target)) {
        let Some(entries) = self.buckets.get(&bucket) else { return };
        for &(rule, _) in entries {
            if let Some(rule) = self.rules.get(rule)
                && rule.matches(headers)
            {
                found(rule.target);
            }
        }
    }

    fn sorted<'t>(&self, message: &'t Table) -> Headers<'t> {
        let mut headers: Headers<'t> =
            message.iter().map(|(key, value)| (self.hasher.hash_one(key), key, value)).collect();
        headers.sort_by_key(|&(hash, ..)| hash);
        headers
    }

    fn bucket_of(&self, pair: &Pair) -> u64 {
        match &pair.value {
            None => listed_under(pair.key_hash),
            Some(value) => listed_under(hash_pair(&self.hasher, &pair.key, value)),
        }
    }

    fn choose_buckets(&self, wants: Wants, pairs: &[Pair]) -> SmallVec<[u64; 4]> {
        let all = pairs.iter().map(|pair| self.bucket_of(pair));
        match wants {
            Wants::Any => all.collect(),
            Wants::All => {
                let fewest = all.min_by_key(|bucket| self.buckets.get(bucket).map_or(0, Vec::len));
                SmallVec::from_iter([fewest.unwrap_or(EVERY)])
            }
        }
    }

    fn list(&mut self, slot: u32, bucket: u64) {
        let rule = self.rules.get_mut(slot).expect("the rule was just inserted");
        let entries = self.buckets.entry(bucket).or_default();
        let position = u32::try_from(entries.len()).expect("bindings have 32-bit ids");
        let listing = u32::try_from(rule.listings.len()).expect("arguments are limited");
        rule.listings.push(Listing { bucket, position });
        entries.push((slot, listing));
    }

    fn delist(&mut self, bucket: u64, position: u32) {
        let Some(entries) = self.buckets.get_mut(&bucket) else { return };
        entries.swap_remove(position as usize);
        if let Some(&(moved, listing)) = entries.get(position as usize)
            && let Some(rule) = self.rules.get_mut(moved)
            && let Some(listing) = rule.listings.get_mut(listing as usize)
        {
            listing.position = position;
        }
        if entries.is_empty() {
            self.buckets.remove(&bucket);
        }
    }

    /// How many rules stand in the longest bucket.
    #[cfg(test)]
    pub(super) fn longest_bucket(&self) -> usize {
        self.buckets.values().map(Vec::len).max().unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.rules.len() == 0 && self.buckets.is_empty()
    }
}

impl Rule {
    fn matches(&self, headers: &Headers<'_>) -> bool {
        match self.wants {
            Wants::All => self.pairs.iter().all(|pair| pair.matches(headers)),
            Wants::Any => self.pairs.iter().any(|pair| pair.matches(headers)),
        }
    }
}

impl Pair {
    fn matches(&self, headers: &Headers<'_>) -> bool {
        let start = headers.partition_point(|&(hash, ..)| hash < self.key_hash);
        let mut alike = headers.iter().skip(start).take_while(|&&(hash, ..)| hash == self.key_hash);
        let Some((_, _, found)) = alike.find(|&&(_, key, _)| *key == *self.key) else { return false };
        self.value.as_ref().is_none_or(|value| value.equivalent(found))
    }
}

/// The bucket of a hash: any but that of [`EVERY`].
fn listed_under(hash: u64) -> u64 {
    hash | 1
}
