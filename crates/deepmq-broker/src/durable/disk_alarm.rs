//! The alarm for a disk that fills up: publishers stop while there is still room for what makes some.
//!
//! Owns when it goes off, when it is over, and who waits for that. Must not know connections, or what takes the space.

use deepmq_storage::{Journal, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;

/// Publishers go on once there is so much more than the least, as a share of that.
const MARGIN_DIVISOR: u64 = 8;

/// The alarm of one data directory.
#[derive(Debug)]
pub struct DiskAlarm {
    free_bytes_min: u64,
    free_bytes: AtomicU64,
    low: AtomicBool,
    /// Something was not done for want of space.
    full: AtomicBool,
    journal: Arc<Journal>,
    over: Notify,
}

impl DiskAlarm {
    pub(super) fn new(free_bytes_min: u64, store: &Store) -> Arc<Self> {
        let alarm = Self {
            free_bytes_min,
            free_bytes: AtomicU64::new(u64::MAX),
            low: AtomicBool::new(false),
            full: AtomicBool::new(false),
            journal: store.journal().clone(),
            over: Notify::new(),
        };
        alarm.look(store);
        Arc::new(alarm)
    }

    /// Whether publishers must pause: less than the least is free, or something finds no space, the journal above all.
    pub fn is_on(&self) -> bool {
        self.low.load(Relaxed) || self.full.load(Relaxed) || self.journal.is_short()
    }

    /// Whether there is too little to move what is needed of a journal file elsewhere: such a file is kept.
    pub(super) fn is_cramped(&self, store: &Store) -> bool {
        self.is_on() && (self.journal.is_short() || self.free_bytes() < store.options().journal_file_bytes)
    }

    /// Notes whether something was not done for want of space when it was last tried.
    pub(super) fn note_full(&self, full: bool) {
        self.full.store(full, Relaxed);
    }

    /// Bytes that were free when it was last looked at.
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Relaxed)
    }

    /// The least that is to be free, in bytes.
    pub fn free_bytes_min(&self) -> u64 {
        self.free_bytes_min
    }

    /// Waits until publishers may go on.
    pub async fn until_off(&self) {
        loop {
            let over = self.over.notified();
            if !self.is_on() {
                return;
            }
            over.await;
        }
    }

    /// Looks how much is free. To be called now and then, by one thread.
    pub(super) fn look(&self, store: &Store) {
        let free = match store.free_bytes() {
            Ok(free) => free,
            Err(error) => {
                tracing::warn!(%error, "how much of the disk is free can not be told");
                return;
            }
        };
        self.free_bytes.store(free, Relaxed);
        let was_low = self.low.load(Relaxed);
        let margin = if was_low { self.free_bytes_min / MARGIN_DIVISOR } else { 0 };
        let low = free < self.free_bytes_min.saturating_add(margin);
        self.low.store(low, Relaxed);
        if low != was_low {
            self.tell(low, free);
        }
        if !self.is_on() {
            self.over.notify_waiters();
        }
    }

    fn tell(&self, low: bool, free: u64) {
        let least = self.free_bytes_min;
        if low {
            tracing::warn!(free, least, "low on disk, in bytes: publishers are blocked");
        } else {
            tracing::info!(free, least, "there is enough disk again, in bytes: publishers go on");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepmq_storage::seam::SimDisk;
    use deepmq_storage::{Options, Seam};
    use std::future::Future;
    use std::path::Path;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn store(disk: &SimDisk) -> Store {
        let seam = Seam { disk: Arc::new(disk.clone()), ..Seam::simulated(1) };
        Store::open(&seam, Path::new("/data"), Options::default()).unwrap().0
    }

    #[test]
    fn it_goes_off_below_the_least_and_is_over_with_an_eighth_more() {
        let disk = SimDisk::new();
        let store = store(&disk);
        disk.set_free_bytes(800);
        let alarm = DiskAlarm::new(800, &store);
        let looks = [(800, false), (799, true), (800, true), (899, true), (900, false), (800, false)];
        for (free, on) in looks {
            disk.set_free_bytes(free);
            alarm.look(&store);
            assert_eq!((alarm.is_on(), alarm.free_bytes()), (on, free));
        }
    }

    #[test]
    fn who_waits_is_woken_when_it_is_over_and_without_a_least_it_never_goes_off() {
        let disk = SimDisk::new();
        let store = store(&disk);
        disk.set_free_bytes(0);
        assert!(!DiskAlarm::new(0, &store).is_on());
        let alarm = DiskAlarm::new(1, &store);
        let mut waiting = pin!(alarm.until_off());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        disk.set_free_bytes(10);
        alarm.look(&store);
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
