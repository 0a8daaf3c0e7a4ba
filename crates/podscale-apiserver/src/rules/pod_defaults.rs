//! What the server fills into pods and pod templates.

use serde_json::{Map, Value, json};

use crate::value::{default, default_text, entry, fields, section};

/// Permissions of files in volumes, as decimal.
const VOLUME_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// Fills in a pod.
pub(crate) fn default_pod(pod: &mut Value) {
    let spec = entry(pod, "spec");
    default_spec(spec);
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            request_limits(container);
        }
    }
    let spec = fields(spec);
    default(spec, "enableServiceLinks", true);
    let negative = |value: &Value| value.as_i64().is_some_and(|seconds| seconds < 0);
    if spec.get("terminationGracePeriodSeconds").is_some_and(negative) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), Value::from(1));
    }
    default_status(pod);
}

/// Keeps the one address and the list of addresses of a pod in step.
pub(crate) fn default_status(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    let one = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = status
        .get("podIPs")
        .and_then(|ips| ips.pointer("/0/ip"))
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if one.is_empty() && !first.is_empty() {
        status.insert("podIP".to_owned(), Value::from(first));
    } else if !one.is_empty() && one != first {
        status.insert("podIPs".to_owned(), json!([{ "ip": one }]));
    }
}

/// Fills in a pod template.
pub(crate) fn default_template(owner: &mut Map<String, Value>) {
    if let Some(template) = owner.get_mut("template").filter(|template| template.is_object()) {
        default_spec(entry(template, "spec"));
    }
}

fn default_spec(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            default_container(container);
        }
    }
    for volume in items(spec, "volumes") {
        default_volume(volume);
    }
    let spec = fields(spec);
    let account = |spec: &Map<String, Value>, name: &str| {
        spec.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (name, old) = (account(spec, "serviceAccountName"), account(spec, "serviceAccount"));
    let name = if name.is_empty() { old } else { name };
    if !name.is_empty() {
        spec.insert("serviceAccountName".to_owned(), Value::from(name.as_str()));
        spec.insert("serviceAccount".to_owned(), Value::from(name));
    }
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "restartPolicy", "Always");
    default_text(spec, "schedulerName", "default-scheduler");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "securityContext", json!({}));
}

fn default_container(container: &mut Value) {
    for port in items(container, "ports") {
        default_text(fields(port), "protocol", "TCP");
    }
    for variable in items(container, "env") {
        if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
            default_text(fields(reference), "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            default_probe(probe);
        }
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        if let Some(get) = container.pointer_mut(hook) {
            default_http_get(get);
        }
    }
    let fields = fields(container);
    let image = fields.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    default_text(fields, "imagePullPolicy", policy);
    default_text(fields, "terminationMessagePath", "/dev/termination-log");
    default_text(fields, "terminationMessagePolicy", "File");
}

/// Whether the image is named without a tag or digest, or with the tag `latest`.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.rsplit_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !image.is_empty(),
    }
}

fn default_probe(probe: &mut Value) {
    if let Some(get) = probe.get_mut("httpGet") {
        default_http_get(get);
    }
    if let Some(grpc) = probe.get_mut("grpc").filter(|grpc| grpc.is_object()) {
        default(fields(grpc), "service", "");
    }
    let probe = fields(probe);
    for (name, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        default(probe, name, value);
    }
}

fn default_http_get(get: &mut Value) {
    if get.is_object() {
        default_text(fields(get), "path", "/");
        default_text(fields(get), "scheme", "HTTP");
    }
}

fn default_volume(volume: &mut Value) {
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            default(fields(source), "defaultMode", VOLUME_MODE);
        }
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                default(fields(token), "expirationSeconds", TOKEN_SECONDS);
            }
        }
    }
    if let Some(path) = volume.get_mut("hostPath").filter(|path| path.is_object()) {
        default(fields(path), "type", "");
    }
    let volume = fields(volume);
    if volume.iter().all(|(name, value)| name == "name" || value.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// Requests follow limits where only limits are given.
fn request_limits(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned();
    let Some(limits) = limits else { return };
    let resources = entry(container, "resources");
    let requests = section(resources, "requests");
    for (name, limit) in limits {
        default(requests, &name, limit);
    }
}

fn items<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}
