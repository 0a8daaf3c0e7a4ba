//! Which metrics somebody reads, so that only those are measured.

use crate::plan::Quantity;
use podscale_core::Metric;
use podscale_core::model::Source;
use std::sync::Arc;

/// Which pipelines somebody reads from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// CPU and memory of pods.
    pub resource: bool,
    /// Metrics of pods, objects and queues.
    pub custom: bool,
    /// The names of those.
    pub names: Vec<Arc<str>>,
}

impl Needs {
    /// What these metrics need.
    #[must_use]
    pub fn of(metrics: &[Metric]) -> Needs {
        let is_resource = |metric: &Metric| {
            matches!(*metric.source, Source::Resource { .. } | Source::ContainerResource { .. })
        };
        Needs {
            resource: metrics.iter().any(is_resource),
            custom: !metrics.iter().all(is_resource),
            names: metrics.iter().flat_map(|m| Quantity::names_in(&m.source)).cloned().collect(),
        }
    }
}
