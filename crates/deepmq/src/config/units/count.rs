//! Whole numbers.
//!
//! Owns how they are written. Must not know what is counted.

use std::str::FromStr;

use super::{BadValue, deserialize_from_text};

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

/// A whole number that AMQP gives 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortCount(pub(crate) u16);

impl FromStr for Count {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.parse().map(Self).map_err(|_| BadValue("write a whole number, as 1000"))
    }
}

impl FromStr for ShortCount {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.parse().map(Self).map_err(|_| BadValue("write a whole number from 1 to 65535"))
    }
}

deserialize_from_text!(Count);
deserialize_from_text!(ShortCount);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_whole_number_that_fits() {
        assert_eq!("1000".parse(), Ok(Count(1000)));
        assert_eq!("65535".parse(), Ok(ShortCount(65535)));
        assert!("65536".parse::<ShortCount>().is_err());
        for text in ["", "-1", "1.5", "1e3", "many", "99999999999999999999"] {
            assert!(text.parse::<Count>().is_err() && text.parse::<ShortCount>().is_err(), "{text}");
        }
    }
}
