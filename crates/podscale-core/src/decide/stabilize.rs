//! Steadies a recommendation by considering recent ones.

use super::set;
use crate::decision::Decision;
use crate::history::Recommendation;
use crate::model::Behavior;
use crate::snapshot::Snapshot;
use crate::status::{ConditionKind, Note};
use crate::steps::Stabilized;
use crate::time::Span;

/// The recommendation after recent ones were considered. The history learns the one that came in.
// Inlined wherever it is called: the decision on a native object must not pay for the other caller.
#[inline(always)]
pub(super) fn stabilize(
    snapshot: &Snapshot<'_>,
    current: i32,
    wanted: i32,
    decision: &mut Decision,
) -> i32 {
    // The size that was found first counts as a recommendation, also in the pass that learns it.
    let first = decision.learned.first;
    let recent = match &first {
        Some(first) => std::slice::from_ref(first),
        None => &snapshot.history.recommendations,
    };
    let outcome = match &snapshot.autoscaler.behavior {
        None => highest_recent(snapshot, recent, wanted),
        Some(behavior) => within_recent(snapshot, recent, behavior, current, wanted),
    };
    let recommendation = Recommendation { replicas: wanted, at: snapshot.now };
    decision.learned.recommendation = Some((recommendation, outcome.outlived));

    let to = outcome.replicas;
    let note = match &snapshot.autoscaler.behavior {
        _ if to == wanted => Note::ReadyForNewScale,
        Some(_) if wanted >= current => Note::ScaleUpStabilized,
        _ => Note::ScaleDownStabilized,
    };
    set(snapshot, decision, ConditionKind::AbleToScale, true, note);
    decision.steps.stabilized = Some(Stabilized { from: wanted, to, held_by: outcome.held_by });
    to
}

struct Outcome {
    replicas: i32,
    held_by: Option<Recommendation>,
    /// The slot whose recommendation has outlived every window; the last one of the list.
    outlived: Option<usize>,
}

/// Without a behavior: the highest recommendation of the controller's window, in both directions.
/// One that is exactly as old as the window still counts.
fn highest_recent(snapshot: &Snapshot<'_>, recent: &[Recommendation], wanted: i32) -> Outcome {
    let cutoff = snapshot.now.before(snapshot.settings.downscale_stabilization);
    // Most of what a steady decision does is this loop, so it has no branches.
    let (mut highest, mut outlived) = (wanted, usize::MAX);
    for (slot, recommendation) in recent.iter().enumerate() {
        let Recommendation { replicas, at } = *recommendation;
        let old = at < cutoff;
        outlived = if old { slot } else { outlived };
        let counted = if old { wanted } else { replicas };
        highest = highest.max(counted);
    }
    let holds = |r: &&Recommendation| r.replicas == highest && r.at >= cutoff;
    let held_by = if highest == wanted { None } else { recent.iter().find(holds).copied() };
    let outlived = Some(outlived).filter(|slot| *slot != usize::MAX);
    Outcome { replicas: highest, held_by, outlived }
}

/// With a behavior: not above the lowest recommendation of the window for going up, not below the
/// highest of the window for going down. One that is exactly as old as a window does not count.
fn within_recent(
    snapshot: &Snapshot<'_>,
    recent: &[Recommendation],
    behavior: &Behavior,
    current: i32,
    wanted: i32,
) -> Outcome {
    // The controller's own setting counts in whole seconds here.
    let fallback = i64::from(snapshot.settings.downscale_stabilization.as_whole_seconds());
    let up_window = behavior.scale_up.stabilization_window.unwrap_or_default();
    let down_window = behavior.scale_down.stabilization_window.unwrap_or(Span::seconds(fallback));
    let (up_cutoff, down_cutoff) =
        (snapshot.now.before(up_window), snapshot.now.before(down_window));

    let own = Recommendation { replicas: wanted, at: snapshot.now };
    let (mut lowest, mut highest, mut outlived) = (own, own, None);
    for (slot, &recommendation) in recent.iter().enumerate() {
        if recommendation.at > up_cutoff && recommendation.replicas < lowest.replicas {
            lowest = recommendation;
        }
        if recommendation.at > down_cutoff && recommendation.replicas > highest.replicas {
            highest = recommendation;
        }
        if recommendation.at < up_cutoff && recommendation.at < down_cutoff {
            outlived = Some(slot);
        }
    }

    let replicas = current.max(lowest.replicas).min(highest.replicas);
    let held_by = match replicas {
        _ if replicas == wanted => None,
        _ if replicas == lowest.replicas => Some(lowest),
        _ if replicas == highest.replicas => Some(highest),
        _ => Some(if wanted > current { lowest } else { highest }),
    };
    Outcome { replicas, held_by, outlived }
}
