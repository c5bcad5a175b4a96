//! Sizes in bytes, and shares of the machine's memory.
//!
//! Owns how they are written. Must not know how much memory there is.

use std::str::FromStr;

use super::{BadValue, deserialize_from_text};

/// A number of bytes: `4096`, `128KiB`, `1MiB`, `2GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

impl ByteSize {
    pub(crate) fn saturating_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub(crate) fn saturating_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        const UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
        let (digits, factor) = UNITS
            .into_iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
            .ok_or(Self::FORM)?;
        let number: u64 = digits.trim_end().parse().map_err(|_| Self::FORM)?;
        number.checked_mul(factor).map(Self).ok_or(BadValue("the size is beyond 64 bits"))
    }
}

impl ByteSize {
    const FORM: BadValue = BadValue("write a size as 4096, 128KiB, 1MiB or 2GiB");
}

deserialize_from_text!(ByteSize);

/// A size, or a share of the machine's memory: `40%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Bytes(ByteSize),
    /// 1 to 100.
    Percent(u8),
}

impl Memory {
    /// The size on a machine with `total` bytes.
    pub(crate) fn of(self, total: u64) -> ByteSize {
        match self {
            Self::Bytes(size) => size,
            Self::Percent(percent) => ByteSize(total / 100 * u64::from(percent)),
        }
    }
}

impl FromStr for Memory {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        const FORM: BadValue = BadValue("write a size as 512MiB or 2GiB, or a share as 1% to 100%");
        let Some(percent) = text.strip_suffix('%') else {
            return text.parse().map(Self::Bytes).map_err(|_| FORM);
        };
        match percent.parse() {
            Ok(percent @ 1..=100) => Ok(Self::Percent(percent)),
            _ => Err(FORM),
        }
    }
}

deserialize_from_text!(Memory);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_an_optional_binary_unit() {
        let check = |text: &str, bytes| assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        check("0", 0);
        check("4096", 4096);
        check("128KiB", 131_072);
        check("1 MiB", 1 << 20);
        check("2GiB", 2 << 30);
        for text in ["", "KiB", "-1", "1.5MiB", "1MB", "1kib", "20GiB of it"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSize::FORM), "{text}");
        }
        assert!("18446744073709551615GiB".parse::<ByteSize>().is_err());
    }

    #[test]
    fn memory_is_a_size_or_a_share_between_1_and_100_percent() {
        let check = |text: &str, bytes| {
            assert_eq!(text.parse::<Memory>().map(|memory| memory.of(1000)), Ok(ByteSize(bytes)), "{text}");
        };
        check("40%", 400);
        check("1%", 10);
        check("100%", 1000);
        check("2KiB", 2048);
        for text in ["0%", "101%", "%", "-5%", "0.4"] {
            assert!(text.parse::<Memory>().is_err(), "{text}");
        }
    }
}
