//! The definition of ScaledJob.

use super::{
    Names, activity, column, condition_column, conditions, foreign, integer, last_active, list,
    object, one_of, text, triggers,
};
use crate::keda::scaled_job::{KIND, PLURAL, RESOURCE};
use serde_json::{Value, json};

pub(super) fn definition() -> Value {
    let names = Names {
        kind: KIND,
        plural: PLURAL,
        resource: RESOURCE,
        short: &["sj"],
        scope: "Namespaced",
    };
    super::definition(&names, "Creates Jobs by event sources.", spec(), status(), columns())
}

fn columns() -> Value {
    json!([
        column("Min", "integer", ".spec.minReplicaCount"),
        column("Max", "integer", ".spec.maxReplicaCount"),
        condition_column("Ready"),
        condition_column("Active"),
        condition_column("Paused"),
        column("Triggers", "string", ".status.triggersTypes"),
        column("Authentications", "string", ".status.authenticationsTypes"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ])
}

fn spec() -> Value {
    let rollout = |description: &str| one_of(description, &["gradual", "immediate"]);
    object(
        "Which Jobs are created, how many and by which triggers.",
        &["jobTargetRef", "triggers"],
        json!({
            "jobTargetRef": foreign("The spec of each Job, as in batch/v1."),
            "pollingInterval": integer("How often triggers are polled, in seconds; 30 by default.", 1),
            "successfulJobsHistoryLimit":
                integer("How many Jobs that succeeded are kept; 100 by default.", 0),
            "failedJobsHistoryLimit": integer("How many Jobs that failed are kept; 100 by default.", 0),
            "rolloutStrategy": rollout("The older form of rollout.strategy, which goes before it."),
            "rollout": object("What becomes of Jobs of an older generation.", &[], json!({
                "strategy": rollout("gradual leaves them, immediate deletes them, which is the default."),
                "propagationPolicy":
                    one_of("How they are deleted; background by default.", &["foreground", "background"]),
            })),
            "envSourceContainerName":
                text("The container whose environment settings refer to; the first by default."),
            "minReplicaCount": integer("How many unfinished Jobs there always are; 0 by default.", 0),
            "maxReplicaCount": integer("The most unfinished Jobs; 100 by default.", 1),
            "scalingStrategy": object("How many Jobs a load asks for.", &[], json!({
                "strategy": one_of("The rule.", &["default", "custom", "accurate", "eager"]),
                "customScalingQueueLengthDeduction": {
                    "description": "What custom takes off the length of the queue.",
                    "type": "integer", "format": "int32"},
                "customScalingRunningJobPercentage":
                    text("The share of running Jobs that custom takes off; a number."),
                "pendingPodConditions": list("A Job is pending until a pod of it has all of these \
                    conditions.", json!({"type": "string"})),
                "multipleScalersCalculation": one_of("What is made of several triggers; max by default.",
                    &["min", "avg", "sum", "max"]),
            })),
            "triggers": triggers(),
        }),
    )
}

fn status() -> Value {
    object(
        "What the controller last found and did.",
        &[],
        json!({
            "lastActiveTime": last_active(),
            "conditions": conditions(),
            "Paused": text("Of older versions; nothing sets it any more."),
            "triggersTypes": text("The distinct types of triggers."),
            "authenticationsTypes": text("What triggers refer to for credentials."),
            "externalMetricNames": list("The metrics of triggers.", json!({"type": "string"})),
            "triggersActivity": activity(),
        }),
    )
}
