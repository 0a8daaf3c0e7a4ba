//! One value of the values of pods, where it is not their mean.

use crate::decide::per_pod::{PodSamples, Usage};
use crate::model::{Aggregate, MetricTarget, Milli};
use crate::pod::{Group, Pod};
use crate::snapshot::Sample;
use crate::status::Current;
use crate::text::MetricError;

/// The values of pods, and what is made of them. Samples of pods that are not there do not count: of
/// them only the sum is known.
pub(super) struct PodValues<'a> {
    pub(super) samples: &'a PodSamples<'a>,
    pub(super) aggregate: Aggregate,
    pub(super) target: MetricTarget,
}

impl PodValues<'_> {
    /// The aggregate of the pods that are ready, and of others that `filled` gives a value.
    pub(super) fn usage(
        &self,
        group: &impl Fn(&Pod, Option<&Sample>) -> Group,
        filled: impl Fn(Group) -> Option<f64>,
    ) -> Result<Usage, MetricError> {
        let pods = self.samples.pods.iter().enumerate();
        let mut values: Vec<f64> = pods
            .filter_map(|(place, pod)| {
                let sample = self.samples.sample(place);
                match group(pod, sample) {
                    Group::Ready => self.value(place, sample?.value),
                    group => filled(group),
                }
            })
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let found = match self.aggregate {
            Aggregate::Max => values.last(),
            Aggregate::Percentile(percent) => values.get(rank(percent, values.len())),
            Aggregate::Average => None,
        };
        let value = *found.ok_or(MetricError::NothingRequested)?;
        Ok(match self.target {
            MetricTarget::Utilization(percent) => Usage {
                current: Current {
                    average_utilization: Some(value.floor() as i32),
                    ..Current::default()
                },
                ratio: value / f64::from(percent),
            },
            MetricTarget::Value(Milli(target)) | MetricTarget::AverageValue(Milli(target)) => {
                Usage {
                    current: Current {
                        average_value: Some(Milli(value as i64)),
                        ..Current::default()
                    },
                    ratio: value / target as f64,
                }
            }
            MetricTarget::Unset => return Err(MetricError::NoTarget),
        })
    }

    /// The value of one pod in the unit of the target; `None` for a share of nothing.
    fn value(&self, place: usize, Milli(used): Milli) -> Option<f64> {
        match self.target {
            MetricTarget::Utilization(_) => {
                let request = self.samples.request(place);
                (request > 0).then(|| used as f64 * 100.0 / request as f64)
            }
            _ => Some(used as f64),
        }
    }
}

/// The place of the nearest rank in so many values in order.
fn rank(percent: u8, count: usize) -> usize {
    let rank = (count * usize::from(percent.min(100))).div_ceil(100);
    rank.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn ranks_are_the_nearest() {
        for (percent, count, place) in [
            (50, 4, 1),
            (50, 5, 2),
            (90, 10, 8),
            (95, 10, 9),
            (99, 1000, 989),
            (99, 1, 0),
            (1, 3, 0),
            (0, 3, 0),
            (200, 3, 2),
        ] {
            assert_eq!(rank(percent, count), place, "P{percent} of {count}");
        }
    }
}
