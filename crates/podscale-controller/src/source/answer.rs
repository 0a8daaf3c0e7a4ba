//! What a source answered, each sample with its time.

use podscale_api::metrics::{ExternalMetricValue, MetricValue, PodMetrics};
use podscale_core::Time;
use podscale_core::model::Milli;
use std::sync::Arc;

/// What one metric's source answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// What the target's pods use.
    Resource(Arc<[Arc<PodMetrics>]>),
    /// Values of pods or of an object.
    Custom(Arc<[MetricValue]>),
    /// Values from outside the cluster.
    External(Arc<[ExternalMetricValue]>),
    /// One value, if there is any.
    Value(Option<(Milli, Time)>),
    /// The value of an event source.
    Trigger {
        /// How much.
        value: Milli,
        /// Whether the source says that there is something to do.
        active: bool,
        /// When it was measured.
        taken: Time,
    },
    /// What the inputs of a formula say, in their order.
    Inputs(Vec<Answer>),
    /// Nothing, since the metric cannot be asked for.
    Nothing,
    /// The source could not be read, and why.
    Failed(Arc<str>),
}

impl Answer {
    /// Why the source could not be read, if so.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Answer::Failed(why) => Some(why),
            _ => None,
        }
    }
}

/// The values of one answer, or why there are none.
pub(super) type Values<T> = Result<Arc<[T]>, Arc<str>>;
