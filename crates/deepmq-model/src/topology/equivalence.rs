//! What a redeclaration must agree in with what is there.
//!
//! Owns the comparing of flags and arguments. Which of them count is for the caller.

use super::error::{Resource, TopologyError};
use crate::value::{Table, Value};

/// Refuses a flag or type that differs; `received` and `current` are as the text shows them.
pub(super) fn check_flag(
    resource: impl FnOnce() -> Resource,
    flag: &'static str,
    received: &'static str,
    current: &'static str,
) -> Result<(), TopologyError> {
    if received == current {
        return Ok(());
    }
    Err(TopologyError::InequivalentFlag { resource: resource(), flag, received, current })
}

/// Refuses an argument that differs; one not given counts as `default`, though the text calls it none.
pub(super) fn check_argument(
    resource: impl FnOnce() -> Resource,
    argument: &'static str,
    default: Option<&Value>,
    received: &Table,
    current: &Table,
) -> Result<(), TopologyError> {
    let (received, current) = (received.get(argument), current.get(argument));
    let same = match (received.or(default), current.or(default)) {
        (None, None) => true,
        (Some(received), Some(current)) => received.equivalent(current),
        _ => false,
    };
    if same {
        return Ok(());
    }
    let (received, current) = (received.cloned(), current.cloned());
    Err(TopologyError::InequivalentArgument { resource: resource(), argument, received, current })
}

/// A flag as the text shows it.
pub(super) fn shown(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}
