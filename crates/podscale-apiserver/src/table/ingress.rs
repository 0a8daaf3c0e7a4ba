//! Rows of Ingresses, their classes, and NetworkPolicies.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::workload::selector_words;
use super::{Column, Row, age_cell, list, name_cell, text};

const SHOWN_HOSTS: usize = 3;
const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Class", "Class of controllers that it is for."),
        Column::text("Hosts", "Hosts of the requests that it routes."),
        Column::text("Address", "Where requests arrive."),
        Column::text("Ports", "Ports that are open."),
        Column::age(),
    ]
}

pub(super) fn row(ingress: &Value, now: Timestamp) -> Row {
    let class = ingress.pointer("/spec/ingressClassName").and_then(Value::as_str);
    let ports = if list(ingress, "/spec/tls").is_empty() { "80" } else { "80, 443" };
    Row::from(vec![
        name_cell(ingress),
        class.unwrap_or("<none>").into(),
        hosts(list(ingress, "/spec/rules")).into(),
        addresses(ingress).into(),
        ports.into(),
        age_cell(ingress, now),
    ])
}

fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN_HOSTS;
        let host = text(rule, "/host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        // Rules without a host are counted as well.
        (false, true) => {
            format!("{} + {} more...", shown.join(","), rules.len().saturating_sub(SHOWN_HOSTS))
        }
    }
}

fn addresses(ingress: &Value) -> String {
    let points = list(ingress, "/status/loadBalancer/ingress").iter();
    let address = |point: &Value| match (text(point, "/ip"), text(point, "/hostname")) {
        ("", "") => None,
        ("", host) => Some(host.to_owned()),
        (address, _) => Some(address.to_owned()),
    };
    points.filter_map(address).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn class_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Controller", "Who handles Ingresses of this class."),
        Column::text("Parameters", "An object with further settings."),
        Column::age(),
    ]
}

pub(super) fn class_row(class: &Value, now: Timestamp) -> Row {
    let annotations = class.pointer("/metadata/annotations");
    let default = annotations.and_then(|it| it.get(DEFAULT_ANNOTATION)?.as_str()) == Some("true");
    let suffix = if default { " (default)" } else { "" };
    let parameters = match class.pointer("/spec/parameters").filter(|it| it.is_object()) {
        None => "<none>".to_owned(),
        Some(parameters) => {
            let group = match text(parameters, "/apiGroup") {
                "" => String::new(),
                group => format!(".{group}"),
            };
            format!("{}{group}/{}", text(parameters, "/kind"), text(parameters, "/name"))
        }
    };
    Row::from(vec![
        format!("{}{suffix}", text(class, "/metadata/name")).into(),
        text(class, "/spec/controller").into(),
        parameters.into(),
        age_cell(class, now),
    ])
}

pub(super) fn policy_columns() -> Vec<Column> {
    vec![Column::name(), Column::text("Pod-Selector", "Which pods it is for."), Column::age()]
}

pub(super) fn policy_row(policy: &Value, now: Timestamp) -> Row {
    Row::from(vec![
        name_cell(policy),
        selector_words(policy.pointer("/spec/podSelector")).into(),
        age_cell(policy, now),
    ])
}
