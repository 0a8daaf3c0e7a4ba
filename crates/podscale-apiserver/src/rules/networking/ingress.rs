//! Ingresses and their classes. They are stored and checked; nothing routes by them.

use podscale_api::field_error::metadata::check_immutable;
use podscale_api::field_error::{BadValue, FieldError, FieldPath, Problem, names};
use serde_json::Value;

use super::address::{address_of, address_problem};
use super::{check_domain_path, check_reference};
use crate::rules::pod_spec::{check_name, check_port, port_name};
use crate::value::{default as default_value, integer, is_set, list, text};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_LIMIT_BYTES: usize = 250;
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const SCOPES: [&str; 2] = ["Cluster", "Namespace"];

fn class_annotation(ingress: &Value) -> Option<&str> {
    ingress.pointer("/metadata/annotations")?.get(CLASS_ANNOTATION)?.as_str()
}

fn class_name(ingress: &Value) -> Option<&str> {
    ingress.pointer("/spec/ingressClassName")?.as_str()
}

/// Checks a new Ingress.
pub(crate) fn check_ingress(ingress: &Value) -> Vec<FieldError> {
    let mut errors = check(ingress);
    if let (Some(old), Some(new)) = (class_annotation(ingress), class_name(ingress))
        && old != new
    {
        let path = FieldPath::new("annotations").child(CLASS_ANNOTATION);
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&path, old, detail));
    }
    errors
}

/// Checks an Ingress that replaces another.
pub(crate) fn check_ingress_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    check(new)
}

/// The older way to name a class still works.
pub(crate) fn ingress_warnings(ingress: &Value) -> Vec<String> {
    if class_annotation(ingress).is_none() || class_name(ingress).is_some() {
        return Vec::new();
    }
    vec![format!(
        "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
    )]
}

fn check(ingress: &Value) -> Vec<FieldError> {
    let spec = ingress.get("spec").unwrap_or(&Value::Null);
    let path = FieldPath::new("spec");
    let mut errors = Vec::new();
    let backend = spec.get("defaultBackend").filter(|backend| !backend.is_null());
    let rules = list(spec, "/rules");
    if rules.is_empty() && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, shown_rules(spec), detail));
    }
    if let Some(backend) = backend {
        errors.extend(check_backend(backend, &path.child("defaultBackend")));
    }
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(check_rule(rule, &path.child("rules").index(index)));
    }
    for (index, tls) in list(spec, "/tls").iter().enumerate() {
        let path = path.child("tls").index(index);
        for (index, host) in list(tls, "/hosts").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            errors.extend(check_host(host, &path.child("hosts").index(index)));
        }
        let secret = text(tls, "/secretName");
        if !secret.is_empty() {
            errors.extend(check_name(secret, &path.child("secretName"), names::dns_subdomain));
        }
    }
    if let Some(class) = class_name(ingress) {
        errors.extend(check_name(class, &path.child("ingressClassName"), names::dns_subdomain));
    }
    errors
}

/// An empty list is told from none.
fn shown_rules(spec: &Value) -> BadValue {
    BadValue::verbatim(if spec.get("rules").is_some_and(Value::is_array) { "[]" } else { "null" })
}

fn check_host(host: &str, path: &FieldPath) -> Vec<FieldError> {
    let rule = if host.contains('*') { wildcard } else { names::dns_subdomain };
    check_name(host, path, rule)
}

/// What is wrong with a subdomain that starts with a wildcard.
fn wildcard(host: &str) -> Vec<String> {
    let mut problems = names::dns_subdomain(host);
    problems.retain(|problem| problem.starts_with("must be no more than"));
    let fits = host.strip_prefix("*.").is_some_and(|rest| names::dns_subdomain(rest).is_empty());
    if !fits && problems.is_empty() {
        problems.push(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
             end with an alphanumeric character (e.g. '*.example.com', regex used for validation \
             is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

fn check_rule(rule: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let host = text(rule, "/host");
    if !host.is_empty() {
        let path = path.child("host");
        if address_of(host).is_some() {
            errors.push(FieldError::invalid(&path, host, NOT_AN_ADDRESS));
        }
        errors.extend(check_host(host, &path));
    }
    let Some(http) = rule.get("http").filter(|http| !http.is_null()) else { return errors };
    let path = path.child("http").child("paths");
    let paths = list(http, "/paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (index, one) in paths.iter().enumerate() {
        errors.extend(check_path(one, &path.index(index)));
    }
    errors
}

fn check_path(one: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(kind) = one.get("pathType").and_then(Value::as_str) else {
        return vec![FieldError::required(&path.child("pathType"), "pathType must be specified")];
    };
    let mut errors = Vec::new();
    let given = text(one, "/path");
    let field = path.child("path");
    let mut refuse = |detail: String| errors.push(FieldError::invalid(&field, given, detail));
    let absolute = given.starts_with('/');
    match kind {
        "Exact" | "Prefix" => {
            if !absolute {
                refuse("must be an absolute path".to_owned());
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if given.contains(part) {
                    refuse(format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if given.ends_with(end) {
                    refuse(format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" if given.is_empty() || absolute => {}
        "ImplementationSpecific" => refuse("must be an absolute path".to_owned()),
        _ => errors.push(FieldError::not_supported(&path.child("pathType"), kind, &PATH_TYPES)),
    }
    let backend = one.get("backend").unwrap_or(&Value::Null);
    errors.extend(check_backend(backend, &path.child("backend")));
    errors
}

fn check_backend(backend: &Value, path: &FieldPath) -> Vec<FieldError> {
    let given = |name: &str| backend.get(name).filter(|value| !value.is_null());
    match (given("resource"), given("service")) {
        (Some(_), Some(_)) => {
            let detail = "cannot set both resource and service backends";
            vec![FieldError::invalid(path, "", detail)]
        }
        (Some(resource), None) => check_reference(resource, &path.child("resource")),
        (None, Some(service)) => check_service(service, path),
        (None, None) => {
            vec![FieldError::invalid(path, "", "resource or service backend is required")]
        }
    }
}

fn check_service(service: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = path.child("service");
    match text(service, "/name") {
        "" => errors.push(FieldError::required(&field.child("name"), "")),
        name => errors.extend(check_name(name, &field.child("name"), names::dns_label)),
    }
    let field = field.child("port");
    let name = text(service, "/port/name");
    match (name, integer(service, "/port/number").unwrap_or_default()) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", number) => errors.extend(check_port(number, &field.child("number"))),
        (name, 0) => errors.extend(check_name(name, &field.child("name"), port_name)),
        _ => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, "", detail));
        }
    }
    errors
}

/// Checks an Ingress' new status.
pub(crate) fn check_ingress_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let points = |ingress: &Value| list(ingress, "/status/loadBalancer/ingress").to_vec();
    let before = points(old);
    let path = FieldPath::new("status").child("loadBalancer").child("ingress");
    let mut errors = Vec::new();
    for (index, point) in points(new).iter().enumerate() {
        let path = path.index(index);
        let address = text(point, "/ip");
        let known = before.iter().any(|old| text(old, "/ip") == address);
        if !address.is_empty()
            && !known
            && let Some(detail) = address_problem(address)
        {
            errors.push(FieldError::invalid(&path.child("ip"), address, detail));
        }
        let host = text(point, "/hostname");
        if !host.is_empty() {
            let path = path.child("hostname");
            errors.extend(check_name(host, &path, names::dns_subdomain));
            if address_of(host).is_some() {
                errors.push(FieldError::invalid(&path, host, NOT_AN_ADDRESS));
            }
        }
    }
    errors
}

/// Fills in an IngressClass.
pub(crate) fn default_class(class: &mut Value) {
    if let Some(Value::Object(parameters)) = class.pointer_mut("/spec/parameters") {
        default_value(parameters, "scope", "Cluster");
    }
}

/// Checks an IngressClass.
pub(crate) fn check_class(class: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let controller = text(class, "/spec/controller");
    let mut errors = Vec::new();
    if controller.len() > CONTROLLER_LIMIT_BYTES {
        errors.push(FieldError::too_long(&path.child("controller"), CONTROLLER_LIMIT_BYTES));
    }
    errors.extend(check_domain_path(controller, &path.child("controller")));
    if let Some(parameters) = class.pointer("/spec/parameters").filter(|it| it.is_object()) {
        errors.extend(check_parameters(parameters, &path.child("parameters")));
    }
    errors
}

fn check_parameters(parameters: &Value, path: &FieldPath) -> Vec<FieldError> {
    // What is missing altogether is reported last.
    let (missing, mut errors): (Vec<FieldError>, Vec<FieldError>) =
        check_reference(parameters, path)
            .into_iter()
            .partition(|error| error.problem == Problem::Required);
    let namespace = parameters.get("namespace").filter(|it| is_set(Some(it)));
    let field = path.child("namespace");
    match (text(parameters, "/scope"), namespace) {
        ("Namespace", None) => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(&field, detail));
        }
        ("Namespace", Some(namespace)) => {
            let namespace = namespace.as_str().unwrap_or_default();
            errors.extend(check_name(namespace, &field, names::dns_label));
        }
        ("Cluster", Some(_)) => {
            let detail = "`parameters.scope` is set to 'Cluster'";
            errors.push(FieldError::forbidden(&field, detail));
        }
        ("Cluster", None) => {}
        (other, _) => errors.push(FieldError::not_supported(&path.child("scope"), other, &SCOPES)),
    }
    errors.extend(missing);
    errors
}

/// Checks an IngressClass that replaces another.
pub(crate) fn check_class_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec").child("controller");
    let controller = |class: &Value| class.pointer("/spec/controller").cloned();
    let mut errors: Vec<FieldError> =
        check_immutable(controller(new).as_ref(), controller(old).as_ref(), &path)
            .into_iter()
            .collect();
    errors.extend(check_class(new));
    errors
}
