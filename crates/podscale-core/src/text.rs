//! The texts that Kubernetes shows in conditions, events and errors. Scripts and people read them,
//! so they are the same to the letter. Every message that follows from a decision is made here.

use crate::model::{Autoscaler, Metric, MetricTarget, Series, ShareOf, Source, Wording};
use crate::snapshot::{MissingRequest, ScaleError};
use crate::time::Span;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

mod extended;
mod note;

pub use extended::*;

/// Why the size jumps back into the bounds from above.
pub const ABOVE_MAX: &str = "Current number of replicas above Spec.MaxReplicas";
/// Why the size jumps back into the bounds from below.
pub const BELOW_MIN: &str = "Current number of replicas below Spec.MinReplicas";
/// Why the size goes down.
pub const ALL_BELOW_TARGET: &str = "All metrics below target";

/// What the event says of a target without a selector.
pub const SELECTOR_REQUIRED: &str = "selector is required";
/// What the condition says of a target without a selector.
pub const SELECTOR_MISSING: &str = "the HPA target's scale is missing a selector";

/// What is said of an autoscaler without any metric.
pub const NO_METRICS: &str = "no metrics are specified";

/// Why the size goes up: the metric of this title asks for more.
#[must_use]
pub fn above_target(title: &str) -> String {
    format!("{title} above target")
}

/// The event's message when the target got its new size.
#[must_use]
pub fn new_size(replicas: i32, reason: &str) -> String {
    format!("New size: {replicas}; reason: {reason}")
}

/// The event's message when the target could not be given its new size.
#[must_use]
pub fn new_size_failed(replicas: i32, reason: &str, error: &str) -> String {
    format!("New size: {replicas}; reason: {reason}; error: {error}")
}

impl Source {
    /// How reasons and conditions call a metric of this source.
    #[must_use]
    pub fn title(&self, target: MetricTarget, share_of: ShareOf) -> String {
        let share = match share_of {
            ShareOf::Requests => "request",
            ShareOf::Limits => "limit",
        };
        match (self, target) {
            (
                Source::Resource { name } | Source::ContainerResource { name, .. },
                MetricTarget::AverageValue(_),
            ) => {
                format!("{name} resource")
            }
            (Source::Resource { name }, _) => {
                format!("{name} resource utilization (percentage of {share})")
            }
            (Source::ContainerResource { name, .. }, _) => {
                format!("{name} container resource utilization (percentage of {share})")
            }
            (Source::Pods(series), _) => format!("pods metric {}", series.name),
            (Source::Object { series, object }, MetricTarget::Value(_)) => {
                format!("{} metric {}", object.kind, series.name)
            }
            (Source::Object { series, .. } | Source::External(series), _) => {
                format!("external metric {}({})", series.name, selector(series))
            }
            (Source::Prometheus(query), _) => format!("prometheus metric {}", query.name),
            (Source::Trigger(trigger), _) => format!("external metric {}", trigger.name),
            (Source::Unknown { quoted }, _) => format!("unknown metric {quoted}"),
        }
    }
}

fn selector(series: &Series) -> &str {
    series.selector.as_deref().unwrap_or("nil")
}

/// Why a metric cannot propose a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricError {
    /// The source did not answer.
    Fetch(Arc<str>),
    /// The source answered with nothing.
    NoneReturned,
    /// The selector picks no pods.
    NoPods,
    /// No pod is left that counts.
    NoneUsable,
    /// A request is not known.
    Request(MissingRequest),
    /// Nothing was requested by the pods that have samples.
    NothingRequested,
    /// The metric's selector cannot be used.
    Selector(Arc<str>),
    /// The spec has no target that this source can use.
    NoTarget,
    /// No rule knows this kind of source.
    UnknownSource,
    /// What the source answered was measured too long ago.
    TooOld {
        /// How long ago.
        age: Span,
        /// How long ago it may be.
        max_age: Span,
    },
}

/// The reason of the event and condition when this metric fails.
#[must_use]
pub const fn failure_reason(source: &Source, wording: Wording) -> &'static str {
    match source {
        Source::Resource { .. } => "FailedGetResourceMetric",
        Source::ContainerResource { .. } => "FailedGetContainerResourceMetric",
        Source::Pods(_) => "FailedGetPodsMetric",
        Source::Object { .. } => "FailedGetObjectMetric",
        Source::External(_) => "FailedGetExternalMetric",
        Source::Prometheus(_) => "FailedGetPrometheusMetric",
        Source::Trigger(trigger) => failed_trigger(trigger, wording),
        Source::Unknown { .. } => "InvalidMetricSourceType",
    }
}

/// The message of a condition whose metric failed with this error.
#[must_use]
pub fn unable_to_compute(error: &str) -> String {
    format!("the HPA was unable to compute the replica count: {error}")
}

/// A metric's failure: with its context for the autoscaler as a whole, without it for its own event.
pub struct MetricFailure<'a> {
    /// The autoscaler's namespace.
    pub namespace: &'a str,
    /// The metric.
    pub metric: &'a Metric,
    /// What went wrong.
    pub error: &'a MetricError,
}

impl MetricFailure<'_> {
    /// What the metric's own event and condition say.
    #[must_use]
    pub fn inner(&self) -> String {
        let (source, error) = (&*self.metric.source, self.error);
        match (source, error) {
            (Source::Unknown { quoted }, _) => format!("unknown metric source type {quoted}"),
            (Source::Resource { .. } | Source::ContainerResource { .. }, MetricError::NoTarget) => {
                "invalid resource metric source: neither an average utilization target nor an \
                 average value (usage) target was set"
                    .to_owned()
            }
            (Source::Object { .. }, MetricError::NoTarget) => no_target("object"),
            (Source::External(_), MetricError::NoTarget) => no_target("external"),
            (Source::Pods(_), MetricError::NoTarget) => no_target("pods"),
            (Source::Prometheus(_), MetricError::NoTarget) => no_target("prometheus"),
            (Source::Trigger(_), MetricError::NoTarget) => no_target("trigger"),
            (Source::Resource { name } | Source::ContainerResource { name, .. }, _) => {
                let what = match self.metric.target {
                    MetricTarget::AverageValue(_) => "usage",
                    _ => "utilization",
                };
                format!("failed to get {name} {what}: {self}")
            }
            _ => self.to_string(),
        }
    }

    /// What the error of the whole pass says of it.
    #[must_use]
    pub fn outer(&self) -> String {
        let inner = self.inner();
        let refused = matches!(self.error, MetricError::NoTarget | MetricError::Selector(_));
        match &*self.metric.source {
            Source::Resource { name } => {
                format!("failed to get {name} resource metric value: {inner}")
            }
            Source::ContainerResource { container, .. } => {
                format!("failed to get {container} container metric value: {inner}")
            }
            Source::Pods(_) => format!("failed to get pods metric value: {inner}"),
            Source::Object { series, .. } => match self.metric.target {
                MetricTarget::AverageValue(_) if !refused => format!(
                    "failed to get object metric value: failed to get {} object metric: {inner}",
                    series.name
                ),
                _ => format!("failed to get object metric value: {inner}"),
            },
            Source::External(Series { name, .. }) => {
                let prefix = format!("failed to get {name} external metric value");
                match self.metric.target {
                    MetricTarget::AverageValue(_) => {
                        format!("{prefix}: failed to get {name} external metric: {inner}")
                    }
                    MetricTarget::Value(_) => {
                        format!("{prefix}: failed to get external metric {name}: {inner}")
                    }
                    _ => format!("{prefix}: {inner}"),
                }
            }
            Source::Prometheus(query) => {
                format!("failed to get prometheus metric {}: {inner}", query.name)
            }
            Source::Trigger(trigger) => format!("failed to get {}: {inner}", trigger.name),
            Source::Unknown { .. } => inner,
        }
    }
}

fn no_target(source: &str) -> String {
    format!(
        "invalid {source} metric source: neither a value target nor an average value target was set"
    )
}

/// What went wrong, from the point where it was noticed.
impl Display for MetricFailure<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const NO_PODS: &str = "no pods returned by selector while calculating replica count";
        let source = &*self.metric.source;
        match self.error {
            MetricError::Fetch(_) | MetricError::NoneReturned => self.fmt_fetch(f),
            MetricError::NoPods => match source {
                source if source.needs_no_pods() => {
                    write!(f, "unable to calculate ready pods: {NO_PODS}")
                }
                _ => f.write_str(NO_PODS),
            },
            MetricError::NoneUsable => {
                f.write_str("did not receive metrics for targeted pods (pods might be unready)")
            }
            MetricError::Request(missing) => write!(f, "{missing}"),
            MetricError::NothingRequested => f.write_str("no metrics returned matched known pods"),
            MetricError::Selector(error) => f.write_str(error),
            MetricError::NoTarget | MetricError::UnknownSource => f.write_str("no target was set"),
            MetricError::TooOld { age, max_age } => {
                let (age, max_age) = (age.as_whole_seconds(), max_age.as_whole_seconds());
                write!(f, "the newest value is {age}s old, more than the {max_age}s allowed")
            }
        }
    }
}

impl MetricFailure<'_> {
    fn fmt_fetch(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let api = match &*self.metric.source {
            Source::Resource { name } | Source::ContainerResource { name, .. } => {
                write!(f, "unable to get metrics for resource {name}: ")?;
                "resource"
            }
            Source::Pods(series) => {
                write!(f, "unable to get metric {}: ", series.name)?;
                "custom"
            }
            Source::Object { series, object } => {
                let (metric, namespace) = (&series.name, self.namespace);
                let (kind, name) = (&object.kind, &object.name);
                write!(f, "unable to get metric {metric} on {kind} {namespace}/{name}: ")?;
                "custom"
            }
            Source::External(series) => {
                let (metric, namespace) = (&series.name, self.namespace);
                let selector = selector(series);
                write!(f, "unable to get external metric {namespace}/{metric}/{selector}: ")?;
                "external"
            }
            Source::Prometheus(query) => {
                write!(f, "unable to get metric {}: ", query.name)?;
                return match self.error {
                    MetricError::Fetch(error) => {
                        write!(f, "unable to query Prometheus: {error}")
                    }
                    _ => f.write_str("Prometheus returned no value"),
                };
            }
            // Event sources say themselves what they are.
            Source::Trigger(_) => return f.write_str(trigger_error(self.error)),
            Source::Unknown { .. } => "unknown",
        };
        match self.error {
            MetricError::Fetch(error) => {
                write!(f, "unable to fetch metrics from {api} metrics API: {error}")
            }
            _ => write!(f, "no metrics returned from {api} metrics API"),
        }
    }
}

impl Display for MissingRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MissingRequest::Container { resource, container, pod } => {
                write!(f, "missing request for {resource} in container {container} of Pod {pod}")
            }
            MissingRequest::NoContainer { container, pod } => {
                write!(f, "container {container} not found in Pod {pod}")
            }
            MissingRequest::Limit { resource, container, pod } => {
                write!(f, "missing limit for {resource} in container {container} of Pod {pod}")
            }
            MissingRequest::PodLevel { resource, pod } => {
                write!(f, "missing pod-level request for {resource} in Pod {pod}")
            }
        }
    }
}

/// The reason of conditions and events about a spec that cannot be acted on.
pub const fn invalid_spec_reason(wording: Wording) -> &'static str {
    match wording {
        Wording::Kubernetes | Wording::Keda => "InvalidSpec",
        Wording::ConfigurableHpa => "FailedSpecCheck",
    }
}

/// The error of a pass in which metrics failed.
#[must_use]
pub fn invalid_metrics(invalid: u32, of: u32, first: &str) -> String {
    format!("invalid metrics ({invalid} invalid out of {of}), first error is: {first}")
}

/// The error of a pass that could not compute a size.
#[must_use]
pub fn compute_failed(autoscaler: &Autoscaler, error: &str) -> String {
    let target = reference(autoscaler);
    format!(
        "failed to compute desired number of replicas based on listed metrics for {target}: {error}"
    )
}

/// The error of a pass that could not read the target's size.
#[must_use]
pub fn scale_failed(autoscaler: &Autoscaler, error: &ScaleError) -> String {
    match error {
        ScaleError::ApiVersion(e) => format!("invalid API version in scale target reference: {e}"),
        ScaleError::NoResource(e) => {
            format!("unable to determine resource for scale target reference: {e}")
        }
        ScaleError::Unreadable(e) => {
            format!("failed to query scale subresource for {}: {e}", reference(autoscaler))
        }
    }
}

/// The error of a pass that could not write the target's size.
#[must_use]
pub fn rescale_failed(autoscaler: &Autoscaler, error: &str) -> String {
    format!("failed to rescale {}: {error}", reference(autoscaler))
}

/// The error of a pass that could not write the status.
#[must_use]
pub fn status_failed(autoscaler: &Autoscaler, error: &str) -> String {
    format!("failed to update status for {}: {error}", autoscaler.name)
}

fn reference(autoscaler: &Autoscaler) -> String {
    let Autoscaler { target, namespace, .. } = autoscaler;
    format!("{}/{namespace}/{}", target.kind, target.name)
}

/// The condition's message when the target's size cannot be read.
#[must_use]
pub fn unable_to_get_scale(error: &str) -> String {
    format!("the HPA controller was unable to get the target's current scale: {error}")
}

/// The condition's message when the target's size cannot be written.
#[must_use]
pub fn unable_to_update_scale(error: &str) -> String {
    format!("the HPA controller was unable to update the target scale: {error}")
}

/// What is said of a selector that cannot be parsed.
#[must_use]
pub fn bad_selector(error: &str) -> String {
    format!("couldn't convert selector into a corresponding internal selector object: {error}")
}

/// What is said of a selector that also picks pods of another autoscaler. Upstream knows HPAs only; where
/// others are among them, each is named with its kind before it.
#[must_use]
pub fn ambiguous_selector(selector: &str, autoscalers: &[Arc<str>; 2]) -> String {
    let [a, b] = autoscalers;
    let what = if a.contains(' ') || b.contains(' ') { "autoscaler" } else { "HPA" };
    let both = if what == "HPA" { format!("{a} {b}") } else { format!("{a}, {b}") };
    format!("pods by selector {selector} are controlled by more than one {what} (e.g. [{both}])")
}
