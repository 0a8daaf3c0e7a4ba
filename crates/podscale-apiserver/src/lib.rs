//! Kubernetes' HTTP API over an in-memory store.

pub mod resource;
pub mod store;
pub mod types;
