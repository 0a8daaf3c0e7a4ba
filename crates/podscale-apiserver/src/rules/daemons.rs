//! DaemonSets. They are stored and checked like everything else, but no controller runs them.

use podscale_api::LabelSelector;
use podscale_api::field_error::{FieldError, FieldPath};
use serde::Deserialize;
use serde_json::{Value, json};

use super::pod_defaults::default_template;
use super::pod_spec::{check_template, not_negative, shown};
use super::selectors::{check_restart_policy, check_selector, selector_is_fixed, shown_selector};
use super::workloads::{amount, int_or_percent, parse_percent, shown_strategy};
use crate::value::{default, default_text, fields, metadata, section, text};

/// Counts how often the template was changed, a field in the API's first versions.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Fills in a DaemonSet.
pub(crate) fn default_daemon_set(object: &mut Value) {
    let generation = template_generation(object);
    set_template_generation(object, generation);
    let spec = section(object, "spec");
    default_template(spec);
    default(spec, "revisionHistoryLimit", 10);
    let strategy = spec.entry("updateStrategy").or_insert(Value::Null);
    default_text(fields(strategy), "type", "RollingUpdate");
    if text(strategy, "/type") == "RollingUpdate" {
        let rolling = section(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", 1);
        default(rolling, "maxSurge", 0);
    }
}

fn template_generation(object: &Value) -> i64 {
    let annotations = object.pointer("/metadata/annotations");
    annotations
        .and_then(|annotations| annotations.get(TEMPLATE_GENERATION)?.as_str()?.parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let annotations = metadata(object).entry("annotations").or_insert(Value::Null);
    fields(annotations).insert(TEMPLATE_GENERATION.to_owned(), json!(generation.to_string()));
}

/// Starts counting the changes of the template.
pub(crate) fn prepare_create(object: &mut Value) {
    let generation = template_generation(object).max(1);
    set_template_generation(object, generation);
}

/// Counts a change of the template; clients cannot.
pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
    let before = template_generation(old);
    set_template_generation(new, before.saturating_add(changed.into()));
}

/// Checks a DaemonSet.
pub(crate) fn check_daemon_set(object: &Value) -> Vec<FieldError> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let path = FieldPath::new("spec");
    let template = spec.get("template").unwrap_or(&Value::Null);
    let below = path.child("template");
    let mut errors = check_selected(spec, template, &path);
    errors.extend(check_template(template, &below));
    errors.extend(check_restart_policy(template, &below, "DaemonSet"));
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    errors.extend(check_strategy(spec, &path.child("updateStrategy")));
    errors.extend(not_negative(spec, "revisionHistoryLimit", &path));
    errors
}

fn check_selected(spec: &Value, template: &Value, path: &FieldPath) -> Vec<FieldError> {
    let given = spec.get("selector").filter(|selector| !selector.is_null());
    let field = path.child("selector");
    let mut errors = given.map_or_else(Vec::new, |given| check_selector(given, &field));
    let selector = given.map_or_else(
        || Some(None),
        |given| LabelSelector::deserialize(given).ok()?.to_selector().ok().map(Some),
    );
    let labels = template.pointer("/metadata/labels");
    let label = |key: &str| labels?.get(key)?.as_str();
    // No selector selects nothing, an empty one everything.
    let matches = |selector: &Option<podscale_api::Selector>| {
        selector.as_ref().is_some_and(|it| it.is_empty() || it.matches(label))
    };
    if selector.as_ref().is_some_and(|selector| !matches(selector)) {
        let field = path.child("template").child("metadata").child("labels");
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&field, shown(labels), detail));
    }
    if selector.flatten().is_some_and(|selector| selector.is_empty()) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(&field, shown_selector(given), detail));
    }
    errors
}

fn check_strategy(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    match text(strategy, "/type") {
        "OnDelete" => Vec::new(),
        "RollingUpdate" => {
            let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
            check_rolling(rolling, &path.child("rollingUpdate"))
        }
        _ => {
            let supported = ["RollingUpdate", "OnDelete"];
            vec![FieldError::not_supported(path, shown_strategy(strategy), &supported)]
        }
    }
}

fn check_rolling(rolling: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let names = ["maxUnavailable", "maxSurge"];
    let value = |name: &str| rolling.get(name).unwrap_or(&Value::Null);
    errors.extend(names.iter().filter_map(|name| int_or_percent(value(name), &path.child(name))));
    for name in names {
        if value(name).as_str().and_then(parse_percent).is_some_and(|percent| percent > 100) {
            let detail = "must not be greater than 100%";
            let given = shown(rolling.get(name));
            errors.push(FieldError::invalid(&path.child(name), given, detail));
        }
    }
    match (amount(value("maxUnavailable")), amount(value("maxSurge"))) {
        (0, 0) => {
            let detail = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(&path.child("maxUnavailable"), detail));
        }
        (0, _) | (_, 0) => {}
        _ => errors.push(FieldError::invalid(
            &path.child("maxSurge"),
            shown(rolling.get("maxSurge")),
            "may not be set when maxUnavailable is non-zero",
        )),
    }
    errors
}

/// Checks a DaemonSet that replaces another.
pub(crate) fn check_daemon_set_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = selector_is_fixed(new, old).into_iter().collect();
    errors.extend(check_daemon_set(new));
    errors
}

/// Checks the counts in a DaemonSet's status.
pub(crate) fn check_daemon_set_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    let status = new.get("status").unwrap_or(&Value::Null);
    [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ]
    .iter()
    .filter_map(|name| not_negative(status, name, &FieldPath::new("status")))
    .collect()
}
