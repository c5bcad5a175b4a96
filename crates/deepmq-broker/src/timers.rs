//! The broker's one timer: which queue is to be looked at when, and the thread that does it.
//!
//! Owns the order of times. Must not know what is due at a queue: the queue finds out, and says when it is to be looked at again.
//!
//! Times are of the wall clock, in milliseconds since 1970: a message's time goes on while the broker is stopped. The lock is
//! taken with a queue's lock held, and nothing is locked under it.

#[cfg(test)]
mod tests;

use crate::queue::Queue;
use deepmq_storage::seam::Clock;
use parking_lot::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};

/// What never comes.
pub(crate) const NEVER: u64 = u64::MAX;
/// The thread looks at the clock at least so often, for a wall clock can be set.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The times at which queues are to be looked at.
#[derive(Debug)]
pub(crate) struct Timers {
    clock: Arc<dyn Clock>,
    waiting: Mutex<Waiting>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: BinaryHeap<Reverse<Entry>>,
    /// Entries ever made: those of one time come in the order they were made.
    made: u64,
    stopped: bool,
}

#[derive(Debug)]
struct Entry {
    at: u64,
    number: u64,
    queue: Weak<Queue>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Timers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, waiting: Mutex::default(), bell: Condvar::new() })
    }

    /// The time, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        let since = self.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(NEVER)
    }

    /// The queue is to be looked at, at this time or soon after.
    pub(crate) fn at(&self, at: u64, queue: &Arc<Queue>) {
        let mut waiting = self.waiting.lock();
        let first = waiting.entries.peek().is_none_or(|Reverse(first)| at < first.at);
        waiting.made += 1;
        let entry = Entry { at, number: waiting.made, queue: Arc::downgrade(queue) };
        waiting.entries.push(Reverse(entry));
        if first {
            self.bell.notify_one();
        }
    }

    /// Looks at every queue whose time has come by now.
    pub(crate) fn run_due(&self) {
        let now = self.now();
        while let Some((at, queue)) = self.next_due(now) {
            if let Some(queue) = queue.upgrade() {
                queue.look(at, now);
            }
        }
    }

    fn next_due(&self, now: u64) -> Option<(u64, Weak<Queue>)> {
        let mut waiting = self.waiting.lock();
        let due = !waiting.stopped && waiting.entries.peek().is_some_and(|Reverse(first)| first.at <= now);
        due.then(|| waiting.entries.pop()).flatten().map(|Reverse(entry)| (entry.at, entry.queue))
    }

    /// Waits until something is due; false: until it was stopped.
    fn wait(&self) -> bool {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.stopped {
                return false;
            }
            let now = self.now();
            let first = waiting.entries.peek().map_or(NEVER, |Reverse(first)| first.at);
            if first <= now {
                return true;
            }
            self.bell.wait_for(&mut waiting, Duration::from_millis(first - now).min(WAIT_MAX));
        }
    }

    /// Starts the thread that looks at queues.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<TimerThread> {
        let timers = self.clone();
        let run = move || {
            while timers.wait() {
                timers.run_due();
            }
        };
        let thread = thread::Builder::new().name("timers".to_owned()).spawn(run)?;
        Ok(TimerThread { timers: self.clone(), thread: Some(thread) })
    }
}

/// The thread. Stops when dropped.
#[derive(Debug)]
pub(crate) struct TimerThread {
    timers: Arc<Timers>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        self.timers.waiting.lock().stopped = true;
        self.timers.bell.notify_all();
        // The last to hold the broker may be the thread itself, which ends without being waited for then.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}
