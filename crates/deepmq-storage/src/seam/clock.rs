//! Time: a monotonic clock for durations and a wall clock for dates.
//!
//! Owns what an instant is to the broker. Must not know timers: nothing here waits.

use std::fmt;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An instant of the monotonic clock, as the time since that clock started. Never goes back; means nothing in another
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// The instant `elapsed` after the clock's start.
    pub const fn from_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time since the clock's start.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to this instant; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    /// The instant `rhs` later; the end of time if that is beyond it.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

/// Both clocks of the broker.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The monotonic clock: for deadlines, intervals and ages.
    fn now(&self) -> Monotonic;

    /// The wall clock: for dates a person or a peer sees. May jump in either direction.
    fn wall(&self) -> SystemTime;
}

/// The operating system's clocks.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic side starts now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Monotonic {
        Monotonic(self.started.elapsed())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that moves only when told to. Both sides advance together; the wall clock starts at 2000-01-01 00:00 UTC.
#[derive(Debug, Default)]
pub struct SimClock {
    elapsed_nanos: AtomicU64,
}

impl SimClock {
    /// Thirty years with seven leap days after 1970.
    const WALL_AT_START: Duration = Duration::from_hours(30 * 365 * 24 + 7 * 24);

    /// A clock at its start.
    pub const fn new() -> Self {
        Self { elapsed_nanos: AtomicU64::new(0) }
    }

    /// Moves both sides on by `step`. A simulation can last 584 years.
    pub fn advance(&self, step: Duration) {
        let nanos = u64::try_from(step.as_nanos()).expect("a simulation is shorter than 584 years");
        self.elapsed_nanos.fetch_add(nanos, Ordering::SeqCst);
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_nanos.load(Ordering::SeqCst))
    }
}

impl Clock for SimClock {
    fn now(&self) -> Monotonic {
        Monotonic(self.elapsed())
    }

    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Self::WALL_AT_START + self.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_moves_both_sides_by_exactly_what_it_is_told() {
        let clock = SimClock::new();
        let (then, date) = (clock.now(), clock.wall());
        assert_eq!(clock.now(), then);
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().since(then), Duration::from_millis(1500));
        assert_eq!(clock.wall(), date + Duration::from_millis(1500));
    }

    #[test]
    fn the_system_clock_starts_at_zero_and_never_goes_back() {
        let clock = SystemClock::start();
        let first = clock.now();
        assert!(first.since_start() < Duration::from_mins(1));
        assert!(clock.now() >= first);
    }

    #[test]
    fn arithmetic_on_instants_saturates() {
        let early = Monotonic::from_start(Duration::from_secs(1));
        let late = early + Duration::MAX;
        assert_eq!(late.since_start(), Duration::MAX);
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
