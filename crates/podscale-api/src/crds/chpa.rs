//! The definition of the CHPA: the fields, ranges and required fields of the original one, so that
//! every object of before is accepted, with its controller's defaults, a status subresource and columns.

use crate::chpa::{GROUP, KIND, PLURAL, RESOURCE, TARGET_KIND, VERSION, default};
use serde_json::{Value, json};

/// The definition, as it is applied to a cluster.
#[must_use]
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": RESOURCE},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": KIND, "listKind": "CHPAList", "plural": PLURAL, "singular": "chpa"},
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": {
                    "description": "Scales a Deployment by metrics, at a rate of its own.",
                    "type": "object",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec(),
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn columns() -> Value {
    let column = |name: &str, kind: &str, path: &str, priority: i32| json!({"name": name, "type": kind, "jsonPath": path, "priority": priority});
    let reason = |condition: &str| format!(".status.conditions[?(@.type==\"{condition}\")].reason");
    json!([
        column("Deployment", "string", ".spec.scaleTargetRef.name", 0),
        column("MinPods", "integer", ".spec.minReplicas", 0),
        column("MaxPods", "integer", ".spec.maxReplicas", 0),
        column("Replicas", "integer", ".status.currentReplicas", 0),
        column("Desired", "integer", ".status.desiredReplicas", 0),
        column("Able", "string", &reason("AbleToScale"), 0),
        column("Active", "string", &reason("ScalingActive"), 1),
        column("Limited", "string", &reason("ScalingLimited"), 1),
        column("Last Scale", "date", ".status.lastScaleTime", 1),
        column("Age", "date", ".metadata.creationTimestamp", 0),
    ])
}

/// A whole number within a range.
fn integer(description: &str, range: (i32, i32)) -> Value {
    json!({"description": description, "type": "integer", "format": "int32",
        "minimum": range.0, "maximum": range.1})
}

/// A number within a range, with a default.
fn number(description: &str, range: (f64, f64), default: f64) -> Value {
    json!({"description": description, "type": "number", "format": "double",
        "minimum": range.0, "maximum": range.1, "default": default})
}

fn text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

fn spec() -> Value {
    let with_default = |mut schema: Value, default: i32| {
        schema["default"] = default.into();
        schema
    };
    let window = |direction: &str| {
        let description =
            format!("For so long after any change of the size it is not made {direction}.");
        with_default(
            integer(&description, default::FORBIDDEN_WINDOW_RANGE),
            default::FORBIDDEN_WINDOW_SECONDS,
        )
    };
    let minimum = "This size may be set at once, whatever scaleUpLimitFactor says.";
    json!({
        "type": "object",
        "required": ["scaleTargetRef", "maxReplicas"],
        "properties": {
            "downscaleForbiddenWindowSeconds": window("smaller"),
            "upscaleForbiddenWindowSeconds": window("larger"),
            "scaleUpLimitFactor": number("At most so many times the current size is set at once.",
                default::SCALE_UP_LIMIT_FACTOR_RANGE, default::SCALE_UP_LIMIT_FACTOR),
            "scaleUpLimitMinimum":
                with_default(integer(minimum, default::SCALE_UP_LIMIT_MINIMUM_RANGE),
                    default::SCALE_UP_LIMIT_MINIMUM),
            "tolerance": number("How far usage may be off its target, as a part of it, before \
                the size changes.", default::TOLERANCE_RANGE, default::TOLERANCE),
            "minReplicas": integer("Never fewer replicas than this; 1 if it is not set.", (1, 1000)),
            "maxReplicas": integer("Never more replicas than this.", (1, 1000)),
            "scaleTargetRef": {
                "description": "The Deployment whose replicas are set.",
                "type": "object",
                "required": ["kind", "name"],
                "properties": {
                    "apiVersion": text("apps/v1, or nothing."),
                    "kind": text(&format!("{TARGET_KIND}; no other kind can be scaled.")),
                    "name": text("Its name, in the namespace of this object."),
                },
            },
            "metrics": {
                "description": "What is measured, in the form of autoscaling/v2beta1. The metric that \
                    asks for the most replicas decides.",
                "type": "array",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        },
    })
}

fn status() -> Value {
    let count = |description: &str| json!({"description": description, "type": "integer", "format": "int32"});
    json!({
        "type": "object",
        "required": ["currentReplicas", "desiredReplicas", "currentMetrics", "conditions"],
        "properties": {
            "observedGeneration": {"description": "The generation of the spec that this is about.",
                "type": "integer", "format": "int64"},
            "lastScaleTime": {"description": "When the size was last changed; the forbidden windows \
                begin then.", "type": "string", "format": "date-time"},
            "currentReplicas": count("The size that was found."),
            "desiredReplicas": count("The size that was asked for."),
            "currentMetrics": {
                "description": "What each metric showed, in the form of autoscaling/v2beta1.",
                "type": "array", "nullable": true,
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
            "conditions": {
                "description": "Whether it can scale, does scale and is limited.",
                "type": "array", "nullable": true,
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {
                        "type": text("AbleToScale, ScalingActive or ScalingLimited, for instance."),
                        "status": text("True, False or Unknown."),
                        "lastTransitionTime": {"description": "When status last changed.",
                            "type": "string", "format": "date-time", "nullable": true},
                        "reason": text("Why, in one word."),
                        "message": text("Why, in a sentence."),
                    },
                },
            },
        },
    })
}
