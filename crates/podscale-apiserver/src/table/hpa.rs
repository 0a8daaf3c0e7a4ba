//! Rows of autoscalers; the targets column tells each metric's current value against its target.

use jiff::Timestamp;
use podscale_api::hpa::convert::{self, Version};
use podscale_api::hpa::v2;
use podscale_api::quantity::Quantity;
use serde_json::Value;

use super::{Column, Row, age_cell, integer, list, name_cell, shortened, text};

/// How many metrics the targets column shows before it says how many more there are.
const SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Reference", "What is scaled."),
        Column::text("Targets", "Each metric's current value and its target."),
        Column::text("MinPods", "Smallest number of pods."),
        Column::text("MaxPods", "Largest number of pods."),
        Column::text("Replicas", "How many pods there are."),
        Column::age(),
    ]
}

/// Prints an autoscaler of any version as it is in `autoscaling/v2`.
pub(super) fn row(object: &Value, now: Timestamp) -> Row {
    if text(object, "/apiVersion") != v2::API_VERSION
        && let Ok(hpa) = convert::read(object)
        && let Ok(newer) = convert::write(&hpa, Version::V2)
    {
        return newest_row(&newer, now);
    }
    newest_row(object, now)
}

fn newest_row(object: &Value, now: Timestamp) -> Row {
    let target = object.pointer("/spec/scaleTargetRef").unwrap_or(&Value::Null);
    let min = object.pointer("/spec/minReplicas").and_then(Value::as_i64);
    Row::from(vec![
        name_cell(object),
        format!("{}/{}", text(target, "/kind"), text(target, "/name")).into(),
        targets(object).into(),
        min.map_or_else(|| "<unset>".to_owned(), |min| min.to_string()).into(),
        integer(object, "/spec/maxReplicas").into(),
        integer(object, "/status/currentReplicas").into(),
        age_cell(object, now),
    ])
}

fn targets(object: &Value) -> String {
    let metrics = list(object, "/spec/metrics");
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let statuses = list(object, "/status/currentMetrics");
    let texts: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| metric_text(metric, statuses.get(index)))
        .collect();
    shortened(&texts, SHOWN, ", ")
}

/// A metric is matched with the status at its own position, whatever that one is about.
fn metric_text(metric: &Value, status: Option<&Value>) -> String {
    let source = match text(metric, "/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let spec = metric.get(source).unwrap_or(&Value::Null);
    let target = spec.get("target").unwrap_or(&Value::Null);
    let current = status
        .and_then(|status| status.get(source))
        .filter(|source| !source.is_null())
        .map(|source| source.get("current").unwrap_or(&Value::Null));
    let per_pod = target.get("averageValue").is_some_and(|value| !value.is_null());
    match source {
        "pods" => format!(
            "{}/{}",
            raw_or_unknown(current, "averageValue"),
            quantity(target.get("averageValue"))
        ),
        "external" | "object" if per_pod => {
            let average = current
                .and_then(|current| current.get("averageValue"))
                .filter(|value| !value.is_null());
            let current = average.map_or_else(|| UNKNOWN.to_owned(), |value| quantity(Some(value)));
            format!("{current}/{} (avg)", quantity(target.get("averageValue")))
        }
        "external" | "object" => {
            format!("{}/{}", raw_or_unknown(current, "value"), quantity(target.get("value")))
        }
        _ if per_pod => format!(
            "{}: {}/{}",
            text(spec, "/name"),
            raw_or_unknown(current, "averageValue"),
            quantity(target.get("averageValue"))
        ),
        _ => format!(
            "{}: {}/{}",
            text(spec, "/name"),
            current.and_then(percent).unwrap_or_else(|| UNKNOWN.to_owned()),
            percent(target).unwrap_or_else(|| "<auto>".to_owned()),
        ),
    }
}

fn raw_or_unknown(current: Option<&Value>, field: &str) -> String {
    current.map_or_else(|| UNKNOWN.to_owned(), |current| quantity(current.get(field)))
}

fn percent(value: &Value) -> Option<String> {
    let utilization = value.get("averageUtilization").and_then(Value::as_i64)?;
    Some(format!("{utilization}%"))
}

/// A quantity in canonical form; one that is absent prints as Kubernetes prints a nil one.
fn quantity(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "<nil>".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    text.parse::<Quantity>().map_or(text, |quantity| quantity.to_string())
}
