//! Everything one decision depends on, gathered beforehand.

use crate::history::History;
use crate::model::{Autoscaler, Milli, Settings};
use crate::pod::Pod;
pub use crate::pod::Sample;
use crate::status::Status;
use crate::time::Time;
use std::sync::Arc;

/// One autoscaler and its surroundings at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The moment.
    pub now: Time,
    /// What is the same for all autoscalers.
    pub settings: &'a Settings,
    /// What is wanted.
    pub autoscaler: &'a Autoscaler,
    /// The status as it is stored.
    pub status: &'a Status,
    /// What earlier decisions left behind.
    pub history: &'a History,
    /// The target's size, or why it is not known.
    pub scale: &'a Result<Scale, ScaleError>,
    /// The target's pods, or why they are not known.
    pub pods: &'a Selection,
    /// What the metrics say, in the order of the autoscaler's metrics.
    pub readings: &'a [Reading],
}

/// The size of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How many replicas its spec asks for.
    pub spec_replicas: i32,
    /// How many it says it has.
    pub status_replicas: i32,
}

/// Why the size of a target is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleError {
    /// The reference's API version cannot be read.
    ApiVersion(Arc<str>),
    /// No resource of that kind is known.
    NoResource(Arc<str>),
    /// The scale could not be read.
    Unreadable(Arc<str>),
}

/// The pods of a target.
#[derive(Clone, Debug)]
pub enum Selection {
    /// The pods that the target's selector picks.
    Pods(Vec<Pod>),
    /// The target has no selector.
    NoSelector,
    /// The selector cannot be parsed, and why.
    BadSelector(Arc<str>),
    /// The selector also picks pods of another autoscaler.
    Ambiguous {
        /// The selector as the target gives it.
        selector: Arc<str>,
        /// Two of the autoscalers in question, `namespace/name`.
        autoscalers: [Arc<str>; 2],
    },
}

/// What one metric says.
#[derive(Clone, Debug)]
pub enum Reading {
    /// A value per pod.
    PerPod(PodReadings),
    /// One value.
    Total {
        /// How much.
        value: Milli,
        /// When it was measured, if that is known.
        taken: Option<Time>,
    },
    /// Values of several series, to be added up.
    Series {
        /// How much each.
        values: Vec<Milli>,
        /// When the oldest was measured, if that is known.
        taken: Option<Time>,
    },
    /// The value of a trigger.
    Trigger {
        /// How much.
        value: Milli,
        /// Whether the event source says that there is something to do.
        active: bool,
        /// When it was measured, if that is known.
        taken: Option<Time>,
    },
    /// What the inputs of a trigger say that a formula makes, in their order.
    Inputs(Vec<Reading>),
    /// The source answered with nothing.
    Empty,
    /// The source did not answer, and why.
    Failed(Arc<str>),
}

/// A value per pod, lined up with the snapshot's pods.
#[derive(Clone, Debug, Default)]
pub struct PodReadings {
    /// One entry for each pod of the snapshot, in the same order.
    pub samples: Vec<Option<Sample>>,
    /// What came for pods that the snapshot does not have.
    pub unmatched: UnmatchedSamples,
    /// What each pod requested, or is limited to, needed where the target is a utilization of that.
    pub requests: Requests,
}

/// Samples of pods that the selector does not pick (any more).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmatchedSamples {
    /// How many.
    pub count: usize,
    /// Their sum.
    pub total: Milli,
}

/// What each pod requested of the metric's resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// One entry for each pod of the snapshot, in the same order.
    pub of_pods: Vec<Milli>,
    /// The first pod whose request is not known, if any.
    pub missing: Option<MissingRequest>,
}

/// A pod whose request is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingRequest {
    /// A container does not say how much it requests.
    Container {
        /// The resource in question.
        resource: Arc<str>,
        /// The container's name.
        container: Arc<str>,
        /// The pod's name.
        pod: Arc<str>,
    },
    /// The pod has no such container.
    NoContainer {
        /// The container's name.
        container: Arc<str>,
        /// The pod's name.
        pod: Arc<str>,
    },
    /// A container does not say how much it is limited to.
    Limit {
        /// The resource in question.
        resource: Arc<str>,
        /// The container's name.
        container: Arc<str>,
        /// The pod's name.
        pod: Arc<str>,
    },
    /// The pod as a whole requests something, but not this resource.
    PodLevel {
        /// The resource in question.
        resource: Arc<str>,
        /// The pod's name.
        pod: Arc<str>,
    },
}
