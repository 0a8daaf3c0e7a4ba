//! Keeps a size within its bounds and within the allowed rate.

use super::ceil;
use super::set;
use crate::decision::Decision;
use crate::history::changed_within;
use crate::model::{Behavior, Bounds, Pace, Policy, PolicyAmount, PolicySelect, ScalingRules};
use crate::snapshot::Snapshot;
use crate::status::{ConditionKind, Note};
use crate::steps::{Bound, Direction, Limit, Limited};

/// The size that may be set now.
// Inlined wherever it is called: the decision on a native object must not pay for the other caller.
#[inline(always)]
pub(super) fn limit(
    snapshot: &Snapshot<'_>,
    bounds: Bounds,
    pace: Pace,
    current: i32,
    wanted: i32,
    decision: &mut Decision,
) -> i32 {
    let cap = match &snapshot.autoscaler.behavior {
        None => default_rate(bounds, pace, current, wanted),
        Some(behavior) => behavior_rate(snapshot, behavior, (bounds, pace), current, wanted),
    };
    let cap = below_maximum(bounds.max, current, wanted, cap);
    let note = cap.map_or(Note::DesiredWithinRange, |cap| match (cap.limit, wanted > current) {
        (Limit::Bound(Bound::Min), _) => Note::TooFewReplicas,
        (Limit::Bound(Bound::Max), _) => Note::TooManyReplicas,
        (Limit::DefaultRate | Limit::Pace, _) | (_, true) => Note::ScaleUpLimit,
        (_, false) => Note::ScaleDownLimit,
    });
    let allowed = cap.map_or(wanted, |cap| cap.replicas);
    set(snapshot, decision, ConditionKind::ScalingLimited, allowed != wanted, note);
    decision.steps.limited =
        cap.map(|Cap { replicas: to, limit }| Limited { from: wanted, to, limit });
    allowed
}

/// Keeps a size below the maximum that the target is above, which can be while its spec asks for zero: rates
/// count from the size that there is.
fn below_maximum(max: i32, current: i32, wanted: i32, cap: Option<Cap>) -> Option<Cap> {
    let allowed = cap.map_or(wanted, |cap| cap.replicas);
    if current > max && allowed > max {
        return Some(Cap { replicas: max, limit: Limit::Bound(Bound::Max) });
    }
    cap
}

/// A limit that holds, and the size it allows.
#[derive(Clone, Copy)]
struct Cap {
    replicas: i32,
    limit: Limit,
}

/// Without a behavior: up to double or four at once, or as the pace says, down without a limit.
fn default_rate(bounds: Bounds, pace: Pace, current: i32, wanted: i32) -> Option<Cap> {
    let Bounds { min, max } = bounds;
    let default = (2.0 * f64::from(current)).max(4.0) as i32;
    let default = Cap { replicas: default, limit: Limit::DefaultRate };
    let rate = pace_cap(pace, current).unwrap_or(default);
    let highest = if max > rate.replicas {
        rate
    } else {
        Cap { replicas: max, limit: Limit::Bound(Bound::Max) }
    };
    if wanted < min {
        Some(Cap { replicas: min, limit: Limit::Bound(Bound::Min) })
    } else {
        (wanted > highest.replicas).then_some(highest)
    }
}

/// How far a factor and a minimum let the size go up; what was there stays in any case.
fn pace_cap(pace: Pace, current: i32) -> Option<Cap> {
    match pace {
        Pace::Policies => None,
        Pace::FactorAndMinimum { factor, minimum } => {
            let reached = (factor * f64::from(current)).max(f64::from(minimum)) as i32;
            Some(Cap { replicas: reached.max(current), limit: Limit::Pace })
        }
    }
}

/// Whether the rate without a behavior stops short of the maximum.
pub(super) fn pace_is_below(max: i32, pace: Pace, current: i32) -> bool {
    matches!(
        default_rate(Bounds { min: i32::MIN, max }, pace, current, i32::MAX),
        Some(Cap { limit: Limit::DefaultRate | Limit::Pace, .. })
    )
}

/// With a behavior: as far as its policies and the bounds allow. The rate never turns against the
/// direction: what was used up in a period is only waited for.
fn behavior_rate(
    snapshot: &Snapshot<'_>,
    behavior: &Behavior,
    (Bounds { min, max }, pace): (Bounds, Pace),
    current: i32,
    wanted: i32,
) -> Option<Cap> {
    if wanted > current {
        let rate = rate(snapshot, &behavior.scale_up, current, Direction::Up);
        let rate = Cap { replicas: rate.replicas.max(current), ..rate };
        let rate = match pace_cap(pace, current) {
            Some(pace) if pace.replicas < rate.replicas => pace,
            _ => rate,
        };
        let bound = Cap { replicas: max, limit: Limit::Bound(Bound::Max) };
        let highest = if max > rate.replicas { rate } else { bound };
        (wanted > highest.replicas).then_some(highest)
    } else if wanted < current {
        let rate = rate(snapshot, &behavior.scale_down, current, Direction::Down);
        let rate = Cap { replicas: rate.replicas.min(current), ..rate };
        let bound = Cap { replicas: min, limit: Limit::Bound(Bound::Min) };
        let lowest = if min < rate.replicas { rate } else { bound };
        (wanted < lowest.replicas).then_some(lowest)
    } else {
        None
    }
}

/// How far the policies of one direction let the size go.
fn rate(snapshot: &Snapshot<'_>, rules: &ScalingRules, current: i32, direction: Direction) -> Cap {
    if rules.select == PolicySelect::Disabled {
        return Cap { replicas: current, limit: Limit::Disabled };
    }
    // The largest change is the highest size on the way up and the lowest on the way down.
    let highest = (direction == Direction::Up) == (rules.select == PolicySelect::Max);
    let none = Cap { replicas: if highest { i32::MIN } else { i32::MAX }, limit: Limit::Disabled };
    let mut best = none;
    let mut allowed = 0;
    for policy in &rules.policies {
        let period_start = size_at_period_start(snapshot, policy, current);
        allowed = reach(policy.amount, period_start, direction).unwrap_or(allowed);
        let better = if highest { allowed > best.replicas } else { allowed < best.replicas };
        if better {
            let limit = Limit::Policy { policy: *policy, period_start };
            best = Cap { replicas: allowed, limit };
        }
    }
    best
}

/// The size at the start of the policy's period: what was added since is taken off again, what was
/// removed is put back.
fn size_at_period_start(snapshot: &Snapshot<'_>, policy: &Policy, current: i32) -> i32 {
    let added = changed_within(&snapshot.history.ups, policy.period, snapshot.now);
    let removed = changed_within(&snapshot.history.downs, policy.period, snapshot.now);
    current.wrapping_sub(added).wrapping_add(removed)
}

/// How far a policy reaches from the size at the start of its period. Percentages are floating
/// point and round in favour of movement, as in Kubernetes.
fn reach(amount: PolicyAmount, start: i32, direction: Direction) -> Option<i32> {
    let from = f64::from(start);
    Some(match (amount, direction) {
        (PolicyAmount::Pods(pods), Direction::Up) => start.wrapping_add(pods),
        (PolicyAmount::Pods(pods), Direction::Down) => start.wrapping_sub(pods),
        (PolicyAmount::Percent(percent), Direction::Up) => {
            ceil(from * (1.0 + f64::from(percent) / 100.0))
        }
        (PolicyAmount::Percent(percent), Direction::Down) => {
            (from * (1.0 - f64::from(percent) / 100.0)) as i32
        }
        (PolicyAmount::Unknown, _) => return None,
    })
}
