//! What an object leaves when it is deleted.

use super::Resolved;
use crate::dialect::Upkeep;
use podscale_api::keda::FINALIZER;
use podscale_api::keda::scaled_object::ScaledObject;
use podscale_api::meta::ObjectMeta;
use podscale_api::translate::polling;
use podscale_core::Event;
use serde_json::{Value, json};

impl Resolved {
    /// What is to be done before it goes.
    pub(super) fn release(&self, is_held: bool) -> Upkeep {
        if !is_held {
            return Upkeep::Release { restore: None, patch: None, events: Vec::new() };
        }
        let ScaledObject { metadata, spec, status, .. } = &*self.object;
        let advanced = spec.advanced.as_ref();
        let restores = advanced.is_some_and(|it| it.restore_to_original_replica_count);
        let known = status.as_ref().filter(|status| status.scale_target_gvkr.is_some());
        let restore = known.filter(|_| restores).and_then(|status| status.original_replica_count);
        let finalizers: Vec<&str> =
            finalizers(metadata).filter(|finalizer| *finalizer != FINALIZER).collect();
        let version = &metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        let events = vec![
            polling::stopped(),
            Event::warning("ScaledObjectDeleted", "ScaledObject was deleted"),
        ];
        Upkeep::Release { restore, patch: Some(patch), events }
    }
}

/// What an object waits for before it goes.
pub(super) fn finalizers(metadata: &ObjectMeta) -> impl Iterator<Item = &str> {
    let list = metadata.other.get("finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}
