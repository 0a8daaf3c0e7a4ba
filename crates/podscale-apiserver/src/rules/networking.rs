//! NetworkPolicies, and checks that other networking kinds share. Nothing enforces the policies.

mod address;
pub(crate) mod ingress;

use podscale_api::field_error::{BadValue, FieldError, FieldPath, names};
use serde_json::{Value, json};

use super::pod_spec::{check_name, check_port, port_name};
use super::selectors::check_selector;
use crate::value::{default as default_value, integer, is_set, list, section, text};

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const POLICY_TYPES: [&str; 2] = ["Ingress", "Egress"];

/// Checks a path that starts with a domain, such as `example.com/controller`.
pub(crate) fn check_domain_path(value: &str, path: &FieldPath) -> Vec<FieldError> {
    if value.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let (domain, rest) = value.split_once('/').unwrap_or((value, ""));
    if domain.is_empty() || rest.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(path, value, detail)];
    }
    let mut errors = check_name(domain, path, names::dns_subdomain);
    let fine = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !rest.chars().all(fine) {
        let detail = "Invalid path (regex used for validation is \
                      '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(path, rest, detail));
    }
    errors
}

fn rules<'a>(policy: &'a Value, direction: &str) -> &'a [Value] {
    list(policy, &format!("/spec/{direction}"))
}

/// Fills in a NetworkPolicy.
pub(crate) fn default_policy(policy: &mut Value) {
    for direction in ["ingress", "egress"] {
        let rules = policy.pointer_mut(&format!("/spec/{direction}"));
        for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
            let ports = rule.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                default_value(crate::value::fields(port), "protocol", "TCP");
            }
        }
    }
    if list(policy, "/spec/policyTypes").is_empty() {
        let types = if rules(policy, "egress").is_empty() {
            json!(["Ingress"])
        } else {
            json!(POLICY_TYPES)
        };
        section(policy, "spec").insert("policyTypes".to_owned(), types);
    }
}

/// Checks a NetworkPolicy.
pub(crate) fn check_policy(policy: &Value) -> Vec<FieldError> {
    check(policy, &[])
}

/// Checks a NetworkPolicy that replaces another.
pub(crate) fn check_policy_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let known: Vec<&str> = blocks(old)
        .into_iter()
        .flat_map(|(_, block)| {
            let except = list(block, "/except").iter().filter_map(Value::as_str);
            except.chain([text(block, "/cidr")])
        })
        .collect();
    check(new, &known)
}

/// Ranges of addresses that are not written the usual way.
pub(crate) fn policy_warnings(policy: &Value) -> Vec<String> {
    blocks(policy)
        .into_iter()
        .flat_map(|(path, block)| {
            let mut ranges = vec![(path.child("cidr"), text(block, "/cidr"))];
            let except = list(block, "/except").iter().enumerate();
            ranges.extend(except.map(|(index, range)| {
                (path.child("except").index(index), range.as_str().unwrap_or_default())
            }));
            ranges.into_iter().flat_map(|(path, range)| address::range_warning(&path, range))
        })
        .collect()
}

/// All blocks of addresses in a policy, and where they are.
fn blocks(policy: &Value) -> Vec<(FieldPath, &Value)> {
    let mut found = Vec::new();
    for (direction, side) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in rules(policy, direction).iter().enumerate() {
            for (index, peer) in list(rule, &format!("/{side}")).iter().enumerate() {
                if let Some(block) = peer.get("ipBlock").filter(|block| block.is_object()) {
                    let path = FieldPath::new("spec").child(direction).index(at).child(side);
                    found.push((path.index(index).child("ipBlock"), block));
                }
            }
        }
    }
    found
}

fn check(policy: &Value, known: &[&str]) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let nothing = Value::Null;
    let selector = policy.pointer("/spec/podSelector").unwrap_or(&nothing);
    let mut errors = check_selector(selector, &path.child("podSelector"));
    for (direction, side) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in rules(policy, direction).iter().enumerate() {
            let path = path.child(direction).index(index);
            for (index, port) in list(rule, "/ports").iter().enumerate() {
                errors.extend(check_policy_port(port, &path.child("ports").index(index)));
            }
            for (index, peer) in list(rule, &format!("/{side}")).iter().enumerate() {
                errors.extend(check_peer(peer, known, &path.child(side).index(index)));
            }
        }
    }
    let types = list(policy, "/spec/policyTypes");
    let path = path.child("policyTypes");
    if types.len() > POLICY_TYPES.len() {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&path, BadValue::json(&types), detail));
        return errors;
    }
    for (index, kind) in types.iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !POLICY_TYPES.contains(&kind) {
            errors.push(FieldError::not_supported(&path.index(index), kind, &POLICY_TYPES));
        }
    }
    errors
}

fn check_policy_port(port: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(protocol) = port.get("protocol").and_then(Value::as_str)
        && !PROTOCOLS.contains(&protocol)
    {
        let path = path.child("protocol");
        errors.push(FieldError::not_supported(&path, protocol, &PROTOCOLS));
    }
    let (end, end_path) = (integer(port, "/endPort"), path.child("endPort"));
    let path = path.child("port");
    match (port.get("port"), end) {
        (Some(Value::Number(number)), end) => {
            let number = number.as_i64().unwrap_or_default();
            errors.extend(check_port(number, &path));
            if let Some(end) = end {
                if end < number {
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(&end_path, end, detail));
                }
                errors.extend(check_port(end, &end_path));
            }
        }
        (Some(Value::String(name)), end) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(FieldError::invalid(&end_path, end, detail));
            }
            errors.extend(check_name(name, &path, port_name));
        }
        (_, Some(end)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(&end_path, end, detail));
        }
        (_, None) => {}
    }
    errors
}

fn check_peer(peer: &Value, known: &[&str], path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut selectors = 0;
    for name in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.get(name).filter(|selector| !selector.is_null()) {
            selectors += 1;
            errors.extend(check_selector(selector, &path.child(name)));
        }
    }
    let block = peer.get("ipBlock").filter(|block| !block.is_null());
    if let Some(block) = block {
        errors.extend(address::check_block(block, known, &path.child("ipBlock")));
    }
    match (selectors, block) {
        (0, None) => errors.push(FieldError::required(path, "must specify a peer")),
        (1.., Some(_)) => {
            let detail = "may not specify both ipBlock and another peer";
            errors.push(FieldError::forbidden(path, detail));
        }
        _ => {}
    }
    errors
}

/// Checks a reference to an object of any group.
fn check_reference(reference: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_set(reference.get("apiGroup")) {
        let group = text(reference, "/apiGroup");
        errors.extend(check_name(group, &path.child("apiGroup"), names::dns_subdomain));
    }
    for name in ["kind", "name"] {
        let path = path.child(name);
        match reference.get(name).and_then(Value::as_str).unwrap_or_default() {
            "" => errors.push(FieldError::required(&path, "")),
            given => errors.extend(check_name(given, &path, names::path_segment)),
        }
    }
    errors
}
