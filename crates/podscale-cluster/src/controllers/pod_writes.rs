//! Creates and deletes the pods of an owner, remembers that until the watch shows it, and says so in events.

use super::Context;
use super::cache::Key;
use super::pod::Pod;
use super::written::Written;
use crate::call::{CallError, call, gone_is_fine};
use k8s_openapi::api::core::v1::{ObjectReference, Pod as FullPod};
use kube::Api;
use kube::api::{DeleteParams, PostParams, Preconditions};
use podscale_client::events::{Recorder, Severity};

/// What a controller writes pods with.
pub(super) struct PodWrites<'a> {
    pub(super) context: &'a Context,
    pub(super) written: &'a Written,
    pub(super) recorder: &'a Recorder,
}

impl PodWrites<'_> {
    /// Creates a pod of an owner.
    pub(super) async fn create(
        &self,
        key: &Key,
        owner: ObjectReference,
        pod: &FullPod,
    ) -> Result<(), CallError> {
        let api = Api::<FullPod>::namespaced(self.context.client.clone(), &key.namespace);
        let params = PostParams::default();
        match call(|| format!("create a pod for {key}"), api.create(&params, pod)).await {
            Ok(created) => {
                self.written.wrote(key, &created.metadata, self.context.clock.now());
                let name = created.metadata.name.unwrap_or_default();
                let message = format!("Created pod: {name}");
                self.recorder.record(owner, Severity::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            Err(error) if error.is_namespace_ending() => Ok(()),
            Err(error) => {
                let message = format!("Error creating: {}", error.message());
                self.recorder.record(owner, Severity::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }

    /// Deletes a pod of an owner, and no other one of its name.
    pub(super) async fn delete(
        &self,
        key: &Key,
        owner: ObjectReference,
        pod: &Pod,
    ) -> Result<(), CallError> {
        let api = Api::<Pod>::namespaced(self.context.client.clone(), &key.namespace);
        let uid = pod.metadata.uid.clone();
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        let (name, delete) = (pod.name(), api.delete(pod.name(), &params));
        match gone_is_fine(call(|| format!("delete pod {name} of {key}"), delete).await) {
            Ok(()) => {
                self.written.deleted(key, &pod.metadata, self.context.clock.now());
                let message = format!("Deleted pod: {name}");
                self.recorder.record(owner, Severity::Normal, "SuccessfulDelete", message);
                Ok(())
            }
            // Another pod of this name: ours is gone.
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => {
                let message = format!("Error deleting: {}", error.message());
                self.recorder.record(owner, Severity::Warning, "FailedDelete", message);
                Err(error)
            }
        }
    }
}
