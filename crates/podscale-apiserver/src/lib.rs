//! Kubernetes' HTTP API over an in-memory store.

pub mod resource;
