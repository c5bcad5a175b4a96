//! How far records have come, and who waits for that.
//!
//! Owns the two marks and the waiters. Must not know what moves the marks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::Durability;
use crate::failure::{Latch, StorageFailure};
use crate::record::Lsn;

#[derive(Debug)]
pub(super) struct Marks {
    written: AtomicU64,
    durable: AtomicU64,
    waiters: Mutex<Vec<Waiter>>,
    moved: Condvar,
}

#[derive(Debug)]
struct Waiter {
    lsn: Lsn,
    durability: Durability,
    waker: Waker,
}

impl Marks {
    pub(super) fn new(last: Lsn) -> Self {
        Self {
            written: AtomicU64::new(last.0),
            durable: AtomicU64::new(last.0),
            waiters: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    pub(super) fn mark(&self, durability: Durability) -> Lsn {
        Lsn(self.cell(durability).load(Ordering::Acquire))
    }

    fn cell(&self, durability: Durability) -> &AtomicU64 {
        match durability {
            Durability::Os => &self.written,
            Durability::Fsync => &self.durable,
        }
    }

    /// Moves a mark on and wakes who waited for that.
    pub(super) fn advance(&self, durability: Durability, to: Lsn) {
        if self.cell(durability).fetch_max(to.0, Ordering::AcqRel) >= to.0 {
            return;
        }
        let ready: Vec<_> = {
            let mut waiters = self.waiters();
            waiters.extract_if(.., |waiter| waiter.durability == durability && waiter.lsn <= to).collect()
        };
        self.moved.notify_all();
        ready.into_iter().for_each(|waiter| waiter.waker.wake());
    }

    /// Wakes everyone, to see the failure.
    pub(super) fn wake_all(&self) {
        let waiters = std::mem::take(&mut *self.waiters());
        self.moved.notify_all();
        waiters.into_iter().for_each(|waiter| waiter.waker.wake());
    }

    fn reached(&self, lsn: Lsn, durability: Durability, latch: &Latch) -> Poll<Result<(), StorageFailure>> {
        if self.mark(durability) >= lsn {
            return Poll::Ready(Ok(()));
        }
        latch.failure().map_or(Poll::Pending, |failure| Poll::Ready(Err(failure.clone())))
    }

    pub(super) fn poll(
        &self,
        lsn: Lsn,
        durability: Durability,
        waker: &Waker,
        latch: &Latch,
    ) -> Poll<Result<(), StorageFailure>> {
        if let Poll::Ready(outcome) = self.reached(lsn, durability, latch) {
            return Poll::Ready(outcome);
        }
        let mut waiters = self.waiters();
        // Asked again under the lock: a mark is moved before its waiters are collected under the same lock.
        if let Poll::Ready(outcome) = self.reached(lsn, durability, latch) {
            return Poll::Ready(outcome);
        }
        let same = |waiter: &&mut Waiter| waiter.durability == durability && waiter.waker.will_wake(waker);
        match waiters.iter_mut().find(same) {
            Some(waiter) => waiter.lsn = waiter.lsn.min(lsn),
            None => waiters.push(Waiter { lsn, durability, waker: waker.clone() }),
        }
        Poll::Pending
    }

    pub(super) fn wait(&self, lsn: Lsn, durability: Durability, latch: &Latch) -> Result<(), StorageFailure> {
        let mut waiters = self.waiters();
        loop {
            if let Poll::Ready(outcome) = self.reached(lsn, durability, latch) {
                return outcome;
            }
            waiters = self.moved.wait(waiters).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Waiter>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
