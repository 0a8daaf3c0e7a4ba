//! The metrics as OTLP data points. What `/metrics` shows is the only source: its text is read and
//! told again, so that both always say the same.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
    metric::Data, number_data_point::Value,
};
use podscale_metrics::exposition::{Labels, Sample, samples};

/// The label of a histogram's bounds.
const BOUND: &str = "le";

/// When counting began and when it was looked at, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub began: u64,
    pub now: u64,
}

/// What OpenMetrics text says.
pub(super) fn points(text: &str, times: Times) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let mut family = Family::default();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            family.take(about);
        } else if let Some(Ok(sample)) = samples(line).next() {
            // Whole numbers are written without a point, whatever their value.
            let whole = line.rsplit(' ').next().and_then(|value| value.parse().ok());
            family.add(&mut metrics, sample, whole, times);
        }
    }
    metrics
}

/// What the text says before the samples of one name.
#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
}

impl<'a> Family<'a> {
    fn take(&mut self, about: &'a str) {
        let mut words = about.splitn(3, ' ');
        let (what, name, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
        let Some(name) = name else { return };
        if name != self.name {
            *self = Family { name, ..Family::default() };
        }
        match what {
            Some("HELP") => self.help = rest,
            Some("TYPE") => self.kind = rest,
            _ => {}
        }
    }

    fn add(&self, metrics: &mut Vec<Metric>, sample: Sample<'_>, whole: Option<i64>, times: Times) {
        if self.kind == "histogram" {
            let Some(part) = sample.name.strip_prefix(self.name) else { return };
            let metric = self.metric(metrics, self.name);
            let empty = || {
                let temporality = AggregationTemporality::Cumulative.into();
                Histogram { data_points: Vec::new(), aggregation_temporality: temporality }
            };
            let data = metric.data.get_or_insert_with(|| Data::Histogram(empty()));
            if let Data::Histogram(histogram) = data {
                observe(&mut histogram.data_points, part, sample, times);
            }
            return;
        }
        let metric = self.metric(metrics, sample.name);
        let is_sum = self.kind == "counter";
        let point = NumberDataPoint {
            attributes: attributes(sample.labels),
            start_time_unix_nano: if is_sum { times.began } else { 0 },
            time_unix_nano: times.now,
            value: Some(whole.map_or(Value::AsDouble(sample.value), Value::AsInt)),
            ..NumberDataPoint::default()
        };
        let empty = || match is_sum {
            true => Data::Sum(Sum {
                data_points: Vec::new(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            false => Data::Gauge(Gauge::default()),
        };
        match metric.data.get_or_insert_with(empty) {
            Data::Sum(sum) => sum.data_points.push(point),
            Data::Gauge(gauge) => gauge.data_points.push(point),
            _ => {}
        }
    }

    /// The metric of this name, which is the last one if there are any samples of it yet.
    fn metric<'m>(&self, metrics: &'m mut Vec<Metric>, name: &str) -> &'m mut Metric {
        let is_it = metrics.last().is_some_and(|last| last.name == name);
        if !is_it {
            metrics.push(Metric {
                name: name.to_owned(),
                description: self.help.trim_end_matches('.').to_owned(),
                unit: unit(self.name).to_owned(),
                ..Metric::default()
            });
        }
        let last = metrics.len() - 1;
        &mut metrics[last]
    }
}

/// The unit that a name ends with, as OpenTelemetry writes it.
fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    }
}

/// One line of a histogram. The lines of one series follow each other, its bounds upwards.
fn observe(points: &mut Vec<HistogramDataPoint>, part: &str, sample: Sample<'_>, times: Times) {
    let attributes = attributes(sample.labels);
    if points.last().is_none_or(|last| last.attributes != attributes) {
        points.push(HistogramDataPoint {
            attributes,
            start_time_unix_nano: times.began,
            time_unix_nano: times.now,
            ..HistogramDataPoint::default()
        });
    }
    let Some(point) = points.last_mut() else { return };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
    let count = sample.value as u64;
    match part {
        "_sum" => point.sum = Some(sample.value),
        "_count" => point.count = count,
        "_bucket" => {
            let below: u64 = point.bucket_counts.iter().sum();
            point.bucket_counts.push(count.saturating_sub(below));
            let bound = sample.labels.get(BOUND).and_then(|bound| bound.parse::<f64>().ok());
            point.explicit_bounds.extend(bound.filter(|bound| bound.is_finite()));
        }
        _ => {}
    }
}

fn attributes(labels: Labels<'_>) -> Vec<KeyValue> {
    let others = labels.iter().filter(|(name, _)| *name != BOUND);
    others.map(|(name, value)| attribute(name, value.into_owned())).collect()
}

fn attribute(key: &str, value: String) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value)) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

#[cfg(test)]
mod tests;
