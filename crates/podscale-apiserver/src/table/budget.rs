//! Rows of disruption budgets, quotas and claims.

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, Row, age_cell, integer, list, name_cell, or_else, text};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn disruption_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Min Available", "How many pods must stay available."),
        Column::text("Max Unavailable", "How many pods may be unavailable."),
        Column::integer("Allowed Disruptions", "How many pods may be evicted now."),
        Column::age(),
    ]
}

pub(super) fn disruption_row(budget: &Value, now: Timestamp) -> Row {
    let amount = |name: &str| match budget.pointer(&format!("/spec/{name}")) {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.clone(),
        _ => "N/A".to_owned(),
    };
    Row::from(vec![
        name_cell(budget),
        amount("minAvailable").into(),
        amount("maxUnavailable").into(),
        integer(budget, "/status/disruptionsAllowed").into(),
        age_cell(budget, now),
    ])
}

pub(super) fn quota_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Request", "What is requested, of what may be."),
        Column::text("Limit", "What limits add up to, of what they may."),
        Column::age(),
    ]
}

pub(super) fn quota_row(quota: &Value, now: Timestamp) -> Row {
    let hard = quota.pointer("/status/hard").and_then(Value::as_object);
    let mut names: Vec<&String> = hard.into_iter().flatten().map(|(name, _)| name).collect();
    names.sort();
    let amount = |part: &str, name: &str| {
        let amount = quota.pointer(&format!("/status/{part}")).and_then(|part| part.get(name));
        amount.and_then(Value::as_str).unwrap_or("0").to_owned()
    };
    let (limits, requests): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| name.starts_with("limits."));
    let joined = |names: Vec<&String>| {
        let texts = names
            .into_iter()
            .map(|name| format!("{name}: {}/{}", amount("used", name), amount("hard", name)));
        texts.collect::<Vec<_>>().join(", ")
    };
    Row::from(vec![
        name_cell(quota),
        joined(requests).into(),
        joined(limits).into(),
        age_cell(quota, now),
    ])
}

pub(super) fn claim_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Status", "Whether the claim has its volume."),
        Column::text("Volume", "Name of the volume."),
        Column::text("Capacity", "Size of the volume."),
        Column::text("Access Modes", "How the volume can be used."),
        Column::text("StorageClass", "Class of storage that is asked for."),
        Column::text("VolumeAttributesClass", "Class of the volume's attributes."),
        Column::age(),
        Column::wide("VolumeMode", "Whether it is a file system or a device."),
    ]
}

pub(super) fn claim_row(claim: &Value, now: Timestamp) -> Row {
    let deleted = !text(claim, "/metadata/deletionTimestamp").is_empty();
    let phase = if deleted { "Terminating" } else { text(claim, "/status/phase") };
    let volume = text(claim, "/spec/volumeName");
    let capacity = match volume {
        "" => "",
        _ => or_else(text(claim, "/status/capacity/storage"), "0"),
    };
    let modes = if volume.is_empty() { String::new() } else { access_modes(claim) };
    let annotation = claim
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(CLASS_ANNOTATION)?.as_str());
    let class = annotation.unwrap_or_else(|| text(claim, "/spec/storageClassName"));
    let optional = |pointer: &str| {
        claim.pointer(pointer).and_then(Value::as_str).unwrap_or("<unset>").to_owned()
    };
    Row::from(vec![
        name_cell(claim),
        phase.into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class.into(),
        optional("/spec/volumeAttributesClassName").into(),
        age_cell(claim, now),
        optional("/spec/volumeMode").into(),
    ])
}

fn access_modes(claim: &Value) -> String {
    let given = list(claim, "/status/accessModes");
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = short.into_iter().filter(|(mode, _)| given.iter().any(|given| given == mode));
    modes.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}
