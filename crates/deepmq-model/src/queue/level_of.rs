//! Which level a message belongs to, from when it is published until it is settled.
//!
//! Owns a byte for each message near one of another level than the default, and nothing for the rest.

use super::{Position, Run};
use std::collections::BTreeMap;

const PIECE_LEN: usize = 512;
const PIECE: u64 = PIECE_LEN as u64;

/// The levels of messages that are ready or handed out, where they are not the default.
#[derive(Debug)]
pub(super) struct LevelOf {
    default: u8,
    /// By the position of the first, divided by [`PIECE`].
    pieces: BTreeMap<u64, Box<Piece>>,
}

#[derive(Debug)]
struct Piece {
    levels: [u8; PIECE_LEN],
    /// How many are not the default.
    others: u16,
}

fn within(position: Position) -> usize {
    usize::try_from(position.0 % PIECE).expect("less than the length of a piece")
}

impl LevelOf {
    pub(super) fn new(default: u8) -> Self {
        Self { default, pieces: BTreeMap::new() }
    }

    /// The level of messages about which nothing is said.
    pub(super) fn default(&self) -> u8 {
        self.default
    }

    /// Whether all messages are of the default level.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    #[inline]
    pub(super) fn get(&self, position: Position) -> u8 {
        let piece = self.pieces.get(&(position.0 / PIECE));
        piece.and_then(|piece| piece.levels.get(within(position))).copied().unwrap_or(self.default)
    }

    #[inline]
    pub(super) fn set(&mut self, position: Position, level: u8) {
        if level == self.default {
            return;
        }
        let (number, empty) = (position.0 / PIECE, [self.default; PIECE_LEN]);
        let piece = match self.pieces.last_entry() {
            Some(last) if *last.key() == number => last.into_mut(),
            _ => self.pieces.entry(number).or_insert_with(|| Box::new(Piece { levels: empty, others: 0 })),
        };
        if let Some(known) = piece.levels.get_mut(within(position)) {
            piece.others += u16::from(*known == self.default);
            *known = level;
        }
    }

    pub(super) fn forget(&mut self, run: Run) {
        let (mut at, default) = (run.first.0, self.default);
        while at < run.end().0 && !self.pieces.is_empty() {
            let number = at / PIECE;
            let upto = run.end().0.min((number + 1) * PIECE);
            if let Some(piece) = self.pieces.get_mut(&number) {
                for at in at..upto {
                    if let Some(known) =
                        piece.levels.get_mut(within(Position(at))).filter(|level| **level != default)
                    {
                        *known = default;
                        piece.others -= 1;
                    }
                }
                if piece.others == 0 {
                    self.pieces.remove(&number);
                }
            }
            at = upto;
        }
    }
}
