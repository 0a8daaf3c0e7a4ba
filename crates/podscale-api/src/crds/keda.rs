//! The definitions of KEDA's kinds: the fields, ranges and columns of KEDA 2.21, so that every object of
//! before is accepted. Where KEDA's own are installed they stay.

mod authentication;
mod scaled_job;
mod scaled_object;

use crate::keda::scaled_object::behavior;
use crate::keda::{GROUP, VERSION};
use serde_json::{Value, json};

/// All four, as they are applied to a cluster.
#[must_use]
pub fn definitions() -> Vec<Value> {
    vec![
        scaled_object::definition(),
        scaled_job::definition(),
        authentication::definition(),
        authentication::definition_of_cluster(),
    ]
}

/// What names a kind.
struct Names {
    kind: &'static str,
    plural: &'static str,
    resource: &'static str,
    short: &'static [&'static str],
    scope: &'static str,
}

fn definition(
    names: &Names,
    description: &str,
    spec: Value,
    status: Value,
    columns: Value,
) -> Value {
    let Names { kind, plural, resource, short, scope } = *names;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource, "labels": {"app.kubernetes.io/name": "podscale"}},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(), "shortNames": short,
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {
                    "description": description,
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec,
                        "status": status,
                    },
                }},
            }],
        },
    })
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

/// The column of a condition's status.
fn condition_column(condition: &str) -> Value {
    let path = format!(".status.conditions[?(@.type==\"{condition}\")].status");
    column(condition, "string", &path)
}

fn text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

fn one_of(description: &str, words: &[&str]) -> Value {
    json!({"description": description, "type": "string", "enum": words})
}

/// A whole number that is not below a least one.
fn integer(description: &str, least: i32) -> Value {
    json!({"description": description, "type": "integer", "format": "int32", "minimum": least})
}

fn list(description: &str, items: Value) -> Value {
    json!({"description": description, "type": "array", "items": items})
}

fn map(description: &str, values: Value) -> Value {
    json!({"description": description, "type": "object", "additionalProperties": values})
}

/// An object of another API, which checks it itself.
fn foreign(description: &str) -> Value {
    json!({"description": description, "type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// An object with required fields; the others may be absent.
fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut object =
        json!({"description": description, "type": "object", "properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn triggers() -> Value {
    let mut triggers = list(
        "What the load is read from.",
        object(
            "One event source.",
            &["type", "metadata"],
            json!({
                "type": {"description": "Which kind of event source, such as prometheus.",
                    "type": "string", "minLength": 1},
                "name": text("How formulas call it."),
                "useCachedMetrics": {"description": "Whether what the last poll found also answers \
                    questions between polls.", "type": "boolean"},
                "metadata": map("The settings of the event source.", json!({"type": "string"})),
                "authenticationRef": object("Where its credentials come from.", &["name"], json!({
                    "name": text("The name of that object."),
                    "kind": one_of("Its kind; TriggerAuthentication by default.",
                        &["TriggerAuthentication", "ClusterTriggerAuthentication"]),
                })),
                "metricType": text("AverageValue, Value, or, for cpu and memory, Utilization."),
            }),
        ),
    );
    triggers["minItems"] = json!(1);
    triggers
}

fn conditions() -> Value {
    list(
        "What can be said of it.",
        object(
            "One aspect of its state.",
            &["type", "status"],
            json!({
                "type": text("Ready or Active, for instance."),
                "status": text("True, False or Unknown."),
                "reason": text("Why, in one word."),
                "message": text("Why, in a sentence."),
            }),
        ),
    )
}

fn activity() -> Value {
    let properties = json!({"isActive": {"description": "Whether it is.", "type": "boolean"}});
    map("Which metrics are active.", object("Whether one is active.", &[], properties))
}

fn last_active() -> Value {
    json!({"description": "When a trigger was last active.", "type": "string", "format": "date-time"})
}

fn fallback() -> Value {
    let mut word = one_of("What else counts; static by default.", &behavior::ALL);
    word["default"] = json!(behavior::STATIC);
    object(
        "The size while triggers fail.",
        &["failureThreshold", "replicas"],
        json!({
            "failureThreshold": integer("How many failures in a row are borne.", 0),
            "replicas": integer("The size after that.", 0),
            "behavior": word,
        }),
    )
}
