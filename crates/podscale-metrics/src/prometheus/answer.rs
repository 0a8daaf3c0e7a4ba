//! Reads what Prometheus answers. A pure function of bytes: whatever they are, it gives an answer or an
//! error, and never holds more series than it may.

mod envelope;
mod series;
mod value;

use super::PrometheusError;
use envelope::{Envelope, Reads};
use serde::de::DeserializeSeed;
use std::cell::Cell;
use std::sync::Arc;

pub use series::SeriesShape;
pub use value::{Sample, Vector};

/// How much of an answer that is no answer is shown.
const EXCERPT_CHARS: usize = 120;

/// What a query gave, with what Prometheus says about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The values; a number without labels is one value.
    pub vector: Vector,
    /// Whether it is a number and not a vector.
    pub scalar: bool,
    /// What Prometheus warns of, and what could not be read: values may be missing.
    pub warnings: Vec<Arc<str>>,
    /// What Prometheus remarks.
    pub infos: Vec<Arc<str>>,
}

/// Reads the answer to an instant query.
///
/// # Errors
/// Prometheus refused, the answer is not one of Prometheus, or has more than so many series.
pub fn read_query(code: u16, body: &[u8], most_series: usize) -> Result<Answer, PrometheusError> {
    let Envelope { data, mut warnings, infos } = read::<value::Outcome>(code, body, most_series)?;
    let value::Outcome { kind, result } = data;
    let value::Contents { samples, number, histograms, unreadable, .. } = result;
    let (samples, scalar) = match kind.as_deref() {
        Some("vector") => (samples, false),
        Some("scalar") => match number {
            Some(sample) => (vec![sample], true),
            None => return Err(not_prometheus("a scalar without a number")),
        },
        Some(other) => return Err(PrometheusError::Type { kind: other.into() }),
        None => return Err(not_prometheus("it does not say what type the result has")),
    };
    let mut leave_out = |count: usize, why: &str| {
        if count > 0 {
            let samples = if count == 1 { "sample was" } else { "samples were" };
            warnings.push(format!("{count} {samples} left out: {why}").into());
        }
    };
    leave_out(histograms, "a histogram is not one number");
    leave_out(unreadable, "they have no time or no number");
    Ok(Answer { vector: Vector { samples }, scalar, warnings, infos })
}

/// Reads a list of series into their shapes, each once.
///
/// # Errors
/// Prometheus refused, the answer is not one of Prometheus, or has more than so many shapes.
pub fn read_series(
    code: u16,
    body: &[u8],
    most_shapes: usize,
) -> Result<Vec<SeriesShape>, PrometheusError> {
    read::<series::Shapes>(code, body, most_shapes).map(|envelope| envelope.data.into_sorted())
}

fn read<T: Reads>(code: u16, body: &[u8], most: usize) -> Result<Envelope<T>, PrometheusError> {
    let exceeded = Cell::new(false);
    let limit = envelope::Limit { most, exceeded: &exceeded };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = envelope::seed::<T>(limit).deserialize(&mut json);
    let read = read.and_then(|read| json.end().map(|()| read));
    let success = (200..300).contains(&code);
    match read {
        Ok(raw) if raw.status.as_deref() == Some("error") => Err(PrometheusError::Refused {
            code,
            kind: raw.error_type.unwrap_or_default(),
            message: raw.error.unwrap_or_default(),
        }),
        _ if !success => Err(PrometheusError::Status { code, text: excerpt(body).into() }),
        Ok(raw) if raw.status.as_deref() == Some("success") => match raw.data {
            Some(data) => {
                let mut warnings = raw.warnings;
                if raw.partial {
                    warnings.push("the answer is partial".into());
                }
                Ok(Envelope { data, warnings, infos: raw.infos })
            }
            None => Err(not_prometheus("it has no data")),
        },
        Ok(_) => Err(not_prometheus("it has no status")),
        Err(_) if exceeded.get() => Err(PrometheusError::TooManySeries(most)),
        Err(error) => {
            let start = excerpt(body);
            let what = if body.trim_ascii_start().starts_with(b"<") {
                format!("it looks like a web page: {start}")
            } else {
                format!("{error}: {start}")
            };
            Err(not_prometheus(&what))
        }
    }
}

fn not_prometheus(why: &str) -> PrometheusError {
    PrometheusError::NotPrometheus(why.into())
}

/// The beginning of an answer, in one line that can be printed.
fn excerpt(body: &[u8]) -> String {
    let start = String::from_utf8_lossy(body.get(..4 * EXCERPT_CHARS).unwrap_or(body));
    let words: Vec<&str> = start.split_whitespace().collect();
    let printable = |c: &char| !c.is_control();
    words.join(" ").chars().filter(printable).take(EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests;
