//! Autoscalers of any version as `autoscaling/v2` and back. What an older version cannot say is
//! kept in annotations, so that nothing is lost on the way there and back.

mod annotations;
mod metrics;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::v2::{self, HorizontalPodAutoscalerStatus, MetricStatus};
use super::{default, v1, v2beta1};
use crate::meta::ObjectMeta;

/// A version of the autoscaler's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `autoscaling/v1`
    V1,
    /// `autoscaling/v2beta1`
    V2beta1,
    /// `autoscaling/v2beta2`
    V2beta2,
    /// `autoscaling/v2`
    V2,
}

impl Version {
    /// The version that an `apiVersion` names.
    pub fn of(api_version: &str) -> Option<Self> {
        [Self::V1, Self::V2beta1, Self::V2beta2, Self::V2]
            .into_iter()
            .find(|version| version.api_version() == api_version)
    }

    /// Group and version as objects state them.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => v1::API_VERSION,
            Self::V2beta1 => v2beta1::API_VERSION,
            Self::V2beta2 => "autoscaling/v2beta2",
            Self::V2 => v2::API_VERSION,
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
    /// A field has the wrong type.
    #[error("the autoscaler cannot be read or written: {0}")]
    Fields(#[from] serde_json::Error),
}

/// Reads an autoscaler of any version, fills in what its version fills in, and gives it as `v2`.
pub fn read(object: &Value) -> Result<v2::HorizontalPodAutoscaler, ConvertError> {
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let version = Version::of(text("apiVersion")).filter(|_| text("kind") == v2::KIND);
    match version {
        Some(Version::V1) => Ok(from_v1(v1::HorizontalPodAutoscaler::deserialize(object)?)),
        Some(Version::V2beta1) => {
            Ok(from_v2beta1(v2beta1::HorizontalPodAutoscaler::deserialize(object)?))
        }
        Some(Version::V2beta2 | Version::V2) => {
            let mut hpa = v2::HorizontalPodAutoscaler::deserialize(object)?;
            annotations::remove(&mut hpa.metadata);
            hpa.api_version = v2::API_VERSION.into();
            hpa.status.get_or_insert_default();
            default::default_hpa(&mut hpa);
            Ok(hpa)
        }
        None => Err(ConvertError::Unknown {
            api_version: text("apiVersion").to_owned(),
            kind: text("kind").to_owned(),
        }),
    }
}

/// Writes an autoscaler in another version.
pub fn write(hpa: &v2::HorizontalPodAutoscaler, version: Version) -> Result<Value, ConvertError> {
    fn json(object: &impl Serialize) -> Result<Value, ConvertError> {
        Ok(serde_json::to_value(object)?)
    }
    match version {
        Version::V1 => json(&to_v1(hpa)),
        Version::V2beta1 => json(&to_v2beta1(hpa)),
        Version::V2beta2 | Version::V2 => {
            let mut hpa = hpa.clone();
            annotations::remove(&mut hpa.metadata);
            hpa.kind = v2::KIND.into();
            hpa.api_version = version.api_version().into();
            hpa.status.get_or_insert_default();
            if let Some(behavior) = &mut hpa.spec.behavior
                && version == Version::V2beta2
            {
                // This version ended before tolerances came.
                for rules in
                    [&mut behavior.scale_up, &mut behavior.scale_down].into_iter().flatten()
                {
                    rules.tolerance = None;
                }
            }
            json(&hpa)
        }
    }
}

/// A `v1` autoscaler as `v2`, with what its annotations say.
pub fn from_v1(mut hpa: v1::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler {
    let mut specs = annotations::metrics(&hpa.metadata).unwrap_or_default();
    specs.extend(hpa.spec.target_cpu_utilization_percentage.map(default::cpu_metric));
    if specs.is_empty() {
        specs.push(default::cpu_metric(default::CPU_UTILIZATION));
    }
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
            min_replicas: Some(hpa.spec.min_replicas.unwrap_or(1)),
            max_replicas: hpa.spec.max_replicas,
            metrics: specs,
            behavior,
        },
        status: Some(status),
    }
}

/// A `v2` autoscaler as `v1`; what `v1` cannot say goes into annotations.
pub fn to_v1(hpa: &v2::HorizontalPodAutoscaler) -> v1::HorizontalPodAutoscaler {
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
pub fn from_v2beta1(mut hpa: v2beta1::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler {
    let behavior = annotations::behavior(&hpa.metadata);
    annotations::remove(&mut hpa.metadata);
    let mut specs: Vec<v2::MetricSpec> =
        hpa.spec.metrics.into_iter().map(metrics::spec_up).collect();
    if specs.is_empty() {
        specs.push(default::cpu_metric(default::CPU_UTILIZATION));
    }
    let current = hpa.status.current_metrics;
    v2::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: v2::API_VERSION.into(),
        metadata: hpa.metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref,
            min_replicas: Some(hpa.spec.min_replicas.unwrap_or(1)),
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
pub fn to_v2beta1(hpa: &v2::HorizontalPodAutoscaler) -> v2beta1::HorizontalPodAutoscaler {
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
