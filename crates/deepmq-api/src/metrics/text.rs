//! Prometheus' text format (version 0.0.4).
//!
//! Owns its lines and its quoting. Must not know what is told.

use std::fmt::{Display, Write};

/// How a metric moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It grows only.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The text in the making.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a family of samples.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// Adds a sample to the family.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", quoted(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// A family of one sample, under each of its names.
    pub(super) fn one(&mut self, names: &[&str], kind: Kind, help: &str, value: impl Display) {
        for name in names {
            self.family(name, kind, help);
            self.sample(name, &[], &value);
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes all that is written");
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_samples_are_lines_with_quoted_labels() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "What it is.");
        text.sample("a_total", &[("x", "1\"\\\n"), ("y", "z")], 7);
        text.one(&["b", "c"], Kind::Gauge, "Both.", 0.5);
        assert_eq!(
            text.finish(),
            "# HELP a_total What it is.\n# TYPE a_total counter\na_total{x=\"1\\\"\\\\\\n\",y=\"z\"} 7\n\
             # HELP b Both.\n# TYPE b gauge\nb 0.5\n# HELP c Both.\n# TYPE c gauge\nc 0.5\n"
        );
    }
}
