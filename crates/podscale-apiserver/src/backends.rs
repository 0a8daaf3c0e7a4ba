//! The servers that answer for aggregated APIs, as they were registered.

use std::collections::HashMap;

use axum::Router;
use parking_lot::RwLock;

/// A server that answers for a group.
#[derive(Clone)]
pub(crate) enum Backend {
    /// In this process.
    Local(Router),
    /// At an address such as `https://127.0.0.1:4443`.
    Remote(String),
}

/// The servers behind services, by namespace and name.
#[derive(Default)]
pub(crate) struct Backends(RwLock<HashMap<(String, String), Backend>>);

impl Backends {
    pub(crate) fn get(&self, service: &(String, String)) -> Option<Backend> {
        self.0.read().get(service).cloned()
    }

    pub(crate) fn insert(&self, namespace: &str, service: &str, backend: Backend) {
        self.0.write().insert((namespace.to_owned(), service.to_owned()), backend);
    }
}
