//! Prometheus' text format (version 0.0.4).
//!
//! Owns its lines and its quoting. Must not know what is told.

use deepmq_storage::{LATENCY_BOUNDS, LatencyCounts};
use std::fmt::{Display, Write};

/// How a metric moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It grows only.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts by size.
    Histogram,
}

/// The text in the making.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    /// Objects left out, by family.
    omitted: Vec<(String, usize)>,
}

impl Text {
    /// Begins a family of samples.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
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
        writeln!(self.text, "{line}").expect("a string takes all that is written");
    }

    /// A family of one histogram.
    pub(super) fn histogram(&mut self, name: &str, help: &str, counts: &LatencyCounts) {
        self.family(name, Kind::Histogram, help);
        let (bucket, mut below) = (format!("{name}_bucket"), 0);
        let bounds = LATENCY_BOUNDS.iter().map(|bound| bound.as_secs_f64().to_string());
        for (count, bound) in counts.counts.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            below += count;
            self.sample(&bucket, &[("le", &bound)], below);
        }
        self.sample(&format!("{name}_sum"), &[], counts.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), &[], below);
    }

    /// Notes that a family does not tell of all its objects.
    pub(super) fn omitted(&mut self, family: &str, objects: usize) {
        self.omitted.push((family.to_owned(), objects));
    }

    pub(super) fn finish(mut self) -> String {
        let omitted = std::mem::take(&mut self.omitted);
        if !omitted.is_empty() {
            self.family(
                "deepmq_objects_omitted",
                Kind::Gauge,
                "Objects that a family does not tell of, for there are too many.",
            );
        }
        for (family, objects) in omitted {
            self.sample("deepmq_objects_omitted", &[("family", &family)], objects);
        }
        self.text
    }
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_upwards_and_ends_with_all() {
        let mut counts = LatencyCounts::default();
        (counts.counts[0], counts.counts[3], counts.counts[14]) = (2, 1, 1);
        let mut text = Text::default();
        text.histogram("s", "How long.", &counts);
        let text = text.finish();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["# HELP s How long.", "# TYPE s histogram", "s_bucket{le=\"0.0001\"} 2"]);
        assert_eq!(lines[5], "s_bucket{le=\"0.001\"} 3");
        assert_eq!(lines[16..], ["s_bucket{le=\"+Inf\"} 4", "s_sum 0", "s_count 4"]);
    }

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
