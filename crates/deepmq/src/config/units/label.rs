//! Names that are told to others.
//!
//! Owns how long they may be. Must not know whom they are told.

use std::str::FromStr;

use deepmq_model::Name;
use deepmq_model::topology::NAME_BYTES_MAX;

use super::{BadValue, deserialize_from_text};

/// A name of 1 to 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) Name);

impl FromStr for Label {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(BadValue("write a name of 1 to 255 bytes"));
        }
        Ok(Self(text.into()))
    }
}

deserialize_from_text!(Label);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_1_to_255_bytes() {
        for (bytes, fits) in [(0, false), (1, true), (255, true), (256, false)] {
            assert_eq!("x".repeat(bytes).parse::<Label>().is_ok(), fits, "{bytes}");
        }
    }
}
