//! The Jobs that a ScaledJob makes.

use crate::keda::annotations::JOB_EXCLUDED_LABELS;
use crate::keda::scaled_job::{KIND, ScaledJob};
use crate::keda::{API_VERSION, FINALIZER};
use serde_json::{Map, Value, json};

/// The label that names the ScaledJob of a Job and of its pods.
pub const NAME_LABEL: &str = "scaledjob.keda.sh/name";
/// The annotation that says of which generation of its ScaledJob a Job is.
pub const GENERATION: &str = "scaledjob.keda.sh/generation";
/// The label that names the program that made a Job, unless its ScaledJob has it as well.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// What happens to containers that failed, where a template does not say.
const RESTART_POLICY: &str = "OnFailure";

/// A Job, as it is to be created by the program of this name and version. Labels and annotations of the ScaledJob go
/// before those that Jobs get anyway, but for the two by which its Jobs are found again: whoever overrode these would
/// get Jobs without end.
#[must_use]
pub fn job(object: &ScaledJob, made_by: (&str, &str)) -> Value {
    let (metadata, name) = (&object.metadata, object.metadata.name.as_str());
    let mut labels = Map::new();
    for (key, value) in [
        ("app.kubernetes.io/name", name),
        ("app.kubernetes.io/version", made_by.1),
        ("app.kubernetes.io/part-of", name),
        (MANAGED_BY, made_by.0),
    ] {
        labels.insert(key.to_owned(), value.into());
    }
    let excluded: Vec<&str> =
        metadata.annotations.get(JOB_EXCLUDED_LABELS).unwrap_or_default().split(',').collect();
    for (key, value) in metadata.labels.iter().filter(|(key, _)| !excluded.contains(key)) {
        labels.insert(key.to_owned(), value.into());
    }
    labels.insert(NAME_LABEL.to_owned(), name.into());
    let mut annotations = Map::new();
    for (key, value) in metadata.annotations.iter() {
        annotations.insert(key.to_owned(), value.into());
    }
    annotations.insert(GENERATION.to_owned(), metadata.generation.to_string().into());
    let owner = json!({"apiVersion": API_VERSION, "kind": KIND, "name": name, "uid": metadata.uid,
        "controller": true, "blockOwnerDeletion": true});
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": format!("{name}-"), "namespace": metadata.namespace,
            "labels": labels, "annotations": annotations, "ownerReferences": [owner]},
        "spec": spec(object),
    })
}

/// The spec of each Job: what the ScaledJob says, with its label on the pods.
fn spec(object: &ScaledJob) -> Value {
    let name = object.metadata.name.as_str();
    let mut spec = object.spec.job_target_ref.clone();
    let template = section(&mut spec, "template");
    let metadata = section(template, "metadata");
    metadata["generateName"] = format!("{name}-").into();
    section(metadata, "labels")[NAME_LABEL] = name.into();
    let pod = section(template, "spec");
    if pod["restartPolicy"].as_str().unwrap_or_default().is_empty() {
        pod["restartPolicy"] = RESTART_POLICY.into();
    }
    spec
}

/// A part of an object, which is made if it is not there.
fn section<'a>(of: &'a mut Value, name: &str) -> &'a mut Value {
    if !of.is_object() {
        *of = json!({});
    }
    let part = &mut of[name];
    if !part.is_object() {
        *part = json!({});
    }
    part
}

/// What an object waits for before it goes.
#[must_use]
pub fn finalizers(object: &ScaledJob) -> Vec<String> {
    let list = object.metadata.other.get("finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The change that makes an object wait for us, or lets it go; nothing if it does so already.
#[must_use]
pub fn hold(object: &ScaledJob, is_held: bool) -> Option<Value> {
    let mut finalizers = finalizers(object);
    let was_held = finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    if was_held == is_held {
        return None;
    }
    if is_held {
        finalizers.push(FINALIZER.to_owned());
    } else {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    let version = &object.metadata.resource_version;
    Some(json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(metadata: Value, template: Value) -> ScaledJob {
        let mut object = json!({"metadata": {"name": "mail", "namespace": "shop", "uid": "u1",
            "generation": 2, "resourceVersion": "7"},
            "spec": {"jobTargetRef": {"backoffLimit": 1, "template": template}}});
        for (key, value) in metadata.as_object().expect("fields") {
            object["metadata"][key] = value.clone();
        }
        serde_json::from_value(object).expect("a ScaledJob")
    }

    #[test]
    fn a_job_is_marked_with_whose_it_is() {
        let metadata = json!({"labels": {"team": "a", "tmp": "b", "app.kubernetes.io/part-of": "shop",
            NAME_LABEL: "other"},
            "annotations": {JOB_EXCLUDED_LABELS: "tmp,other", "note": "x", GENERATION: "9"}});
        let object = object(metadata, json!({"spec": {"containers": [{"name": "c"}]}}));
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"generateName": "mail-", "namespace": "shop",
                "labels": {"app.kubernetes.io/name": "mail", "app.kubernetes.io/version": "1.2.3",
                    "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/managed-by": "podscale",
                    NAME_LABEL: "mail", "team": "a"},
                "annotations": {GENERATION: "2", JOB_EXCLUDED_LABELS: "tmp,other", "note": "x"},
                "ownerReferences": [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob",
                    "name": "mail", "uid": "u1", "controller": true, "blockOwnerDeletion": true}]},
            "spec": {"backoffLimit": 1, "template": {
                "metadata": {"generateName": "mail-", "labels": {NAME_LABEL: "mail"}},
                "spec": {"containers": [{"name": "c"}], "restartPolicy": "OnFailure"}}},
        });
        assert_eq!(job(&object, ("podscale", "1.2.3")), expected);
    }

    #[test]
    fn a_restart_policy_that_is_given_stays() {
        let object = object(json!({}), json!({"spec": {"restartPolicy": "Never"}}));
        let made = job(&object, ("podscale", "1"));
        assert_eq!(made["spec"]["template"]["spec"]["restartPolicy"], "Never");
    }

    #[test]
    fn an_object_waits_for_us_and_for_others() {
        let fresh = object(json!({"finalizers": ["a"]}), json!({}));
        assert_eq!(hold(&fresh, false), None);
        let patch = hold(&fresh, true).expect("a change");
        let expected =
            json!({"metadata": {"resourceVersion": "7", "finalizers": ["a", FINALIZER]}});
        assert_eq!(patch, expected);
        let held = object(json!({"finalizers": ["a", FINALIZER]}), json!({}));
        assert_eq!(hold(&held, true), None);
        let patch = hold(&held, false).expect("a change");
        assert_eq!(patch["metadata"]["finalizers"], json!(["a"]));
    }
}
