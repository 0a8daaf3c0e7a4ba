//! Rows of services and their endpoints.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::workload::labels_text;
use super::{Column, Row, age_cell, integer, list, name_cell, or_else, shortened, text};

/// How many addresses or ports a cell shows before it says how many more there are.
const SHOWN: usize = 3;

pub(super) fn service_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Type", "How the service is made reachable."),
        Column::text("Cluster-IP", "Address of the service inside the cluster."),
        Column::text("External-IP", "Addresses of the service outside the cluster."),
        Column::text("Port(s)", "Ports of the service, with their node ports."),
        Column::age(),
        Column::wide("Selector", "Which pods the service leads to."),
    ]
}

pub(super) fn service_row(service: &Value, now: Timestamp) -> Row {
    let cluster_ip = match list(service, "/spec/clusterIPs").first() {
        Some(first) => first.as_str().unwrap_or_default(),
        None => or_else(text(service, "/spec/clusterIP"), "<none>"),
    };
    Row::from(vec![
        name_cell(service),
        text(service, "/spec/type").into(),
        cluster_ip.into(),
        external_addresses(service).into(),
        or_else(&service_ports(service), "<none>").into(),
        age_cell(service, now),
        labels_text(service.pointer("/spec/selector")).into(),
    ])
}

fn external_addresses(service: &Value) -> String {
    let given: Vec<&str> =
        list(service, "/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" if given.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => given.join(","),
        "LoadBalancer" => {
            let mut all: Vec<&str> = list(service, "/status/loadBalancer/ingress")
                .iter()
                .map(|ingress| or_else(text(ingress, "/ip"), text(ingress, "/hostname")))
                .filter(|address| !address.is_empty())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect();
            all.extend(given);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_ports(service: &Value) -> String {
    let port_text = |port: &Value| {
        let (number, protocol) = (integer(port, "/port"), text(port, "/protocol"));
        match integer(port, "/nodePort") {
            node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    };
    list(service, "/spec/ports").iter().map(port_text).collect::<Vec<_>>().join(",")
}

pub(super) fn endpoints_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Endpoints", "Addresses and ports that serve."),
        Column::age(),
    ]
}

pub(super) fn endpoints_row(endpoints: &Value, now: Timestamp) -> Row {
    let subsets = list(endpoints, "/subsets");
    let shown = if subsets.is_empty() {
        "<none>".to_owned()
    } else {
        shortened(&subsets.iter().flat_map(subset_addresses).collect::<Vec<_>>(), SHOWN, ",")
    };
    Row::from(vec![name_cell(endpoints), shown.into(), age_cell(endpoints, now)])
}

/// Every address with every port; headless services may have no ports at all.
fn subset_addresses(subset: &Value) -> Vec<String> {
    let addresses = || list(subset, "/addresses").iter().map(|address| text(address, "/ip"));
    let ports = list(subset, "/ports");
    if ports.is_empty() {
        return addresses().map(str::to_owned).collect();
    }
    ports
        .iter()
        .flat_map(|port| {
            let number = integer(port, "/port");
            addresses().map(move |ip| match ip.contains(':') {
                true => format!("[{ip}]:{number}"),
                false => format!("{ip}:{number}"),
            })
        })
        .collect()
}

pub(super) fn endpoint_slice_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("AddressType", "Kind of the addresses: IPv4, IPv6 or FQDN."),
        Column::text("Ports", "Ports that the endpoints serve on."),
        Column::text("Endpoints", "Addresses of the endpoints."),
        Column::age(),
    ]
}

pub(super) fn endpoint_slice_row(slice: &Value, now: Timestamp) -> Row {
    let ports: Vec<String> = list(slice, "/ports").iter().map(slice_port).collect();
    let addresses: Vec<String> = list(slice, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .map(|address| address.as_str().unwrap_or_default().to_owned())
        .collect();
    let shown =
        |items: &[String]| -> Value { or_else(&shortened(items, SHOWN, ","), "<unset>").into() };
    Row::from(vec![
        name_cell(slice),
        text(slice, "/addressType").into(),
        shown(&ports),
        shown(&addresses),
        age_cell(slice, now),
    ])
}

fn slice_port(port: &Value) -> String {
    match (port.get("port").and_then(Value::as_i64), port.get("name").and_then(Value::as_str)) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}
