//! The embedded cluster: a small Kubernetes in this process.

pub mod controllers;
pub mod load;
pub mod metrics;
pub mod nodes;
