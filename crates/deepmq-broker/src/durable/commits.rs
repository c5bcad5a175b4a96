//! What must be kept as one: a transaction's effects on queues, and the record that tells them.
//!
//! Owns that nobody looks at queues in between: a checkpoint that knew of a settlement before the record of its transaction is
//! durable would keep the half of it. Must not know what a transaction does.

use deepmq_storage::Lsn;
use parking_lot::{RwLock, RwLockReadGuard};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The commits of a broker. Its lock comes before those of queues.
#[derive(Debug, Default)]
pub struct Commits {
    under_way: RwLock<()>,
    /// The last record of one.
    last: AtomicU64,
}

/// A commit that is under way until this is dropped.
#[derive(Debug)]
pub struct Commit<'a> {
    commits: &'a Commits,
    _under_way: RwLockReadGuard<'a, ()>,
}

impl Commits {
    /// Begins one; to be held until its record is appended.
    pub fn begin(&self) -> Commit<'_> {
        Commit { commits: self, _under_way: self.under_way.read() }
    }

    /// Looks at queues while no commit is under way. What was seen may be kept once the record that is returned is durable.
    pub(super) fn between<T>(&self, look: impl FnOnce() -> T) -> (T, Lsn) {
        let _none = self.under_way.write();
        (look(), Lsn(self.last.load(Relaxed)))
    }
}

impl Commit<'_> {
    /// The commit's record was appended.
    pub fn appended(&self, lsn: Lsn) {
        self.commits.last.fetch_max(lsn.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn who_looks_sees_all_of_a_commit_and_learns_its_record() {
        for number in 1..200 {
            let commits = Commits::default();
            let half = AtomicU64::new(0);
            thread::scope(|scope| {
                let commit = commits.begin();
                half.store(1, Relaxed);
                let looking = scope.spawn(|| commits.between(|| half.load(Relaxed)));
                thread::yield_now();
                half.store(2, Relaxed);
                commit.appended(Lsn(number));
                drop(commit);
                assert_eq!(looking.join().unwrap(), (2, Lsn(number)));
            });
        }
    }
}
