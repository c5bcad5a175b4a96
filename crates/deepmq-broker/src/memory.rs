//! The memory that messages take, of all queues together, and the bound on it.
//!
//! Owns the sum and who waits for it to fall. Must not know queues or connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::Notify;

/// Publishers that were stopped go on when the sum has fallen to this share of the bound, in percent.
const RESUME_PERCENT: usize = 95;

/// The sum.
#[derive(Debug)]
pub struct Memory {
    used: AtomicUsize,
    max: usize,
    fell: Notify,
}

impl Memory {
    /// With a bound in bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), max, fell: Notify::new() })
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
            self.used.fetch_add(to - from, Relaxed);
            return;
        }
        let before = self.used.fetch_sub(from - to, Relaxed);
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
