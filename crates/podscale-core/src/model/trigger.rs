//! Event sources: triggers, what is made of several, what stands in for those that fail, and how their
//! activity leads away from an idle size.

use super::formula::Formula;
use crate::time::Time;
use serde::Serialize;
use std::sync::Arc;

/// One value that an event source gives, or that a formula makes of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The metric's name, such as `s0-prometheus`.
    pub name: Arc<str>,
    /// Where its value comes from.
    pub of: TriggerOf,
}

/// Where the value of a trigger comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerOf {
    /// One event source.
    Source(EventSource),
    /// A formula.
    Formula(Box<Composite>),
}

/// An event source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// Its kind, such as `prometheus`.
    pub kind: Arc<str>,
    /// What tells it from all others of its kind; it means something only to whoever reads it.
    pub key: Arc<str>,
}

/// One value made of those of several event sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// What it is, given the whole value of each input by its place.
    pub formula: Formula,
    /// The names of the inputs' metrics with their sources.
    pub inputs: Vec<(Arc<str>, EventSource)>,
}

/// What stands in for a trigger that has failed too often in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// How many failures in a row are borne; until there are more, the trigger is just broken.
    pub failures: u32,
    /// The size that is asked for then, through the trigger's target: tolerances and rates apply.
    pub size: StandInSize,
}

/// The size that is asked for in place of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StandInSize {
    /// This one.
    Replicas(i32),
    /// The current one.
    Current,
    /// The larger of the current one and this.
    CurrentIfHigher(i32),
    /// The smaller of the current one and this.
    CurrentIfLower(i32),
    /// What the formula gives without the inputs that failed; if it gives nothing, this.
    Formula(i32),
}

impl StandInSize {
    /// The size, given the current one.
    #[must_use]
    pub fn at(self, current: i32) -> i32 {
        match self {
            StandInSize::Replicas(replicas) | StandInSize::Formula(replicas) => replicas,
            StandInSize::Current => current,
            StandInSize::CurrentIfHigher(replicas) => replicas.max(current),
            StandInSize::CurrentIfLower(replicas) => replicas.min(current),
        }
    }
}

/// How activity leads away from an idle size, and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// The size that a target gets when something becomes active.
    pub waking: Waking,
    /// A target counts as active, whatever its metrics say.
    pub forced: bool,
    /// From when on a target that was never seen active may be idle; `None` is after a whole cool-down.
    pub idle_from: Option<Time>,
    /// Which sizes are decided here.
    pub scope: Scope,
}

/// Which sizes of a target are decided here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    #[default]
    Whole,
    /// Only whether it is idle: an HPA beside it decides how many replicas an active target has.
    Activation,
}

/// The size that an idle target gets when something becomes active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waking {
    /// What the metrics ask for, at least the minimum.
    #[default]
    ByMetrics,
    /// The minimum, or one; the metrics decide from there.
    ToMinimum,
}
