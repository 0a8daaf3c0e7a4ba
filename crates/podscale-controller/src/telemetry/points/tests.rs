use super::*;
use crate::metrics::Metrics;
use podscale_metrics::exposition::samples;
use std::fmt::Write;
use std::time::Duration;

const TIMES: Times = Times { began: 1, now: 2 };

fn labels(attributes: &[KeyValue]) -> String {
    let text = |pair: &KeyValue| match &pair.value {
        Some(AnyValue { value: Some(any_value::Value::StringValue(value)) }) => {
            format!("{}={value}", pair.key)
        }
        other => format!("{}={other:?}", pair.key),
    };
    attributes.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Metrics in short.
fn summary(metrics: &[Metric]) -> String {
    let mut text = String::new();
    let mut numbers = |kind: &str, metric: &Metric, points: &[NumberDataPoint]| {
        for point in points {
            let value = match point.value {
                Some(number_data_point::Value::AsInt(value)) => format!("{value}"),
                Some(number_data_point::Value::AsDouble(value)) => format!("{value:?}"),
                None => "nothing".to_owned(),
            };
            let (name, labels, began) =
                (&metric.name, labels(&point.attributes), point.start_time_unix_nano);
            let _ = writeln!(text, "{kind} {name}{{{labels}}} {value} since {began}");
        }
    };
    let mut histograms = String::new();
    for metric in metrics {
        match metric.data.as_ref().expect("data") {
            Data::Gauge(gauge) => numbers("gauge", metric, &gauge.data_points),
            Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                assert_eq!(sum.aggregation_temporality, 2);
                numbers("sum", metric, &sum.data_points);
            }
            Data::Histogram(histogram) => {
                assert_eq!(histogram.aggregation_temporality, 2);
                for point in &histogram.data_points {
                    let _ = writeln!(
                        histograms,
                        "histogram {}{{{}}} {} of {:?}, below {:?}: {:?}",
                        metric.name,
                        labels(&point.attributes),
                        point.count,
                        point.sum.unwrap_or_default(),
                        point.explicit_bounds,
                        point.bucket_counts,
                    );
                }
            }
            other => panic!("{other:?}"),
        }
    }
    text + &histograms
}

#[test]
fn values_become_points() {
    let describe = |name, kind| Description { name, help: "Things counted", kind };
    let seconds = Buckets { bounds: &[0.1, 1.0], counts: &[1, 2, 1], sum: 1.5 };
    let none = Buckets { bounds: &[], counts: &[0], sum: 0.0 };
    let visits: [(Description, &[Label<'_>], Value<'_>); 7] = [
        (describe("a", Kind::Counter), &[("x", "1"), ("y", "q\"")], Value::Whole(3)),
        (describe("a", Kind::Counter), &[("x", "2"), ("y", "")], Value::Whole(0)),
        (describe("s_seconds", Kind::Gauge), &[], Value::Float(2.0)),
        (describe("big", Kind::Gauge), &[], Value::Whole(9_007_199_254_740_993)),
        (describe("i", Kind::Info), &[("version", "1")], Value::Whole(1)),
        (describe("h", Kind::Histogram), &[("k", "a")], Value::Buckets(seconds)),
        (describe("h", Kind::Histogram), &[("k", "b")], Value::Buckets(none)),
    ];
    let mut points = Points::new(TIMES);
    for (description, labels, value) in visits {
        points.visit(description, labels, value);
    }
    let metrics = points.finish();
    let expected = "sum a_total{x=1,y=q\"} 3 since 1\nsum a_total{x=2,y=} 0 since 1\n\
        gauge s_seconds{} 2.0 since 0\ngauge big{} 9007199254740993 since 0\n\
        gauge i_info{version=1} 1 since 0\n\
        histogram h{k=a} 4 of 1.5, below [0.1, 1.0]: [1, 2, 1]\n\
        histogram h{k=b} 0 of 0.0, below []: [0]\n";
    assert_eq!(summary(&metrics), expected);
    let units: Vec<&str> = metrics.iter().map(|metric| metric.unit.as_str()).collect();
    assert_eq!(units, ["", "s", "", "", ""]);
    assert!(metrics.iter().all(|metric| metric.description == "Things counted"));
}

/// What `/metrics` shows and what is exported must be the same.
#[test]
fn every_metric_is_exported() {
    let metrics = Metrics::new();
    metrics.source_answered("custom", true, Duration::from_millis(3));
    metrics.telemetry_lost("logs", 7);
    metrics.leads(true);
    metrics.due(Duration::from_secs(100));
    let text = metrics.text();
    let mut exported = Points::new(TIMES);
    metrics.visit(&mut exported);
    let exported = exported.finish();
    let summary = summary(&exported);
    for line in [
        "sum podscale_telemetry_lost_total{signal=logs} 7 since 1",
        "sum podscale_source_requests_total{source=custom,outcome=ok} 1 since 1",
        "gauge podscale_leader{} 1 since 0",
        "histogram podscale_due_lag_seconds{} 1 of 100.0, below [0.001, ",
        "histogram podscale_source_request_duration_seconds{source=custom} 1 of 0.003, below ",
    ] {
        assert!(summary.contains(line), "no {line:?} in\n{summary}");
    }
    let shown = samples(&text).count();
    let points = |metric: &Metric| match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => {
            histogram.data_points.iter().map(|point| point.bucket_counts.len() + 2).sum()
        }
        _ => 0,
    };
    assert_eq!(exported.iter().map(points).sum::<usize>(), shown, "a sample is missing");
}
