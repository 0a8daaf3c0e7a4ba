//! Rows of nodes, namespaces, events and the small kinds.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, Row, age, age_cell, entries, integer, list, name_cell, or_else, text};

pub(super) fn default_columns() -> Vec<Column> {
    vec![Column::name(), Column::new("Created At", "date", "", 0, "When the object was created.")]
}

pub(super) fn default_row(object: &Value, _now: Timestamp) -> Row {
    let created = or_else(text(object, "/metadata/creationTimestamp"), "0001-01-01T00:00:00Z");
    Row::from(vec![name_cell(object), created.into()])
}

pub(super) fn named_row(object: &Value, now: Timestamp) -> Row {
    Row::from(vec![name_cell(object), age_cell(object, now)])
}

pub(super) fn node_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Status", "Whether the node is ready and takes pods."),
        Column::text("Roles", "Roles that labels give the node."),
        Column::age(),
        Column::text("Version", "Version of the node's kubelet."),
        Column::wide("Internal-IP", "Address of the node inside the cluster."),
        Column::wide("External-IP", "Address of the node outside the cluster."),
        Column::wide("OS-Image", "Operating system of the node."),
        Column::wide("Kernel-Version", "Kernel of the node, with its architecture."),
        Column::wide("Container-Runtime", "Container runtime of the node."),
    ]
}

pub(super) fn node_row(node: &Value, now: Timestamp) -> Row {
    let info = |pointer| or_else(text(node, pointer), "<unknown>");
    let kernel = info("/status/nodeInfo/kernelVersion");
    let kernel = match text(node, "/status/nodeInfo/architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    };
    let address = |kind| {
        list(node, "/status/addresses")
            .iter()
            .find(|address| text(address, "/type") == kind)
            .map_or("<none>", |address| text(address, "/address"))
    };
    Row::from(vec![
        name_cell(node),
        node_status(node).into(),
        or_else(&node_roles(node), "<none>").into(),
        age_cell(node, now),
        text(node, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("/status/nodeInfo/osImage").into(),
        kernel.into(),
        info("/status/nodeInfo/containerRuntimeVersion").into(),
    ])
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "/status/conditions")
        .iter()
        .rev()
        .find(|condition| text(condition, "/type") == "Ready")
        .map(|condition| text(condition, "/status"));
    let readiness = match ready {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match node.pointer("/spec/unschedulable").and_then(Value::as_bool) {
        Some(true) => format!("{readiness},SchedulingDisabled"),
        _ => readiness.to_owned(),
    }
}

fn node_roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => "",
        };
        (!role.is_empty()).then(|| role.to_owned())
    };
    let roles: BTreeSet<String> = labels.into_iter().flatten().filter_map(role).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn namespace_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Status", "Whether the namespace is in use or being removed."),
        Column::age(),
    ]
}

pub(super) fn namespace_row(namespace: &Value, now: Timestamp) -> Row {
    Row::from(vec![
        name_cell(namespace),
        text(namespace, "/status/phase").into(),
        age_cell(namespace, now),
    ])
}

pub(super) fn event_columns() -> Vec<Column> {
    vec![
        Column::text("Last Seen", "Time since it last happened."),
        Column::text("Type", "Normal or Warning."),
        Column::text("Reason", "Why it happened, in one word."),
        Column::text("Object", "What it happened to."),
        Column::wide("Subobject", "Which part of the object it happened to."),
        Column::wide("Source", "Who reported it."),
        Column::text("Message", "What happened."),
        Column::wide("First Seen", "Time since it first happened."),
        Column::wide("Count", "How often it happened."),
        Column::new("Name", "string", "name", 1, "Name of the event."),
    ]
}

/// The first of the pointers that leads to a non-empty text: the two event APIs name fields differently.
fn either<'a>(object: &'a Value, pointers: &[&str]) -> &'a str {
    pointers.iter().map(|pointer| text(object, pointer)).find(|text| !text.is_empty()).unwrap_or("")
}

pub(super) fn event_row(event: &Value, now: Timestamp) -> Row {
    let regarding = match event.get("involvedObject") {
        Some(object) => object,
        None => event.get("regarding").unwrap_or(&Value::Null),
    };
    let first = either(event, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let series = event.get("series").filter(|series| !series.is_null());
    let last = match series {
        Some(series) => text(series, "/lastObservedTime"),
        None => or_else(either(event, &["/lastTimestamp", "/deprecatedLastTimestamp"]), first),
    };
    let count = match series {
        Some(series) => integer(series, "/count"),
        None => integer(event, "/count").max(integer(event, "/deprecatedCount")).max(1),
    };
    let kind = text(regarding, "/kind").to_lowercase();
    let target = match text(regarding, "/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = either(
        event,
        &[
            "/source/component",
            "/deprecatedSource/component",
            "/reportingComponent",
            "/reportingController",
        ],
    );
    let instance = either(event, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    let source = match instance {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    Row::from(vec![
        age::since(last, now).into(),
        text(event, "/type").into(),
        text(event, "/reason").into(),
        target.into(),
        text(regarding, "/fieldPath").into(),
        source.into(),
        either(event, &["/message", "/note"]).trim().into(),
        age::since(first, now).into(),
        count.into(),
        name_cell(event),
    ])
}

pub(super) fn config_map_columns() -> Vec<Column> {
    vec![Column::name(), Column::text("Data", "How many entries it has."), Column::age()]
}

pub(super) fn config_map_row(object: &Value, now: Timestamp) -> Row {
    let count = entries(object, "/data") + entries(object, "/binaryData");
    Row::from(vec![name_cell(object), count.into(), age_cell(object, now)])
}

pub(super) fn secret_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Type", "What kind of secret it is."),
        Column::text("Data", "How many entries it has."),
        Column::age(),
    ]
}

pub(super) fn secret_row(object: &Value, now: Timestamp) -> Row {
    Row::from(vec![
        name_cell(object),
        text(object, "/type").into(),
        entries(object, "/data").into(),
        age_cell(object, now),
    ])
}

pub(super) fn lease_columns() -> Vec<Column> {
    vec![Column::name(), Column::text("Holder", "Who holds the lease."), Column::age()]
}

pub(super) fn lease_row(lease: &Value, now: Timestamp) -> Row {
    let holder = text(lease, "/spec/holderIdentity");
    Row::from(vec![name_cell(lease), holder.into(), age_cell(lease, now)])
}

pub(super) fn api_service_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Service", "Service that answers for this group and version."),
        Column::text("Available", "Whether it answers."),
        Column::age(),
    ]
}

pub(super) fn api_service_row(object: &Value, now: Timestamp) -> Row {
    let service = match object.pointer("/spec/service").filter(|service| !service.is_null()) {
        Some(service) => format!("{}/{}", text(service, "/namespace"), text(service, "/name")),
        None => "Local".to_owned(),
    };
    let available = list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == "Available")
        .map(|condition| (text(condition, "/status"), text(condition, "/reason")));
    let available = match available {
        None => "Unknown".to_owned(),
        Some((status @ "True", _) | (status, "")) => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    Row::from(vec![name_cell(object), service.into(), available.into(), age_cell(object, now)])
}
