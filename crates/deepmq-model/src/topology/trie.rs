//! The topic exchange: a trie of binding keys' words, walked by a routing key's words.
//!
//! Owns the trie and the meaning of `*` and `#`. Must not know what a target is.
//!
//! A binding key has at most two `#`, so it is `head`, `head # tail` or `head # middle # tail`. The head and the middle
//! are stored forwards, the tail **backwards**: behind the last `#` the walk comes from the key's end and so never has to
//! try where a `#` stops. Only the start of a middle is searched for, which bounds a match by the key's words times the
//! nodes that match: it cannot go exponential, and bindings of other words cost nothing.

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::error::TopologyError;
use super::identity::{BindingId, Target};
use super::slab::Slab;
use super::targets::Targets;
use super::words::{Word, Words};

/// How many `#` one binding key may have, as RabbitMQ limits it.
pub(super) const HASHES_MAX: usize = 2;

const ROOT: u32 = 0;

/// A routing key's words. A key of 255 bytes has at most 256, so a match allocates nothing.
type SplitKey<'k> = SmallVec<[Word<'k>; 256]>;

/// One edge of a binding key's path.
#[derive(Debug, Clone, Copy)]
enum Step<'k> {
    Word(&'k [u8]),
    One,
    /// The first `#` of two.
    Middle,
    /// The last `#`.
    Tail,
}

#[derive(Debug, Clone, Default)]
struct Node {
    words: Words,
    one: Option<u32>,
    middle: Option<u32>,
    tail: Option<u32>,
    targets: Targets,
}

impl Node {
    fn is_empty(&self) -> bool {
        self.words.is_empty()
            && self.targets.is_empty()
            && self.one.is_none()
            && self.middle.is_none()
            && self.tail.is_none()
    }
}

#[derive(Debug, Clone)]
pub(super) struct TopicTrie {
    nodes: Slab<Node>,
    hasher: RandomState,
}

impl TopicTrie {
    pub(super) fn new() -> Self {
        let mut nodes = Slab::new();
        nodes.insert(Node::default());
        Self { nodes, hasher: RandomState::default() }
    }

    /// Refuses a binding key of more than [`HASHES_MAX`] `#`.
    pub(super) fn check(key: &[u8]) -> Result<(), TopologyError> {
        let hashes = words(key).filter(|word| *word == b"#").count();
        if hashes <= HASHES_MAX {
            return Ok(());
        }
        let key = String::from_utf8_lossy(key).into_owned();
        Err(TopologyError::TooManyHashes { key, hashes, max: HASHES_MAX })
    }

    pub(super) fn insert(&mut self, key: &[u8], target: Target, binding: BindingId) -> u32 {
        let mut node = ROOT;
        for step in path(key) {
            node = match self.follow(node, step) {
                Some(next) => next,
                None => self.grow(node, step),
            };
        }
        self.nodes.get_mut(node).expect("the path was just made").targets.push(target, binding)
    }

    pub(super) fn remove(&mut self, key: &[u8], position: u32) -> Option<BindingId> {
        let mut trail = SmallVec::<[(u32, Step<'_>); 16]>::new();
        let mut node = ROOT;
        for step in path(key) {
            trail.push((node, step));
            node = self.follow(node, step)?;
        }
        let moved = self.nodes.get_mut(node)?.targets.remove(position);
        while let Some((parent, step)) = trail.pop() {
            if !self.nodes.get(node).is_some_and(Node::is_empty) {
                break;
            }
            self.nodes.remove(node);
            self.detach(parent, step);
            node = parent;
        }
        moved
    }

    /// Tells the targets of every binding key that `key` matches; one may be told more than once.
    pub(super) fn matches(&self, key: &[u8], found: &mut impl FnMut(Target)) {
        let mut split = SplitKey::new();
        split.extend(words(key).map(|bytes| Word::new(bytes, &self.hasher)));
        self.forwards(ROOT, &split, found);
    }

    /// Matches the head, or a middle, below `node`.
    fn forwards(&self, node: u32, words: &[Word<'_>], found: &mut impl FnMut(Target)) {
        let Some(node) = self.nodes.get(node) else { return };
        if let Some(tail) = node.tail {
            self.backwards(tail, words, found);
        }
        if let Some(middle) = node.middle {
            for start in 0..=words.len() {
                self.forwards(middle, words.get(start..).unwrap_or_default(), found);
            }
        }
        let Some((&word, rest)) = words.split_first() else {
            node.targets.iter().for_each(found);
            return;
        };
        for child in [node.words.get(word), node.one].into_iter().flatten() {
            self.forwards(child, rest, found);
        }
    }

    /// Matches a tail below `node` from the key's end; the words left over are the `#`'s.
    fn backwards(&self, node: u32, words: &[Word<'_>], found: &mut impl FnMut(Target)) {
        let Some(node) = self.nodes.get(node) else { return };
        node.targets.iter().for_each(&mut *found);
        let Some((&word, rest)) = words.split_last() else { return };
        for child in [node.words.get(word), node.one].into_iter().flatten() {
            self.backwards(child, rest, found);
        }
    }

    fn follow(&self, node: u32, step: Step<'_>) -> Option<u32> {
        let node = self.nodes.get(node)?;
        match step {
            Step::Word(bytes) => node.words.get(Word::new(bytes, &self.hasher)),
            Step::One => node.one,
            Step::Middle => node.middle,
            Step::Tail => node.tail,
        }
    }

    fn grow(&mut self, parent: u32, step: Step<'_>) -> u32 {
        let child = self.nodes.insert(Node::default());
        let hasher = &self.hasher;
        let node = self.nodes.get_mut(parent).expect("the walk came from here");
        match step {
            Step::Word(bytes) => node.words.insert(Word::new(bytes, hasher), child, hasher),
            Step::One => node.one = Some(child),
            Step::Middle => node.middle = Some(child),
            Step::Tail => node.tail = Some(child),
        }
        child
    }

    fn detach(&mut self, parent: u32, step: Step<'_>) {
        let Some(node) = self.nodes.get_mut(parent) else { return };
        match step {
            Step::Word(bytes) => node.words.remove(Word::new(bytes, &self.hasher)),
            Step::One => node.one = None,
            Step::Middle => node.middle = None,
            Step::Tail => node.tail = None,
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == 1 && self.nodes.get(ROOT).is_some_and(Node::is_empty)
    }
}

/// The words between the dots. Empty words count; the empty key has no word at all.
fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let key = if key.is_empty() { None } else { Some(key) };
    key.into_iter().flat_map(|key| key.split(|&byte| byte == b'.'))
}

/// The steps from the root to a binding key's node.
fn path(key: &[u8]) -> SmallVec<[Step<'_>; 16]> {
    let all: SmallVec<[&[u8]; 16]> = words(key).collect();
    let mut parts = all.split(|word| *word == b"#");
    let mut steps: SmallVec<[Step<'_>; 16]> = forward(parts.next()).collect();
    let Some(tail) = parts.next_back() else { return steps };
    if let Some(middle) = parts.next() {
        steps.push(Step::Middle);
        steps.extend(forward(Some(middle)));
    }
    steps.push(Step::Tail);
    steps.extend(forward(Some(tail)).rev());
    steps
}

fn forward<'k>(words: Option<&[&'k [u8]]>) -> impl DoubleEndedIterator<Item = Step<'k>> {
    words.unwrap_or_default().iter().map(|&word| if word == b"*" { Step::One } else { Step::Word(word) })
}
