//! The simulated directory tree: as processes see it, and as a crash would leave it.
//!
//! Owns both trees and the changes between them. Must not know the files' content.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::inode::draw;
use crate::seam::{Entry, SeededRandom};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    File(u64),
}

type Tree = BTreeMap<PathBuf, Node>;

#[derive(Debug, Clone)]
enum Change {
    Add(PathBuf, Node),
    Remove(PathBuf),
    Rename { from: PathBuf, to: PathBuf, node: Node },
}

impl Change {
    fn apply_to(&self, tree: &mut Tree) {
        match self {
            Self::Add(path, node) => {
                tree.insert(path.clone(), *node);
            }
            Self::Remove(path) => {
                tree.remove(path);
            }
            Self::Rename { from, to, node } => {
                tree.remove(from);
                tree.insert(to.clone(), *node);
            }
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        match self {
            Self::Add(path, _) | Self::Remove(path) | Self::Rename { to: path, .. } => {
                path.parent() == Some(dir)
            }
        }
    }
}

/// The two trees.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    live: Tree,
    durable: Tree,
    pending: Vec<Change>,
}

impl Names {
    pub(super) fn node(&self, path: &Path) -> Option<Node> {
        self.live.get(path).copied()
    }

    pub(super) fn add(&mut self, path: &Path, node: Node) {
        self.apply(Change::Add(path.to_owned(), node));
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.apply(Change::Remove(path.to_owned()));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        if let Some(node) = self.node(from) {
            self.apply(Change::Rename { from: from.to_owned(), to: to.to_owned(), node });
        }
    }

    fn apply(&mut self, change: Change) {
        change.apply_to(&mut self.live);
        if matches!(&change, Change::Add(path, _) if path.parent().is_none()) {
            change.apply_to(&mut self.durable); // the root is in no directory that could be synced
        } else {
            self.pending.push(change);
        }
    }

    pub(super) fn must_have_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent().and_then(|dir| self.node(dir)) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.live.iter().filter_map(|(path, node)| match node {
            Node::File(number) => Some((path.as_path(), *number)),
            Node::Dir => None,
        })
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        match self.node(dir) {
            None => return Err(io::ErrorKind::NotFound.into()),
            Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            Some(Node::Dir) => {}
        }
        let inside = self.live.range(dir.to_owned()..).skip(1).take_while(|(path, _)| path.starts_with(dir));
        let entries = inside.filter(|(path, _)| path.parent() == Some(dir)).filter_map(|(path, node)| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some(Entry { name, is_dir: *node == Node::Dir })
        });
        Ok(entries.collect())
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let here = change.is_in(dir);
            if here {
                change.apply_to(durable);
            }
            !here
        });
    }

    /// What a crash of this kind leaves. A name survives only in a directory that does.
    pub(super) fn survivor(&self, kind: u64, random: &SeededRandom) -> Self {
        let mut tree = self.durable.clone();
        let prefix = draw(random, self.pending.len() as u64 + 1);
        for (index, change) in (0..).zip(&self.pending) {
            let kept = match kind {
                0 => false,
                1 => true,
                2 => index < prefix,
                _ => draw(random, 2) == 0,
            };
            if kept {
                change.apply_to(&mut tree);
            }
        }
        let whole: Tree = tree
            .iter()
            .filter(|(path, _)| path.ancestors().skip(1).all(|dir| tree.get(dir) == Some(&Node::Dir)))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        Self { live: whole.clone(), durable: whole, pending: Vec::new() }
    }
}
