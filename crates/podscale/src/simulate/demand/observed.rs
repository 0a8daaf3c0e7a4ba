//! What one recorded step shows of the workload.

use podscale_api::replay::Replayed;
use podscale_core::Time;
use podscale_core::model::Source;
use podscale_core::pod::{Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{Reading, Selection};

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
    /// What each metric of the spec says, in order.
    pub(super) amounts: Vec<Option<Amount>>,
    /// Over how long samples were measured.
    pub(super) window_seconds: Option<f64>,
    /// How long ago that ended.
    pub(super) age_seconds: Option<f64>,
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
        let amounts = metrics.map(|(metric, reading)| amount(&metric.source, reading, &serving));
        let sample = snapshot.readings.iter().find_map(|reading| match reading {
            Reading::PerPod(readings) => readings.samples.iter().flatten().next(),
            _ => None,
        });
        Some(Observed {
            at: snapshot.now,
            replicas: recorded.unwrap_or(found),
            serving: serving.iter().filter(|serving| **serving).count(),
            amounts: amounts.collect(),
            window_seconds: sample.map(|s| s.window.0 as f64 / 1e6).filter(|window| *window > 0.0),
            age_seconds: sample.map(|s| snapshot.now.since(s.taken).0 as f64 / 1e6),
        })
    }
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
