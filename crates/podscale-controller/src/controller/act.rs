//! Does what was decided: gives targets their size, stores statuses, records events. Chooses
//! nothing.

mod costs;
mod hpa;

use super::target::{Freshness, Target, decode, read_scale};
use super::targets::Targets;
use crate::dialect::{Key, Kind, Managed, WireObject};
use crate::time::now;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use podscale_api::meta::OwnerReference;
use podscale_api::scale::Scale;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_client::clock::Clock;
use podscale_client::events::{Recorder, Severity};
use podscale_client::resource_version::is_newer;
use podscale_core::pass::ScaleWrite;
use podscale_core::{Event, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The component that events name.
pub(super) const COMPONENT: &str = "horizontal-pod-autoscaler";
/// The component that events name which upstream does not have.
const OWN_COMPONENT: &str = "podscale";
/// The reason of the event that a target is no longer owned by its autoscaler.
const RELEASED: &str = "ReleasedTarget";
/// The reason of the event that it still is.
const OWNED: &str = "TargetOwnedByAutoscaler";
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

    /// Stores the status of an object, given with its new status; the object as it is then. A
    /// definition without a status subresource answers as if the object were not there: then the
    /// whole object is stored, if that is how its kind can be.
    ///
    /// # Errors
    /// The API server refused it: the object has changed or is gone, for instance.
    pub(super) async fn store_status(
        &self,
        object: &Managed,
        mut new: Box<dyn WireObject>,
    ) -> Result<Managed, CallError> {
        let unreadable = |error: serde_json::Error| CallError::Unreadable(error.to_string());
        let (kind, key) = (object.key.kind, &object.key);
        let about = About { resource: kind.resource, name: &key.name };
        let put = async |path: String, body| {
            call::send_body(&self.client, "PUT", &path, body, about).await
        };
        let mut answer = put(kind.status_path(key), new.to_body().map_err(unreadable)?).await;
        if answer.as_ref().is_err_and(CallError::is_not_found)
            && let Some(body) = new.to_whole_body().map_err(unreadable)?
        {
            answer = put(kind.object_path(key), body).await;
        }
        let stored: Stored = answer?.json().map_err(unreadable)?;
        new.set_resource_version(stored.metadata.resource_version);
        Ok(Managed { wire: new.into(), ..object.clone() })
    }

    /// Changes the metadata of an object by a merge patch; the version that it has then.
    ///
    /// # Errors
    /// The API server refused it: the object has changed or is gone, for instance.
    pub(super) async fn patch(&self, object: &Managed, patch: &Value) -> Result<String, CallError> {
        let (kind, key) = (object.key.kind, &object.key);
        let about = About { resource: kind.resource, name: &key.name };
        let path = kind.object_path(key);
        let stored: Stored = call::send(&self.client, "PATCH", &path, patch, about).await?;
        Ok(stored.metadata.resource_version)
    }

    /// An object as it is stored now, if it is. It is found in a list, for which the right is there anyway.
    ///
    /// # Errors
    /// The API server refused, or could not be reached.
    pub(super) async fn read(&self, object: &Managed) -> Result<Option<Value>, CallError> {
        let Key { namespace, name, kind } = &object.key;
        let fields = query(&[("fieldSelector", &format!("metadata.name={name}"))]);
        let Kind { api_version, plural, resource, .. } = kind;
        let path =
            format!("/apis/{api_version}/namespaces/{}/{plural}{fields}", segment(namespace));
        let about = About { resource, name };
        let list: List = call::get(&self.client, &path, about).await?;
        Ok(list.items.into_iter().next())
    }

    /// Takes a target out of the ownership of its autoscaler, which would take the target with it
    /// when it is deleted. Whatever fails is tried again by the next reconcile. `released` is the version
    /// in which it was let go before: if it belongs to its autoscaler again in a later one, somebody else
    /// has put it there, and it is left so.
    pub(super) async fn disown(
        &self,
        object: &Managed,
        target: &Target,
        released: Option<&str>,
    ) -> Release {
        let (key, metadata) = (&object.key, &target.scale.metadata);
        let Some(owned) = self.targets.owned(&target.resource, metadata, object.uid()) else {
            return Release::NotOwned;
        };
        if let Some(released) = released {
            let again = is_newer(&owned.version, released);
            return if again { Release::OwnedAgain } else { Release::NotOwned };
        }
        let about = About { resource: &target.resource.plural, name: &metadata.name };
        let Some(path) = target.path.strip_suffix("/scale") else { return Release::NotOwned };
        let patch = Disowned {
            metadata: DisownedMeta {
                uid: &metadata.uid,
                resource_version: &owned.version,
                owner_references: &owned.others,
            },
        };
        let (kind, name) = (&object.model.target.kind, &object.model.target.name);
        match call::send::<Stored>(&self.client, "PATCH", path, &patch, about).await {
            Ok(stored) => {
                let message = format!(
                    "{kind} {name:?} does not belong to this {} any more: it stays when this one is \
                     deleted",
                    key.kind.name
                );
                tracing::info!(autoscaler = %key, "{message}");
                let reference = reference(object);
                self.own_recorder.record(reference, Severity::Normal, RELEASED, message);
                return Release::Released(stored.metadata.resource_version.into());
            }
            // Somebody changed it meanwhile.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) => {
                let message = format!(
                    "{kind} {name:?} belongs to this {0} by its ownerReferences and would be deleted \
                     with it, and that cannot be changed: {error}. Delete this {0} with \
                     --cascade=orphan only, or allow to patch deployments: docs/chpa.md",
                    key.kind.name
                );
                tracing::warn!(autoscaler = %key, "{message}");
                self.warn(object, OWNED, message);
            }
        }
        Release::NotOwned
    }

    /// Records the events of a decision.
    pub(super) fn record(&self, object: &Managed, events: &[Event]) {
        // Most decisions have nothing to report, and a recorder of another name is a copy.
        if events.is_empty() {
            return;
        }
        record(&self.recorder.named(object.key.kind.component()), object, events);
    }

    /// Records events that upstream does not have.
    pub(super) fn record_own(&self, object: &Managed, events: &[Event]) {
        record(&self.own_recorder, object, events);
    }

    /// Warns of something that upstream would not. Such events have a source of their own, so that a
    /// flood of the others does not drown them.
    pub(super) fn warn(&self, object: &Managed, reason: &'static str, message: String) {
        self.own_recorder.record(reference(object), Severity::Warning, reason, message);
    }
}

/// Records events with this recorder.
fn record(recorder: &Recorder, object: &Managed, events: &[Event]) {
    for event in events {
        let severity = if event.warning { Severity::Warning } else { Severity::Normal };
        // The recorder takes reasons that are known when the program is built, and all of a decision are.
        if let Cow::Borrowed(reason) = event.reason {
            recorder.record(reference(object), severity, reason, event.message.clone());
        }
    }
}

/// Whether a target belongs to its autoscaler.
pub(super) enum Release {
    /// It does not, or nothing can be done about it now.
    NotOwned,
    /// It did, and does not in this version of the target.
    Released(Box<str>),
    /// It was released before, and does again.
    OwnedAgain,
}

/// The part of a target that says to whom it belongs. Nothing is changed in a version of the target
/// that was not seen.
#[derive(Serialize)]
struct Disowned<'a> {
    metadata: DisownedMeta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DisownedMeta<'a> {
    uid: &'a str,
    resource_version: &'a str,
    owner_references: &'a [OwnerReference],
}

/// Objects in whatever form they have.
#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
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
