//! Which pods a scale-down should take. Kubernetes' controllers remove pods that are not ready first,
//! and of the ready ones those whose deletion cost is lowest; a pod without one has zero. So that busy
//! pods go last, pods get a cost by how much a metric says they do.
//!
//! Each cost is a write to the API server. Only as many pods get one as it takes to tell those that go
//! from those that stay: the smaller of the two groups.

use crate::model::Milli;
use crate::pod::{Pod, Sample};
use crate::snapshot::{Reading, Selection, Snapshot};
use crate::time::Span;

/// The costs of no more pods than these change at once; of more, the busiest ones are told apart.
pub const MAX_COST_CHANGES: usize = 100;

/// What deleting a pod costs, and who said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// Nobody did, which is the same as zero.
    #[default]
    Unset,
    /// We did, before an earlier scale-down.
    Ours(i32),
    /// Somebody else did, so it stays as it is.
    Others(i32),
}

/// A pod that is to have another cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostChange {
    /// Its place among the pods of the snapshot.
    pub pod: usize,
    /// The cost; `None` takes away what it has.
    pub cost: Option<i32>,
}

/// Why no costs can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoValues;

/// The costs that let a scale-down to so many replicas take the least busy pods. `metric` is the place
/// of the metric that says how busy they are, `costs` has one entry for each pod of the snapshot.
///
/// # Errors
/// The metric has no value of any pod, so nobody knows which are busy.
pub fn cost_changes(
    snapshot: &Snapshot<'_>,
    metric: u32,
    to: i32,
    costs: &[Cost],
) -> Result<Vec<CostChange>, NoValues> {
    let Selection::Pods(pods) = snapshot.pods else { return Err(NoValues) };
    let Some(Reading::PerPod(readings)) = snapshot.readings.get(metric as usize) else {
        return Err(NoValues);
    };
    let extensions = snapshot.autoscaler.extensions.as_deref();
    let max_age = extensions.and_then(|extensions| extensions.rules(metric as usize).max_age);
    let oldest = max_age.map(|Span(age)| snapshot.now.before(Span(age.max(0))));
    let current = |sample: &&Sample| oldest.is_none_or(|oldest| sample.taken >= oldest);
    let value = |place: usize| {
        let sample = readings.samples.get(place)?.as_ref().filter(current)?;
        Some(sample.value)
    };
    let serving: Vec<Candidate> = pods
        .iter()
        .zip(costs)
        .enumerate()
        .filter(|(_, (pod, _))| competes(pod))
        .map(|(place, (_, cost))| Candidate { place, cost: *cost, value: value(place) })
        .collect();
    if serving.iter().all(|candidate| candidate.value.is_none()) {
        return Err(NoValues);
    }
    Ok(changes(serving, usize::try_from(to).unwrap_or(0)))
}

/// Whether the cost of a pod matters: those that do not serve go before all others.
fn competes(pod: &Pod) -> bool {
    pod.is_serving() && !pod.deleting
}

/// A pod that serves.
#[derive(Clone, Copy)]
struct Candidate {
    place: usize,
    cost: Cost,
    value: Option<Milli>,
}

/// Of these pods so many stay.
fn changes(serving: Vec<Candidate>, stay: usize) -> Vec<CostChange> {
    let count = serving.len();
    let (theirs, mut ours): (Vec<Candidate>, Vec<Candidate>) =
        serving.into_iter().partition(|candidate| matches!(candidate.cost, Cost::Others(_)));
    // What others made cheap goes before any of ours, what they did not goes after them.
    let cheap = theirs.iter().filter(|c| matches!(c.cost, Cost::Others(..0))).count();
    let go = count.saturating_sub(stay).saturating_sub(cheap).min(ours.len());
    // A pod whose value is not known may be the busiest of all.
    ours.sort_by_key(|candidate| (candidate.value.is_none(), candidate.value, candidate.place));
    let (going, staying) = ours.split_at(go);
    let mut wanted: Vec<(Candidate, Option<i32>)> = Vec::new();
    let cost = |rank: usize| i32::try_from(rank).ok();
    if going.len() <= staying.len().min(MAX_COST_CHANGES) {
        let stale = |c: &&Candidate| matches!(c.cost, Cost::Ours(..0));
        wanted.extend(staying.iter().filter(stale).map(|c| (*c, None)));
        let marked = going.iter().zip((1..=going.len()).rev());
        wanted.extend(marked.map(|(c, rank)| (*c, cost(rank).map(|cost| -cost))));
    } else {
        let spared = staying.len().min(MAX_COST_CHANGES);
        let (others, spared) = ours.split_at(ours.len() - spared);
        let stale = |(rank, c): &(usize, &Candidate)| match c.cost {
            Cost::Ours(cost) => cost > 0 || *rank >= go,
            Cost::Unset | Cost::Others(_) => false,
        };
        let stale = others.iter().enumerate().filter(stale);
        wanted.extend(stale.map(|(_, c)| (*c, None)));
        let marked = spared.iter().enumerate().rev();
        wanted.extend(marked.map(|(rank, c)| (*c, cost(rank + 1))));
    }
    let change = |(candidate, cost): (Candidate, Option<i32>)| {
        let has = match candidate.cost {
            Cost::Ours(cost) => Some(cost),
            Cost::Unset | Cost::Others(_) => None,
        };
        (has != cost).then_some(CostChange { pod: candidate.place, cost })
    };
    wanted.into_iter().filter_map(change).take(MAX_COST_CHANGES).collect()
}

/// What takes away all costs that we gave, so many at once at most.
#[must_use]
pub fn without_ours(costs: &[Cost]) -> Vec<CostChange> {
    let ours = costs.iter().enumerate().filter(|(_, cost)| matches!(cost, Cost::Ours(_)));
    ours.map(|(pod, _)| CostChange { pod, cost: None }).take(MAX_COST_CHANGES).collect()
}
