//! Sizes by what waits in a queue and by what arrives in it. Never lowers a size.

use super::ask::{Answers, total_of};
use super::{Context, window};
use crate::decision::Decision;
use crate::model::{Milli, Queue};
use crate::steps::Queued;

/// The size that serves what arrives and what waits, never less than what is asked for, and the demand
/// that it follows from. A metric that cannot be read leaves everything as it is.
pub(super) fn serve(
    context: &Context<'_>,
    queue: Queue,
    answers: &Answers,
    (from, demand): (i32, Milli),
    decision: &mut Decision,
) -> (i32, Milli) {
    let amounts =
        (amount(context, answers, queue.length), amount(context, answers, queue.arrivals));
    let (Some(waiting), Some(arrivals)) = amounts else { return (from, demand) };
    let Some(needed) = needed(queue, waiting, arrivals) else { return (from, demand) };
    let to = window::size(context, needed).max(from);
    let step = Queued { waiting, arrivals, within: queue.within, from, to };
    decision.steps.extend().queued = Some(step);
    // The cast saturates.
    (to, demand.max(Milli((needed * 1000.0).round() as i64)))
}

/// How many pods get through what arrives in a second and, in the time that is given, through what waits.
fn needed(queue: Queue, waiting: Milli, arrivals: Milli) -> Option<f64> {
    let seconds = queue.within.0 as f64 / 1e6;
    let a_second = arrivals.0 as f64 + if waiting.0 > 0 { waiting.0 as f64 / seconds } else { 0.0 };
    let needed = a_second / queue.per_pod.0 as f64;
    (queue.per_pod.0 > 0 && needed.is_finite()).then_some(needed.max(0.0))
}

/// The value of a metric that has one for all pods, if it could be used; less than nothing is nothing.
fn amount(context: &Context<'_>, answers: &Answers, place: u32) -> Option<Milli> {
    let place = place as usize;
    answers.of_metrics.get(place)?.proposal.as_ref()?;
    let snapshot = context.snapshot;
    let metric = snapshot.autoscaler.metrics.get(place)?;
    let reading = snapshot.readings.get(place)?;
    let (Milli(value), _) = total_of(reading, &metric.source, metric.target)?;
    Some(Milli(value.max(0)))
}
