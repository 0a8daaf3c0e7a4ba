//! Who a pod of a stateful set is: its number, its names, its claims and its revision.

use crate::controllers::claim::owner_reference;
use crate::controllers::deployment::template::{fnv1a, readable};
use crate::controllers::pod::{Pod, labels_of};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod as FullPod, PodTemplateSpec,
    Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

/// The label that tells which revision a pod is made from.
const REVISION_LABEL: &str = "controller-revision-hash";
/// The label that a revision carries its hash in.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// The number of a pod, if its name is one that the set gives.
#[must_use]
pub fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let (parent, number) = pod.name().rsplit_once('-')?;
    if Some(parent) != set.metadata.name.as_deref() || number.starts_with('+') {
        return None;
    }
    number.parse().ok().filter(|number| *number >= 0)
}

/// The revision that a pod is made from.
#[must_use]
pub fn revision_of(pod: &Pod) -> Option<&str> {
    labels_of(&pod.metadata).get(REVISION_LABEL).map(String::as_str)
}

/// The pod of that number.
#[must_use]
pub fn new_pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    ordinal: i32,
    revision: &str,
) -> FullPod {
    let set_name = set.metadata.name.as_deref().unwrap_or_default();
    let name = format!("{set_name}-{ordinal}");
    let meta = template.metadata.clone().unwrap_or_default();
    let mut labels = meta.labels.unwrap_or_default();
    labels.insert("statefulset.kubernetes.io/pod-name".into(), name.clone());
    labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string());
    labels.insert(REVISION_LABEL.into(), revision.into());
    let mut spec = template.spec.clone().unwrap_or_default();
    spec.hostname = Some(name.clone());
    spec.subdomain.clone_from(&set.spec.service_name);
    let claims = claims(set, ordinal);
    if !claims.is_empty() {
        let volumes = spec.volumes.get_or_insert_default();
        for (volume, claim) in claims {
            volumes.retain(|known| known.name != volume);
            let claim_name = claim.metadata.name.unwrap_or_default();
            let source = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
            volumes.push(Volume {
                name: volume,
                persistent_volume_claim: Some(source),
                ..Volume::default()
            });
        }
    }
    FullPod {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![owner_reference(set)]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// The volumes of the pod of that number that are claimed for it, with the claims.
#[must_use]
pub fn claims(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let set_name = set.metadata.name.as_deref().unwrap_or_default();
    let templates = set.spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let volume = template.metadata.name.clone().unwrap_or_default();
            let mut claim = template.clone();
            claim.metadata.name = Some(format!("{volume}-{set_name}-{ordinal}"));
            claim.metadata.namespace.clone_from(&set.metadata.namespace);
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.extend(set.spec.selector.match_labels.clone().unwrap_or_default());
            claim.status = None;
            (volume, claim)
        })
        .collect()
}

/// What a revision remembers of a set: its template, in the form of a patch.
#[must_use]
pub fn remembered(set: &StatefulSet) -> Value {
    let mut template = serde_json::to_value(&set.spec.template).unwrap_or_default();
    if let Value::Object(fields) = &mut template {
        fields.insert("$patch".into(), "replace".into());
    }
    json!({"spec": {"template": template}})
}

/// The template that a revision remembers.
#[must_use]
pub fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let template = revision.data.0.pointer("/spec/template")?;
    serde_json::from_value(template.clone()).ok()
}

/// The revision of the set as it is now.
#[must_use]
pub fn new_revision(set: &StatefulSet, number: i64, collisions: i32) -> ControllerRevision {
    let data = remembered(set);
    let text = serde_json::to_vec(&set.spec.template).unwrap_or_default();
    let hash = readable(fnv1a(text.iter().chain(&collisions.to_le_bytes())));
    let mut name = set.metadata.name.clone().unwrap_or_default();
    name.truncate(223);
    let labels = set.spec.template.metadata.as_ref().and_then(|meta| meta.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.insert(HASH_LABEL.into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            owner_references: Some(vec![owner_reference(set)]),
            ..ObjectMeta::default()
        },
        data: RawExtension(data),
        revision: Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> StatefulSet {
        serde_json::from_value(json!({"metadata": {"name": "db", "namespace": "a", "uid": "s"},
            "spec": {"serviceName": "db-svc", "selector": {"matchLabels": {"app": "db"}},
                "template": {"metadata": {"labels": {"app": "db"}},
                    "spec": {"containers": [{"name": "c", "image": "x"}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}))
        .unwrap()
    }

    #[test]
    fn pods_are_numbered_by_name() {
        let numbers = ["db-0", "db-17", "db-x", "db--1", "db-+1", "other-1", "db"].map(|name| {
            let json = json!({"metadata": {"name": name}});
            ordinal(&set(), &serde_json::from_value(json).unwrap())
        });
        assert_eq!(numbers, [Some(0), Some(17), None, None, None, None, None]);
    }

    #[test]
    fn a_pod_has_a_stable_name_and_its_own_claims() {
        let set = set();
        let pod = serde_json::to_value(new_pod(&set, &set.spec.template, 3, "db-r1")).unwrap();
        let expected = [
            ("/metadata/name", "db-3"),
            ("/metadata/labels/app", "db"),
            ("/metadata/labels/statefulset.kubernetes.io~1pod-name", "db-3"),
            ("/metadata/labels/apps.kubernetes.io~1pod-index", "3"),
            ("/metadata/labels/controller-revision-hash", "db-r1"),
            ("/metadata/ownerReferences/0/kind", "StatefulSet"),
            ("/spec/hostname", "db-3"),
            ("/spec/subdomain", "db-svc"),
            ("/spec/volumes/0/persistentVolumeClaim/claimName", "data-db-3"),
        ];
        for (path, value) in expected {
            assert_eq!(pod.pointer(path), Some(&json!(value)), "{path}");
        }
    }

    #[test]
    fn a_revision_gives_back_the_template() {
        let set = set();
        let revision = new_revision(&set, 4, 0);
        assert_eq!(template_of(&revision), Some(set.spec.template.clone()));
        assert_ne!(new_revision(&set, 4, 1).metadata.name, revision.metadata.name);
        assert_eq!(new_revision(&set, 5, 0).metadata.name, revision.metadata.name);
    }
}
