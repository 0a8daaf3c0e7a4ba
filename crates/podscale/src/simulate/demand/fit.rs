//! From what steps show to a workload and its load: which metric tells the demand, how much one pod
//! can do, and what of that is only a bound.

use super::observed::{Amount, Observed, signals};
use podscale_core::{Autoscaler, Time};
use podscale_sim::plan::{PodTemplate, Quantity};
use podscale_sim::workload::{Kind, WorkloadSpec};
use std::collections::BTreeMap;

/// From this part of its limit on, a pod's usage may hide more demand.
const SATURATED: f64 = 0.95;

/// A workload and its load.
pub(super) struct Fitted {
    pub(super) workload: WorkloadSpec,
    pub(super) metrics: BTreeMap<String, Quantity>,
    /// From when on how much came, in requests, items or thousandths of a core per second.
    pub(super) demand: Vec<(Time, f64)>,
    pub(super) objective_seconds: f64,
}

/// What the demand is told by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Rate,
    Queue,
    Cpu,
}

impl Fitted {
    /// The workload behind these steps; nothing if no metric tells the demand.
    pub(super) fn of(
        observed: &[Observed],
        autoscaler: &Autoscaler,
        template: &PodTemplate,
        unknown: &mut Vec<String>,
    ) -> Option<Fitted> {
        let (by, place) = best(observed, autoscaler)?;
        let mut fitted = match by {
            By::Rate => rate(observed, place, unknown),
            By::Queue => queue(observed, place, unknown)?,
            By::Cpu => cpu(observed, place, template, unknown),
        };
        let signals = signals(autoscaler);
        for name in signals.iter().filter_map(|signal| signal.name) {
            let quantity = Quantity::guess(name, fitted.workload.kind);
            fitted.metrics.insert(name.to_string(), quantity);
        }
        fit_usage(&mut fitted, observed, by);
        if signals.len() > 1 {
            unknown.push(format!(
                "the load is recovered from {}; other metrics follow it in proportion",
                signals[place].label
            ));
        }
        Some(fitted)
    }
}

/// The metric that tells the demand best, of those that have values most of the time.
fn best(observed: &[Observed], autoscaler: &Autoscaler) -> Option<(By, usize)> {
    let signals = signals(autoscaler).into_iter().enumerate();
    let candidates = signals.filter_map(|(place, signal)| {
        let values = observed.iter().filter_map(|step| step.amounts.get(place).copied().flatten());
        let values: Vec<Amount> = values.collect();
        if values.len() * 2 < observed.len() {
            return None;
        }
        let by = match (signal.name, values.first()?) {
            (_, Amount::Cpu { .. }) => By::Cpu,
            (Some(name), _) => match Quantity::guess(name, Kind::Service) {
                Quantity::RequestsPerSecond => By::Rate,
                Quantity::QueueLength => By::Queue,
                Quantity::LatencySeconds | Quantity::InFlight | Quantity::Absent => return None,
            },
            (None, _) => return None,
        };
        Some((by, place))
    });
    candidates.min()
}

fn amount(step: &Observed, place: usize) -> Option<Amount> {
    step.amounts.get(place).copied().flatten()
}

/// A workload of which one pod does so much.
pub(super) fn spec(kind: Kind, rps_per_pod: f64) -> WorkloadSpec {
    WorkloadSpec {
        kind,
        rps_per_pod: rps_per_pod.clamp(1e-6, 1e9),
        cpu_ms_per_request: 0.0,
        memory_bytes_per_request: 0.0,
        base_cpu_millis: 0.0,
        base_memory_bytes: 0.0,
        latency_seconds: 0.05,
        timeout_seconds: 10.0,
        queue_limit: 1e9,
        jitter: 0.0,
        seed: 0,
    }
}

/// The demand is a rate of requests.
fn rate(observed: &[Observed], place: usize, unknown: &mut Vec<String>) -> Fitted {
    let mut demand = Vec::new();
    let mut most_each = 0.0_f64;
    let mut last = None;
    for step in observed {
        match amount(step, place) {
            Some(Amount::Pods { total, most }) => {
                most_each = most_each.max(most);
                demand.push((begin(step), total));
            }
            Some(Amount::Whole(total)) => {
                most_each = most_each.max(total / step.serving.max(1) as f64);
                // What a trigger says is of the time since it was asked before.
                let asked = step.asked_seconds.and(last).unwrap_or_else(|| begin(step));
                demand.push((asked, total));
            }
            _ => {}
        }
        last = Some(step.at);
    }
    unknown.push(format!(
        "how much one pod could serve at most is not known: {most_each:.1} a second, the most that one \
         served, is taken"
    ));
    unknown.push("requests that were refused were not measured and are not in the load".to_owned());
    Fitted {
        workload: spec(Kind::Service, most_each),
        metrics: BTreeMap::new(),
        demand,
        objective_seconds: 0.5,
    }
}

/// The demand is what pods use, in thousandths of a core; one "request" is a thousandth for a second.
fn cpu(
    observed: &[Observed],
    place: usize,
    template: &PodTemplate,
    unknown: &mut Vec<String>,
) -> Fitted {
    let limit = template.busy_container().and_then(|busy| busy.cpu_limit_millis);
    let mut demand = Vec::new();
    let (mut most_each, mut saturated) = (0.0_f64, 0_usize);
    for step in observed {
        let Some(Amount::Cpu { total, most }) = amount(step, place) else { continue };
        most_each = most_each.max(most);
        let each = total / step.serving.max(1) as f64;
        saturated += usize::from(limit.is_some_and(|limit| each >= limit * SATURATED));
        demand.push((begin(step), total));
    }
    match limit {
        Some(limit) if saturated > 0 => unknown.push(format!(
            "in {saturated} of {} steps pods were at their limit of {limit:.0}m: there may have been \
             more to do than is known",
            demand.len()
        )),
        Some(_) => {}
        None => unknown.push(format!(
            "pods have no cpu limit: {most_each:.0}m, the most that one used, is taken for what one can \
             do"
        )),
    }
    unknown.push("cpu that pods use without load is taken as part of the load".to_owned());
    let mut workload = spec(Kind::Service, limit.unwrap_or(most_each));
    workload.cpu_ms_per_request = 1.0;
    Fitted { workload, metrics: BTreeMap::new(), demand, objective_seconds: 0.5 }
}

/// The demand is what came into a queue: by how much it grew, and what pods took from it meanwhile.
fn queue(observed: &[Observed], place: usize, unknown: &mut Vec<String>) -> Option<Fitted> {
    let lengths: Vec<(&Observed, f64)> = observed
        .iter()
        .filter_map(|step| match amount(step, place) {
            Some(Amount::Whole(length)) => Some((step, length)),
            Some(Amount::Pods { total, .. }) => Some((step, total)),
            _ => None,
        })
        .collect();
    let pairs = || {
        lengths.windows(2).filter_map(|pair| {
            let ((before, from), (after, to)) = (pair[0], pair[1]);
            let seconds = after.at.since(before.at).0 as f64 / 1e6;
            let serving = before.serving.max(after.serving) as f64;
            (seconds > 0.0).then_some((before.at, serving, (from, to), seconds))
        })
    };
    let each = pairs()
        .map(|(_, serving, (from, to), seconds)| (from - to) / seconds / serving.max(1.0))
        .fold(0.0, f64::max);
    if each <= 0.0 {
        return None;
    }
    unknown.push(format!(
        "what one pod takes from the queue is not known: {each:.2} a second, the most that was seen, is \
         taken; it may be more"
    ));
    unknown
        .push("what came while the queue was empty was taken at once and is not known".to_owned());
    let demand = pairs().map(|(at, serving, (from, to), seconds)| {
        // Once the queue is empty, pods may have had nothing to do.
        let took = if to > 0.0 { each * serving } else { from / seconds };
        (at, ((to - from) / seconds + took).max(0.0))
    });
    Some(Fitted {
        demand: demand.collect(),
        workload: spec(Kind::Consumer, each),
        metrics: BTreeMap::new(),
        objective_seconds: 60.0,
    })
}

/// When what a step measured began.
fn begin(step: &Observed) -> Time {
    let seconds = step.age_seconds.unwrap_or(0.0) + step.window_seconds.unwrap_or(0.0);
    step.at.before(podscale_core::Span((seconds * 1e6) as i64))
}

/// What a request costs in cpu, and what a pod has in memory.
fn fit_usage(fitted: &mut Fitted, observed: &[Observed], by: By) {
    let of = |find: fn(&Amount) -> Option<f64>| -> Vec<f64> {
        let amounts = observed.iter().flat_map(|step| step.amounts.iter().flatten());
        amounts.filter_map(find).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let memory = of(|amount| match amount {
        Amount::Memory { each } => Some(*each),
        _ => None,
    });
    fitted.workload.base_memory_bytes = mean(&memory);
    if by != By::Cpu {
        let cpu = of(|amount| match amount {
            Amount::Cpu { total, .. } => Some(*total),
            _ => None,
        });
        let demand: Vec<f64> = fitted.demand.iter().map(|(_, demand)| *demand).collect();
        if mean(&demand) > 0.0 {
            fitted.workload.cpu_ms_per_request = mean(&cpu) / mean(&demand);
        }
    }
}

/// The median of values; nothing if there are none.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
