//! Deployments, ReplicaSets, StatefulSets and ReplicationControllers.

use podscale_api::field_error::metadata::check_immutable;
use podscale_api::field_error::{BadValue, FieldError, FieldPath, names};
use serde_json::{Value, json};

use super::pod_defaults::default_template;
use super::pod_spec::{check_name, check_template, not_negative, shown};
use super::selectors::{check_restart_policy, check_selector_and_template, selector_is_fixed};
use crate::store::Fields;
use crate::value::{default, default_text, entry, fields, integer, section, text};

fn spec_of(object: &Value) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// Fills in a Deployment.
pub(crate) fn default_deployment(object: &mut Value) {
    let spec = section(object, "spec");
    default_template(spec);
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    let strategy = spec.entry("strategy").or_insert(Value::Null);
    default_text(fields(strategy), "type", "RollingUpdate");
    if text(strategy, "/type") == "RollingUpdate" {
        let rolling = section(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", "25%");
        default(rolling, "maxSurge", "25%");
    }
}

/// Fills in a ReplicaSet.
pub(crate) fn default_replica_set(object: &mut Value) {
    let spec = section(object, "spec");
    default_template(spec);
    default(spec, "replicas", 1);
}

/// Fills in a ReplicationController; selector and labels come from the template.
pub(crate) fn default_replication_controller(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    let spec = section(object, "spec");
    default_template(spec);
    default(spec, "replicas", 1);
    if let Some(labels) = labels {
        let empty = |value: Option<&Value>| {
            value.and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
        };
        if empty(spec.get("selector")) {
            spec.insert("selector".to_owned(), labels.clone());
        }
        let metadata = section(object, "metadata");
        if empty(metadata.get("labels")) {
            metadata.insert("labels".to_owned(), labels);
        }
    }
}

/// Fills in a StatefulSet.
pub(crate) fn default_stateful_set(object: &mut Value) {
    let spec = section(object, "spec");
    default_template(spec);
    default_text(spec, "podManagementPolicy", "OrderedReady");
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    let strategy = spec.entry("updateStrategy").or_insert(Value::Null);
    if text(strategy, "/type").is_empty() {
        fields(strategy).insert("type".to_owned(), Value::from("RollingUpdate"));
        entry(strategy, "rollingUpdate");
        section(strategy, "rollingUpdate");
    }
    if text(strategy, "/type") == "RollingUpdate"
        && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
    {
        default(rolling, "partition", 0);
        default(rolling, "maxUnavailable", 1);
    }
    let retention = spec.entry("persistentVolumeClaimRetentionPolicy").or_insert(Value::Null);
    default_text(fields(retention), "whenDeleted", "Retain");
    default_text(fields(retention), "whenScaled", "Retain");
}

/// A strategy for messages, with the names that its fields have inside the real server.
pub(super) fn shown_strategy(strategy: &Value) -> BadValue {
    let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
    let kind = Value::from(text(strategy, "/type"));
    BadValue::verbatim(format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}"))
}

/// Checks a Deployment.
pub(crate) fn check_deployment(object: &Value) -> Vec<FieldError> {
    let (spec, path) = (spec_of(object), FieldPath::new("spec"));
    let mut errors: Vec<FieldError> = not_negative(spec, "replicas", &path).into_iter().collect();
    errors.extend(check_selector_and_template(
        spec,
        "deployment",
        "ReplicaSet",
        "invalid label selector",
    ));
    errors.extend(check_strategy(spec.get("strategy").unwrap_or(&Value::Null)));
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    errors.extend(not_negative(spec, "revisionHistoryLimit", &path));
    errors.extend(not_negative(spec, "progressDeadlineSeconds", &path));
    let ready = integer(spec, "/minReadySeconds").unwrap_or_default();
    if let Some(deadline) = integer(spec, "/progressDeadlineSeconds")
        && deadline <= ready
    {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(&path.child("progressDeadlineSeconds"), deadline, detail));
    }
    errors
}

fn check_strategy(strategy: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec").child("strategy");
    let rolling = strategy.get("rollingUpdate").filter(|rolling| rolling.is_object());
    match text(strategy, "/type") {
        "Recreate" => rolling
            .map(|_| {
                FieldError::forbidden(
                    &path.child("rollingUpdate"),
                    "may not be specified when strategy `type` is 'Recreate'",
                )
            })
            .into_iter()
            .collect(),
        "RollingUpdate" => rolling
            .map_or_else(Vec::new, |rolling| check_rolling(rolling, &path.child("rollingUpdate"))),
        _ => {
            let supported = ["Recreate", "RollingUpdate"];
            vec![FieldError::not_supported(&path, shown_strategy(strategy), &supported)]
        }
    }
}

fn check_rolling(rolling: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let value = |name: &str| rolling.get(name).unwrap_or(&Value::Null);
    errors.extend(int_or_percent(value("maxUnavailable"), &path.child("maxUnavailable")));
    errors.extend(int_or_percent(value("maxSurge"), &path.child("maxSurge")));
    if amount(value("maxUnavailable")) == 0 && amount(value("maxSurge")) == 0 {
        let given = shown(rolling.get("maxUnavailable"));
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(&path.child("maxUnavailable"), given, detail));
    }
    let percent = value("maxUnavailable").as_str().and_then(parse_percent);
    if percent.is_some_and(|percent| percent > 100) {
        let given = shown(rolling.get("maxUnavailable"));
        let detail = "must not be greater than 100%";
        errors.push(FieldError::invalid(&path.child("maxUnavailable"), given, detail));
    }
    errors
}

pub(super) fn parse_percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    digits.chars().all(|c| c.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

pub(super) fn amount(value: &Value) -> i64 {
    value.as_i64().or_else(|| parse_percent(value.as_str()?)).unwrap_or_default()
}

pub(super) fn int_or_percent(value: &Value, path: &FieldPath) -> Option<FieldError> {
    match value {
        Value::String(text) if parse_percent(text).is_none() => Some(FieldError::invalid(
            path,
            text.as_str(),
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')",
        )),
        Value::Number(number) => number
            .as_i64()
            .filter(|value| *value < 0)
            .map(|value| FieldError::invalid(path, value, "must be greater than or equal to 0")),
        _ => None,
    }
}

/// Checks a Deployment that replaces another.
pub(crate) fn check_deployment_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_deployment(new);
    errors.extend(selector_is_fixed(new, old));
    errors
}

/// Checks a ReplicaSet.
pub(crate) fn check_replica_set(object: &Value) -> Vec<FieldError> {
    let (spec, path) = (spec_of(object), FieldPath::new("spec"));
    let mut errors: Vec<FieldError> = not_negative(spec, "replicas", &path).into_iter().collect();
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    // The real server says "deployment" here as well.
    errors.extend(check_selector_and_template(
        spec,
        "deployment",
        "ReplicaSet",
        "invalid label selector",
    ));
    errors
}

/// Checks a ReplicaSet that replaces another.
pub(crate) fn check_replica_set_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_replica_set(new);
    errors.extend(selector_is_fixed(new, old));
    errors
}

/// Checks a ReplicationController.
pub(crate) fn check_replication_controller(object: &Value) -> Vec<FieldError> {
    let (spec, path) = (spec_of(object), FieldPath::new("spec"));
    let mut errors: Vec<FieldError> =
        not_negative(spec, "minReadySeconds", &path).into_iter().collect();
    let selector = spec.get("selector").and_then(Value::as_object);
    if selector.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    errors.extend(not_negative(spec, "replicas", &path));
    let path = path.child("template");
    let Some(template) = spec.get("template").filter(|template| template.is_object()) else {
        errors.push(FieldError::required(&path, ""));
        return errors;
    };
    let labels = template.pointer("/metadata/labels");
    let differs =
        |(key, value): (&String, &Value)| labels.and_then(|labels| labels.get(key)) != Some(value);
    if selector.into_iter().flatten().any(differs) {
        errors.push(FieldError::invalid(
            &path.child("metadata").child("labels"),
            shown(labels),
            "`selector` does not match template `labels`",
        ));
    }
    errors.extend(check_template(template, &path));
    errors.extend(check_restart_policy(template, &path, "ReplicationController"));
    errors
}

/// Checks a ReplicationController that replaces another.
pub(crate) fn check_replication_controller_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    check_replication_controller(new)
}

/// Checks a StatefulSet.
pub(crate) fn check_stateful_set(object: &Value) -> Vec<FieldError> {
    let (spec, path) = (spec_of(object), FieldPath::new("spec"));
    let mut errors = Vec::new();
    let policy = text(spec, "/podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.child("podManagementPolicy"), policy, detail));
    }
    let below = path.child("updateStrategy");
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    let rolling = strategy.get("rollingUpdate").filter(|rolling| rolling.is_object());
    match text(strategy, "/type") {
        "RollingUpdate" => {
            if let Some(rolling) = rolling {
                errors.extend(not_negative(rolling, "partition", &below.child("rollingUpdate")));
            }
        }
        "OnDelete" if rolling.is_none() => {}
        "OnDelete" => errors.push(FieldError::invalid(
            &below.child("rollingUpdate"),
            shown(rolling),
            "only allowed for updateStrategy 'RollingUpdate'",
        )),
        _ => errors.push(FieldError::invalid(
            &below,
            shown_strategy(strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
    errors.extend(not_negative(spec, "replicas", &path));
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    let service = text(spec, "/serviceName");
    if !service.is_empty() {
        errors.extend(check_name(service, &path.child("serviceName"), names::dns_label));
    }
    errors.extend(check_selector_and_template(spec, "statefulset", "StatefulSet", ""));
    errors
}

/// Checks a StatefulSet that replaces another.
pub(crate) fn check_stateful_set_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_stateful_set(new);
    for name in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
        let path = FieldPath::new("spec").child(name);
        errors.extend(check_immutable(spec_of(new).get(name), spec_of(old).get(name), &path));
    }
    errors
}

fn check_counts(status: &Value, names: &[&str], bounded: &[&str]) -> Vec<FieldError> {
    let path = FieldPath::new("status");
    let mut errors: Vec<FieldError> =
        names.iter().filter_map(|name| not_negative(status, name, &path)).collect();
    let count = |name: &str| status.get(name).and_then(Value::as_i64).unwrap_or_default();
    for name in bounded.iter().filter(|name| count(name) > count("replicas")) {
        let detail = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(&path.child(name), count(name), detail));
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = "cannot be greater than readyReplicas";
        let value = BadValue::from(count("availableReplicas"));
        errors.push(FieldError::invalid(&path.child("availableReplicas"), value, detail));
    }
    errors
}

/// Checks the counts in a Deployment's status.
pub(crate) fn check_deployment_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    check_counts(
        new.get("status").unwrap_or(&Value::Null),
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        &["updatedReplicas", "readyReplicas", "availableReplicas"],
    )
}

/// Checks the counts in a ReplicaSet's or ReplicationController's status.
pub(crate) fn check_replica_set_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    check_counts(
        new.get("status").unwrap_or(&Value::Null),
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    )
}

/// The status endpoint of a Deployment does not change labels.
pub(crate) fn keep_labels(new: &mut Value, old: &Value) {
    let labels = old.pointer("/metadata/labels").cloned();
    let metadata = section(new, "metadata");
    match labels {
        Some(labels) => {
            metadata.insert("labels".to_owned(), labels);
        }
        None => {
            metadata.remove("labels");
        }
    }
}

/// The values that a ReplicaSet can be selected by.
pub(crate) fn replica_fields(object: &Value) -> Fields {
    let replicas = integer(object, "/status/replicas").unwrap_or_default();
    vec![("status.replicas", json!(replicas).to_string().into())]
}
