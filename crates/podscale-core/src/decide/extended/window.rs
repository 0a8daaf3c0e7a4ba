//! Sizes by the mean demand of a window, with a shorter one for bursts.

use super::Context;
use crate::decide::ceil;
use crate::decide::tolerance::Tolerances;
use crate::decision::Decision;
use crate::history::{Asked, Burst, MAX_ASKED, Memory};
use crate::model::{MetricTarget, Milli, Window};
use crate::pod::Pod;
use crate::steps::Windowed;
use crate::time::{Span, Time};

/// The size by the mean demand, in the place of that by the last one.
pub(super) fn smooth(
    context: &Context<'_>,
    window: Window,
    pods: &[Pod],
    demand: Milli,
    from: i32,
    memory: &mut Memory,
    decision: &mut Decision,
) -> i32 {
    let now = context.snapshot.now;
    remember(memory, window, demand, now);
    let stable = mean(&memory.asked, window.stable, now);
    let latest = mean(&memory.asked, window.panic, now);
    let serving = pods.iter().filter(|pod| pod.is_serving()).count();
    let enough = serving as f64 * f64::from(window.panic_percent) / 100.0;
    let is_burst = serving > 0 && latest >= enough;
    let before = memory.burst.filter(|burst| now.since(burst.last) < window.stable);
    let last = if is_burst { Some(now) } else { before.map(|burst| burst.last) };
    let usual = size(context, stable);
    let to = match last {
        None => usual,
        Some(_) => before.map_or(0, |burst| burst.replicas).max(usual).max(ceil(latest)),
    };
    memory.burst = last.map(|last| Burst { last, replicas: to });
    decision.steps.extend().windowed = Some(Windowed { from, to, burst: last.is_some() });
    to
}

fn remember(memory: &mut Memory, window: Window, demand: Milli, now: Time) {
    let asked = &mut memory.asked;
    asked.retain(|asked| asked.at < now && now.since(asked.at) < window.stable);
    if asked.len() >= MAX_ASKED {
        // The window is as long as what there is room for.
        asked.remove(0);
    }
    asked.push(Asked { replicas: demand, at: now });
}

/// The mean of what was asked for within a time, in replicas; at least the last one counts.
fn mean(asked: &[Asked], within: Span, now: Time) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for Asked { replicas, at } in asked {
        if *at == now || now.since(*at) < within {
            sum += replicas.0 as f64 / 1000.0;
            count += 1;
        }
    }
    sum / f64::from(count.max(1))
}

/// The size for a demand, unless the current one is close enough.
pub(super) fn size(context: &Context<'_>, mean: f64) -> i32 {
    let Context { snapshot, extensions, .. } = *context;
    let (autoscaler, settings) = (snapshot.autoscaler, snapshot.settings);
    let unset = MetricTarget::Unset;
    let tolerances = Tolerances::of_metric(autoscaler, settings, extensions, unset, None);
    let current = context.current();
    let close = current > 0 && tolerances.allow(mean / f64::from(current));
    if close { current } else { ceil(mean).max(0) }
}
