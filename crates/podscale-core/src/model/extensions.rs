//! What an autoscaler may ask for beyond a native one. Every field's default is what a native
//! autoscaler does, so that a difference is always a value that somebody has set.

use super::ahead::Ahead;
use super::control::Control;
use super::formula::Formula;
use super::queue::Queue;
use super::schedule::Schedules;
use super::trigger::{Activation, StandIn};
use super::window::Window;
use super::{Milli, Settings};
use crate::time::Span;
use serde::Serialize;
use std::sync::Arc;

/// Everything that is not in a native autoscaler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extensions {
    /// Why the spec cannot be acted on, if so; then the target is left alone, and nothing else here
    /// counts.
    pub invalid: Option<Arc<str>>,
    /// The rules of each metric, in the order of the autoscaler's metrics; one that is not there has
    /// the default rules.
    pub metrics: Vec<MetricRules>,
    /// How the metrics' proposals become one size.
    pub combine: Combine,
    /// What is asked for if the spec has no metric at all.
    pub no_metrics: NoMetrics,
    /// Which pods belong to the target; whoever gathers the pods applies it.
    pub pod_selection: PodSelection,
    /// How pods are judged.
    pub pods: PodRules,
    /// Which number is the target's current size.
    pub size_from: SizeFrom,
    /// How far a ratio may be off before anything moves; a behavior's own tolerance wins.
    pub tolerance: Option<Tolerance>,
    /// Whether recent recommendations steady a new one.
    pub stabilization: Stabilization,
    /// How long after any change of size no other one may follow.
    pub forbidden_windows: ForbiddenWindows,
    /// How fast the size may go up, beside the behavior's policies.
    pub pace: Pace,
    /// Whether what arrives and what waits in a queue is to be served within a time.
    pub queue: Option<Queue>,
    /// Whether sizes follow the mean demand of a window.
    pub window: Option<Window>,
    /// What is done before the demand is there.
    pub ahead: Ahead,
    /// When which other bounds are in force.
    pub schedules: Option<Schedules>,
    /// What a person ordered: modes, pauses, a hold.
    pub control: Control,
    /// Whether an idle target goes to zero, or to another idle size.
    pub scale_to_zero: Option<ScaleToZero>,
    /// How activity leads away from the idle size, and back.
    pub activation: Activation,
    /// What becomes of a target that somebody else set to zero.
    pub zeroed_by_others: ZeroedByOthers,
    /// The size while no metric works for long.
    pub fallback: Option<Fallback>,
    /// The place of the metric by which pods get a deletion cost before the size goes down, so that
    /// busy ones go last; whoever writes the size applies it.
    pub deletion_cost_by: Option<u32>,
    /// Whose words conditions and events use where they differ.
    pub wording: Wording,
}

impl Extensions {
    /// The rules of the metric at this place.
    #[must_use]
    pub fn rules(&self, metric: usize) -> &MetricRules {
        static DEFAULT: MetricRules = MetricRules::DEFAULT;
        self.metrics.get(metric).unwrap_or(&DEFAULT)
    }
}

/// What is special about one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricRules {
    /// How a formula calls it.
    pub name: Option<Arc<str>>,
    /// How old a sample may be; an older one is no sample.
    pub max_age: Option<Span>,
    /// What is assumed while it has no usable value.
    pub on_missing: OnMissing,
    /// What a utilization is a share of.
    pub share_of: ShareOf,
    /// How the values of pods become one.
    pub aggregate: Aggregate,
    /// Above which value it keeps an idle target awake; see [`ScaleToZero`].
    pub activation: Option<Milli>,
    /// Between which values it asks for nothing; in place of a tolerance.
    pub watermarks: Option<Watermarks>,
    /// What stands in for it once it has failed too often; only for triggers.
    pub stand_in: Option<StandIn>,
}

impl MetricRules {
    /// What applies to a metric of a native autoscaler.
    pub const DEFAULT: MetricRules = MetricRules {
        name: None,
        max_age: None,
        on_missing: OnMissing::Hold,
        share_of: ShareOf::Requests,
        aggregate: Aggregate::Average,
        activation: None,
        watermarks: None,
        stand_in: None,
    };
}

/// What is assumed of a metric without a usable value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OnMissing {
    /// The size may not go down meanwhile, and only goes up if the largest proposal decides.
    #[default]
    Hold,
    /// The others decide as if it were not in the spec.
    Ignore,
    /// It asks for what its last value asked for; without one it holds.
    LastValue,
    /// It asks for so many replicas.
    Replicas(i32),
    /// Nothing is decided, whatever the others say, and metrics after it are not considered.
    Abort,
}

/// What a utilization is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ShareOf {
    /// What the pods request.
    #[default]
    Requests,
    /// What the pods are limited to.
    Limits,
}

/// How the values of pods become one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Aggregate {
    /// Their mean; of utilizations, weighted by what each pod requests.
    #[default]
    Average,
    /// The largest.
    Max,
    /// The smallest value that so many percent of the pods do not exceed (nearest rank), 1 to 99.
    Percentile(u8),
}

/// Two values of a metric between which it asks for no change, in the unit of its target: percent for
/// a utilization, so that 80 % is `Milli(80_000)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Watermarks {
    /// Below it the metric asks for fewer replicas.
    pub low: Milli,
    /// Above it the metric asks for more.
    pub high: Milli,
}

/// How several proposals become one size.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Combine {
    /// The largest.
    #[default]
    Max,
    /// The smallest.
    Min,
    /// Their mean, rounded up.
    Average,
    /// What a formula makes of them, rounded up.
    Formula(Formula),
}

/// What is asked for if there is no metric at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoMetrics {
    /// Nothing can be decided.
    #[default]
    Fail,
    /// Zero replicas, so that the minimum applies.
    AskForZero,
}

/// Which pods belong to a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodSelection {
    /// All that its selector picks.
    #[default]
    Selector,
    /// Those that its selector picks and that it owns, directly or through what it owns; not those of
    /// a rollout's older revisions, nor finished ones.
    Owned,
}

/// How pods are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodRules {
    /// Which pods count.
    pub readiness: Readiness,
    /// How long after a pod's start its cpu samples may come from starting up; `None` is the
    /// controller's setting.
    pub cpu_initialization_period: Option<Span>,
    /// Up to how long after its start an unready pod counts as never having been ready; `None` is the
    /// controller's setting.
    pub initial_readiness_delay: Option<Span>,
    /// How long after its start a pod is unready for every metric.
    pub warm_up: Span,
}

impl PodRules {
    /// The controller's settings with the object's own in their place.
    #[must_use]
    pub fn over(&self, settings: &Settings) -> Settings {
        Settings {
            cpu_initialization_period: self
                .cpu_initialization_period
                .unwrap_or(settings.cpu_initialization_period),
            initial_readiness_delay: self
                .initial_readiness_delay
                .unwrap_or(settings.initial_readiness_delay),
            ..*settings
        }
    }
}

/// Which pods count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// Running pods, for cpu without those that are still starting; failed and deleted ones are as if
    /// they did not exist.
    #[default]
    Started,
    /// Pods that run and are ready, for every metric; all others are unready. A pod without a sample
    /// uses exactly what it requests on the way down, and a change that turns out the other way round
    /// because of rounding is made all the same. These are the rules of Kubernetes 1.10.
    Serving,
}

/// Which number is the current size of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeFrom {
    /// What its spec asks for.
    #[default]
    Spec,
    /// What its status says it has.
    Status,
}

/// How far a ratio may be off one before anything moves; the controller's setting where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Above one.
    pub up: Option<f64>,
    /// Below one.
    pub down: Option<f64>,
}

/// Whether recent recommendations steady a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stabilization {
    /// Those of the behavior's windows, or of the controller's.
    #[default]
    Recent,
    /// None do.
    Off,
}

/// How long after the last change of size, in whichever direction, another one is forbidden. The time
/// that counts is that of the deciding metric's samples, which must be after the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForbiddenWindows {
    /// Towards more replicas.
    pub up: Option<Span>,
    /// Towards fewer replicas.
    pub down: Option<Span>,
}

/// How fast the size may go up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// As the behavior's policies say; without a behavior at most to double, or to four.
    #[default]
    Policies,
    /// At most to the larger of the current size times the factor and the minimum. A behavior's
    /// policies apply beside it.
    FactorAndMinimum {
        /// The factor.
        factor: f64,
        /// The size that is always allowed.
        minimum: i32,
    },
}

/// When an idle target gets its idle size. It is active while any metric is above its activation
/// threshold. Metrics of objects, of outside the cluster, of Prometheus and of event sources are asked without a
/// threshold as well, which is zero then; others only if they have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleToZero {
    /// The size of an idle target, usually zero; below the minimum.
    pub idle_replicas: i32,
    /// How long nothing must have been active.
    pub cooldown: Span,
}

/// What becomes of a target that somebody else set to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroedByOthers {
    /// It is left alone until somebody sets another size.
    #[default]
    LeftAlone,
    /// It is scaled as if the autoscaler itself had set it to zero.
    Woken,
    /// It is set to one replica without metrics being read. A target whose spec asks for zero is left
    /// alone; this is for one that should have replicas and has none.
    SetToOne,
}

/// The size while metrics are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// How long no size could be computed.
    pub after: Span,
    /// The size that is asked for then; bounds and rates apply.
    pub replicas: i32,
}

/// Whose words conditions and events use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wording {
    /// Those of Kubernetes' controller.
    #[default]
    Kubernetes,
    /// Those of the configurable HPA, where they differ.
    ConfigurableHpa,
    /// Those of KEDA, where they differ.
    Keda,
}
