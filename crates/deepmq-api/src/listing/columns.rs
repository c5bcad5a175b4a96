//! The fields of an object that were asked for.
//!
//! Owns the parameter `columns` and the cutting. Must not know the objects.

use serde::Serialize;
use serde_json::{Map, Value};

/// Fields at most; more are not looked at.
const COLUMNS_MAX: usize = 100;

/// The fields asked for, each as a way into the object; none: all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns(Vec<Vec<String>>);

impl Columns {
    pub(super) fn read(given: Option<&str>) -> Self {
        let columns = given.unwrap_or_default().split(',').map(str::trim).filter(|column| !column.is_empty());
        Self(columns.take(COLUMNS_MAX).map(|column| column.split('.').map(str::to_owned).collect()).collect())
    }

    /// Appends an object as JSON.
    pub(super) fn write<T: Serialize>(&self, shown: &T, text: &mut Vec<u8>) {
        const FORM: &str = "what is shown has string keys";
        if self.0.is_empty() {
            serde_json::to_writer(text, shown).expect(FORM);
            return;
        }
        let whole = serde_json::to_value(shown).expect(FORM);
        let mut cut = Map::new();
        self.0.iter().for_each(|way| copy(&whole, way, &mut cut));
        serde_json::to_writer(text, &cut).expect(FORM);
    }
}

/// Copies what a way leads to, if it leads to anything.
fn copy(from: &Value, way: &[String], to: &mut Map<String, Value>) {
    let Some((first, rest)) = way.split_first() else { return };
    let Some(found) = from.get(first) else { return };
    if rest.is_empty() {
        to.insert(first.clone(), found.clone());
        return;
    }
    let inner = to.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(inner) = inner {
        copy(found, rest, inner);
    }
}

/// What a way leads to.
pub(super) fn follow<'v>(from: &'v Value, way: &str) -> Option<&'v Value> {
    way.split('.').try_fold(from, |value, field| value.get(field))
}
