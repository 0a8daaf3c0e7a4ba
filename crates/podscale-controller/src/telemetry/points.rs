//! The metrics as OTLP data points.

use crate::metrics::registry::{Buckets, Description, Kind, Label, Value, Visitor};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
    metric::Data, number_data_point,
};

/// When counting began and when the values were read, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub began: u64,
    pub now: u64,
}

/// Makes a data point of every value that it visits.
pub(super) struct Points {
    times: Times,
    metrics: Vec<Metric>,
}

impl Points {
    pub(super) fn new(times: Times) -> Points {
        Points { times, metrics: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Metric> {
        self.metrics
    }

    /// The metric that is described, which is the last one if it has any points yet.
    fn metric(&mut self, Description { name, help, kind }: Description) -> Option<&mut Metric> {
        let is_it = |last: &Metric| last.name.strip_suffix(kind.suffix()) == Some(name);
        if !self.metrics.last().is_some_and(is_it) {
            self.metrics.push(Metric {
                name: [name, kind.suffix()].concat(),
                description: help.to_owned(),
                unit: unit(name).to_owned(),
                data: Some(no_points(kind)),
                ..Metric::default()
            });
        }
        self.metrics.last_mut()
    }
}

impl Visitor for Points {
    fn visit(&mut self, description: Description, labels: &[Label<'_>], value: Value<'_>) {
        let times = self.times;
        let Some(data) = self.metric(description).and_then(|metric| metric.data.as_mut()) else {
            return;
        };
        match (data, value) {
            (Data::Histogram(histogram), Value::Buckets(buckets)) => {
                histogram.data_points.push(histogram_point(times, labels, buckets));
            }
            (Data::Sum(sum), value) => {
                sum.data_points.extend(number_point(times.began, times.now, labels, value));
            }
            (Data::Gauge(gauge), value) => {
                gauge.data_points.extend(number_point(0, times.now, labels, value));
            }
            _ => {}
        }
    }
}

fn no_points(kind: Kind) -> Data {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    match kind {
        Kind::Counter => {
            Data::Sum(Sum { data_points: Vec::new(), aggregation_temporality, is_monotonic: true })
        }
        Kind::Gauge | Kind::Info => Data::Gauge(Gauge::default()),
        Kind::Histogram => {
            Data::Histogram(Histogram { data_points: Vec::new(), aggregation_temporality })
        }
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

fn number_point(
    began: u64,
    now: u64,
    labels: &[Label<'_>],
    value: Value<'_>,
) -> Option<NumberDataPoint> {
    let value = match value {
        Value::Whole(value) => number_data_point::Value::AsInt(value),
        Value::Float(value) => number_data_point::Value::AsDouble(value),
        Value::Buckets(_) => return None,
    };
    Some(NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: began,
        time_unix_nano: now,
        value: Some(value),
        ..NumberDataPoint::default()
    })
}

fn histogram_point(times: Times, labels: &[Label<'_>], buckets: Buckets<'_>) -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: times.began,
        time_unix_nano: times.now,
        count: buckets.counts.iter().sum(),
        sum: Some(buckets.sum),
        bucket_counts: buckets.counts.to_vec(),
        explicit_bounds: buckets.bounds.to_vec(),
        ..HistogramDataPoint::default()
    }
}

fn attributes(labels: &[Label<'_>]) -> Vec<KeyValue> {
    let attribute = |(name, value): &Label<'_>| {
        let value = any_value::Value::StringValue((*value).to_owned());
        let value = Some(AnyValue { value: Some(value) });
        KeyValue { key: (*name).to_owned(), value, ..KeyValue::default() }
    };
    labels.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests;
