//! The embedded cluster: a small Kubernetes in this process.

pub mod controllers;
