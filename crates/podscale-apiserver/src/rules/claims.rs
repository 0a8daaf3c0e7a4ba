//! PersistentVolumeClaims. They are stored and checked; nothing provides volumes for them.

use podscale_api::Quantity;
use podscale_api::field_error::metadata::check_immutable;
use podscale_api::field_error::{FieldError, FieldPath, names};
use serde_json::{Value, json};

use super::pod_spec::check_name;
use super::quota::check_amount;
use super::selectors::check_selector;
use crate::value::{copy, default, default_text, fields, is_set, list, metadata, section, text};

/// Keeps a claim from going while a pod uses it; whoever watches pods takes it away.
const PROTECTION: &str = "kubernetes.io/pvc-protection";
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Fills in a claim.
pub(crate) fn default_claim(claim: &mut Value) {
    default(section(claim, "spec"), "volumeMode", "Filesystem");
    default_text(section(claim, "status"), "phase", "Pending");
}

/// A new claim waits for its volume, and is protected.
pub(crate) fn prepare_claim(claim: &mut Value) {
    fields(claim).insert("status".to_owned(), json!({ "phase": "Pending" }));
    let finalizers = metadata(claim).entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|finalizer| finalizer == PROTECTION)
    {
        finalizers.push(json!(PROTECTION));
    }
    share_source(claim, None);
}

/// Older clients leave out the second form of the source.
pub(crate) fn prepare_claim_update(claim: &mut Value, old: &Value) {
    share_source(claim, Some(old));
}

/// Of the two fields that say where the content comes from, each follows the other.
fn share_source(claim: &mut Value, old: Option<&Value>) {
    let in_use = |old: &Value| {
        is_set(old.pointer("/spec/dataSource")) || is_set(old.pointer("/spec/dataSourceRef"))
    };
    let spec = section(claim, "spec");
    let reference = spec.get("dataSourceRef").filter(|value| !value.is_null()).cloned();
    let mut source = spec.get("dataSource").filter(|value| !value.is_null()).cloned();
    if reference.is_none() && !old.is_some_and(in_use) && !source.as_ref().is_some_and(is_classic) {
        spec.remove("dataSource");
        source = None;
    }
    match (source, reference) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut reference)) if text(&reference, "/namespace").is_empty() => {
            fields(&mut reference).remove("namespace");
            spec.insert("dataSource".to_owned(), reference);
        }
        _ => {}
    }
}

fn is_classic(source: &Value) -> bool {
    matches!(
        (text(source, "/kind"), text(source, "/apiGroup")),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    )
}

/// Checks a claim.
pub(crate) fn check_claim(claim: &Value) -> Vec<FieldError> {
    let spec = claim.get("spec").unwrap_or(&Value::Null);
    let path = FieldPath::new("spec");
    let mut errors = Vec::new();
    let modes: Vec<&str> = list(spec, "/accessModes").iter().filter_map(Value::as_str).collect();
    let field = path.child("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&field, "at least 1 access mode is required"));
    }
    if let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) {
        errors.extend(check_selector(selector, &path.child("selector")));
    }
    let known = |mode: &&&str| ACCESS_MODES.contains(mode);
    let unknown = modes.iter().filter(|mode| !ACCESS_MODES.contains(mode));
    errors.extend(unknown.map(|mode| FieldError::not_supported(&field, *mode, &ACCESS_MODES)));
    let single = |mode: &&str| *mode == "ReadWriteOncePod";
    if modes.iter().any(single) && modes.iter().filter(known).any(|mode| !single(mode)) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&field, detail));
    }
    errors.extend(check_storage(spec, &path.child("resources").key("storage")));
    errors.extend(check_class(spec, "storageClassName", &path));
    if let Some(mode) = spec.get("volumeMode").and_then(Value::as_str)
        && !VOLUME_MODES.contains(&mode)
    {
        let path = path.child("volumeMode");
        errors.push(FieldError::not_supported(&path, mode, &VOLUME_MODES));
    }
    errors.extend(check_sources(spec, &path));
    errors.extend(check_class(spec, "volumeAttributesClassName", &path));
    errors
}

fn check_class(spec: &Value, name: &str, path: &FieldPath) -> Vec<FieldError> {
    match spec.get(name).and_then(Value::as_str).unwrap_or_default() {
        "" => Vec::new(),
        given => check_name(given, &path.child(name), names::dns_subdomain),
    }
}

fn check_storage(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(value) = spec.pointer("/resources/requests/storage") else {
        return vec![FieldError::required(path, "")];
    };
    match value.as_str().and_then(|text| Quantity::parse(text).ok()) {
        Some(amount) if amount.sign().is_le() => {
            let shown = amount.to_string();
            vec![FieldError::invalid(path, shown.as_str(), "must be greater than zero")]
        }
        _ => check_amount("storage", value, path),
    }
}

fn check_sources(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let given = |name: &str| spec.get(name).filter(|value| !value.is_null());
    let (source, reference) = (given("dataSource"), given("dataSourceRef"));
    let mut errors = Vec::new();
    for (name, source) in [("dataSource", source), ("dataSourceRef", reference)] {
        if let Some(source) = source {
            errors.extend(check_source(source, &path.child(name)));
        }
    }
    let (Some(source), Some(reference)) = (source, reference) else { return errors };
    let refuse = |detail: &str| {
        // The real server prints its own structure for a path here.
        FieldError::invalid(path, podscale_api::field_error::BadValue::verbatim("{}"), detail)
    };
    if !text(reference, "/namespace").is_empty() {
        errors.push(refuse("may not be specified when dataSourceRef.namespace is specified"));
    } else if ["apiGroup", "kind", "name"].iter().any(|it| source.get(it) != reference.get(it)) {
        errors.push(refuse("must match dataSourceRef"));
    }
    errors
}

fn check_source(source: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["name", "kind"] {
        if source.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    let (group, kind) = (text(source, "/apiGroup"), text(source, "/kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    if !group.is_empty() {
        errors.extend(check_name(group, &path.child("apiGroup"), names::dns_subdomain));
    }
    let namespace = text(source, "/namespace");
    if !namespace.is_empty() {
        errors.extend(check_name(namespace, &path.child("namespace"), names::dns_label));
    }
    errors
}

/// Checks a claim that replaces another: little of it can change.
pub(crate) fn check_claim_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_claim(new);
    let nothing = Value::Null;
    let spec = |claim: &Value| claim.get("spec").cloned().unwrap_or_default();
    let (mut after, mut before) = (spec(new), spec(old));
    if text(old, "/spec/volumeName").is_empty() {
        copy(&mut before, &after, "volumeName");
    }
    let class = |claim: &Value| -> Option<String> {
        Some(claim.pointer("/metadata/annotations")?.get(CLASS_ANNOTATION)?.as_str()?.to_owned())
    };
    let (old_class, new_class) = (class(old), class(new));
    let named = after.get("storageClassName").and_then(Value::as_str).map(str::to_owned);
    let was_named = is_set(before.get("storageClassName"));
    let upgraded = named.is_some()
        && !was_named
        && old_class.as_ref().is_none_or(|it| Some(it) == named.as_ref());
    if upgraded {
        copy(&mut after, &before, "storageClassName");
    }
    if old_class != new_class && !(upgraded && old_class.is_some() && new_class.is_none()) {
        let path = FieldPath::new("metadata").child("annotations").key(CLASS_ANNOTATION);
        let given = new_class.unwrap_or_default();
        errors.push(FieldError::invalid(&path, given.as_str(), "field is immutable"));
    }
    if text(new, "/status/phase") == "Bound" {
        let storage = old.pointer("/spec/resources/requests").unwrap_or(&nothing);
        if let Some(requests) = after.pointer_mut("/resources/requests") {
            copy(requests, storage, "storage");
        }
        copy(&mut after, &before, "volumeAttributesClassName");
    }
    if after != before {
        let detail = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n@@ spec @@\n- {before}\n+ {after}"
        );
        errors.push(FieldError::forbidden(&FieldPath::new("spec"), detail));
    }
    errors.extend(check_size(new, old));
    let mode = |claim: &Value| claim.pointer("/spec/volumeMode").cloned();
    let path = FieldPath::new("volumeMode");
    errors.extend(check_immutable(mode(new).as_ref(), mode(old).as_ref(), &path));
    errors.extend(check_attributes_class(new, old));
    errors
}

/// A claim can shrink only as far as its volume has not grown yet.
fn check_size(new: &Value, old: &Value) -> Option<FieldError> {
    let size = |claim: &Value, pointer: &str| Quantity::parse(text(claim, pointer)).ok();
    let requested = "/spec/resources/requests/storage";
    let (after, before) = (size(new, requested)?, size(old, requested)?);
    let has = size(old, "/status/capacity/storage");
    let small = has.map_or(after.sign().is_le(), |has| after <= has);
    (after < before && small).then(|| {
        let path = FieldPath::new("spec").child("resources").child("requests").child("storage");
        FieldError::forbidden(&path, "field can not be less than status.capacity")
    })
}

fn check_attributes_class(new: &Value, old: &Value) -> Option<FieldError> {
    let pointer = "/spec/volumeAttributesClassName";
    let applied = is_set(old.pointer("/status/currentVolumeAttributesClassName"));
    if !applied || new.pointer(pointer) == old.pointer(pointer) {
        return None;
    }
    let path = FieldPath::new("spec").child("volumeAttributesClassName");
    let what = match new.pointer(pointer).and_then(Value::as_str) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return None,
    };
    let detail = format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    Some(FieldError::forbidden(&path, detail))
}

/// Checks a claim's new status.
pub(crate) fn check_claim_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("status").child("capacity");
    let capacity = new.pointer("/status/capacity").and_then(Value::as_object);
    let negative = |(name, value): (&String, &Value)| {
        let amount = Quantity::parse(value.as_str()?).ok()?.value();
        let detail = "must be a valid resource quantity";
        (amount < 0).then(|| FieldError::invalid(&path.key(name), amount, detail))
    };
    capacity.into_iter().flatten().filter_map(negative).collect()
}

/// Warnings for clients about a claim that is valid, but surprising.
pub(crate) fn claim_warnings(claim: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations = claim.pointer("/metadata/annotations");
    if annotations.is_some_and(|annotations| annotations.get(CLASS_ANNOTATION).is_some()) {
        warnings.push(format!(
            "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead"
        ));
    }
    for part in ["requests", "limits"] {
        let amount = text(claim, &format!("/spec/resources/{part}/storage"));
        if Quantity::parse(amount).is_ok_and(|amount| amount.milli_value() % 1000 != 0) {
            warnings.push(format!(
                "spec.resources.{part}[storage]: fractional byte value {amount:?} is invalid, must \
                 be an integer"
            ));
        }
    }
    warnings
}
