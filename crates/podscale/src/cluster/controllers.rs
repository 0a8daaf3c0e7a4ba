//! The controllers of the embedded cluster. Each is a client like any other: it sees the cluster
//! through watches and changes it through calls of the API server, so the same code would work on a
//! real cluster. What to do is decided by pure functions; the rest watches, asks them, and obeys.

pub mod cache;
pub mod calls;
pub mod claim;
pub mod deployment;
pub mod events;
pub mod pod;
pub mod queue;
pub mod replicas;
pub mod stateful;
pub mod written;

use crate::clock::Clock;
use cache::Cache;
use events::Recorder;
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::ReplicationController;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use pod::{Pod, controller_of};
use queue::Shutdown;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The pods' index by controller (its uid), or by namespace for those without one.
pub const BY_OWNER: usize = 0;
/// The pods' index by node.
pub const BY_NODE: usize = 1;

/// What every controller is given.
#[derive(Clone)]
pub struct Context {
    /// The way to the API server.
    pub client: Client,
    /// The cluster's clock.
    pub clock: Clock,
    /// What the watches show.
    pub caches: Arc<Caches>,
    /// Where events go.
    pub recorder: Recorder,
}

/// What the watches show, shared by all controllers.
pub struct Caches {
    /// All pods, by owner and by node.
    pub pods: Cache<Pod>,
    /// All replica sets, by controller.
    pub replica_sets: Cache<ReplicaSet>,
    /// All replication controllers.
    pub replication_controllers: Cache<ReplicationController>,
    /// All deployments.
    pub deployments: Cache<Deployment>,
    /// All stateful sets.
    pub stateful_sets: Cache<StatefulSet>,
    /// All revisions of stateful sets, by controller.
    pub revisions: Cache<ControllerRevision>,
}

/// The value under which the pods' index by owner holds a namespace's pods without a controller.
#[must_use]
pub fn orphans(namespace: &str) -> String {
    format!("orphans in {namespace}")
}

fn by_owner<K: Resource>(object: &K) -> Option<String> {
    let meta = object.meta();
    Some(controller_of(meta).map_or_else(
        || orphans(meta.namespace.as_deref().unwrap_or_default()),
        |owner| owner.uid.clone(),
    ))
}

fn by_node(pod: &Pod) -> Option<String> {
    pod.node().map(str::to_owned)
}
