//! Kubernetes' own autoscaler, the HorizontalPodAutoscaler of `autoscaling`, in its versions.

pub mod default;
pub mod v2;
