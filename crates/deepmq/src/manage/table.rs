//! Tables for people: columns as wide as they must be.
//!
//! Owns the layout and how a value of JSON is put into a cell. Must not know what is shown.

use std::fmt;

use serde_json::Value;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        let headings: Vec<_> = headings.into_iter().map(str::to_owned).collect();
        // Headings that say nothing take no line.
        let rows = if headings.iter().all(String::is_empty) { Vec::new() } else { vec![headings] };
        Self { rows }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell: &String| cell.chars().count()).max()
        };
        let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        let lines = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// The text of a field; dots lead into objects. What a terminal would obey is shown as its code.
pub(super) fn cell(item: &Value, field: &str) -> String {
    let found = field.split('.').try_fold(item, |value, part| value.get(part));
    let text = match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(bool)) => if *bool { "yes" } else { "no" }.to_owned(),
        Some(Value::Number(number)) if number.is_f64() => {
            format!("{:.1}", number.as_f64().unwrap_or_default())
        }
        Some(Value::Array(items)) => {
            let texts =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(",")
        }
        Some(other) => other.to_string(),
    };
    text.chars()
        .flat_map(|char| if char.is_control() { char.escape_default().collect() } else { vec![char] })
        .collect()
}

/// The fields of an object, each as the way that leads to it; those that hold nothing are left out.
pub(super) fn fields(item: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    for (name, value) in item.as_object().into_iter().flatten() {
        // A way through such a name would lead elsewhere.
        let leads_on = !name.contains('.');
        match value {
            Value::Object(inner) if leads_on && !inner.keys().any(|key| key.contains('.')) => {
                fields.extend(fields_of(name, value));
            }
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::Array(items) if items.is_empty() => {}
            _ if leads_on => fields.push(name.clone()),
            _ => {}
        }
    }
    fields
}

fn fields_of(name: &str, inner: &Value) -> impl Iterator<Item = String> {
    fields(inner).into_iter().map(move |field| format!("{name}.{field}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["A", "LONG"]);
        table.row(["wide cell".to_owned(), "x".to_owned()]);
        assert_eq!(table.to_string(), "A          LONG\nwide cell  x");
        let mut bare = Table::new(["", ""]);
        bare.row(["a".to_owned(), "1".to_owned()]);
        assert_eq!(bare.to_string(), "a  1");
    }

    #[test]
    fn an_object_is_a_row_for_each_field_that_holds_something() {
        let item = json!({"a": 1, "b": {"c": {"d": true}, "e": null}, "f": [], "g": "", "h": [1]});
        assert_eq!(fields(&item), ["a", "b.c.d", "h"]);
    }

    #[test]
    fn a_cell_shows_any_value_and_nothing_a_terminal_would_obey() {
        let item =
            json!({"n": 7, "r": 1.25, "t": true, "l": ["a", "b"], "o": {"k": null}, "e": "a\u{1b}[31m\nb"});
        let shown = |field| cell(&item, field);
        assert_eq!(
            (shown("n"), shown("r"), shown("t"), shown("l")),
            ("7".into(), "1.2".into(), "yes".into(), "a,b".into())
        );
        assert_eq!((shown("o.k"), shown("absent.x")), (String::new(), String::new()));
        assert_eq!(shown("e"), "a\\u{1b}[31m\\nb");
    }
}
