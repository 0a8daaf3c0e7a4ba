//! Kubernetes' own autoscaler, the HorizontalPodAutoscaler of `autoscaling`, in its versions.

pub mod convert;
pub mod custom_metrics;
pub mod default;
pub mod manifest;
pub(crate) mod target;
pub mod v1;
pub mod v2;
pub mod v2alpha1;
pub mod v2beta1;
pub mod validate;
pub mod wording;
