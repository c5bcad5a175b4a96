//! The bound on refused logins: per address, within a minute.
//!
//! Owns who failed lately. Must not know users or passwords.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

const WINDOW: Duration = Duration::from_mins(1);
/// Addresses remembered at most. When there are more, those whose minute is over are forgotten, and if there are none, all
/// are: a crowd of addresses must cost no memory.
const ADDRESSES_MAX: usize = 4096;

/// What failed from an address since a moment.
#[derive(Debug, Clone, Copy)]
struct Failures {
    since: Duration,
    count: u32,
}

/// The failures of all addresses. Times are those since the broker's clock started.
#[derive(Debug)]
pub(crate) struct LoginGuard {
    failures_max: u32,
    failures: Mutex<HashMap<IpAddr, Failures>>,
}

impl LoginGuard {
    /// With so many failures a minute; 0 is no bound.
    pub(crate) fn new(failures_max: u32) -> Self {
        Self { failures_max, failures: Mutex::default() }
    }

    /// Whether a password from this address is looked at.
    pub(crate) fn admits(&self, address: IpAddr, now: Duration) -> bool {
        let failures = self.failures.lock();
        let recent = failures.get(&network(address)).filter(|known| now.saturating_sub(known.since) < WINDOW);
        self.failures_max == 0 || recent.is_none_or(|recent| recent.count < self.failures_max)
    }

    /// A login from this address was refused.
    pub(crate) fn failed(&self, address: IpAddr, now: Duration) {
        let mut failures = self.failures.lock();
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, known| now.saturating_sub(known.since) < WINDOW);
        }
        if failures.len() >= ADDRESSES_MAX {
            failures.clear();
        }
        let fresh = Failures { since: now, count: 0 };
        let known = failures.entry(network(address)).or_insert(fresh);
        if now.saturating_sub(known.since) >= WINDOW {
            *known = fresh;
        }
        known.count = known.count.saturating_add(1);
    }
}

/// Who has one address of an IPv6 network has them all.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & (u128::MAX << 64)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn at_the_bound_an_address_waits_until_its_minute_is_over_and_others_do_not() {
        let guard = LoginGuard::new(2);
        let at = Duration::from_secs;
        guard.failed(HERE, at(100));
        assert!(guard.admits(HERE, at(101)));
        guard.failed(HERE, at(110));
        assert!(!guard.admits(HERE, at(159)));
        assert!(guard.admits("10.0.0.1".parse().unwrap(), at(120)));
        assert!(guard.admits(HERE, at(160)));
        guard.failed(HERE, at(170));
        assert!(guard.admits(HERE, at(171)), "the count starts again");
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let guard = LoginGuard::new(1);
        guard.failed("2001:db8::1".parse().unwrap(), Duration::ZERO);
        assert!(!guard.admits("2001:db8::2".parse().unwrap(), Duration::ZERO));
        assert!(guard.admits("2001:db8:0:1::1".parse().unwrap(), Duration::ZERO));
    }

    #[test]
    fn a_crowd_of_addresses_is_not_remembered_without_bound() {
        let guard = LoginGuard::new(1);
        for n in 0..2 * u32::try_from(ADDRESSES_MAX).unwrap() {
            guard.failed(IpAddr::V4(n.into()), Duration::ZERO);
        }
        assert!(guard.failures.lock().len() <= ADDRESSES_MAX);
    }

    #[test]
    fn a_bound_of_0_is_none() {
        let guard = LoginGuard::new(0);
        (0..100).for_each(|_| guard.failed(HERE, Duration::ZERO));
        assert!(guard.admits(HERE, Duration::ZERO));
    }
}
