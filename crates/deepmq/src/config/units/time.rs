//! Spans of time.
//!
//! Owns how they are written. Must not know clocks.

use std::str::FromStr;
use std::time::Duration;

use super::{BadValue, deserialize_from_text};

/// A span of time: `500ms`, `10s`, `2min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Duration);

impl FromStr for Period {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        const FORM: BadValue = BadValue("write a time as 500ms, 10s or 2min");
        let count = |unit| text.strip_suffix(unit).map(|digits| digits.trim_end().parse::<u32>());
        let found = if let Some(millis) = count("ms") {
            millis.map(|millis| Duration::from_millis(millis.into()))
        } else if let Some(minutes) = count("min") {
            minutes.map(|minutes| Duration::from_mins(minutes.into()))
        } else if let Some(seconds) = count("s") {
            seconds.map(|seconds| Duration::from_secs(seconds.into()))
        } else {
            return Err(FORM);
        };
        found.map(Self).map_err(|_| FORM)
    }
}

deserialize_from_text!(Period);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_whole_number_with_a_unit() {
        let check = |text: &str, millis| {
            assert_eq!(text.parse(), Ok(Period(Duration::from_millis(millis))), "{text}");
        };
        check("0s", 0);
        check("500ms", 500);
        check("10 s", 10_000);
        check("2min", 120_000);
        for text in ["", "10", "s", "-1s", "1.5s", "1h", "9999999999s"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }
}
