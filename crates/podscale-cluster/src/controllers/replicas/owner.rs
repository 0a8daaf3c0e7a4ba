//! What replica sets and replication controllers have in common.

use super::plan::{Failure, Status};
use crate::call::CallError;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition,
    ReplicationControllerStatus,
};
use kube::Resource;
use kube::core::Selector;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The condition that reports pods that could not be created or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The part of an owner's spec that matters here.
#[derive(Debug)]
pub struct Spec<'a> {
    /// The wanted number of pods.
    pub replicas: i32,
    /// How long a pod must be ready to be available.
    pub min_ready_seconds: i32,
    /// Which pods belong to it.
    pub selector: Selector,
    /// What new pods look like.
    pub template: &'a PodTemplateSpec,
}

/// An owner that keeps a number of equal pods.
pub trait Owner:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The name of its controller in events.
    const COMPONENT: &'static str;

    /// Its spec, if it makes sense.
    fn spec(&self) -> Result<Spec<'_>, CallError>;

    /// Its status as stored.
    fn status(&self) -> Status;

    /// A copy with another status.
    fn with_status(&self, status: &Status) -> Self;
}

fn nonsense<K: Resource<DynamicType = ()>>(object: &K, why: impl Into<String>) -> CallError {
    let name = object.meta().name.as_deref().unwrap_or_default();
    CallError::Object { what: format!("{} {name}", K::kind(&())), why: why.into() }
}

impl Owner for ReplicaSet {
    const COMPONENT: &'static str = "replicaset-controller";

    fn spec(&self) -> Result<Spec<'_>, CallError> {
        let spec = &self.spec;
        let selector = spec.selector.clone().try_into();
        Ok(Spec {
            replicas: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds.unwrap_or(0),
            selector: selector.map_err(|error| nonsense(self, format!("selector: {error}")))?,
            template: spec.template.as_ref().ok_or_else(|| nonsense(self, "no template"))?,
        })
    }

    fn status(&self) -> Status {
        let Some(status) = &self.status else { return Status::default() };
        let conditions = status.conditions.iter().flatten();
        let failure = conditions
            .into_iter()
            .find(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE));
        Status {
            replicas: status.replicas,
            fully_labeled: status.fully_labeled_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            terminating: Some(status.terminating_replicas.unwrap_or(0)),
            observed_generation: status.observed_generation,
            failure: failure.map(|condition| Failure {
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
                since: condition.last_transition_time.clone(),
            }),
        }
    }

    fn with_status(&self, status: &Status) -> Self {
        let old = self.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let others =
            old.filter(|condition| condition.type_.as_deref() != Some(REPLICA_FAILURE)).cloned();
        let failure = status.failure.iter().map(|failure| ReplicaSetCondition {
            type_: Some(REPLICA_FAILURE.into()),
            status: Some("True".into()),
            reason: Some(failure.reason.clone()),
            message: Some(failure.message.clone()),
            last_transition_time: failure.since.clone(),
        });
        let conditions: Vec<_> = others.chain(failure).collect();
        let new = ReplicaSetStatus {
            replicas: status.replicas,
            fully_labeled_replicas: Some(status.fully_labeled),
            ready_replicas: Some(status.ready),
            available_replicas: Some(status.available),
            terminating_replicas: status.terminating,
            observed_generation: status.observed_generation,
            conditions: (!conditions.is_empty()).then_some(conditions),
        };
        ReplicaSet { status: Some(new), ..self.clone() }
    }
}

impl Owner for ReplicationController {
    const COMPONENT: &'static str = "replication-controller";

    fn spec(&self) -> Result<Spec<'_>, CallError> {
        let spec = self.spec.as_ref().ok_or_else(|| nonsense(self, "no spec"))?;
        let selector = spec.selector.clone().unwrap_or_default();
        if selector.is_empty() {
            return Err(nonsense(self, "an empty selector would select all pods"));
        }
        Ok(Spec {
            replicas: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds.unwrap_or(0),
            selector: selector.into_iter().collect(),
            template: spec.template.as_ref().ok_or_else(|| nonsense(self, "no template"))?,
        })
    }

    fn status(&self) -> Status {
        let Some(status) = &self.status else { return Status::default() };
        let conditions = status.conditions.iter().flatten();
        let failure = conditions.into_iter().find(|condition| condition.type_ == REPLICA_FAILURE);
        Status {
            replicas: status.replicas,
            fully_labeled: status.fully_labeled_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            terminating: None,
            observed_generation: status.observed_generation,
            failure: failure.map(|condition| Failure {
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
                since: condition.last_transition_time.clone(),
            }),
        }
    }

    fn with_status(&self, status: &Status) -> Self {
        let old = self.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let others = old.filter(|condition| condition.type_ != REPLICA_FAILURE).cloned();
        let failure = status.failure.iter().map(|failure| ReplicationControllerCondition {
            type_: REPLICA_FAILURE.into(),
            status: "True".into(),
            reason: Some(failure.reason.clone()),
            message: Some(failure.message.clone()),
            last_transition_time: failure.since.clone(),
        });
        let conditions: Vec<_> = others.chain(failure).collect();
        let new = ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: Some(status.fully_labeled),
            ready_replicas: Some(status.ready),
            available_replicas: Some(status.available),
            observed_generation: status.observed_generation,
            conditions: (!conditions.is_empty()).then_some(conditions),
        };
        ReplicationController { status: Some(new), ..self.clone() }
    }
}
