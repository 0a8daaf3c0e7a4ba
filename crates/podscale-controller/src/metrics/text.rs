//! Metrics in the text form of OpenMetrics.

use super::registry::{Buckets, Description, Label, Value, Visitor};
use podscale_metrics::exposition::write;
use std::fmt::{self, Display, Write};

/// Writes every value that it visits.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    /// The metric whose description was written last.
    described: Option<&'static str>,
}

impl Text {
    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }

    fn describe(&mut self, Description { name, help, kind }: Description) -> fmt::Result {
        if self.described.replace(name) == Some(name) {
            return Ok(());
        }
        writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {}", kind.name())
    }

    fn histogram(&mut self, name: &str, labels: &[Label<'_>], buckets: Buckets<'_>) -> fmt::Result {
        let Buckets { bounds, counts, sum } = buckets;
        let series = Labels { bound: None, labels };
        writeln!(self.text, "{name}_sum{series} {}", Float(sum))?;
        writeln!(self.text, "{name}_count{series} {}", counts.iter().sum::<u64>())?;
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        let mut total = 0;
        for (bound, count) in bounds.zip(counts) {
            total += count;
            let series = Labels { bound: Some(bound), labels };
            writeln!(self.text, "{name}_bucket{series} {total}")?;
        }
        Ok(())
    }
}

impl Visitor for Text {
    fn visit(&mut self, description: Description, labels: &[Label<'_>], value: Value<'_>) {
        let (name, suffix) = (description.name, description.kind.suffix());
        let series = Labels { bound: None, labels };
        // Writing into memory does not fail.
        let _ = self.describe(description);
        let _ = match value {
            Value::Whole(value) => writeln!(self.text, "{name}{suffix}{series} {value}"),
            Value::Float(value) => writeln!(self.text, "{name}{suffix}{series} {}", Float(value)),
            Value::Buckets(buckets) => self.histogram(name, labels, buckets),
        };
    }
}

/// A number with a point, as OpenMetrics wants it for the bounds of buckets.
struct Float(f64);

impl Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            number if number.is_finite() => write!(f, "{number:?}"),
            number => write!(f, "{}", write::Number(number)),
        }
    }
}

/// Labels in their braces, a bucket's bound before the others; nothing without any.
struct Labels<'a> {
    bound: Option<f64>,
    labels: &'a [Label<'a>],
}

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = '{';
        if let Some(bound) = self.bound {
            write!(f, "{{le=\"{}\"", Float(bound))?;
            separator = ',';
        }
        for (name, value) in self.labels {
            write!(f, "{separator}{name}=\"{}\"", write::Label(value))?;
            separator = ',';
        }
        if separator == ',' { f.write_char('}') } else { Ok(()) }
    }
}
