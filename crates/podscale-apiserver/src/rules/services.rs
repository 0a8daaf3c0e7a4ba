//! Services and what stands behind them.

use std::collections::HashSet;

use podscale_api::field_error::metadata::{check_immutable, check_labels};
use podscale_api::field_error::{BadValue, FieldError, FieldPath, names};
use serde_json::{Value, json};

use super::pod_spec::{check_name, check_port, one_of, port_name};
use crate::store::Fields;
use crate::value::{
    default as default_value, default_text, fields as fields_of, integer, list, section, text,
};

/// How long a client sticks to a pod where affinity is asked for.
const AFFINITY_SECONDS: i64 = 10_800;

/// Fills in a Service; addresses are given out when it is stored.
pub(crate) fn default(service: &mut Value) {
    let spec = section(service, "spec");
    default_text(spec, "sessionAffinity", "None");
    default_text(spec, "type", "ClusterIP");
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if spec.get("sessionAffinity").and_then(Value::as_str) == Some("ClientIP") {
        let config = json!({ "clientIP": { "timeoutSeconds": AFFINITY_SECONDS } });
        default_value(spec, "sessionAffinityConfig", config);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = integer(port, "/port").unwrap_or_default();
        let port = fields_of(port);
        default_text(port, "protocol", "TCP");
        let unset = |target: &Value| {
            target.is_null() || target.as_i64() == Some(0) || target.as_str() == Some("")
        };
        if port.get("targetPort").is_none_or(unset) {
            port.insert("targetPort".to_owned(), Value::from(number));
        }
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        default_text(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default_value(spec, "allocateLoadBalancerNodePorts", Value::from(true));
    }
}

/// A service that has an address has it of one family.
pub(crate) fn prepare_create(service: &mut Value) {
    let spec = section(service, "spec");
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return;
    }
    default_text(spec, "ipFamilyPolicy", "SingleStack");
    default_value(spec, "ipFamilies", json!(["IPv4"]));
    let address = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !address.is_empty() {
        default_value(spec, "clusterIPs", json!([address]));
    }
}

/// An update that leaves the address out keeps it.
pub(crate) fn prepare_update(service: &mut Value, old: &Value) {
    if text(service, "/spec/type") == "ExternalName" {
        return;
    }
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let given = service.pointer(&format!("/spec/{name}"));
        let empty = given.is_none_or(|value| value.is_null() || value.as_str() == Some(""));
        if let Some(kept) = old.pointer(&format!("/spec/{name}")).filter(|_| empty) {
            section(service, "spec").insert(name.to_owned(), kept.clone());
        }
    }
    prepare_create(service);
    let old_ports = list(old, "/spec/ports").to_vec();
    if matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer") {
        let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            let same = |old: &&Value| {
                old.get("port") == port.get("port") && old.get("protocol") == port.get("protocol")
            };
            if integer(port, "/nodePort").unwrap_or_default() == 0
                && let Some(kept) = old_ports.iter().find(same).and_then(|old| old.get("nodePort"))
            {
                fields_of(port).insert("nodePort".to_owned(), kept.clone());
            }
        }
    }
}

/// Checks a Service.
pub(crate) fn check(service: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let kind = text(spec, "/type");
    let headless = text(spec, "/clusterIP") == "None";
    let ports = list(spec, "/ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if headless && matches!(kind, "NodePort" | "LoadBalancer") {
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
    }
    if kind == "ExternalName" {
        let name = text(spec, "/externalName").trim_end_matches('.');
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("externalName"), ""));
        } else {
            errors.extend(check_name(name, &path.child("externalName"), names::dns_subdomain));
        }
    }
    let mut seen_names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.child("ports").index(index);
        errors.extend(check_service_port(port, ports.len() > 1, &mut seen_names, &path));
    }
    errors.extend(check_labels(spec.get("selector"), &path.child("selector")));
    errors.extend(one_of(
        text(spec, "/sessionAffinity"),
        &path.child("sessionAffinity"),
        &["ClientIP", "None"],
    ));
    errors.extend(one_of(
        kind,
        &path.child("type"),
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    ));
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.child("ports").index(index);
        if kind == "ClusterIP" && integer(port, "/nodePort").unwrap_or_default() != 0 {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&path.child("nodePort"), detail));
        }
        if !seen.insert((text(port, "/protocol"), integer(port, "/port"))) {
            let shown = json!({ "protocol": port.get("protocol"), "port": port.get("port") });
            errors.push(FieldError::duplicate(&path, BadValue::json(&shown)));
        }
    }
    errors
}

fn check_service_port<'a>(
    port: &'a Value,
    named: bool,
    seen: &mut HashSet<&'a str>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(port, "/name");
    if name.is_empty() && named {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !name.is_empty() {
        errors.extend(check_name(name, &path.child("name"), names::dns_label));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    let number = integer(port, "/port").unwrap_or_default();
    errors.extend(check_port(number, &path.child("port")));
    errors.extend(one_of(
        text(port, "/protocol"),
        &path.child("protocol"),
        &["SCTP", "TCP", "UDP"],
    ));
    match port.get("targetPort") {
        Some(Value::Number(number)) => errors
            .extend(check_port(number.as_i64().unwrap_or_default(), &path.child("targetPort"))),
        Some(Value::String(name)) => {
            errors.extend(port_name(name).into_iter().map(|detail| {
                FieldError::invalid(&path.child("targetPort"), name.as_str(), detail)
            }))
        }
        _ => {}
    }
    errors
}

/// Checks a Service that replaces another; its address stays unless its type changes.
pub(crate) fn check_update(service: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let external = |service: &Value| text(service, "/spec/type") == "ExternalName";
    let (before, after) = (text(old, "/spec/clusterIP"), text(service, "/spec/clusterIP"));
    if !external(service) && !external(old) && !before.is_empty() && before != after {
        let path = FieldPath::new("spec").child("clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, shown_list(service), "may not change once set"));
    }
    errors.extend(check(service));
    errors
}

fn shown_list(service: &Value) -> BadValue {
    let addresses = service.pointer("/spec/clusterIPs").unwrap_or(&Value::Null);
    BadValue::json(addresses)
}

/// The values that a Service can be selected by.
pub(crate) fn fields(service: &Value) -> Fields {
    vec![
        ("spec.clusterIP", text(service, "/spec/clusterIP").into()),
        ("spec.type", text(service, "/spec/type").into()),
    ]
}

/// Fills in Endpoints.
pub(crate) fn default_endpoints(endpoints: &mut Value) {
    let subsets = endpoints.get_mut("subsets").and_then(Value::as_array_mut);
    for subset in subsets.into_iter().flatten() {
        default_protocols(subset);
    }
}

fn default_protocols(owner: &mut Value) {
    for port in owner.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default_text(fields_of(port), "protocol", "TCP");
    }
}

/// Fills in an EndpointSlice.
pub(crate) fn default_endpoint_slice(slice: &mut Value) {
    default_protocols(slice);
    for port in slice.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default_value(fields_of(port), "name", "");
    }
}

/// Checks an EndpointSlice.
pub(crate) fn check_endpoint_slice(slice: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = one_of(
        text(slice, "/addressType"),
        &FieldPath::new("addressType"),
        &["FQDN", "IPv4", "IPv6"],
    )
    .into_iter()
    .collect();
    for (index, endpoint) in list(slice, "/endpoints").iter().enumerate() {
        if list(endpoint, "/addresses").is_empty() {
            let path = FieldPath::new("endpoints").index(index).child("addresses");
            errors.push(FieldError::required(&path, "must contain at least 1 address"));
        }
    }
    errors
}

/// Checks an EndpointSlice that replaces another.
pub(crate) fn check_endpoint_slice_update(slice: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_endpoint_slice(slice);
    let path = FieldPath::new("addressType");
    errors.extend(check_immutable(slice.get("addressType"), old.get("addressType"), &path));
    errors
}
