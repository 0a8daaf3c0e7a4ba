//! What becomes of the size that the metrics ask for, before it is steadied and limited.

use super::ask::Answers;
use super::{Context, ahead, queue, window};
use crate::decision::Decision;
use crate::history::Memory;
use crate::model::Extensions;
use crate::pod::Pod;

/// Forgets what no rule of the spec needs.
pub(super) fn forget(extensions: &Extensions, memory: &mut Memory) {
    if extensions.fallback.is_none() {
        memory.metrics_gone_since = None;
    }
    if !extensions.ahead.is_on() {
        memory.demand = None;
    }
    if extensions.ahead.headroom.is_none_or(|headroom| headroom.overload_permille.is_none()) {
        memory.room = None;
    }
    if extensions.window.is_none() {
        memory.asked.clear();
        memory.burst = None;
    }
}

/// What a queue and a window make of the size that the metrics ask for, and what is asked for ahead of the
/// demand.
pub(super) fn sized(
    context: &Context<'_>,
    pods: &[Pod],
    answers: &Answers,
    asked: i32,
    memory: &mut Memory,
    decision: &mut Decision,
) -> (i32, i32) {
    let Extensions { queue, window, ahead, .. } = context.extensions;
    if queue.is_none() && window.is_none() && !ahead.is_on() {
        return (asked, asked);
    }
    let demand = ahead::demand(context, pods, answers, asked);
    let (asked, demand) = match *queue {
        None => (asked, demand),
        Some(queue) => queue::serve(context, queue, answers, (asked, demand), decision),
    };
    let asked = match *window {
        None => asked,
        Some(window) => {
            let mean = window::smooth(context, window, pods, demand, asked, memory, decision);
            // While a metric is broken the size may not go down, whatever the others asked for before.
            if answers.holding > 0 { mean.max(context.current()) } else { mean }
        }
    };
    (asked, ahead::raise(context, pods, demand, asked, memory, decision))
}
