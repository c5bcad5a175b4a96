//! The memory that messages take, of all queues together, and the bounds on it.
//!
//! Owns the sum and who waits for it to fall. Must not know queues or connections.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;

/// Publishers that were stopped go on when the sum has fallen to this share of the bound, in percent.
const RESUME_PERCENT: usize = 95;

/// The sum.
#[derive(Debug)]
pub struct Memory {
    used: AtomicUsize,
    max: usize,
    pool: usize,
    fell: Notify,
    eased: Notify,
    pager: Bell,
}

/// Wakes the one thread that makes room.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }

    /// Waits until it is rung, but not longer than this.
    pub(crate) fn wait(&self, max: Duration) {
        let mut rung = self.rung.lock();
        if !*rung {
            self.changed.wait_for(&mut rung, max);
        }
        *rung = false;
    }
}

impl Memory {
    /// With a bound in bytes, for a broker that keeps all messages in memory.
    pub fn new(max: usize) -> Arc<Self> {
        Self::with_pool(max, usize::MAX)
    }

    /// With a bound in bytes, and another that messages are to be kept below by paging them out.
    pub fn with_pool(max: usize, pool: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            max,
            pool,
            fell: Notify::new(),
            eased: Notify::new(),
            pager: Bell::default(),
        })
    }

    /// What is to be paged out for the pool to be used as it should, in bytes.
    pub(crate) fn surplus(&self) -> usize {
        if self.used() < self.page_out_at() { 0 } else { self.used() - self.page_out_at() / 4 * 3 }
    }

    /// Whether even messages that will soon be needed are to be paged out.
    pub(crate) fn is_short(&self) -> bool {
        self.used() >= self.pool / 2
    }

    /// Whether publishers should wait for messages to be paged out.
    pub fn is_tight(&self) -> bool {
        self.used() >= self.tight_at()
    }

    /// The rest of the pool is for what is on its way when publishers are told to wait, to and from the disk.
    fn tight_at(&self) -> usize {
        self.pool / 8 * 5
    }

    /// Waits until enough is paged out.
    pub async fn until_eased(&self) {
        loop {
            let eased = self.eased.notified();
            if !self.is_tight() {
                return;
            }
            eased.await;
        }
    }

    /// Where paging out begins.
    fn page_out_at(&self) -> usize {
        self.pool / 8 * 3
    }

    pub(crate) fn pager(&self) -> &Bell {
        &self.pager
    }

    /// Bytes taken now.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// The bound in bytes.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Whether publishers must pause.
    pub fn is_full(&self) -> bool {
        self.used() >= self.max
    }

    /// Waits until publishers may go on.
    pub async fn until_free(&self) {
        loop {
            let fell = self.fell.notified();
            if self.used() <= self.resume_at() {
                return;
            }
            fell.await;
        }
    }

    fn resume_at(&self) -> usize {
        self.max / 100 * RESUME_PERCENT
    }

    fn change(&self, from: usize, to: usize) {
        if to >= from {
            let before = self.used.fetch_add(to - from, Relaxed);
            if before < self.page_out_at() && before + (to - from) >= self.page_out_at() {
                self.pager.ring();
            }
            return;
        }
        let before = self.used.fetch_sub(from - to, Relaxed);
        if before >= self.tight_at() && before - (from - to) < self.tight_at() {
            self.eased.notify_waiters();
        }
        if before > self.resume_at() && before - (from - to) <= self.resume_at() {
            self.fell.notify_waiters();
        }
    }
}

/// One queue's part of the sum, or one connection's.
#[derive(Debug)]
pub struct Account {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Account {
    /// A part of nothing yet.
    pub fn new(memory: Arc<Memory>) -> Self {
        Self { memory, bytes: 0 }
    }

    /// What the part is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the part to so many bytes.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.memory.change(self.bytes, bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_add_up_and_take_their_part_with_them() {
        let memory = Memory::new(1000);
        let (mut a, mut b) = (Account::new(memory.clone()), Account::new(memory.clone()));
        a.set(600);
        b.set(399);
        assert!(!memory.is_full());
        b.set(400);
        assert!(memory.is_full());
        a.set(100);
        assert_eq!(memory.used(), 500);
        drop(b);
        assert_eq!(memory.used(), 100);
    }
}
