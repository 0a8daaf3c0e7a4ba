//! The embedded cluster: a small Kubernetes in this process.
