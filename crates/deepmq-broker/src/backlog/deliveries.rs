//! Messages on their way to a consumer, read one after the other.
//!
//! Owns the walk over blocks. It is done once per message and by virtual calls, so that nothing in it is looked up twice. Must not
//! know who takes them.

use super::Backlog;
use super::block::Block;
use crate::message::Delivery;
use deepmq_model::queue::{Position, Run};
use std::ops::Range;

/// The messages of several runs.
pub(super) struct Deliveries<'a> {
    backlog: &'a Backlog,
    runs: std::slice::Iter<'a, (Run, bool)>,
    tells_returns: bool,
    /// What is left of the run, and whether it was handed out before.
    run: Range<u64>,
    redelivered: bool,
    /// The block the next message is in, unless that has ended, and its index.
    block: Option<&'a Block>,
    index: usize,
}

impl<'a> Deliveries<'a> {
    pub(super) fn new(backlog: &'a Backlog, runs: &'a [(Run, bool)], tells_returns: bool) -> Self {
        Self {
            backlog,
            runs: runs.iter(),
            tells_returns,
            run: 0..0,
            redelivered: false,
            block: None,
            index: 0,
        }
    }

    /// Goes on to the next run; `None` if there is none.
    fn next_run(&mut self) -> Option<()> {
        let &(run, redelivered) = self.runs.next()?;
        (self.run, self.redelivered) = (run.first.0..run.end().0, redelivered);
        self.index = self.backlog.find(run.first).unwrap_or(usize::MAX);
        self.block = self.backlog.blocks.get(self.index);
        Some(())
    }

    /// Goes on to the next block.
    fn next_block(&mut self) {
        self.index = self.index.saturating_add(1);
        self.block = self.backlog.blocks.get(self.index);
    }
}

impl<'a> Iterator for Deliveries<'a> {
    type Item = Delivery<'a>;

    #[inline]
    fn next(&mut self) -> Option<Delivery<'a>> {
        loop {
            if self.run.start >= self.run.end {
                self.next_run()?;
                continue;
            }
            let Some(block) = self.block else {
                // There is no more of it.
                self.run.start = self.run.end;
                continue;
            };
            let at = self.run.start;
            if at >= block.end() {
                self.next_block();
                continue;
            }
            self.run.start = at + 1;
            let Some(message) = block.read(block.offset(at)) else { continue };
            let position = Position(at);
            let returns = if self.redelivered { self.backlog.returns(position) } else { 0 };
            return Some(Delivery {
                position,
                redelivered: self.redelivered,
                returns,
                tells_returns: self.tells_returns,
                message,
            });
        }
    }
}
