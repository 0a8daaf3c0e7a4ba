//! Namespaces, nodes, events, leases, and the definitions of further APIs.

use podscale_api::field_error::{FieldError, FieldPath, names};
use podscale_api::names::label_key_errors;
use serde_json::{Value, json};

use super::pod_spec::{check_name, check_port, not_negative, one_of};
use crate::crd::definition;
use crate::store::Fields;
use crate::value::{copy, default, default_text, integer, list, section, text};

/// Which fields of an event can be selected by.
pub(crate) const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// The taint of nodes that are not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Longest texts in events of the new style.
const EVENT_LIMITS: [(&str, usize, bool); 4] = [
    ("reportingInstance", 128, true),
    ("action", 128, true),
    ("reason", 128, true),
    ("message", 1024, false),
];

/// Fills in a namespace: its name is also a label.
pub(crate) fn default_namespace(namespace: &mut Value) {
    let name = text(namespace, "/metadata/name").to_owned();
    if !name.is_empty() {
        let labels = section(namespace, "metadata").entry("labels").or_insert(Value::Null);
        crate::value::fields(labels)
            .insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
    }
    default_text(section(namespace, "status"), "phase", "Active");
}

/// A new namespace is active and carries the finalizer that its clean-up removes.
pub(crate) fn prepare_namespace(namespace: &mut Value) {
    default_namespace(namespace);
    let fields = crate::value::fields(namespace);
    fields.insert("status".to_owned(), json!({ "phase": "Active" }));
    let spec = section(namespace, "spec");
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if !finalizers.is_array() {
        *finalizers = json!([]);
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
    {
        finalizers.push(Value::from("kubernetes"));
    }
}

/// An update cannot touch the finalizers of the spec.
pub(crate) fn prepare_namespace_update(namespace: &mut Value, old: &Value) {
    copy(namespace, old, "spec");
}

/// An update of the status cannot either.
pub(crate) fn prepare_namespace_status(namespace: &mut Value, old: &Value) {
    copy(namespace, old, "spec");
    default_text(section(namespace, "status"), "phase", "Active");
}

/// The values that a namespace can be selected by.
pub(crate) fn namespace_fields(namespace: &Value) -> Fields {
    vec![("status.phase", text(namespace, "/status/phase").into())]
}

/// Fills in a node: what is not said to be allocatable is all there is.
pub(crate) fn default_node(node: &mut Value) {
    let capacity = node.pointer("/status/capacity").cloned();
    if let Some(capacity) = capacity {
        default(section(node, "status"), "allocatable", capacity);
    }
}

/// A new node takes no pods until it has reported that it is ready.
pub(crate) fn prepare_node(node: &mut Value) {
    let taints = section(node, "spec").entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut()
        && !taints.iter().any(|taint| text(taint, "/key") == NOT_READY)
    {
        taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
    }
}

/// Checks a node.
pub(crate) fn check_node(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, taint) in list(node, "/spec/taints").iter().enumerate() {
        let path = FieldPath::new("metadata").child("taints").index(index);
        errors.extend(check_name(text(taint, "/key"), &path.child("key"), label_key_errors));
        errors.extend(one_of(
            text(taint, "/effect"),
            &path.child("effect"),
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
        ));
    }
    errors
}

/// Checks a node that replaces another.
pub(crate) fn check_node_update(node: &Value, _old: &Value) -> Vec<FieldError> {
    check_node(node)
}

/// A node keeps its status when its spec is written.
pub(crate) fn prepare_node_update(node: &mut Value, old: &Value) {
    copy(node, old, "status");
}

/// The values that a node can be selected by.
pub(crate) fn node_fields(node: &Value) -> Fields {
    let value = node.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default();
    vec![("spec.unschedulable", if value { "true" } else { "false" }.into())]
}

/// Checks an event.
pub(crate) fn check_event(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = text(event, "/metadata/namespace");
    let involved = text(event, "/involvedObject/namespace");
    let path = FieldPath::new("involvedObject").child("namespace");
    let mismatch = || FieldError::invalid(&path, involved, "does not match event.namespace");
    if text(event, "/eventTime").is_empty() {
        let fits = match involved {
            "" => matches!(namespace, "" | "default"),
            involved => involved == namespace,
        };
        if !fits {
            errors.push(mismatch());
        }
        return errors;
    }
    if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
        errors.push(mismatch());
    }
    let controller = text(event, "/reportingComponent");
    let path = FieldPath::new("reportingController");
    if controller.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    errors.extend(check_name(controller, &path, label_key_errors));
    for (name, limit, required) in EVENT_LIMITS {
        let value = event.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = FieldPath::new(name);
        if required && value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if value.len() > limit {
            let detail = format!("can have at most {limit} characters");
            errors.push(FieldError::invalid(&path, "", detail));
        }
    }
    errors
}

/// Checks an event that was sent in the new style, as it is stored.
pub(crate) fn check_new_event(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(event, "/eventTime").is_empty() {
        errors.push(FieldError::required(&FieldPath::new("eventTime"), ""));
    }
    let kind = text(event, "/type");
    if !matches!(kind, "Normal" | "Warning") {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&FieldPath::new("type"), "", detail));
    }
    errors
}

/// The values that an event can be selected by.
pub(crate) fn event_fields(event: &Value) -> Fields {
    let source = match text(event, "/source/component") {
        "" => text(event, "/reportingComponent"),
        component => component,
    };
    let involved = |name: &str| text(event, &format!("/involvedObject/{name}")).into();
    vec![
        ("involvedObject.kind", involved("kind")),
        ("involvedObject.namespace", involved("namespace")),
        ("involvedObject.name", involved("name")),
        ("involvedObject.uid", involved("uid")),
        ("involvedObject.apiVersion", involved("apiVersion")),
        ("involvedObject.resourceVersion", involved("resourceVersion")),
        ("involvedObject.fieldPath", involved("fieldPath")),
        ("reason", text(event, "/reason").into()),
        ("reportingComponent", text(event, "/reportingComponent").into()),
        ("source", source.into()),
        ("type", text(event, "/type").into()),
    ]
}

/// Checks a lease.
pub(crate) fn check_lease(lease: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let spec = lease.get("spec").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    if let Some(seconds) = integer(spec, "/leaseDurationSeconds").filter(|value| *value <= 0) {
        let path = path.child("leaseDurationSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
    }
    errors.extend(not_negative(spec, "leaseTransitions", &path));
    errors
}

/// Checks a lease that replaces another.
pub(crate) fn check_lease_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    check_lease(new)
}

/// Fills in an APIService.
pub(crate) fn default_api_service(service: &mut Value) {
    if let Some(Value::Object(reference)) = service.pointer_mut("/spec/service") {
        default(reference, "port", 443);
    }
}

/// Checks an APIService.
pub(crate) fn check_api_service(service: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = Vec::new();
    let (group, version) = (text(service, "/spec/group"), text(service, "/spec/version"));
    let wanted = format!("{version}.{group}");
    let name = text(service, "/metadata/name");
    if name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.push(FieldError::invalid(&FieldPath::new("metadata").child("name"), name, detail));
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&path.child("group"), detail));
    }
    if !group.is_empty() {
        errors.extend(check_name(group, &path.child("group"), names::dns_subdomain));
    }
    errors.extend(check_name(version, &path.child("version"), names::dns_1035_label));
    for (field, limit) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let value = service.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
        let value = value.unwrap_or_default();
        if value <= 0 || value > limit {
            let detail = format!("must be positive and less than {limit}");
            errors.push(FieldError::invalid(&path.child(field), value, detail));
        }
    }
    if let Some(reference) = service.pointer("/spec/service").filter(|value| value.is_object()) {
        let path = path.child("service");
        for field in ["namespace", "name"] {
            if reference.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                errors.push(FieldError::required(&path.child(field), ""));
            }
        }
        let port = integer(reference, "/port").unwrap_or_default();
        errors.extend(check_port(port, &path.child("port")));
    }
    errors
}

/// Fills in a CustomResourceDefinition.
pub(crate) fn default_definition(object: &mut Value) {
    definition::fill_defaults(object);
}

/// A new definition is not served yet.
pub(crate) fn prepare_definition(object: &mut Value) {
    let status = definition::initial_status(object);
    crate::value::fields(object).insert("status".to_owned(), status);
}

/// Checks a CustomResourceDefinition.
pub(crate) fn check_definition(object: &Value) -> Vec<FieldError> {
    definition::check_create(object)
}

/// Checks a CustomResourceDefinition that replaces another.
pub(crate) fn check_definition_update(new: &Value, old: &Value) -> Vec<FieldError> {
    definition::check_update(new, old)
}
