//! The content of one simulated file: as processes see it, and as a crash would leave it.
//!
//! Owns both images and the changes between them. Must not know the file's name.

use std::ops::Range;

use crate::seam::{Random, SeededRandom};

/// A disk writes this many bytes or none of them.
const SECTOR: usize = 512;

/// A change to a file.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Truncate(u64),
    Extend(u64),
}

/// The two images of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl Inode {
    pub(super) fn live(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn apply(&mut self, change: Change) {
        change.apply_to(&mut self.live);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.pending.drain(..).for_each(|change| change.apply_to(&mut self.durable));
    }

    pub(super) fn flip(&mut self, offset: usize, mask: u8) {
        for image in [&mut self.live, &mut self.durable] {
            image.get_mut(offset).into_iter().for_each(|byte| *byte ^= mask);
        }
    }

    pub(super) fn zero(&mut self, range: Range<usize>) {
        for image in [&mut self.live, &mut self.durable] {
            image.get_mut(range.clone()).unwrap_or_default().fill(0);
        }
    }

    /// What a crash of this kind leaves.
    pub(super) fn survivor(&self, kind: u64, random: &SeededRandom) -> Self {
        let mut image = self.durable.clone();
        match kind {
            0 => {}
            1 => image.clone_from(&self.live),
            2 => self.keep_prefix(&mut image, random),
            _ => self.keep_sectors(&mut image, random),
        }
        Self { live: image.clone(), durable: image, pending: Vec::new() }
    }

    fn keep_prefix(&self, image: &mut Vec<u8>, random: &SeededRandom) {
        let keep = draw(random, self.pending.len() as u64 + 1);
        for (index, change) in (0..).zip(&self.pending) {
            match change {
                _ if index < keep => change.apply_to(image),
                Change::Write { offset, bytes } if index == keep => {
                    let sectors = bytes.len().div_ceil(SECTOR) as u64;
                    let kept = usize::try_from(draw(random, sectors + 1)).unwrap_or(0) * SECTOR;
                    let bytes = bytes.iter().copied().take(kept).collect();
                    Change::Write { offset: *offset, bytes }.apply_to(image);
                }
                _ => return,
            }
        }
    }

    fn keep_sectors(&self, image: &mut Vec<u8>, random: &SeededRandom) {
        for change in &self.pending {
            let Change::Write { offset, bytes } = change else {
                if draw(random, 2) == 0 {
                    change.apply_to(image);
                }
                continue;
            };
            let (mut at, mut rest) = (*offset, bytes.as_slice());
            while !rest.is_empty() {
                let to_boundary = SECTOR - usize::try_from(at % SECTOR as u64).unwrap_or(0);
                let (sector, after) = rest.split_at(to_boundary.min(rest.len()));
                if draw(random, 2) == 0 {
                    Change::Write { offset: at, bytes: sector.to_vec() }.apply_to(image);
                }
                at += sector.len() as u64;
                rest = after;
            }
        }
    }
}

impl Change {
    fn apply_to(&self, image: &mut Vec<u8>) {
        let size = |bytes: u64| usize::try_from(bytes).expect("a simulated file fits in memory");
        match self {
            Self::Truncate(bytes) => image.resize(size(*bytes), 0),
            Self::Extend(bytes) => image.resize(image.len().max(size(*bytes)), 0),
            Self::Write { offset, bytes } if !bytes.is_empty() => {
                let start = size(*offset);
                image.resize(image.len().max(start + bytes.len()), 0);
                image.iter_mut().skip(start).zip(bytes).for_each(|(to, from)| *to = *from);
            }
            Self::Write { .. } => {}
        }
    }
}

/// A number below `below`.
pub(super) fn draw(random: &SeededRandom, below: u64) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    u64::from_le_bytes(bytes) % below.max(1)
}
