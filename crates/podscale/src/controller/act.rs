//! Does what was decided: gives targets their size, stores statuses, records events. Chooses
//! nothing.

use super::target::{Freshness, Target, decode, read_scale};
use super::targets::Targets;
use crate::dialect::{Managed, WireObject};
use crate::time::now;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use podscale_api::scale::Scale;
use podscale_client::call::{self, About, CallError};
use podscale_client::clock::Clock;
use podscale_client::events::{Recorder, Severity};
use podscale_core::pass::ScaleWrite;
use podscale_core::{Event, Time};
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The component that events name.
pub(super) const COMPONENT: &str = "horizontal-pod-autoscaler";
/// The component that events name which upstream does not have.
const OWN_COMPONENT: &str = "podscale";
/// How often a scale is written while it meets conflicts.
const SCALE_WRITE_TRIES: u32 = 5;
/// How long after a conflict it is tried again; wall-clock.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// Writes to the API server.
pub(super) struct Actor {
    client: Client,
    clock: Clock,
    targets: Arc<Targets>,
    recorder: Recorder,
    own_recorder: Recorder,
}

impl Actor {
    /// Acts on this API server.
    pub(super) fn new(
        client: Client,
        clock: Clock,
        targets: Arc<Targets>,
        recorder: Recorder,
    ) -> Actor {
        let own_recorder = recorder.named(OWN_COMPONENT);
        Actor { client, clock, targets, recorder, own_recorder }
    }

    /// Gives a target another size; how that ended, and when. If the target was changed meanwhile, its
    /// scale is read and the size is written again. `None` if the scale came from the watch, which had
    /// not shown that change yet: nothing was written, and the size must be decided again on the scale
    /// as it is now.
    pub(super) async fn resize(
        &self,
        target: &Target,
        replicas: i32,
    ) -> Option<(ScaleWrite, Time)> {
        let mut scale = target.scale.clone();
        let name = scale.metadata.name.clone();
        let about = About { resource: &target.resource.plural, name: &name };
        let mut tries = 0;
        let write = loop {
            scale.spec.replicas = replicas;
            tries += 1;
            match self.send_scale(&target.path, &scale, about).await {
                Ok(stored) => {
                    self.targets.wrote(&target.resource, &stored);
                    break ScaleWrite::Written;
                }
                Err(error) if error.is_conflict() && target.freshness == Freshness::Watched => {
                    return None;
                }
                Err(error) if error.is_conflict() && tries < SCALE_WRITE_TRIES => {
                    let latest =
                        read_scale(&self.client, &target.resource, &target.path, &name).await;
                    if let Ok(latest) = latest {
                        scale = latest;
                    }
                    tokio::time::sleep(CONFLICT_PAUSE).await;
                }
                Err(error) => break ScaleWrite::Failed(error.to_string().into()),
            }
        };
        Some((write, now(&self.clock)))
    }

    async fn send_scale(
        &self,
        path: &str,
        scale: &Scale,
        about: About<'_>,
    ) -> Result<Scale, CallError> {
        let body = serde_json::to_vec(scale).map_err(|e| CallError::Unreadable(e.to_string()))?;
        decode(&call::send_body(&self.client, "PUT", path, body, about).await?)
    }

    /// Stores the status of an object, given with its new status; the object as it is then.
    ///
    /// # Errors
    /// The API server refused it: the object has changed or is gone, for instance.
    pub(super) async fn store_status(
        &self,
        object: &Managed,
        mut new: Box<dyn WireObject>,
    ) -> Result<Managed, CallError> {
        let body = new.to_body().map_err(|error| CallError::Unreadable(error.to_string()))?;
        let path = object.key.kind.status_path(&object.key);
        let about = About { resource: object.key.kind.resource, name: &object.key.name };
        let answer = call::send_body(&self.client, "PUT", &path, body, about).await?;
        let stored: Stored = answer.json().map_err(|e| CallError::Unreadable(e.to_string()))?;
        new.set_resource_version(stored.metadata.resource_version);
        Ok(Managed { wire: new.into(), ..object.clone() })
    }

    /// Records the events of a decision.
    pub(super) fn record(&self, object: &Managed, events: &[Event]) {
        for event in events {
            let severity = if event.warning { Severity::Warning } else { Severity::Normal };
            // The recorder takes reasons that are known when the program is built, and all of a decision are.
            if let Cow::Borrowed(reason) = event.reason {
                self.recorder.record(reference(object), severity, reason, event.message.clone());
            }
        }
    }

    /// Warns of something that upstream would not. Such events have a source of their own, so that a
    /// flood of the others does not drown them.
    pub(super) fn warn(&self, object: &Managed, reason: &'static str, message: String) {
        self.own_recorder.record(reference(object), Severity::Warning, reason, message);
    }
}

/// As much of the answer as is news: the watch brings the rest.
#[derive(Deserialize)]
struct Stored {
    metadata: StoredMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMeta {
    resource_version: String,
}

/// How events name an object.
fn reference(object: &Managed) -> ObjectReference {
    let (key, metadata) = (&object.key, object.metadata());
    ObjectReference {
        api_version: Some(key.kind.api_version.to_owned()),
        kind: Some(key.kind.name.to_owned()),
        namespace: Some(key.namespace.to_string()),
        name: Some(key.name.to_string()),
        uid: Some(metadata.uid.clone()),
        resource_version: Some(metadata.resource_version.clone()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests;
