//! Autoscalers of any version as `autoscaling/v2` and back. What an older version cannot say is
//! kept in annotations, so that nothing is lost on the way there and back.

mod alpha;
mod annotations;
mod metrics;
#[cfg(test)]
mod tests;

pub use annotations::{
    BEHAVIOR, METRICS, TOLERANCES, is_of_a_version, present as present_annotations,
};

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::v2::{self, HorizontalPodAutoscalerStatus, MetricStatus};
use super::{default, v1, v2alpha1, v2beta1};
use crate::meta::ObjectMeta;

/// A version of the autoscaler's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `autoscaling/v1`
    V1,
    /// `autoscaling/v2alpha1`
    V2alpha1,
    /// `autoscaling/v2beta1`
    V2beta1,
    /// `autoscaling/v2beta2`
    V2beta2,
    /// `autoscaling/v2`
    V2,
}

impl Version {
    /// All of them, the oldest first.
    pub const ALL: [Version; 5] =
        [Self::V1, Self::V2alpha1, Self::V2beta1, Self::V2beta2, Self::V2];

    /// The version that an `apiVersion` names.
    pub fn of(api_version: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.api_version() == api_version)
    }

    /// The version of an object, if it is an autoscaler.
    pub fn of_object(object: &Value) -> Option<Self> {
        let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
        Self::of(text("apiVersion")).filter(|_| text("kind") == v2::KIND)
    }

    /// Group and version as objects state them.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => v1::API_VERSION,
            Self::V2alpha1 => v2alpha1::API_VERSION,
            Self::V2beta1 => v2beta1::API_VERSION,
            Self::V2beta2 => "autoscaling/v2beta2",
            Self::V2 => v2::API_VERSION,
        }
    }

    /// The releases of Kubernetes in which it was deprecated and gone, if it is.
    pub fn retired(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::V1 | Self::V2 => None,
            Self::V2alpha1 => Some(("1.8", "1.8")),
            Self::V2beta1 => Some(("1.22", "1.25")),
            Self::V2beta2 => Some(("1.23", "1.26")),
        }
    }
}

/// Why an object is not an autoscaler.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// Another kind, or a version that never was.
    #[error("{api_version:?} {kind:?} is no HorizontalPodAutoscaler of a known version")]
    Unknown {
        /// As the object states it.
        api_version: String,
        /// As the object states it.
        kind: String,
    },
    /// It means something that the wanted kind cannot do, or nothing at all.
    #[error("{0}")]
    Unsuitable(String),
    /// A field has the wrong type.
    #[error("the autoscaler cannot be read or written: {0}")]
    Fields(#[from] serde_json::Error),
}

/// Reads an autoscaler of any version, fills in what its version fills in, and gives it as `v2`.
pub fn read(object: &Value) -> Result<v2::HorizontalPodAutoscaler, ConvertError> {
    let mut hpa = as_written(object)?;
    if matches!(Version::of_object(object), Some(Version::V2beta2 | Version::V2)) {
        default::default_hpa(&mut hpa);
    } else {
        // These have no behavior of their own to fill in.
        default::default_bounds_and_metrics(&mut hpa.spec);
    }
    hpa.status.get_or_insert_default();
    Ok(hpa)
}

/// Reads an autoscaler of any version and gives it as `v2`; nothing is filled in.
pub fn as_written(object: &Value) -> Result<v2::HorizontalPodAutoscaler, ConvertError> {
    let mut hpa = match Version::of_object(object) {
        Some(Version::V1) => from_v1(v1::HorizontalPodAutoscaler::deserialize(object)?),
        Some(Version::V2alpha1) => {
            alpha::up(v2alpha1::HorizontalPodAutoscaler::deserialize(object)?)
        }
        Some(Version::V2beta1) => {
            from_v2beta1(v2beta1::HorizontalPodAutoscaler::deserialize(object)?)
        }
        Some(version @ (Version::V2beta2 | Version::V2)) => {
            let mut hpa = v2::HorizontalPodAutoscaler::deserialize(object)?;
            if version == Version::V2beta2 {
                annotations::restore_tolerances(&mut hpa);
            }
            annotations::remove(&mut hpa.metadata);
            hpa.api_version = v2::API_VERSION.into();
            hpa
        }
        None => {
            let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
            return Err(ConvertError::Unknown {
                api_version: text("apiVersion").to_owned(),
                kind: text("kind").to_owned(),
            });
        }
    };
    if object.get("status").is_none_or(Value::is_null) {
        hpa.status =
            hpa.status.filter(|status| *status != HorizontalPodAutoscalerStatus::default());
    }
    Ok(hpa)
}

/// Writes an autoscaler in another version.
pub fn write(hpa: &v2::HorizontalPodAutoscaler, version: Version) -> Result<Value, ConvertError> {
    fn json(object: &impl Serialize) -> Result<Value, ConvertError> {
        Ok(serde_json::to_value(object)?)
    }
    match version {
        Version::V1 => json(&to_v1(hpa)),
        Version::V2alpha1 => json(&alpha::down(hpa)),
        Version::V2beta1 => json(&to_v2beta1(hpa)),
        Version::V2beta2 | Version::V2 => {
            let mut hpa = hpa.clone();
            annotations::remove(&mut hpa.metadata);
            hpa.kind = v2::KIND.into();
            hpa.api_version = version.api_version().into();
            hpa.status.get_or_insert_default();
            if version == Version::V2beta2 {
                annotations::keep_tolerances(&mut hpa);
            }
            json(&hpa)
        }
    }
}

/// A `v1` autoscaler as `v2`, with what its annotations say.
fn from_v1(mut hpa: v1::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler {
    let mut specs = annotations::metrics(&hpa.metadata).unwrap_or_default();
    specs.extend(hpa.spec.target_cpu_utilization_percentage.map(default::cpu_metric));
    let current = annotations::current_metrics(&hpa.metadata).or_else(|| {
        let percent = hpa.status.current_cpu_utilization_percentage?;
        Some(vec![metrics::cpu_status(percent)])
    });
    let status = HorizontalPodAutoscalerStatus {
        observed_generation: hpa.status.observed_generation,
        last_scale_time: hpa.status.last_scale_time,
        current_replicas: hpa.status.current_replicas,
        desired_replicas: hpa.status.desired_replicas,
        current_metrics: current,
        conditions: annotations::conditions(&hpa.metadata).unwrap_or_default(),
    };
    let behavior = annotations::behavior(&hpa.metadata);
    annotations::remove(&mut hpa.metadata);
    v2::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: v2::API_VERSION.into(),
        metadata: hpa.metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref,
            min_replicas: hpa.spec.min_replicas,
            max_replicas: hpa.spec.max_replicas,
            metrics: specs,
            behavior,
        },
        status: Some(status),
    }
}

/// A `v2` autoscaler as `v1`; what `v1` cannot say goes into annotations.
fn to_v1(hpa: &v2::HorizontalPodAutoscaler) -> v1::HorizontalPodAutoscaler {
    let is_cpu = |metric: &&v2::MetricSpec| metrics::cpu_utilization(metric).is_some();
    let (cpu, others): (Vec<_>, Vec<_>) = hpa.spec.metrics.iter().partition(is_cpu);
    let status = hpa.status.clone().unwrap_or_default();
    let current = status.current_metrics.unwrap_or_default();
    let mut metadata = hpa.metadata.clone();
    annotations::remove(&mut metadata);
    annotations::keep(&mut metadata, &others, &current, &status.conditions);
    annotations::keep_behavior(&mut metadata, hpa.spec.behavior.as_ref());
    v1::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: v1::API_VERSION.into(),
        metadata,
        spec: v1::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref.clone(),
            min_replicas: hpa.spec.min_replicas,
            max_replicas: hpa.spec.max_replicas,
            target_cpu_utilization_percentage: cpu
                .first()
                .and_then(|cpu| metrics::cpu_utilization(cpu)),
        },
        status: v1::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_cpu_utilization_percentage: last_cpu_utilization(&current),
        },
    }
}

fn last_cpu_utilization(current: &[MetricStatus]) -> Option<i32> {
    current
        .iter()
        .filter_map(|status| status.resource.as_ref().filter(|_| status.r#type == "Resource"))
        .filter(|resource| resource.name == "cpu")
        .filter_map(|resource| resource.current.average_utilization)
        .next_back()
}

/// A `v2beta1` autoscaler as `v2`.
pub(crate) fn from_v2beta1(
    mut hpa: v2beta1::HorizontalPodAutoscaler,
) -> v2::HorizontalPodAutoscaler {
    let behavior = annotations::behavior(&hpa.metadata);
    annotations::remove(&mut hpa.metadata);
    let specs = hpa.spec.metrics.into_iter().map(metrics::spec_up).collect();
    let current = hpa.status.current_metrics;
    v2::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: v2::API_VERSION.into(),
        metadata: hpa.metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref,
            min_replicas: hpa.spec.min_replicas,
            max_replicas: hpa.spec.max_replicas,
            metrics: specs,
            behavior,
        },
        status: Some(HorizontalPodAutoscalerStatus {
            observed_generation: hpa.status.observed_generation,
            last_scale_time: hpa.status.last_scale_time,
            current_replicas: hpa.status.current_replicas,
            desired_replicas: hpa.status.desired_replicas,
            current_metrics: current
                .map(|current| current.into_iter().map(metrics::status_up).collect()),
            conditions: hpa.status.conditions,
        }),
    }
}

/// A `v2` autoscaler as `v2beta1`; its behavior goes into an annotation.
pub(crate) fn to_v2beta1(hpa: &v2::HorizontalPodAutoscaler) -> v2beta1::HorizontalPodAutoscaler {
    let mut metadata: ObjectMeta = hpa.metadata.clone();
    annotations::remove(&mut metadata);
    annotations::keep_behavior(&mut metadata, hpa.spec.behavior.as_ref());
    let status = hpa.status.clone().unwrap_or_default();
    let current = status.current_metrics;
    v2beta1::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: v2beta1::API_VERSION.into(),
        metadata,
        spec: v2beta1::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref.clone(),
            min_replicas: hpa.spec.min_replicas,
            max_replicas: hpa.spec.max_replicas,
            metrics: hpa.spec.metrics.iter().map(metrics::spec_down).collect(),
        },
        status: v2beta1::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: current
                .map(|current| current.iter().map(metrics::status_down).collect()),
            conditions: status.conditions,
        },
    }
}
