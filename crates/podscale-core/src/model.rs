//! What an autoscaler wants, in one form for every dialect.

use crate::time::Span;
use serde::Serialize;
use std::sync::Arc;

mod ahead;
mod control;
mod extensions;
mod formula;
mod queue;
mod schedule;
mod trigger;
mod window;

pub use ahead::{Ahead, Headroom, Lead, Predict};
pub use control::{Control, Hold, Mode, Pause};
pub use extensions::{
    Aggregate, Combine, Extensions, Fallback, ForbiddenWindows, MetricRules, NoMetrics, OnMissing,
    Pace, PodRules, PodSelection, Readiness, ScaleToZero, ShareOf, SizeFrom, Stabilization,
    Tolerance, Watermarks, Wording, ZeroedByOthers,
};
pub use formula::{Binary, Fact, Formula, FormulaError, MAX_DEPTH, MAX_PARTS, Part, Unary};
pub use queue::Queue;
pub use schedule::{Bounds, Calendar, Scheduled, Schedules};
pub use trigger::{
    Activation, Composite, EventSource, Scope, StandIn, StandInSize, Trigger, TriggerOf, Waking,
};
pub use window::Window;

/// A metric's amount in thousandths of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Milli(pub i64);

/// One autoscaler: which target it scales, between which bounds, by which metrics, how fast.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscaler {
    /// The namespace of the object, which is also that of its target and pods.
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
    /// Counts the edits of the object's spec.
    pub generation: i64,
    /// What is scaled.
    pub target: TargetRef,
    /// The fewest replicas it may set.
    pub min_replicas: i32,
    /// The most replicas it may set.
    pub max_replicas: i32,
    /// What it measures, in the order of the spec.
    pub metrics: Vec<Metric>,
    /// How fast it may move; without one, the controller's own rate applies.
    pub behavior: Option<Behavior>,
    /// What it asks for beyond a native autoscaler; a native one has none.
    pub extensions: Option<Box<Extensions>>,
}

impl Autoscaler {
    /// The fewest and the most replicas of the spec, whatever schedules say.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds { min: self.min_replicas, max: self.max_replicas }
    }

    /// Why the spec cannot be acted on, if so.
    #[must_use]
    pub fn invalid(&self) -> Option<&Arc<str>> {
        self.extensions.as_ref()?.invalid.as_ref()
    }

    /// Whether a metric exists that can be read while no pod runs.
    #[must_use]
    pub fn has_metric_without_pods(&self) -> bool {
        self.metrics.iter().any(|metric| metric.source.needs_no_pods())
    }

    /// Whether zero is a size that it sets by itself, and leaves again.
    #[must_use]
    pub fn may_set_zero(&self) -> bool {
        let idles = |e: &Extensions| e.scale_to_zero.is_some() || e.schedules.is_some();
        let bound = self.min_replicas == 0 || self.extensions.as_deref().is_some_and(idles);
        bound && self.has_metric_without_pods()
    }

    /// Whether its status says that it has set its target to zero.
    #[must_use]
    pub fn reports_zero(&self) -> bool {
        let wording = self.extensions.as_ref().map(|extensions| extensions.wording);
        wording != Some(Wording::ConfigurableHpa)
    }

    /// How reasons and conditions call the metric at this place; the autoscaler's own name where
    /// there is none.
    #[must_use]
    pub fn title(&self, metric: u32) -> &Arc<str> {
        self.metrics.get(metric as usize).map_or(&self.name, |metric| &metric.title)
    }
}

/// The object whose replicas are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRef {
    /// Its API version, possibly empty.
    pub api_version: Arc<str>,
    /// Its kind, for instance `Deployment`.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// One metric of an autoscaler with its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Where its values come from.
    pub source: Arc<Source>,
    /// What the values are compared with.
    pub target: MetricTarget,
    /// How reasons and conditions call it.
    pub title: Arc<str>,
}

impl Metric {
    /// A metric whose target is the one of the given `targets` that its source uses.
    #[must_use]
    pub fn new(source: Source, targets: &Targets) -> Metric {
        Metric::sharing(source, targets, ShareOf::Requests)
    }

    /// The same, where a utilization is a share of what is given here.
    #[must_use]
    pub fn sharing(source: Source, targets: &Targets, share_of: ShareOf) -> Metric {
        let target = MetricTarget::choose(&source, targets);
        let title = source.title(target, share_of).into();
        Metric { source: Arc::new(source), target, title }
    }
}

/// Where a metric's values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// What the containers of each pod use of a resource.
    Resource {
        /// The resource, `cpu` or `memory` for instance.
        name: Arc<str>,
    },
    /// What one container of each pod uses of a resource.
    ContainerResource {
        /// The resource.
        name: Arc<str>,
        /// The container's name.
        container: Arc<str>,
    },
    /// A value per pod.
    Pods(Series),
    /// A value of one object.
    Object {
        /// Which series.
        series: Series,
        /// Of which object.
        object: ObjectRef,
    },
    /// Values from outside the cluster, added up.
    External(Series),
    /// One value that a Prometheus server computes.
    Prometheus(PrometheusQuery),
    /// One value of an event source, or of several.
    Trigger(Trigger),
    /// A source that no rule knows.
    Unknown {
        /// What the spec calls it, in quotation marks.
        quoted: Arc<str>,
    },
}

impl Source {
    /// Its type in the API.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Source::Resource { .. } => "Resource",
            Source::ContainerResource { .. } => "ContainerResource",
            Source::Pods(_) => "Pods",
            Source::Object { .. } => "Object",
            Source::External(_) => "External",
            Source::Prometheus(_) => "Prometheus",
            Source::Trigger(_) => "Trigger",
            Source::Unknown { .. } => "Unknown",
        }
    }

    /// Whether it can be read while no pod runs.
    #[must_use]
    pub const fn needs_no_pods(&self) -> bool {
        match self {
            Source::Object { .. }
            | Source::External(_)
            | Source::Prometheus(_)
            | Source::Trigger(_) => true,
            Source::Resource { .. }
            | Source::ContainerResource { .. }
            | Source::Pods(_)
            | Source::Unknown { .. } => false,
        }
    }
}

/// A query that a Prometheus server answers with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusQuery {
    /// How people call the metric.
    pub name: Arc<str>,
    /// The server's address; `None` is the controller's own.
    pub server: Option<Arc<str>>,
    /// The query.
    pub query: Arc<str>,
}

/// A series of values: its name and which of its labels are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The metric's name.
    pub name: Arc<str>,
    /// The selector in the form that messages show; `None` selects everything.
    pub selector: Option<Arc<str>>,
    /// The selector in the form that requests take; `None` selects everything.
    pub query: Option<Arc<str>>,
    /// Why the selector cannot be used, if so.
    pub selector_error: Option<Arc<str>>,
}

/// The object that an Object metric describes. One of kind Namespace is always the own namespace,
/// whatever its name is, or if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Its API version, possibly empty.
    pub api_version: Arc<str>,
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// The targets as a spec lists them, before it is known which of them counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Which of them the spec says is meant.
    pub kind: TargetKind,
    /// For the total.
    pub value: Option<Milli>,
    /// For each pod.
    pub average_value: Option<Milli>,
    /// For each pod, in percent of what it requested.
    pub average_utilization: Option<i32>,
}

/// Which target a spec says is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetKind {
    /// The total.
    Value,
    /// The average over pods.
    AverageValue,
    /// The average in percent of the request.
    Utilization,
    /// Nothing, or nothing known.
    #[default]
    Unspecified,
}

/// What a metric's values are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MetricTarget {
    /// The total.
    Value(Milli),
    /// The average over pods.
    AverageValue(Milli),
    /// The average in percent of the request.
    Utilization(i32),
    /// No target that this source can use.
    Unset,
}

impl MetricTarget {
    /// Only Object metrics believe the spec's `type`; the others take the first target they know.
    fn choose(source: &Source, targets: &Targets) -> MetricTarget {
        let value = targets.value.map(MetricTarget::Value);
        let average = targets.average_value.map(MetricTarget::AverageValue);
        let utilization = targets.average_utilization.map(MetricTarget::Utilization);
        let chosen = match source {
            Source::Resource { .. } | Source::ContainerResource { .. } => average.or(utilization),
            Source::Pods(_) => average,
            Source::External(_) | Source::Prometheus(_) | Source::Trigger(_) => average.or(value),
            Source::Object { .. } => match targets.kind {
                TargetKind::Value => value,
                TargetKind::AverageValue => average,
                TargetKind::Utilization | TargetKind::Unspecified => None,
            },
            Source::Unknown { .. } => None,
        };
        chosen.unwrap_or(MetricTarget::Unset)
    }
}

/// How fast an autoscaler may move in each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    /// Towards more replicas.
    pub scale_up: ScalingRules,
    /// Towards fewer replicas.
    pub scale_down: ScalingRules,
}

/// How fast an autoscaler may move in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingRules {
    /// How far back recommendations count; `None` is the controller's setting.
    pub stabilization_window: Option<Span>,
    /// Which of several policies counts.
    pub select: PolicySelect,
    /// The limits.
    pub policies: Vec<Policy>,
    /// How far a ratio may be off before anything moves; `None` is the controller's setting.
    pub tolerance: Option<f64>,
}

impl ScalingRules {
    /// The longest period of any policy.
    #[must_use]
    pub fn longest_period(&self) -> Span {
        self.policies.iter().map(|p| p.period).max().unwrap_or_default().max(Span(0))
    }
}

/// Which of several policies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PolicySelect {
    /// The one that allows the largest change.
    Max,
    /// The one that allows the smallest change.
    Min,
    /// None: the direction is closed.
    Disabled,
}

/// At most so much change in any period of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The amount.
    pub amount: PolicyAmount,
    /// The length of the period.
    pub period: Span,
}

/// The change that a policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PolicyAmount {
    /// A number of pods.
    Pods(i32),
    /// Percent of the pods there were when the period began.
    Percent(i32),
    /// An amount that no rule knows: it counts as the policy before it did.
    Unknown,
}

/// What is the same for all autoscalers of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How far a ratio may be off before anything moves.
    pub tolerance: f64,
    /// How far back recommendations hold up a scale-down.
    pub downscale_stabilization: Span,
    /// How long after a pod's start its cpu samples may come from starting up.
    pub cpu_initialization_period: Span,
    /// Up to how long after its start an unready pod counts as never having been ready.
    pub initial_readiness_delay: Span,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tolerance: 0.1,
            downscale_stabilization: Span::seconds(300),
            cpu_initialization_period: Span::seconds(300),
            initial_readiness_delay: Span::seconds(30),
        }
    }
}
