//! What is written for ScaledJobs: Jobs that are created and deleted, the objects' finalizers and statuses, events.

use super::known::Job;
use crate::controller::ownership::OWN_MANAGER;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use podscale_api::keda::API_VERSION;
use podscale_api::keda::scaled_job::{KIND, PLURAL, RESOURCE, ScaledJob, ScaledJobStatus};
use podscale_client::call::{self, About, CallError, segment};
use podscale_client::events::{Recorder, Severity};
use podscale_core::Event;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::borrow::Cow;

/// What calls are about.
const JOBS: &str = "jobs.batch";

/// Writes to the API server.
pub(super) struct Writer {
    client: Client,
    recorder: Recorder,
}

impl Writer {
    /// Writes through this client, and events by this recorder.
    pub(super) fn new(client: Client, recorder: Recorder) -> Writer {
        Writer { client, recorder }
    }

    /// The way to the API server.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a Job; it as it is then.
    pub(super) async fn create(&self, namespace: &str, job: &Value) -> Result<Job, CallError> {
        let path = format!("/apis/batch/v1/namespaces/{}/jobs", segment(namespace));
        call::send(&self.client, "POST", &path, job, About { resource: JOBS, name: "" }).await
    }

    /// Deletes a Job; one that is gone is fine.
    pub(super) async fn delete(&self, job: &Job, propagation: &str) -> Result<(), CallError> {
        let (namespace, name) = (segment(&job.namespace), segment(&job.name));
        let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}");
        let about = About { resource: JOBS, name: &job.name };
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": propagation});
        let sent = call::send::<IgnoredAny>(&self.client, "DELETE", &path, &options, about).await;
        match sent {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Changes the metadata of an object by a merge patch; one that is gone is fine.
    pub(super) async fn patch(&self, object: &ScaledJob, patch: &Value) -> Result<(), CallError> {
        let (path, about) = (path_of(object), about(object));
        match call::send::<IgnoredAny>(&self.client, "PATCH", &path, patch, about).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Stores the status of an object, in the version that was seen.
    pub(super) async fn store(
        &self,
        object: &ScaledJob,
        status: ScaledJobStatus,
    ) -> Result<(), CallError> {
        // Whose write it is decides whether another controller is seen.
        let path = format!("{}/status?fieldManager={OWN_MANAGER}", path_of(object));
        let mut new = object.clone();
        (new.kind, new.api_version) = (KIND.to_owned(), API_VERSION.to_owned());
        new.status = Some(status);
        let stored = call::send::<IgnoredAny>(&self.client, "PUT", &path, &new, about(object));
        stored.await.map(|_| ())
    }

    /// Records events.
    pub(super) fn record(&self, object: &ScaledJob, events: &[Event]) {
        for event in events {
            // Reasons are known when the program is built, and all of these are.
            let Cow::Borrowed(reason) = event.reason else { continue };
            let severity = if event.warning { Severity::Warning } else { Severity::Normal };
            self.recorder.record(reference(object), severity, reason, event.message.clone());
        }
    }
}

fn path_of(object: &ScaledJob) -> String {
    let metadata = &object.metadata;
    let (namespace, name) = (segment(&metadata.namespace), segment(&metadata.name));
    format!("/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}/{name}")
}

fn about(object: &ScaledJob) -> About<'_> {
    About { resource: RESOURCE, name: &object.metadata.name }
}

fn reference(object: &ScaledJob) -> ObjectReference {
    let metadata = &object.metadata;
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(KIND.to_owned()),
        namespace: Some(metadata.namespace.clone()),
        name: Some(metadata.name.clone()),
        uid: Some(metadata.uid.clone()),
        resource_version: Some(metadata.resource_version.clone()),
        ..ObjectReference::default()
    }
}
