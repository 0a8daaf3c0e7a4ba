//! What one recorded step shows of the workload.

use podscale_api::replay::Replayed;
use podscale_core::explain::metric_name;
use podscale_core::model::{EventSource, Source, Trigger, TriggerOf};
use podscale_core::pod::{Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{Reading, Selection};
use podscale_core::{Autoscaler, Time};
use podscale_sim::plan::Quantity;
use std::sync::Arc;

/// A pod that took longer than this to become ready was unready in between.
const LONGEST_START_MICROS: i64 = 3_600_000_000;

/// What a metric says of the workload as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Amount {
    /// Thousandths of a core that all pods use, and the most that one of them does.
    Cpu { total: f64, most: f64 },
    /// Bytes that one pod uses on average.
    Memory { each: f64 },
    /// A value of each pod: their sum, and the largest.
    Pods { total: f64, most: f64 },
    /// A value of the whole.
    Whole(f64),
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observed {
    pub(super) at: Time,
    /// The size after it.
    pub(super) replicas: i32,
    /// Pods that served.
    pub(super) serving: usize,
    /// What each of the [`signals`] says, in order.
    pub(super) amounts: Vec<Option<Amount>>,
    /// Over how long samples were measured.
    pub(super) window_seconds: Option<f64>,
    /// How long ago that ended.
    pub(super) age_seconds: Option<f64>,
    /// How long ago the last trigger was asked.
    pub(super) asked_seconds: Option<f64>,
}

/// Something that has a value of its own: a metric, or one of those that a formula is made of.
pub(super) struct Signal<'a> {
    /// The name by which it is known what it measures; cpu and memory have none.
    pub(super) name: Option<&'a Arc<str>>,
    /// What people call it.
    pub(super) label: String,
}

/// The signals of an autoscaler.
pub(super) fn signals(autoscaler: &Autoscaler) -> Vec<Signal<'_>> {
    let mut signals = Vec::new();
    for (place, metric) in (0..).zip(&autoscaler.metrics) {
        match inputs(&metric.source) {
            Some(inputs) => signals.extend(
                inputs.iter().map(|(name, _)| Signal { name: Some(name), label: name.to_string() }),
            ),
            None => signals.push(Signal {
                name: Quantity::name_in(&metric.source),
                label: metric_name(autoscaler, place),
            }),
        }
    }
    signals
}

/// What a formula is made of, if a source is one.
fn inputs(source: &Source) -> Option<&[(Arc<str>, EventSource)]> {
    match source {
        Source::Trigger(Trigger { of: TriggerOf::Formula(made), .. }) => Some(&made.inputs),
        _ => None,
    }
}

/// When pods were taken by their nodes, and how much later they became ready.
pub(super) fn starts(replayed: &Replayed<'_>) -> Vec<(i64, i64)> {
    let Selection::Pods(pods) = replayed.snapshot.pods else { return Vec::new() };
    let start = |pod: &Pod| match (pod.started, pod.ready) {
        (Some(started), Some(Ready { status: ReadyStatus::True, since })) => {
            let delay = since.since(started).0;
            (0..LONGEST_START_MICROS).contains(&delay).then_some((started.0, delay))
        }
        _ => None,
    };
    pods.iter().filter_map(start).collect()
}

impl Observed {
    /// What a step shows; nothing if the target's size is not known.
    pub(super) fn of(replayed: &Replayed<'_>, recorded: Option<i32>) -> Option<Observed> {
        let snapshot = replayed.snapshot;
        let found = snapshot.scale.as_ref().ok()?.spec_replicas;
        let pods = match snapshot.pods {
            Selection::Pods(pods) => pods.as_slice(),
            _ => &[],
        };
        let serving: Vec<bool> = pods.iter().map(|pod| pod.is_serving() && !pod.deleting).collect();
        let metrics = snapshot.autoscaler.metrics.iter().zip(snapshot.readings);
        let amounts = metrics
            .flat_map(|(metric, reading)| amounts(&metric.source, reading, &serving))
            .collect();
        let asked = snapshot.readings.iter().filter_map(asked).max();
        let sample = snapshot.readings.iter().find_map(|reading| match reading {
            Reading::PerPod(readings) => readings.samples.iter().flatten().next(),
            _ => None,
        });
        Some(Observed {
            at: snapshot.now,
            replicas: recorded.unwrap_or(found),
            serving: serving.iter().filter(|serving| **serving).count(),
            amounts,
            window_seconds: sample.map(|s| s.window.0 as f64 / 1e6).filter(|window| *window > 0.0),
            age_seconds: sample.map(|s| snapshot.now.since(s.taken).0 as f64 / 1e6),
            asked_seconds: asked.map(|taken| snapshot.now.since(taken).0 as f64 / 1e6),
        })
    }
}

/// When a trigger was asked.
fn asked(reading: &Reading) -> Option<Time> {
    match reading {
        Reading::Trigger { taken, .. } => *taken,
        Reading::Inputs(readings) => readings.iter().filter_map(asked).max(),
        _ => None,
    }
}

/// What the signals of one metric say.
fn amounts(source: &Source, reading: &Reading, serving: &[bool]) -> Vec<Option<Amount>> {
    let Some(inputs) = inputs(source) else { return vec![amount(source, reading, serving)] };
    let readings = match reading {
        Reading::Inputs(readings) => readings.as_slice(),
        _ => &[],
    };
    let of_input = |place| readings.get(place).and_then(|one| amount(source, one, serving));
    (0..inputs.len()).map(of_input).collect()
}

fn amount(source: &Source, reading: &Reading, serving: &[bool]) -> Option<Amount> {
    let milli = |value: i64| value as f64 / 1000.0;
    match reading {
        Reading::Total { value, .. } | Reading::Trigger { value, .. } => {
            Some(Amount::Whole(milli(value.0)))
        }
        Reading::Series { values, .. } => {
            Some(Amount::Whole(values.iter().map(|value| milli(value.0)).sum()))
        }
        Reading::PerPod(readings) => {
            let samples = readings.samples.iter().zip(serving).filter(|(_, serving)| **serving);
            let values: Vec<f64> =
                samples.filter_map(|(sample, _)| Some(sample.as_ref()?.value.0 as f64)).collect();
            if values.is_empty() {
                return None;
            }
            let sum: f64 = values.iter().sum();
            let most = values.iter().copied().fold(0.0, f64::max);
            // Pods that serve and have no sample yet do as the others do.
            let each = sum / values.len() as f64;
            let total = each * serving.iter().filter(|serving| **serving).count() as f64;
            match source {
                Source::Resource { name } | Source::ContainerResource { name, .. } => match &**name
                {
                    "cpu" => Some(Amount::Cpu { total, most }),
                    "memory" => Some(Amount::Memory { each: each / 1000.0 }),
                    _ => None,
                },
                _ => Some(Amount::Pods { total: total / 1000.0, most: most / 1000.0 }),
            }
        }
        Reading::Inputs(_) | Reading::Empty | Reading::Failed(_) => None,
    }
}
