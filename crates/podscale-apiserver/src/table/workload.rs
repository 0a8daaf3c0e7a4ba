//! Rows of the workload kinds.

use jiff::Timestamp;
use podscale_api::selector::LabelSelector;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Column, Row, age_cell, integer, list, name_cell, text};

pub(super) const CONTAINERS: Column =
    Column::wide("Containers", "Names of the template's containers.");
pub(super) const IMAGES: Column = Column::wide("Images", "Images of the template's containers.");
pub(super) const SELECTOR: Column = Column::wide("Selector", "Which pods belong to it.");

pub(super) fn replica_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::integer("Desired", "How many pods are wanted."),
        Column::integer("Current", "How many pods there are."),
        Column::integer("Ready", "How many pods are ready."),
        Column::age(),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn replica_row(object: &Value, selector: String, now: Timestamp) -> Row {
    let (names, images) = containers(object);
    Row::from(vec![
        name_cell(object),
        integer(object, "/spec/replicas").into(),
        integer(object, "/status/replicas").into(),
        integer(object, "/status/readyReplicas").into(),
        age_cell(object, now),
        names,
        images,
        selector.into(),
    ])
}

pub(super) fn replica_set_row(object: &Value, now: Timestamp) -> Row {
    replica_row(object, selected_text(object), now)
}

pub(super) fn replication_controller_row(object: &Value, now: Timestamp) -> Row {
    replica_row(object, labels_text(object.pointer("/spec/selector")), now)
}

pub(super) fn deployment_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Ready", "Ready pods of those wanted."),
        Column::text("Up-to-date", "How many pods have the current template."),
        Column::text("Available", "How many pods have been ready for long enough."),
        Column::age(),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

pub(super) fn deployment_row(object: &Value, now: Timestamp) -> Row {
    let (names, images) = containers(object);
    Row::from(vec![
        name_cell(object),
        ready_of_wanted(object),
        integer(object, "/status/updatedReplicas").into(),
        integer(object, "/status/availableReplicas").into(),
        age_cell(object, now),
        names,
        images,
        selector_text(object).unwrap_or_else(|| "<invalid>".to_owned()).into(),
    ])
}

pub(super) fn stateful_set_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Ready", "Ready pods of those wanted."),
        Column::age(),
        CONTAINERS,
        IMAGES,
    ]
}

pub(super) fn stateful_set_row(object: &Value, now: Timestamp) -> Row {
    let (names, images) = containers(object);
    Row::from(vec![
        name_cell(object),
        ready_of_wanted(object),
        age_cell(object, now),
        names,
        images,
    ])
}

pub(super) fn daemon_set_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::integer("Desired", "How many nodes should run a pod."),
        Column::integer("Current", "How many of those nodes run one."),
        Column::integer("Ready", "How many of those pods are ready."),
        Column::integer("Up-to-date", "How many pods have the current template."),
        Column::integer("Available", "How many pods have been ready for long enough."),
        Column::text("Node Selector", "Which nodes are meant."),
        Column::age(),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

pub(super) fn daemon_set_row(object: &Value, now: Timestamp) -> Row {
    let (names, images) = containers(object);
    Row::from(vec![
        name_cell(object),
        integer(object, "/status/desiredNumberScheduled").into(),
        integer(object, "/status/currentNumberScheduled").into(),
        integer(object, "/status/numberReady").into(),
        integer(object, "/status/updatedNumberScheduled").into(),
        integer(object, "/status/numberAvailable").into(),
        labels_text(object.pointer("/spec/template/spec/nodeSelector")).into(),
        age_cell(object, now),
        names,
        images,
        selected_text(object).into(),
    ])
}

pub(super) fn scale_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::integer("Desired", "How many pods are wanted."),
        Column::integer("Available", "How many pods there are."),
        Column::age(),
    ]
}

pub(super) fn scale_row(object: &Value, now: Timestamp) -> Row {
    Row::from(vec![
        name_cell(object),
        integer(object, "/spec/replicas").into(),
        integer(object, "/status/replicas").into(),
        age_cell(object, now),
    ])
}

fn ready_of_wanted(object: &Value) -> Value {
    let (ready, wanted) =
        (integer(object, "/status/readyReplicas"), integer(object, "/spec/replicas"));
    json!(format!("{ready}/{wanted}"))
}

/// Names and images of the pod template's containers.
fn containers(object: &Value) -> (Value, Value) {
    containers_of(list(object, "/spec/template/spec/containers"))
}

/// Names and images of containers.
pub(super) fn containers_of(containers: &[Value]) -> (Value, Value) {
    let joined = |pointer| {
        containers.iter().map(|container| text(container, pointer)).collect::<Vec<_>>().join(",")
    };
    (joined("/name").into(), joined("/image").into())
}

/// The text of a label selector object in words for people.
fn selected_text(object: &Value) -> String {
    selector_words(object.pointer("/spec/selector"))
}

/// The text of a label selector in words for people.
pub(super) fn selector_words(selector: Option<&Value>) -> String {
    match label_selector_text(selector) {
        Some(selector) if selector.is_empty() => "<none>".to_owned(),
        Some(selector) => selector,
        None => "<error>".to_owned(),
    }
}

/// The text of a label selector object; none if it is not a valid one.
fn selector_text(object: &Value) -> Option<String> {
    label_selector_text(object.pointer("/spec/selector"))
}

fn label_selector_text(selector: Option<&Value>) -> Option<String> {
    match selector {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => {
            let selector = LabelSelector::deserialize(value).ok()?;
            Some(selector.to_selector().ok()?.to_string())
        }
    }
}

/// `a=1,b=2` of a map of labels, sorted; `<none>` if it is empty.
pub(super) fn labels_text(labels: Option<&Value>) -> String {
    let mut pairs: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        return "<none>".to_owned();
    }
    pairs.sort_unstable();
    pairs.join(",")
}
