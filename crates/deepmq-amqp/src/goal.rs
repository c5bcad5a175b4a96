//! How far something must have come in the journal before a client is told of it.
//!
//! Owns the comparison of what is waited for with how far the journal is. Must not know who waits.

use deepmq_storage::{Durability, Journal, Lsn};

/// What one thing waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    pub(crate) lsn: Lsn,
    pub(crate) durability: Durability,
}

impl Goal {
    pub(crate) fn synced(lsn: Lsn) -> Self {
        Self { lsn, durability: Durability::Fsync }
    }
}

/// The nearest of several goals, of each durability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Goals {
    os: Option<Lsn>,
    fsync: Option<Lsn>,
}

impl Goals {
    /// One goal per durability, as far as there are.
    pub(crate) fn iter(self) -> impl Iterator<Item = Goal> {
        let goal = |durability| move |lsn| Goal { lsn, durability };
        let fsync = self.fsync.map(goal(Durability::Fsync));
        self.os.map(goal(Durability::Os)).into_iter().chain(fsync)
    }
}

impl FromIterator<Goal> for Goals {
    fn from_iter<I: IntoIterator<Item = Goal>>(goals: I) -> Self {
        let mut nearest = Self::default();
        for Goal { lsn, durability } in goals {
            let known = match durability {
                Durability::Os => &mut nearest.os,
                Durability::Fsync => &mut nearest.fsync,
            };
            *known = Some(known.map_or(lsn, |known| known.min(lsn)));
        }
        nearest
    }
}

/// How far the journal is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    os: Lsn,
    fsync: Lsn,
}

impl Reached {
    pub(crate) fn of(journal: &Journal) -> Self {
        Self { os: journal.mark(Durability::Os), fsync: journal.mark(Durability::Fsync) }
    }

    pub(crate) fn meets(self, goal: Goal) -> bool {
        match goal.durability {
            Durability::Os => goal.lsn <= self.os,
            Durability::Fsync => goal.lsn <= self.fsync,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_meets_a_goal_of_os_alone() {
        let reached = Reached { os: Lsn(9), fsync: Lsn(5) };
        let os = |lsn| Goal { lsn: Lsn(lsn), durability: Durability::Os };
        assert!(reached.meets(os(9)) && !reached.meets(os(10)));
        assert!(reached.meets(Goal::synced(Lsn(5))) && !reached.meets(Goal::synced(Lsn(6))));
    }

    #[test]
    fn the_nearest_goal_of_each_durability_is_waited_for() {
        let os = |lsn| Goal { lsn: Lsn(lsn), durability: Durability::Os };
        let goals: Goals = [Goal::synced(Lsn(8)), os(9), Goal::synced(Lsn(7)), os(11)].into_iter().collect();
        assert_eq!(goals.iter().collect::<Vec<_>>(), [os(9), Goal::synced(Lsn(7))]);
        assert_eq!(Goals::default().iter().count(), 0);
    }
}
