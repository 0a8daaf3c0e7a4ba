//! Values that any source measured, lined up with the pods of an autoscaler.

use super::{Selected, not_exactly_one};
use podscale_core::model::{MetricTarget, ShareOf, Source};
use podscale_core::snapshot::{Reading, Sample};

/// One value that a source measured for one metric.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// How much, when, and over how long.
    pub sample: Sample,
    /// The pod that it is about, if it is about one.
    pub pod: Option<&'a str>,
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
            Source::Prometheus(_) if values.is_empty() => Reading::Empty,
            Source::Object { .. } | Source::Prometheus(_) => match values {
                [value] => {
                    Reading::Total { value: value.sample.value, taken: Some(value.sample.taken) }
                }
                several => Reading::Failed(not_exactly_one(several.len()).into()),
            },
            Source::External(_) if values.is_empty() => Reading::Empty,
            Source::External(_) => {
                let taken = values.iter().map(|value| value.sample.taken).min();
                let values = values.iter().map(|value| value.sample.value).collect();
                Reading::Series { values, taken }
            }
            Source::Unknown { .. } => Reading::Empty,
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
                let share_of = extensions.map_or(ShareOf::Requests, |e| e.rules(place).share_of);
                readings.requests = self.requests(resource, container, share_of);
                Reading::PerPod(readings)
            }
            (reading, _) => reading,
        }
    }
}
