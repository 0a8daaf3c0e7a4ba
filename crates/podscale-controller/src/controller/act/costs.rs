//! Writes the deletion costs of pods.

use super::Actor;
use futures::stream::{self, StreamExt};
use podscale_api::pod::{DELETION_COST, OWN_DELETION_COST, Pod};
use podscale_client::call::{self, About, CallError, segment};
use podscale_core::CostsWrite;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many pods are written at the same time.
const AT_ONCE: usize = 16;
/// How long all of them may take: a scale-down does not wait for more.
const DEADLINE: Duration = Duration::from_secs(5);
const RESOURCE: &str = "pods";

/// The part of a pod that says what deleting it costs. Only the pod that was seen is changed.
#[derive(Serialize)]
struct Patch<'a> {
    metadata: PatchMeta<'a>,
}

#[derive(Serialize)]
struct PatchMeta<'a> {
    uid: &'a str,
    annotations: BTreeMap<&'static str, Option<String>>,
}

impl Actor {
    /// Gives each pod its cost, or takes away what it has.
    pub(in crate::controller) async fn set_costs(
        &self,
        namespace: &str,
        changes: &[(&Pod, Option<i32>)],
    ) -> CostsWrite {
        let folder = format!("/api/v1/namespaces/{}/pods", segment(namespace));
        let writes = changes.iter().map(|(pod, cost)| self.set_cost(&folder, pod, *cost));
        let writes: Vec<_> = writes.collect();
        let mut writes = stream::iter(writes).buffer_unordered(AT_ONCE);
        let mut done = CostsWrite::default();
        let all = async {
            while let Some(write) = writes.next().await {
                match write {
                    Ok(()) => done.pods += 1,
                    // It is gone, or another one has its name by now.
                    Err(error) if error.is_not_found() || error.is_conflict() => {}
                    Err(error) => {
                        done.error.get_or_insert_with(|| Arc::from(error.to_string()));
                    }
                }
            }
        };
        if tokio::time::timeout(DEADLINE, all).await.is_err() {
            done.error = Some(CallError::Late(DEADLINE).to_string().into());
        }
        done
    }

    async fn set_cost(&self, folder: &str, pod: &Pod, cost: Option<i32>) -> Result<(), CallError> {
        let cost = cost.map(|cost| cost.to_string());
        let annotations =
            BTreeMap::from([(DELETION_COST, cost.clone()), (OWN_DELETION_COST, cost)]);
        let patch = Patch { metadata: PatchMeta { uid: &pod.metadata.uid, annotations } };
        let path = format!("{folder}/{}", segment(&pod.metadata.name));
        let about = About { resource: RESOURCE, name: &pod.metadata.name };
        call::send::<serde::de::IgnoredAny>(&self.client, "PATCH", &path, &patch, about)
            .await
            .map(drop)
    }
}
