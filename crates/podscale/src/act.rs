//! Does what was decided: gives targets their size, stores statuses, records events. Chooses
//! nothing.

use crate::clock::Clock;
use crate::events::{Kind, Recorder};
use crate::watch::call::{self, About, CallError, segment};
use crate::watch::kinds::{KindError, Kinds, Resource};
use crate::watch::targets::Targets;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use podscale_api::hpa::v2::{
    API_VERSION, CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, KIND,
};
use podscale_api::meta::ObjectMeta;
use podscale_api::scale::Scale;
use podscale_core::snapshot::ScaleError;
use podscale_core::{Event, ScaleWrite, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The component that events name.
pub const COMPONENT: &str = "horizontal-pod-autoscaler";
/// The component that events name which upstream does not have.
const OWN_COMPONENT: &str = "podscale";
/// How often a scale is written while it meets conflicts.
const SCALE_WRITE_TRIES: u32 = 5;
/// How long after a conflict it is tried again; time of the wall.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// The hands of the controller.
pub struct Actor {
    client: Client,
    clock: Clock,
    kinds: Kinds,
    targets: Arc<Targets>,
    recorder: Recorder,
    own_recorder: Recorder,
}

/// How a target is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// As watching shows it, where it is watched.
    Watched,
    /// As the API server has it now.
    Fresh,
}

/// The scale of a target, and where it was read.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its scale.
    pub scale: Scale,
    resource: Arc<Resource>,
    path: String,
    sight: Sight,
}

impl Actor {
    /// Acts on this API server.
    #[must_use]
    pub fn new(
        client: Client,
        clock: Clock,
        kinds: Kinds,
        targets: Arc<Targets>,
        recorder: Recorder,
    ) -> Actor {
        let own_recorder = recorder.named(OWN_COMPONENT);
        Actor { client, clock, kinds, targets, recorder, own_recorder }
    }

    /// The scale of an autoscaler's target.
    ///
    /// # Errors
    /// The target's kind is not known, or its scale could not be read.
    pub async fn scale(
        &self,
        namespace: &str,
        target: &CrossVersionObjectReference,
        sight: Sight,
    ) -> Result<Target, ScaleError> {
        let version = &target.api_version;
        if version.matches('/').count() > 1 {
            let error = format!("unexpected GroupVersion string: {version}");
            return Err(ScaleError::ApiVersion(error.into()));
        }
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let resource =
            self.kinds.of_group(group, &target.kind).await.map_err(|error| match error {
                KindError::NoMatch { .. } => ScaleError::NoResource(error.to_string().into()),
                KindError::Call(error) => ScaleError::NoResource(error.to_string().into()),
            })?;
        let path = format!("{}/{}/scale", resource.path(namespace), segment(&target.name));
        if sight == Sight::Watched
            && let Some(scale) = self.targets.scale(&resource, namespace, &target.name).await
        {
            return Ok(Target { scale, resource, path, sight });
        }
        match self.read_scale(&resource, &path, &target.name).await {
            Ok(scale) => Ok(Target { scale, resource, path, sight: Sight::Fresh }),
            Err(error) => {
                if error.is_not_found() {
                    // Perhaps not only the object is gone, but its kind as well.
                    self.kinds.forget(&resource);
                }
                Err(ScaleError::Unreadable(error.to_string().into()))
            }
        }
    }

    async fn read_scale(
        &self,
        resource: &Resource,
        path: &str,
        name: &str,
    ) -> Result<Scale, CallError> {
        let about = About { resource: &resource.qualified(), name };
        call::get(&self.client, path, about).await
    }

    /// Gives a target another size, again if it was changed meanwhile; how that ended, and when.
    /// `None` if watching had not shown yet what the target is like now: nothing was written, and a
    /// fresh look is called for.
    pub async fn resize(&self, target: &Target, replicas: i32) -> Option<(ScaleWrite, Time)> {
        let mut scale = target.scale.clone();
        let name = scale.metadata.name.clone();
        let resource = target.resource.qualified();
        let about = About { resource: &resource, name: &name };
        let mut tries = 0;
        let write = loop {
            scale.spec.replicas = replicas;
            tries += 1;
            let written: Result<Scale, CallError> =
                call::send(&self.client, "PUT", &target.path, &scale, about).await;
            match written {
                Ok(stored) => {
                    self.targets.wrote(&target.resource, &stored);
                    break ScaleWrite::Written;
                }
                Err(error) if error.is_conflict() && target.sight == Sight::Watched => {
                    return None;
                }
                Err(error) if error.is_conflict() && tries < SCALE_WRITE_TRIES => {
                    if let Ok(latest) = self.read_scale(&target.resource, &target.path, &name).await
                    {
                        scale = latest;
                    }
                    tokio::time::sleep(CONFLICT_PAUSE).await;
                }
                Err(error) => break ScaleWrite::Failed(error.to_string().into()),
            }
        };
        Some((write, now(&self.clock)))
    }

    /// Stores a status; the object as it is then.
    ///
    /// # Errors
    /// The API server refused it: the object has changed or is gone, for instance.
    pub async fn store_status(
        &self,
        hpa: &HorizontalPodAutoscaler,
        status: HorizontalPodAutoscalerStatus,
    ) -> Result<HorizontalPodAutoscaler, CallError> {
        let HorizontalPodAutoscaler { metadata, spec, .. } = hpa;
        let sent = Sent { kind: KIND, api_version: API_VERSION, metadata, spec, status: &status };
        let (namespace, name) = (segment(&hpa.metadata.namespace), segment(&hpa.metadata.name));
        let path = format!(
            "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}/status"
        );
        let resource = "horizontalpodautoscalers.autoscaling";
        let about = About { resource, name: &hpa.metadata.name };
        let stored: Stored = call::send(&self.client, "PUT", &path, &sent, about).await?;
        let mut hpa = HorizontalPodAutoscaler { status: Some(status), ..hpa.clone() };
        hpa.metadata.resource_version = stored.metadata.resource_version;
        Ok(hpa)
    }

    /// Records what is worth telling people about an autoscaler.
    pub fn record(&self, hpa: &HorizontalPodAutoscaler, events: &[Event]) {
        for event in events {
            let kind = if event.warning { Kind::Warning } else { Kind::Normal };
            // All reasons are known beforehand; one that is not would have no place to live.
            if let Cow::Borrowed(reason) = event.reason {
                self.recorder.record(reference(hpa), kind, reason, event.message.clone());
            }
        }
    }

    /// Warns of something that upstream would not. Such events have a source of their own, so that a
    /// flood of the others does not drown them.
    pub fn warn(&self, hpa: &HorizontalPodAutoscaler, reason: &'static str, message: String) {
        self.own_recorder.record(reference(hpa), Kind::Warning, reason, message);
    }
}

/// An autoscaler as it is sent; objects of a list do not say themselves what they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: &'a ObjectMeta,
    spec: &'a HorizontalPodAutoscalerSpec,
    status: &'a HorizontalPodAutoscalerStatus,
}

/// As much of the answer as is news: the watch tells the rest.
#[derive(Deserialize)]
struct Stored {
    metadata: StoredMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMeta {
    resource_version: String,
}

/// How events name an autoscaler.
fn reference(hpa: &HorizontalPodAutoscaler) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(KIND.to_owned()),
        namespace: Some(hpa.metadata.namespace.clone()),
        name: Some(hpa.metadata.name.clone()),
        uid: Some(hpa.metadata.uid.clone()),
        resource_version: Some(hpa.metadata.resource_version.clone()),
        ..ObjectReference::default()
    }
}

/// What time it is, as the core counts it.
#[must_use]
pub fn now(clock: &Clock) -> Time {
    Time(clock.now().as_microsecond())
}

#[cfg(test)]
mod tests;
