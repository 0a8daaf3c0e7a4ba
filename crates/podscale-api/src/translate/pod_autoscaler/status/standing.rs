//! What `kubectl get` shows besides what was decided: what an autoscaler does now, within which bounds,
//! and why.

use crate::hpa::v2::Condition;
use crate::pod_autoscaler::PodAutoscaler;
use podscale_core::model::{Bounds, Control, Mode};
use podscale_core::status::ConditionKind;
use podscale_core::{Autoscaler, Snapshot, Time};

/// The mode of an autoscaler whose spec cannot be used.
const INVALID: &str = "Invalid";
/// What is shown until there is a condition.
const PENDING: &str = "Pending";
/// Reasons that only say that nothing stands in the way of what the metrics ask for.
const UNREMARKABLE: [&str; 2] = ["SucceededGetScale", "ReadyForNewScale"];

/// What follows from the spec and the time alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) mode: String,
    pub(super) schedule: String,
    pub(super) bounds: Bounds,
}

impl Standing {
    pub(super) fn at(autoscaler: &Autoscaler, now: Time) -> Standing {
        let base = autoscaler.bounds();
        let extensions = autoscaler.extensions.as_deref();
        let schedules = extensions.and_then(|extensions| extensions.schedules.as_ref());
        let scheduled = schedules.and_then(|schedules| schedules.at(now, base));
        let control = extensions.map_or_else(Control::default, |extensions| extensions.control);
        let mode = match autoscaler.invalid() {
            Some(_) => INVALID.to_owned(),
            None => mode(&control, now),
        };
        match scheduled {
            Some(scheduled) => {
                let schedule = scheduled.schedule.to_string();
                Standing { mode, schedule, bounds: scheduled.bounds }
            }
            None => Standing { mode, schedule: String::new(), bounds: base },
        }
    }
}

/// What it does now, in a word.
fn mode(control: &Control, now: Time) -> String {
    let paused = (control.pause_up_at(now).is_some(), control.pause_down_at(now).is_some());
    match (control.mode_at(now), control.hold_at(now), paused) {
        (Mode::Paused, ..) | (Mode::Active, _, (true, true)) => "Paused".to_owned(),
        (Mode::DryRun, ..) => "DryRun".to_owned(),
        (Mode::Active, Some(hold), _) => format!("Hold({})", hold.replicas),
        (Mode::Active, None, (true, false)) => "NoScaleUp".to_owned(),
        (Mode::Active, None, (false, true)) => "NoScaleDown".to_owned(),
        (Mode::Active, None, (false, false)) => "Active".to_owned(),
    }
}

/// The reason of the condition that matters most: what keeps it from scaling, then what limits it, then
/// what it has just done.
pub(super) fn reason(conditions: &[Condition]) -> String {
    let find = |kind: ConditionKind, status: &str| {
        let found = conditions.iter().find(|c| c.r#type == kind.name() && c.status == status)?;
        Some(found.reason.as_str()).filter(|reason| !reason.is_empty())
    };
    use ConditionKind::{AbleToScale, ScalingActive, ScalingLimited};
    let able = find(AbleToScale, "True");
    find(AbleToScale, "False")
        .or_else(|| find(ScalingActive, "False"))
        .or_else(|| find(ScalingLimited, "True"))
        .or_else(|| able.filter(|reason| !UNREMARKABLE.contains(reason)))
        .or_else(|| find(ScalingActive, "True"))
        .or(able)
        .unwrap_or(PENDING)
        .to_owned()
}

/// The size that was found, also where nothing could be decided on it.
pub(super) fn found(snapshot: &Snapshot<'_>, decided: Option<i32>) -> Option<i32> {
    decided.or_else(|| Some(snapshot.scale.as_ref().ok()?.spec_replicas))
}

/// Whether the stored status does not show what the object does at this time, although nothing else about
/// it has changed: a schedule has begun, an order has run out.
#[must_use]
pub fn is_stale(pa: &PodAutoscaler, snapshot: &Snapshot<'_>) -> bool {
    let Some(stored) = &pa.status else { return false };
    let Standing { mode, schedule, bounds } = Standing::at(snapshot.autoscaler, snapshot.now);
    let shown = (&stored.mode, &stored.active_schedule, stored.min_replicas, stored.max_replicas);
    shown != (&mode, &schedule, Some(bounds.min), Some(bounds.max))
        || stored.observed_generation != Some(pa.metadata.generation)
        || found(snapshot, None).is_some_and(|found| found != stored.current_replicas)
}
