//! What a confirm means.
//!
//! Owns how it is written. Must not know how it is kept.

use std::str::FromStr;

use deepmq_storage::Durability;

use super::{BadValue, deserialize_from_text};

/// `fsync` or `os`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Confirmed(pub(crate) Durability);

impl FromStr for Confirmed {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "fsync" => Ok(Self(Durability::Fsync)),
            "os" => Ok(Self(Durability::Os)),
            _ => Err(BadValue("write fsync or os")),
        }
    }
}

deserialize_from_text!(Confirmed);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirm_is_for_the_disk_or_for_the_operating_system() {
        assert_eq!("fsync".parse(), Ok(Confirmed(Durability::Fsync)));
        assert_eq!("os".parse(), Ok(Confirmed(Durability::Os)));
        for text in ["", "OS", "none", "sync"] {
            assert!(text.parse::<Confirmed>().is_err(), "{text}");
        }
    }
}
