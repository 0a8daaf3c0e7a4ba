//! Pods: what the server adds, what may change, what can be selected by.

use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::pod_defaults::default_status;
use super::pod_spec::check_spec;
use crate::store::Fields;
use crate::value::{
    default, default_text, entry, fields as fields_of, list, metadata, section, text,
};

/// Which fields of a pod can be selected by.
pub(crate) const SELECTABLE: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The values that a pod can be selected by.
pub(crate) fn fields(pod: &Value) -> Fields {
    let host = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    let mut values: Fields = vec![
        ("spec.nodeName", text(pod, "/spec/nodeName").into()),
        ("spec.restartPolicy", text(pod, "/spec/restartPolicy").into()),
        ("spec.schedulerName", text(pod, "/spec/schedulerName").into()),
        ("spec.serviceAccountName", text(pod, "/spec/serviceAccountName").into()),
        ("spec.hostNetwork", if host { "true" } else { "false" }.into()),
        ("status.phase", text(pod, "/status/phase").into()),
        ("status.podIP", text(pod, "/status/podIP").into()),
        ("status.nominatedNodeName", text(pod, "/status/nominatedNodeName").into()),
    ];
    // Absent values read as empty, so they need not be stored.
    values.retain(|(_, value)| !value.is_empty());
    values
}

/// How long pods stay on a node that has become unreachable.
const TOLERATION_SECONDS: i64 = 300;

/// What admission adds to every pod: a priority, and patience with ailing nodes.
fn admit(pod: &mut Value) {
    let spec = section(pod, "spec");
    default(spec, "priority", 0);
    default_text(spec, "preemptionPolicy", "PreemptLowerPriority");
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let key_fits =
                matches!(text(toleration, "/key"), "") || text(toleration, "/key") == key;
            key_fits && matches!(text(toleration, "/effect"), "" | "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// A new pod is pending, whatever its creator said.
pub(crate) fn prepare_create(pod: &mut Value) {
    admit(pod);
    let class = qos_class(pod);
    let gated = !list(pod, "/spec/schedulingGates").is_empty();
    let mut status = json!({ "phase": "Pending", "qosClass": class });
    if gated {
        fields_of(&mut status).insert(
            "conditions".to_owned(),
            json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]),
        );
    }
    fields_of(pod).insert("status".to_owned(), status);
}

/// Node and priority are set once and stay.
pub(crate) fn prepare_update(pod: &mut Value, _old: &Value) {
    default_status(pod);
}

/// The status endpoint cannot change owners, and keeps the class.
pub(crate) fn prepare_status(pod: &mut Value, old: &Value) {
    default_status(pod);
    let owners = old.pointer("/metadata/ownerReferences").cloned();
    let meta = metadata(pod);
    match owners {
        Some(owners) => {
            meta.insert("ownerReferences".to_owned(), owners);
        }
        None => {
            meta.remove("ownerReferences");
        }
    }
    if text(pod, "/status/qosClass").is_empty()
        && let Some(class) = old.pointer("/status/qosClass")
    {
        section(pod, "status").insert("qosClass".to_owned(), class.clone());
    }
}

/// Guaranteed, Burstable or BestEffort, by the requests and limits of the containers.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    let containers =
        || list(pod, "/spec/containers").iter().chain(list(pod, "/spec/initContainers"));
    let get = |container: &Value, kind: &str, name: &str| {
        let value = container.pointer(&format!("/resources/{kind}/{name}"))?.as_str()?;
        podscale_api::Quantity::parse(value).ok().filter(|value| !value.is_zero())
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers() {
        for name in ["cpu", "memory"] {
            let (request, limit) =
                (get(container, "requests", name), get(container, "limits", name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some()
                && request.as_ref().is_none_or(|request| Some(request) == limit.as_ref());
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Checks a new pod.
pub(crate) fn check(pod: &Value) -> Vec<FieldError> {
    check_spec(pod.get("spec").unwrap_or(&Value::Null), &FieldPath::new("spec"))
}

/// Most of a pod's spec is fixed once it exists.
pub(crate) fn check_update(pod: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check(pod);
    let path = FieldPath::new("spec");
    let (before, after) = (list(old, "/spec/containers"), list(pod, "/spec/containers"));
    if before.len() != after.len() {
        let detail = "pod updates may not add or remove containers";
        errors.push(FieldError::forbidden(&path.child("containers"), detail));
        return errors;
    }
    let fixed = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for containers in ["containers", "initContainers"] {
            let items = spec.get_mut(containers).and_then(Value::as_array_mut);
            for container in items.into_iter().flatten() {
                fields_of(container).remove("image");
            }
        }
        for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            fields_of(&mut spec).remove(name);
        }
        spec
    };
    let (mut before, after) = (fixed(old), fixed(pod));
    let negative = |seconds: &Value| seconds.as_i64().is_some_and(|seconds| seconds < 0);
    if before.get("terminationGracePeriodSeconds").is_some_and(negative)
        && after.get("terminationGracePeriodSeconds") == Some(&Value::from(1))
    {
        *entry(&mut before, "terminationGracePeriodSeconds") = Value::from(1);
    }
    if before != after {
        let detail = format!(
            "pod updates may not change fields other than {UPDATABLE}\n@@ spec @@\n{}",
            diff(&before, &after)
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The fields that differ, one line each.
fn diff(before: &Value, after: &Value) -> String {
    let empty = serde_json::Map::new();
    let (before, after) =
        (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let mut lines = Vec::new();
    for name in before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))) {
        let (old, new) = (before.get(name), after.get(name));
        if old != new {
            let show = |value: Option<&Value>| value.unwrap_or(&Value::Null).to_string();
            lines.push(format!("- {name}: {}\n+ {name}: {}\n", show(old), show(new)));
        }
    }
    lines.concat()
}
