//! The definitions of the custom resources that Podscale knows, one file each; PodAutoscaler's is made of the
//! table of its fields, and stands beside it. Installing them is the choice of whoever runs a cluster; nothing
//! else depends on them.

pub mod chpa;
pub mod keda;

use crate::pod_autoscaler::crd as pod_autoscaler;
use serde_json::Value;

/// All of Podscale's own and of controllers whose place it takes; KEDA's kinds are not among them.
#[must_use]
pub fn all() -> Vec<Value> {
    vec![chpa::definition(), pod_autoscaler::definition()]
}
