//! Checks of pod specs, as pods and templates share them.

use std::collections::HashSet;

use podscale_api::Quantity;
use podscale_api::field_error::metadata::check_labels;
use podscale_api::field_error::{BadValue, FieldError, FieldPath, names};
use podscale_api::names::label_key_errors;
use serde_json::Value;

use crate::value::{integer, list, text};

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Refuses a negative number.
pub(crate) fn not_negative(object: &Value, name: &str, path: &FieldPath) -> Option<FieldError> {
    let value = object.get(name)?.as_i64().filter(|value| *value < 0)?;
    Some(FieldError::invalid(&path.child(name), value, NOT_NEGATIVE))
}

/// Checks a text against a rule for names.
pub(crate) fn check_name(
    value: &str,
    path: &FieldPath,
    rule: fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    rule(value).into_iter().map(|detail| FieldError::invalid(path, value, detail)).collect()
}

/// Refuses a text that is none of those allowed.
pub(crate) fn one_of(value: &str, path: &FieldPath, allowed: &[&str]) -> Option<FieldError> {
    match value {
        "" => Some(FieldError::required(path, "")),
        value if allowed.contains(&value) => None,
        value => Some(FieldError::not_supported(path, value, allowed)),
    }
}

/// Checks a pod's spec.
pub(crate) fn check_spec(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes = check_volumes(spec, &path.child("volumes"), &mut errors);
    errors.extend(check_containers(spec, &volumes, path));
    errors.extend(one_of(
        text(spec, "/restartPolicy"),
        &path.child("restartPolicy"),
        &["Always", "OnFailure", "Never"],
    ));
    errors.extend(one_of(
        text(spec, "/dnsPolicy"),
        &path.child("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    ));
    errors.extend(check_labels(spec.get("nodeSelector"), &path.child("nodeSelector")));
    errors.extend(check_names(spec, path));
    if let Some(seconds) = integer(spec, "/activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, detail));
    }
    errors
}

/// Checks containers and init containers, whose names must differ from each other's too.
fn check_containers(spec: &Value, volumes: &HashSet<&str>, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if list(spec, "/containers").is_empty() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    let mut seen = HashSet::new();
    for (pointer, field, probes) in [
        ("/containers", "containers", &["livenessProbe", "readinessProbe", "startupProbe"][..]),
        ("/initContainers", "initContainers", &[]),
    ] {
        for (index, container) in list(spec, pointer).iter().enumerate() {
            let path = path.child(field).index(index);
            errors.extend(check_container(container, volumes, &path));
            let name = text(container, "/name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            for name in probes {
                if let Some(probe) = container.get(*name) {
                    errors.extend(check_probe(probe, &path.child(name)));
                }
            }
        }
    }
    errors
}

/// Checks the names by which a pod refers to other objects or is called itself.
fn check_names(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, rule) in [
        ("serviceAccountName", names::dns_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::dns_subdomain),
        ("hostname", names::dns_label),
        ("subdomain", names::dns_label),
        ("priorityClassName", names::dns_subdomain),
    ] {
        let value = spec.get(name).and_then(Value::as_str).unwrap_or_default();
        if !value.is_empty() {
            errors.extend(check_name(value, &path.child(name), rule));
        }
    }
    errors
}

fn check_volumes<'a>(
    spec: &'a Value,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> HashSet<&'a str> {
    let mut known = HashSet::new();
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let path = path.index(index);
        let name = text(volume, "/name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            errors.extend(check_name(name, &path.child("name"), names::dns_label));
        }
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    known
}

fn check_container(
    container: &Value,
    volumes: &HashSet<&str>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(container, "/name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => errors.extend(check_name(name, &path.child("name"), names::dns_label)),
    }
    if text(container, "/image").is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    errors.extend(one_of(
        text(container, "/terminationMessagePolicy"),
        &path.child("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    ));
    errors.extend(check_ports(container, &path.child("ports")));
    for (index, variable) in list(container, "/env").iter().enumerate() {
        let path = path.child("env").index(index);
        errors.extend(check_variable(variable, &path));
    }
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let path = path.child("volumeMounts").index(index);
        match text(mount, "/name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name if !volumes.contains(name) => {
                errors.push(not_found(&path.child("name"), name));
            }
            _ => {}
        }
        if text(mount, "/mountPath").is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
    }
    errors.extend(one_of(
        text(container, "/imagePullPolicy"),
        &path.child("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
    ));
    if let Some(resources) = container.get("resources") {
        errors.extend(check_resources(resources, &path.child("resources")));
    }
    errors
}

fn not_found(path: &FieldPath, name: &str) -> FieldError {
    let mut error = FieldError::invalid(path, name, "");
    error.problem = podscale_api::field_error::Problem::NotFound;
    error
}

fn check_ports(container: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "/name");
        if !name.is_empty() {
            let problems = port_name(name);
            if problems.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            errors.extend(
                problems
                    .into_iter()
                    .map(|detail| FieldError::invalid(&path.child("name"), name, detail)),
            );
        }
        match integer(port, "/containerPort").unwrap_or_default() {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => errors.extend(check_port(number, &path.child("containerPort"))),
        }
        if let Some(number) = integer(port, "/hostPort").filter(|number| *number != 0) {
            errors.extend(check_port(number, &path.child("hostPort")));
        }
        errors.extend(one_of(
            text(port, "/protocol"),
            &path.child("protocol"),
            &["SCTP", "TCP", "UDP"],
        ));
    }
    errors
}

/// Refuses a number that is no port.
pub(crate) fn check_port(number: i64, path: &FieldPath) -> Option<FieldError> {
    (!(1..=65535).contains(&number)).then(|| FieldError::invalid(path, number, PORT_RANGE))
}

/// What is wrong with the name of a port.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut problem = |wrong: bool, words: &str| {
        if wrong {
            problems.push(words.to_owned());
        }
    };
    let letter = |c: char| c.is_ascii_lowercase();
    problem(name.len() > 15, "must be no more than 15 bytes");
    problem(
        !name.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '-'),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    problem(!name.chars().any(letter), "must contain at least one letter (a-z)");
    problem(name.contains("--"), "must not contain consecutive hyphens");
    problem(name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen");
    problems
}

fn check_variable(variable: &Value, path: &FieldPath) -> Option<FieldError> {
    let name = text(variable, "/name");
    if name.is_empty() {
        return Some(FieldError::required(&path.child("name"), ""));
    }
    let odd = |c: char| !c.is_ascii() || c.is_ascii_control() || c == '=';
    name.chars().any(odd).then(|| {
        let detail = "a valid environment variable name must consist only of printable ASCII \
                      characters other than '='";
        FieldError::invalid(&path.child("name"), name, detail)
    })
}

fn check_probe(probe: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let handlers: Vec<&str> = ["exec", "httpGet", "tcpSocket", "grpc"]
        .into_iter()
        .filter(|handler| probe.get(*handler).is_some_and(Value::is_object))
        .collect();
    match handlers.as_slice() {
        [] => errors.push(FieldError::required(path, "must specify a handler type")),
        [_] => {}
        [_, more @ ..] => errors.extend(more.iter().map(|handler| {
            FieldError::forbidden(&path.child(handler), "may not specify more than 1 handler type")
        })),
    }
    for name in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        errors.extend(not_negative(probe, name, path));
    }
    errors
}

fn check_resources(resources: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let limits = resources.get("limits").and_then(Value::as_object);
    let requests = resources.get("requests").and_then(Value::as_object);
    for (kind, map) in [("limits", limits), ("requests", requests)] {
        for (name, value) in map.into_iter().flatten() {
            let path = path.child(kind).key(name);
            errors.extend(check_resource_name(name, &path));
            let Some(value) = parse(value) else { continue };
            if value.sign().is_lt() {
                let given = value.to_string();
                errors.push(FieldError::invalid(&path, given.as_str(), NOT_NEGATIVE));
            }
        }
    }
    for (name, request) in requests.into_iter().flatten() {
        let limit = limits.and_then(|limits| limits.get(name)).and_then(parse);
        if let (Some(request), Some(limit)) = (parse(request), limit)
            && request > limit
        {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            let given = request.to_string();
            errors.push(FieldError::invalid(&path.child("requests"), given.as_str(), detail));
        }
    }
    errors
}

fn parse(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

fn check_resource_name(name: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = check_name(name, path, label_key_errors);
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage" | "storage")
        || name.starts_with("hugepages-");
    if errors.is_empty() && !name.contains('/') && !standard {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid(
            path,
            name,
            "must be a standard resource type or fully qualified",
        ));
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

/// Checks metadata and spec of a pod template.
pub(crate) fn check_template(template: &Value, path: &FieldPath) -> Vec<FieldError> {
    let metadata = template.get("metadata").unwrap_or(&Value::Null);
    let mut errors = check_labels(metadata.get("labels"), &path.child("labels"));
    let nothing = Value::Null;
    errors.extend(check_spec(template.get("spec").unwrap_or(&nothing), &path.child("spec")));
    errors
}

/// A value for messages, the way Go prints a structure.
pub(crate) fn shown(value: Option<&Value>) -> BadValue {
    BadValue::json(&value.unwrap_or(&Value::Null))
}
