//! The embedded cluster: a small Kubernetes around an API server in the same process. Controllers,
//! a scheduler, simulated nodes with real kubelet endpoints, and the load that their pods bear.
//! Knows nothing of autoscalers.

pub mod call;
pub mod controllers;
pub mod load;
pub mod metrics;
pub mod nodes;
