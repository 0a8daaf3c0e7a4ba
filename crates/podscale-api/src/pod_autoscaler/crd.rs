//! The CustomResourceDefinition of PodAutoscaler.

use serde_json::{Value, json};

use super::fields::{SPEC, STATUS};
use super::{GROUP, KIND, PLURAL, RESOURCE, VERSION, schema};

/// What a text must be that does not match a pattern of the definition; nothing for patterns of others.
#[must_use]
pub fn pattern_in_words(pattern: &str) -> Option<&'static str> {
    schema::pattern_in_words(pattern)
}

/// The definition, as it is applied to a cluster.
#[must_use]
pub fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "description": "Scales a workload by metrics. The spec of a HorizontalPodAutoscaler is valid in it as it stands.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": SPEC.schema(),
            "status": STATUS.schema(),
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": RESOURCE, "labels": {"app.kubernetes.io/name": "podscale"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND, "listKind": format!("{KIND}List"), "plural": PLURAL,
                "singular": KIND.to_lowercase(), "shortNames": ["pa"], "categories": ["all"],
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
            }],
        },
    })
}

/// A column of `kubectl get`: its name, type and path; those of priority 1 only with `-o wide`.
fn column(name: &str, kind: &str, path: &str, wide: bool, about: &str) -> Value {
    let mut column = json!({"name": name, "type": kind, "jsonPath": path, "description": about});
    if wide {
        column["priority"] = json!(1);
    }
    column
}

fn columns() -> Vec<Value> {
    let active = ".status.conditions[?(@.type==\"ScalingActive\")]";
    vec![
        column("Reference", "string", ".status.reference", false, "The target."),
        column("Targets", "string", ".status.targets", false, "Each metric's value and target."),
        column("Min", "integer", ".status.minReplicas", false, "The fewest replicas now."),
        column("Max", "integer", ".status.maxReplicas", false, "The most replicas now."),
        column("Replicas", "integer", ".status.currentReplicas", false, "The replicas there are."),
        column("Mode", "string", ".status.mode", false, "What it does now."),
        column("Reason", "string", ".status.reason", false, "Why, or why not."),
        column("Age", "date", ".metadata.creationTimestamp", false, "Since when it exists."),
        column("Desired", "integer", ".status.desiredReplicas", true, "The replicas asked for."),
        column("Active", "string", &format!("{active}.status"), true, "Whether metrics decide."),
        column("Schedule", "string", ".status.activeSchedule", true, "The schedule in force."),
        column("Last-Scale", "date", ".status.lastScaleTime", true, "The last change of size."),
        column("From", "integer", ".status.decisions[0].from", true, "The size before it."),
        column("To", "integer", ".status.decisions[0].to", true, "The size after it."),
        column("Why", "string", ".status.decisions[0].reason", true, "Why it was changed."),
    ]
}
