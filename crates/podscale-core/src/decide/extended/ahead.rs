//! Raises a size before the demand is there: by a forecast, by where the demand is going, by what it usually
//! gains, and by what will be needed again soon. Never lowers it.

use super::Context;
use super::answer::Answer;
use super::ask::Answers;
use super::{room, window};
use crate::decide::ceil;
use crate::decide::tolerance::Tolerances;
use crate::decision::Decision;
use crate::history::Memory;
use crate::model::{Ahead, Combine, Headroom, Lead, MetricTarget, Milli, Predict};
use crate::pod::Pod;
use crate::predict::{Demand, Forecaster, Gate};
use crate::steps::{Forecasted, Guarded, Led, Spared};
use crate::time::Span;
use smallvec::SmallVec;

/// How long a pod needs where nothing is known of it.
const USUAL_START_UP: Span = Span::seconds(60);
/// What comes on top of what is measured on pods: samples are taken and decided on in intervals.
const REACTION: Span = Span::seconds(30);
/// More pods than these say nothing more of how long pods need.
const MOST_PODS: usize = 32;

/// The size that is asked for ahead of the demand, never less than what is wanted. The demand is remembered,
/// so that it can be learned from.
pub(super) fn raise(
    context: &Context<'_>,
    pods: &[Pod],
    replicas: Milli,
    wanted: i32,
    memory: &mut Memory,
    decision: &mut Decision,
) -> i32 {
    let ahead = &context.extensions.ahead;
    if !ahead.is_on() {
        return wanted;
    }
    let horizon = horizon(ahead, pods, memory);
    let demand = Demand { replicas, at: context.snapshot.now, horizon };
    memory.demand = Some(demand);
    let forecaster = context.snapshot.history.forecaster.as_deref();
    let mut raised = wanted;
    if let (Some(forecaster), Some(predict)) = (forecaster, ahead.predict) {
        raised = by_forecast(context, forecaster, &demand, predict, raised, decision);
    }
    if let (Some(forecaster), Some(lead)) = (forecaster, ahead.lead) {
        raised = by_lead(context, forecaster, &demand, lead, raised, decision);
    }
    if let Some(headroom) = ahead.headroom {
        let learned = room::learn(context, headroom, pods, &demand, memory);
        let gained = || forecaster.map(|f| f.headroom(&demand, headroom.confidence_percent));
        let room = learned.or_else(gained).unwrap_or_default();
        raised = by_headroom(context, &demand, headroom, room, raised, decision);
    }
    if let (Some(forecaster), Some(predict)) = (forecaster, ahead.predict) {
        raised = by_guard(context, forecaster, &demand, predict, raised, decision);
    }
    raised
}

/// An idle target asks for nothing, which is learned from as well.
pub(super) fn note_idle(context: &Context<'_>, pods: &[Pod], memory: &mut Memory) {
    let ahead = &context.extensions.ahead;
    if ahead.is_on() {
        let horizon = horizon(ahead, pods, memory);
        let at = context.snapshot.now;
        memory.demand = Some(Demand { replicas: Milli(0), at, horizon });
    }
}

fn by_forecast(
    context: &Context<'_>,
    forecaster: &Forecaster,
    demand: &Demand,
    predict: Predict,
    from: i32,
    decision: &mut Decision,
) -> i32 {
    let forecast = forecaster.forecast(demand, predict.confidence_percent);
    let to = match forecast.gate {
        Gate::Open => size(context, forecast.replicas, from),
        Gate::Learning | Gate::NoPattern | Gate::RecentlyWrong => from,
    };
    decision.steps.extend().forecast = Some(Forecasted { forecast, from, to });
    to
}

fn by_lead(
    context: &Context<'_>,
    forecaster: &Forecaster,
    demand: &Demand,
    lead: Lead,
    from: i32,
    decision: &mut Decision,
) -> i32 {
    let gained = forecaster.lead(demand);
    let Some((gained, to)) = beyond(context, demand, gained, lead.most_percent, from) else {
        return from;
    };
    decision.steps.extend().led = Some(Led { gained, horizon: demand.horizon, from, to });
    to
}

/// Room for what the demand gained in the past, or as much as was learned to be enough.
fn by_headroom(
    context: &Context<'_>,
    demand: &Demand,
    headroom: Headroom,
    room: Milli,
    from: i32,
    decision: &mut Decision,
) -> i32 {
    let Some((room, to)) = beyond(context, demand, room, headroom.most_percent, from) else {
        return from;
    };
    // A size that is close enough to what has been learned to be needed stays as it is.
    let to = match headroom.overload_permille {
        None => to,
        Some(_) => {
            let needed = (demand.replicas.0.saturating_add(room.0)) as f64 / 1000.0;
            window::size(context, needed).max(from)
        }
    };
    decision.steps.extend().spared = Some(Spared {
        room,
        allowed: headroom.overload_permille,
        horizon: demand.horizon,
        from,
        to,
    });
    to
}

/// What is added to a demand of what it may gain, as so many percent of it at most, and the size for both;
/// `None` if that is nothing.
fn beyond(
    context: &Context<'_>,
    demand: &Demand,
    gained: Milli,
    most_percent: u32,
    from: i32,
) -> Option<(Milli, i32)> {
    let most = demand.replicas.0.max(0).saturating_mul(i64::from(most_percent)) / 100;
    let gained = gained.0.min(most);
    let sum = demand.replicas.0.saturating_add(gained);
    (gained > 0).then(|| (Milli(gained), size(context, Milli(sum), from)))
}

/// Pods that a season says will be needed again soon stay.
fn by_guard(
    context: &Context<'_>,
    forecaster: &Forecaster,
    demand: &Demand,
    predict: Predict,
    from: i32,
    decision: &mut Decision,
) -> i32 {
    let (current, within) = (context.current(), predict.scale_in_guard);
    if from >= current || within <= Span(0) {
        return from;
    }
    let Some((pattern, peak)) = forecaster.peak(demand, within) else { return from };
    let to = ceil(peak.0 as f64 / 1000.0).min(current);
    if to <= from {
        return from;
    }
    decision.steps.extend().guarded = Some(Guarded { pattern, peak, within, from, to });
    to
}

/// The size for an expected demand, unless it is close to the one that is asked for anyway.
fn size(context: &Context<'_>, expected: Milli, from: i32) -> i32 {
    let Context { snapshot, extensions, .. } = *context;
    let (autoscaler, settings) = (snapshot.autoscaler, snapshot.settings);
    let unset = MetricTarget::Unset;
    let tolerances = Tolerances::of_metric(autoscaler, settings, extensions, unset, None);
    let expected = expected.0 as f64 / 1000.0;
    if tolerances.allow(expected / f64::from(from)) { from } else { ceil(expected).max(from) }
}

/// How long a pod that is added now needs to become ready: as the spec says, as most of the pods that are
/// there needed, or as it was known last.
fn horizon(ahead: &Ahead, pods: &[Pod], memory: &Memory) -> Span {
    if let Some(start_up) = ahead.start_up {
        return start_up;
    }
    let needed = |pod: &Pod| {
        let (started, ready) = (pod.started?, pod.ready?);
        (pod.is_serving() && ready.since >= started).then(|| ready.since.since(started))
    };
    let mut times: SmallVec<[Span; MOST_PODS]> =
        pods.iter().filter_map(needed).take(MOST_PODS).collect();
    times.sort_unstable();
    match times.get(times.len() / 2) {
        Some(Span(most)) => Span(most.saturating_add(REACTION.0)),
        None => memory.demand.map_or(USUAL_START_UP, |demand| demand.horizon),
    }
}

/// How many replicas the metrics ask for, before anything is rounded or tolerated.
pub(super) fn demand(context: &Context<'_>, pods: &[Pod], answers: &Answers, wanted: i32) -> Milli {
    let rounded = f64::from(wanted);
    let asked = match context.extensions.combine {
        Combine::Max => {
            let of_metrics = answers.of_metrics.iter().enumerate();
            of_metrics
                .filter_map(|(place, answer)| asked(context, pods, place, answer))
                .reduce(f64::max)
        }
        _ => None,
    };
    let asked = asked.filter(|asked| asked.is_finite()).unwrap_or(rounded);
    Milli((asked * 1000.0).round() as i64)
}

/// What one metric asks for, or what stands in for it.
fn asked(context: &Context<'_>, pods: &[Pod], place: usize, answer: &Answer) -> Option<f64> {
    let rounded = answer.replicas.map(f64::from);
    let Some(proposal) = &answer.proposal else { return rounded };
    let of_one_value = context.snapshot.autoscaler.metrics.get(place)?.source.needs_no_pods();
    let counts = proposal.pods;
    let exact = match (proposal.target, of_one_value, proposal.adjusted_ratio) {
        (MetricTarget::AverageValue(_), true, _) => {
            proposal.ratio * f64::from(context.scale.status_replicas)
        }
        (_, true, _) if context.scale.spec_replicas == 0 => proposal.ratio,
        (_, true, _) => proposal.ratio * pods.iter().filter(|pod| pod.is_serving()).count() as f64,
        (_, false, None) => proposal.ratio * f64::from(counts.ready),
        (_, false, Some(adjusted)) => {
            adjusted
                * (f64::from(counts.ready) + f64::from(counts.unready) + f64::from(counts.missing))
        }
    };
    if exact.is_finite() { Some(exact) } else { rounded }
}
