//! One step of a decision, as it is shown and serialized.

use super::extended::{Activity, CombinedBy, Direction, FormulaFailure};
use crate::history::Recommendation;
use crate::model::{MetricTarget, Milli, OnMissing, Policy, Scheduled};
use crate::predict::{Forecast, Pattern};
use crate::status::Current;
use crate::time::{Span, Time};

/// One thing that happened on the way to a decision.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "step")]
pub enum Step<'a> {
    /// The spec cannot be acted on; the target is left alone.
    InvalidSpec {
        /// Why.
        error: &'a str,
    },
    /// The target's size is not known; nothing can be done.
    ScaleUnknown {
        /// Why.
        error: &'a str,
    },
    /// The target's size was read.
    Scale {
        /// How many replicas its spec asks for.
        #[serde(rename = "wanted")]
        spec_replicas: i32,
        /// How many it says it has.
        #[serde(rename = "existing")]
        status_replicas: i32,
    },
    /// Somebody else set the target to zero; it is left alone.
    Disabled,
    /// The size is outside the bounds and is brought back without reading the metrics.
    OutsideBounds {
        /// Which bound was crossed.
        bound: Bound,
        /// The bound, which is the new size.
        replicas: i32,
    },
    /// A schedule has put other bounds than the spec's in force.
    Scheduled(&'a Scheduled),
    /// A person paused the autoscaler; the target is left alone.
    Paused {
        /// Until when, unless for ever.
        until: Option<Time>,
    },
    /// A person holds the target at a size; metrics are not read.
    Held {
        /// The size, within the bounds.
        replicas: i32,
        /// Until when, unless for ever.
        until: Option<Time>,
    },
    /// The target has no replicas though it should; it gets one without metrics being read.
    SetToOne,
    /// The target's pods are not known.
    NoPods {
        /// Why.
        error: &'a str,
    },
    /// One metric proposed a size.
    Proposal(&'a Proposal),
    /// One metric could not propose a size.
    Invalid {
        /// Its place in the spec.
        metric: u32,
        /// Why.
        error: &'a str,
    },
    /// What stands in for a metric without a usable value.
    Substituted {
        /// Its place in the spec.
        metric: u32,
        /// By which rule.
        by: OnMissing,
        /// The size that it counts with; `None` leaves it out.
        replicas: Option<i32>,
    },
    /// Whether anything is active, where idle targets get another size.
    Activity {
        /// Whether, and why.
        activity: Activity,
    },
    /// The proposals were combined to a size otherwise than by the largest.
    Combined {
        /// How.
        by: CombinedBy,
        /// The size.
        replicas: i32,
    },
    /// The size is an HPA's business.
    LeftToHpa,
    /// The formula over the metrics gave no size.
    FormulaFailed {
        /// Why.
        reason: FormulaFailure,
    },
    /// Metrics have been gone for so long that the fallback is asked for.
    Fallback {
        /// Since when.
        since: Time,
        /// The size that is asked for.
        replicas: i32,
    },
    /// What arrives in a queue and what waits in it is to be served within a time.
    Queued {
        /// How much waits.
        waiting: Milli,
        /// How much arrives in a second.
        arrivals: Milli,
        /// Within which time what waits is to be served.
        within: Span,
        /// What the metrics ask for.
        from: i32,
        /// What it became; never less.
        to: i32,
    },
    /// The size follows the mean demand of a window.
    Windowed {
        /// What the metrics ask for now.
        from: i32,
        /// What it became.
        to: i32,
        /// Whether a burst is on, so that it follows the shorter window and does not go down.
        burst: bool,
    },
    /// A forecast was made for the time at which a pod that is added now is ready.
    Forecast {
        /// What is expected, how wrong such forecasts were, and whether they may be used.
        forecast: &'a Forecast,
        /// What the metrics ask for.
        from: i32,
        /// What it became; never less.
        to: i32,
    },
    /// The size follows where the demand is going.
    Led {
        /// What the demand gains until a pod that is added now is ready, in replicas.
        gained: Milli,
        /// How long that takes.
        horizon: Span,
        /// What was asked for.
        from: i32,
        /// What it became; never less.
        to: i32,
    },
    /// There is room for what the demand usually gains.
    Spared {
        /// How much it usually gains until a pod that is added now is ready, or how much was learned to be enough,
        /// in replicas.
        room: Milli,
        /// In how many thousandths of the time it may be too little, where it was learned.
        allowed: Option<u16>,
        /// How long that takes.
        horizon: Span,
        /// What was asked for.
        from: i32,
        /// What it became; never less.
        to: i32,
    },
    /// Pods that will be needed again soon are kept.
    Guarded {
        /// By which season.
        pattern: Pattern,
        /// The most that is expected, in replicas.
        peak: Milli,
        /// Within how long.
        within: Span,
        /// What was asked for.
        from: i32,
        /// What it became; never more than there are.
        to: i32,
    },
    /// The metrics agreed on a size.
    Winner {
        /// The place of the deciding metric in the spec.
        metric: u32,
        /// The size.
        replicas: i32,
        /// How many metrics were left out because they are broken.
        invalid: u32,
    },
    /// Broken metrics keep the size as it is.
    Blocked {
        /// How many are broken.
        invalid: u32,
        /// Of how many.
        of: u32,
        /// What the others would have asked for, if there are any.
        proposed: Option<i32>,
    },
    /// Recent recommendations were considered.
    Stabilized {
        /// What the metrics asked for.
        from: i32,
        /// What it became.
        to: i32,
        /// The recommendation that held it, where one did.
        held_by: Option<Recommendation>,
    },
    /// A limit was applied.
    Limited {
        /// What was asked for.
        from: i32,
        /// What it became.
        to: i32,
        /// By which limit.
        limit: Limit,
    },
    /// Held at zero by the autoscaler itself, but the minimum was raised since.
    RaisedFromZero {
        /// The minimum.
        to: i32,
    },
    /// The last change of size is too recent for another one.
    Forbidden {
        /// Towards which side.
        direction: Direction,
        /// What was asked for.
        from: i32,
        /// The size that stays.
        to: i32,
        /// When the size was last changed.
        last_scale: Time,
        /// How long no other change may follow.
        window: Span,
    },
    /// A person paused this direction.
    DirectionPaused {
        /// Towards which side.
        direction: Direction,
        /// What was asked for.
        from: i32,
        /// The size that stays.
        to: i32,
        /// Until when, unless for ever.
        until: Option<Time>,
    },
    /// The target gets another size.
    Rescale {
        /// From this size.
        from: i32,
        /// To this size.
        to: i32,
    },
    /// The target keeps its size.
    Keep {
        /// Its size.
        replicas: i32,
    },
    /// Pods got deletion costs before the size went down, so that busy ones go last.
    DeletionCosts {
        /// The place of the metric that says how busy they are.
        metric: u32,
        /// How many pods got another cost.
        pods: u32,
        /// What went wrong with some of them, or with all.
        error: Option<&'a str>,
    },
    /// The target was not given its new size, on purpose.
    Withheld {
        /// Why.
        reason: Withheld,
    },
}

/// Why a write was left out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Withheld {
    /// This is a dry run.
    DryRun,
    /// Another controller manages the autoscaler.
    OtherController,
    /// Another autoscaler has the same target.
    TargetTaken,
    /// It is left for a later pass.
    Deferred,
    /// The object does not exist any more.
    Gone,
}

/// A bound of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Bound {
    /// The fewest replicas.
    Min,
    /// The most replicas.
    Max,
}

/// What kept a size from being applied in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Limit {
    /// A bound of the spec.
    Bound(Bound),
    /// The rate without a behavior: at most double, or four.
    DefaultRate,
    /// A factor of the current size, or a size that is always allowed.
    Pace,
    /// A policy of the behavior.
    Policy {
        /// The policy.
        policy: Policy,
        /// The size at the beginning of its period.
        period_start: i32,
    },
    /// The direction is closed.
    Disabled,
}

/// A size that one metric asks for, and how it came to it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The metric's place in the spec.
    pub metric: u32,
    /// The size it asks for.
    pub replicas: i32,
    /// What the metric said.
    pub current: Current,
    /// What it is compared with.
    #[serde(rename = "aim")]
    pub target: MetricTarget,
    /// How far the value is from the target: above one asks for more.
    pub ratio: f64,
    /// The ratio after pods without a usable sample were counted in, where that was done.
    pub adjusted_ratio: Option<f64>,
    /// How the pods were sorted.
    pub pods: PodCounts,
    /// Which rule gave the size.
    pub verdict: Verdict,
}

/// How the pods were sorted for one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PodCounts {
    /// Pods that count.
    pub ready: u32,
    /// Pods that are not ready to be judged.
    pub unready: u32,
    /// Pods without a sample.
    pub missing: u32,
    /// Pods that failed or are being deleted.
    pub ignored: u32,
    /// Samples of pods that are not there.
    #[serde(rename = "strangers")]
    pub unmatched: u32,
}

/// Which rule gave the size of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Close enough to the target: no change.
    WithinTolerance,
    /// The ratio times the pods that count.
    Scaled,
    /// Counting in the other pods would reverse the direction: no change.
    #[serde(rename = "wouldTurn")]
    DirectionReversed,
    /// The total divided by the target for one pod.
    Divided,
}
