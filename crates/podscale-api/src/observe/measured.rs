//! Values that any source measured, lined up with the pods of an autoscaler.

use super::{Selected, not_exactly_one};
use podscale_core::model::{MetricTarget, Source};
use podscale_core::snapshot::{Reading, Sample};

/// One value that a source measured for one metric.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// How much, when, and over how long.
    pub sample: Sample,
    /// The pod that it is about, if it is about one.
    pub pod: Option<&'a str>,
}

fn total(value: &Measured<'_>) -> Reading {
    Reading::Total { value: value.sample.value, taken: Some(value.sample.taken) }
}

/// What is said when a query has more than one value.
#[must_use]
pub fn not_one_value(count: usize) -> String {
    format!("the query gave {count} values, a metric needs one; add them up in the query")
}

impl Selected<'_> {
    /// What the metric at this place of the spec says, given all values that its source has for it.
    /// A metric of pods takes the values of pods that may be ours, any other one takes all.
    #[must_use]
    pub fn read_measured(&self, place: usize, values: &[Measured<'_>]) -> Reading {
        let Some(metric) = self.autoscaler.metrics.get(place) else { return Reading::Empty };
        match &*metric.source {
            Source::Resource { name } => {
                let reading = self.measured_pods(values);
                self.with_requests(reading, place, name, None)
            }
            Source::ContainerResource { name, container } => {
                let reading = self.measured_pods(values);
                self.with_requests(reading, place, name, Some(container))
            }
            Source::Pods(_) => self.measured_pods(values),
            Source::Prometheus(_) => match values {
                [] => Reading::Empty,
                [value] => total(value),
                several => Reading::Failed(not_one_value(several.len()).into()),
            },
            Source::Object { .. } => match values {
                [value] => total(value),
                several => Reading::Failed(not_exactly_one(several.len()).into()),
            },
            Source::External(_) if values.is_empty() => Reading::Empty,
            Source::External(_) => {
                let taken = values.iter().map(|value| value.sample.taken).min();
                let values = values.iter().map(|value| value.sample.value).collect();
                Reading::Series { values, taken }
            }
            // Those of event sources come with whether they are active, which samples do not tell.
            Source::Trigger(_) | Source::Unknown { .. } => Reading::Empty,
        }
    }

    fn measured_pods(&self, values: &[Measured<'_>]) -> Reading {
        let of_pods = values.iter().filter_map(|value| Some((value.pod?, value.sample)));
        let mut any = false;
        let ours = of_pods.filter(|(pod, _)| self.may_be_ours(pod)).inspect(|_| any = true);
        let readings = self.line_up(ours);
        if any { Reading::PerPod(readings) } else { Reading::Empty }
    }

    pub(super) fn with_requests(
        &self,
        reading: Reading,
        place: usize,
        resource: &str,
        container: Option<&str>,
    ) -> Reading {
        let target = self.autoscaler.metrics.get(place).map(|metric| metric.target);
        match (reading, target) {
            (Reading::PerPod(mut readings), Some(MetricTarget::Utilization(_))) => {
                let extensions = self.autoscaler.extensions.as_deref();
                let share_of = extensions.map(|e| e.rules(place).share_of).unwrap_or_default();
                readings.requests = self.requests(resource, container, share_of);
                Reading::PerPod(readings)
            }
            (reading, _) => reading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Surroundings, select};
    use super::*;
    use crate::pod::Pod;
    use podscale_core::model::{
        Extensions, Metric, MetricRules, Milli, PrometheusQuery, ShareOf, TargetRef, Targets,
    };
    use podscale_core::{Autoscaler, Span, Time};
    use serde_json::json;

    fn autoscaler(source: Source, targets: &Targets) -> Autoscaler {
        Autoscaler {
            namespace: "d".into(),
            name: "a".into(),
            generation: 1,
            target: TargetRef { api_version: "v1".into(), kind: "K".into(), name: "n".into() },
            min_replicas: 1,
            max_replicas: 2,
            metrics: vec![Metric::new(source, targets)],
            behavior: None,
            extensions: None,
        }
    }

    fn measured(value: i64) -> Measured<'static> {
        let sample = Sample { value: Milli(value), taken: Time(7), window: Span(0) };
        Measured { sample, pod: Some("p") }
    }

    fn read(autoscaler: &Autoscaler, values: &[Measured<'_>]) -> Reading {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "d", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c",
                "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "400m"}}}]},
        }))
        .expect("a pod");
        let around = Surroundings { kind: "CHPA", selector: "a=b", pods: &[&pod], others: &[] };
        select(autoscaler, &around).expect("pods").read_measured(0, values)
    }

    #[test]
    fn utilizations_are_shares_of_requests_or_limits() {
        let targets = Targets { average_utilization: Some(50), ..Targets::default() };
        let mut autoscaler = autoscaler(Source::Resource { name: "cpu".into() }, &targets);
        for (share_of, expected) in [(ShareOf::Requests, 100), (ShareOf::Limits, 400)] {
            let rules = MetricRules { share_of, ..MetricRules::default() };
            let extensions = Extensions { metrics: vec![rules], ..Extensions::default() };
            autoscaler.extensions = Some(Box::new(extensions));
            let Reading::PerPod(readings) = read(&autoscaler, &[measured(50)]) else {
                panic!("values per pod");
            };
            assert_eq!(readings.requests.of_pods, [Milli(expected)]);
        }
    }

    #[test]
    fn prometheus_has_one_value_with_its_time() {
        let query = PrometheusQuery { name: "q".into(), server: None, query: "1".into() };
        let targets = Targets { value: Some(Milli(1)), ..Targets::default() };
        let autoscaler = autoscaler(Source::Prometheus(query), &targets);
        let one = read(&autoscaler, &[measured(5)]);
        assert!(matches!(one, Reading::Total { value: Milli(5), taken: Some(Time(7)) }), "{one:?}");
        assert!(matches!(read(&autoscaler, &[]), Reading::Empty));
        let two = read(&autoscaler, &[measured(5), measured(6)]);
        assert!(matches!(two, Reading::Failed(_)), "{two:?}");
    }
}
