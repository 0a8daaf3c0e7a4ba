//! Kubernetes' own autoscaler, the HorizontalPodAutoscaler of `autoscaling`, in its versions.

pub mod convert;
pub mod default;
pub mod v1;
pub mod v2;
pub mod v2beta1;
pub mod validate;
