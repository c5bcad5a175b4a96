//! Numbers of threads.
//!
//! Owns their bounds. Must not know what the threads do.

use std::str::FromStr;

use super::{BadValue, deserialize_from_text};

/// More than any machine makes use of, and few enough for every system to start.
const THREADS_MAX: usize = 1024;

/// A number of threads: 1 to 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadCount(pub(crate) usize);

impl FromStr for ThreadCount {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.parse() {
            Ok(count @ 1..=THREADS_MAX) => Ok(Self(count)),
            _ => Err(BadValue("write a whole number from 1 to 1024")),
        }
    }
}

deserialize_from_text!(ThreadCount);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_threads_is_one_a_system_can_start() {
        assert_eq!("1".parse(), Ok(ThreadCount(1)));
        assert_eq!("1024".parse(), Ok(ThreadCount(1024)));
        for text in ["", "0", "-1", "1025", "100000", "two"] {
            assert!(text.parse::<ThreadCount>().is_err(), "{text}");
        }
    }
}
