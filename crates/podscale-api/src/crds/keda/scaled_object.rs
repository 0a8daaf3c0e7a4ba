//! The definition of ScaledObject.

use super::{
    Names, activity, column, condition_column, conditions, fallback, foreign, integer, last_active,
    list, map, object, one_of, text, triggers,
};
use crate::keda::scaled_object::{KIND, PLURAL, RESOURCE};
use serde_json::{Value, json};

pub(super) fn definition() -> Value {
    let names = Names {
        kind: KIND,
        plural: PLURAL,
        resource: RESOURCE,
        short: &["so"],
        scope: "Namespaced",
    };
    let description = "Scales a workload by event sources, to zero and back.";
    super::definition(&names, description, spec(), status(), columns())
}

fn columns() -> Value {
    json!([
        column("ScaleTargetKind", "string", ".status.scaleTargetKind"),
        column("ScaleTargetName", "string", ".spec.scaleTargetRef.name"),
        column("Min", "integer", ".spec.minReplicaCount"),
        column("Max", "integer", ".spec.maxReplicaCount"),
        condition_column("Ready"),
        condition_column("Active"),
        condition_column("Fallback"),
        condition_column("Paused"),
        column("Triggers", "string", ".status.triggersTypes"),
        column("Authentications", "string", ".status.authenticationsTypes"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ])
}

fn spec() -> Value {
    let mut spec = object(
        "What is scaled, between which bounds, by which triggers and how fast.",
        &["scaleTargetRef", "triggers"],
        json!({
            "scaleTargetRef": object("The workload: anything with a scale subresource.", &["name"], json!({
                "name": {"description": "Its name.", "type": "string", "minLength": 1},
                "apiVersion": text("Its group and version; apps/v1 by default."),
                "kind": text("Its kind; Deployment by default."),
                "envSourceContainerName":
                    text("The container whose environment settings refer to; the first by default."),
            })),
            "pollingInterval": integer("How often triggers are polled, in seconds; 30 by default.", 1),
            "initialCooldownPeriod": integer("How many seconds after its creation an object that was \
                never active is left alone; 0 by default.", 0),
            "cooldownPeriod": integer("How many seconds nothing must be active before the idle size is \
                set; 300 by default.", 0),
            "idleReplicaCount": integer("The size of an idle workload, below the minimum.", 0),
            "minReplicaCount": integer("Never fewer than this; 0 by default.", 0),
            "maxReplicaCount": integer("Never more than this; 100 by default.", 1),
            "advanced": advanced(),
            "triggers": triggers(),
            "fallback": fallback(),
        }),
    );
    spec["x-kubernetes-validations"] = json!([{
        "rule": "!has(self.minReplicaCount) || self.minReplicaCount <= \
            (has(self.maxReplicaCount) ? self.maxReplicaCount : 100)",
        "message": "minReplicaCount must be less than or equal to maxReplicaCount",
    }]);
    spec
}

fn advanced() -> Value {
    object(
        "What few need.",
        &[],
        json!({
            "horizontalPodAutoscalerConfig": object("The HPA between one and the maximum.", &[], json!({
                "name": text("Its name; keda-hpa- and the name of this object by default."),
                "behavior": foreign("How fast, and how steadily, as in autoscaling/v2."),
            })),
            "restoreToOriginalReplicaCount": {"description": "Whether deletion gives the workload the size \
                that it had before.", "type": "boolean"},
            "scalingModifiers": object("One metric made of all triggers.", &[], json!({
                "formula": text("Its value, as an expression over triggers by name."),
                "target": text("What the value is compared with; a number."),
                "activationTarget": text("Above which value it is active; 0 by default."),
                "metricType": one_of("AverageValue by default.", &["AverageValue", "Value"]),
            })),
        }),
    )
}

fn status() -> Value {
    let count = |description: &str| json!({"description": description, "type": "integer", "format": "int32"});
    let target = json!({
        "group": text("Its group."),
        "version": text("Its version."),
        "kind": text("Its kind."),
        "resource": text("Its name in paths."),
    });
    object(
        "What the controller last found and did.",
        &[],
        json!({
            "scaleTargetKind": text("The workload's group, version and kind."),
            "scaleTargetGVKR": object("The same with its name in paths.",
                &["group", "version", "kind", "resource"], target),
            "originalReplicaCount": count("The size that the workload had before."),
            "lastActiveTime": last_active(),
            "externalMetricNames": list("The metrics of triggers.", json!({"type": "string"})),
            "resourceMetricNames": list("The resources of pods that are measured.", json!({"type": "string"})),
            "compositeScalerName": text("The metric that a formula makes."),
            "conditions": conditions(),
            "health": map("How each metric fares, where there is a fallback.",
                object("How one fares.", &[], json!({
                    "numberOfFailures": count("How often it failed in a row."),
                    "status": text("Happy or Failing."),
                }))),
            "triggersActivity": activity(),
            "pausedReplicaCount": count("The size that a pause asked for."),
            "hpaName": text("The HPA's name."),
            "triggersTypes": text("The distinct types of triggers."),
            "authenticationsTypes": text("What triggers refer to for credentials."),
        }),
    )
}
