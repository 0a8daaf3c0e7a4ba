//! One decision of ours, to be held against a choice of the other controller.

use super::ObservedWrite;
use podscale_core::model::{Autoscaler, MetricTarget};
use podscale_core::snapshot::Reading;
use podscale_core::status::StoredMetric;
use podscale_core::{Decision, Snapshot, Span, decide};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How far the moments of two controllers may be apart.
pub(super) const SLACK: Span = Span::seconds(1);

/// What we decided, and on what.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attempt {
    /// The size that was found.
    pub(super) found: i32,
    /// How many pods there were.
    pub(super) existing: i32,
    /// What was chosen, if anything could be.
    pub(super) chosen: Option<i32>,
    /// What the metrics said.
    pub(super) metrics: Vec<StoredMetric>,
    /// The state of the pods as a number, if it matters.
    pub(super) pods: u64,
    /// Whether the other controller last saw the same values, on the same spec.
    pub(super) same_inputs: bool,
}

impl Attempt {
    /// A decision next to what the other controller wrote or has stored.
    pub(crate) fn new(
        decision: &Decision,
        snapshot: &Snapshot<'_>,
        observed: Option<&ObservedWrite>,
    ) -> Attempt {
        let (seen, generation) = match observed {
            Some(observed) => (&observed.metrics, observed.generation),
            None => (&snapshot.status.metrics, snapshot.status.observed_generation),
        };
        let metrics = decision.status(snapshot).metrics;
        let same_spec = generation.is_none_or(|seen| seen == snapshot.autoscaler.generation);
        let same_inputs = metrics == *seen && same_spec;
        let (found, existing) = snapshot
            .scale
            .as_ref()
            .map_or((0, 0), |scale| (scale.spec_replicas, scale.status_replicas));
        let mut pods = DefaultHasher::new();
        if depends_on_pods(snapshot.autoscaler) {
            format!("{:?}", snapshot.pods).hash(&mut pods);
        }
        let (chosen, pods) = (decision.desired, pods.finish());
        Attempt { found, existing, chosen, metrics, pods, same_inputs }
    }

    /// Whether the other controller last saw the same values, on the same spec.
    pub(crate) fn same_inputs(&self) -> bool {
        self.same_inputs
    }
}

/// Whether what any metric proposes depends on the state of pods. Values that are shared out among the
/// replicas depend on their number alone, which a status shows.
pub(super) fn depends_on_pods(autoscaler: &Autoscaler) -> bool {
    autoscaler.metrics.iter().any(|metric| {
        let shared = metric.source.needs_no_pods();
        !(shared && matches!(metric.target, MetricTarget::AverageValue(_)))
    })
}

/// Decides again, a moment earlier or later, until something fits.
pub(super) fn decide_nearby(
    snapshot: &Snapshot<'_>,
    period: Span,
    mut fits: impl FnMut(i32) -> bool,
) -> bool {
    let far = Span(period.0.saturating_add(SLACK.0));
    let zero = Span::seconds(0);
    let samples = [zero, SLACK, Span(SLACK.0.saturating_neg())].map(|shift| {
        let shifted = snapshot.readings.iter().cloned().map(|reading| shifted(reading, shift));
        shifted.collect::<Vec<Reading>>()
    });
    samples.iter().any(|readings| {
        [zero, SLACK, far].into_iter().any(|shift| {
            [snapshot.now.before(shift), snapshot.now.after(shift)].into_iter().any(|now| {
                let decision = decide(&Snapshot { now, readings, ..*snapshot });
                decision.desired.is_some_and(&mut fits)
            })
        })
    })
}

/// What a metric says, as if it had been measured so much later.
fn shifted(mut reading: Reading, shift: Span) -> Reading {
    if let Reading::PerPod(of_pods) = &mut reading {
        for sample in of_pods.samples.iter_mut().flatten() {
            sample.taken = sample.taken.after(shift);
        }
    }
    reading
}
