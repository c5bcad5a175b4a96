//! Sorting by any field of what is shown.
//!
//! Owns the order of JSON's types among each other. Must not know the objects: each is shown once to look at the field.

use super::columns::follow;
use serde::Serialize;
use serde_json::Value;
use std::cmp::Ordering;

/// A field's value; items without the field come first.
#[derive(Debug, PartialEq)]
enum Key {
    Absent,
    Bool(bool),
    Number(f64),
    Text(String),
}

impl Key {
    fn of(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Bool(bool)) => Self::Bool(*bool),
            Some(Value::Number(number)) => Self::Number(number.as_f64().unwrap_or_default()),
            Some(Value::String(text)) => Self::Text(text.clone()),
            Some(other @ (Value::Array(_) | Value::Object(_))) => Self::Text(other.to_string()),
            Some(Value::Null) | None => Self::Absent,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Sorts `handles` by a field of what `show` makes of them; those with equal ones stay in order.
pub(super) fn by_field<H, T: Serialize>(handles: &mut Vec<H>, field: &str, show: &impl Fn(&H) -> T) {
    let mut keyed: Vec<_> = handles
        .drain(..)
        .map(|handle| {
            let shown = serde_json::to_value(show(&handle)).unwrap_or_default();
            (Key::of(follow(&shown, field)), handle)
        })
        .collect();
    keyed.sort_by(|(a, _), (b, _)| a.compare(b));
    handles.extend(keyed.into_iter().map(|(_, handle)| handle));
}
