//! The definitions of the custom resources that Podscale knows, one file each; PodAutoscaler's is made of the
//! table of its fields, and stands beside it. Installing them is the choice of whoever runs a cluster; nothing
//! else depends on them.

pub mod chpa;

use crate::pod_autoscaler::crd as pod_autoscaler;
use serde_json::Value;

/// All of them.
#[must_use]
pub fn all() -> Vec<Value> {
    vec![chpa::definition(), pod_autoscaler::definition()]
}
