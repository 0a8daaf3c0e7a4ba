//! The CustomResourceDefinition object itself: defaults, checks and conditions.

mod versions;

use crate::value::{list, text};
use jiff::Timestamp;
use podscale_api::field_error::metadata::{check_create as check_metadata, check_immutable};
use podscale_api::field_error::names::{dns_1035_label, dns_subdomain, path_segment};
use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use serde_json::{Value, json};

/// Kind and group as the message of a refusal names them.
pub const QUALIFIED_KIND: &str = "CustomResourceDefinition.apiextensions.k8s.io";

/// Annotation that lets a definition claim a group of the Kubernetes project.
const APPROVAL: &str = "api-approved.kubernetes.io";

fn flag(object: &Value, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// Fills in what a definition leaves open.
pub fn fill_defaults(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let mut fill = |name: &str, value: String| {
            let unset = names.get(name).and_then(Value::as_str).unwrap_or_default().is_empty();
            if unset && !value.is_empty() {
                names.insert(name.to_owned(), value.into());
            }
        };
        fill("singular", kind.to_lowercase());
        fill("listKind", if kind.is_empty() { String::new() } else { format!("{kind}List") });
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// The status of a definition that was just created.
pub fn initial_status(definition: &Value) -> Value {
    let storage =
        list(definition, "/spec/versions").iter().find(|version| flag(version, "storage"));
    let stored: Vec<&str> = storage.map(|version| text(version, "/name")).into_iter().collect();
    json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored,
    })
}

/// Everything that is wrong with a new definition, after defaulting.
pub fn check_create(definition: &Value) -> Vec<FieldError> {
    let mut errors =
        check_metadata(definition.get("metadata").unwrap_or(&Value::Null), false, dns_subdomain);
    errors.extend(check_name(definition));
    errors.extend(check_spec(definition));
    errors.extend(check_stored_versions(definition, definition));
    errors.extend(check_approval(definition));
    errors
}

/// Everything that is wrong with a definition that is to replace another.
pub fn check_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    let metadata = |object: &Value| object.get("metadata").cloned().unwrap_or(Value::Null);
    let mut errors = check_metadata(&metadata(definition), false, path_segment);
    errors.extend(podscale_api::field_error::metadata::check_update(
        &metadata(definition),
        &metadata(old),
    ));
    errors.extend(check_spec(definition));
    let established = condition(old, "Established").is_some_and(|it| text(it, "/status") == "True");
    let fixed: &[&str] = if established {
        &["scope", "names.kind", "group", "names.plural"]
    } else {
        &["group", "names.plural"]
    };
    for name in fixed {
        let pointer = format!("/spec/{}", name.replace('.', "/"));
        let field = FieldPath::new("spec").child(name);
        errors.extend(check_immutable(definition.pointer(&pointer), old.pointer(&pointer), &field));
    }
    errors.extend(check_stored_versions(definition, old));
    errors
}

fn check_name(definition: &Value) -> Option<FieldError> {
    let name = text(definition, "/metadata/name");
    let (plural, group) = (text(definition, "/spec/names/plural"), text(definition, "/spec/group"));
    (!name.is_empty() && name != format!("{plural}.{group}")).then(|| {
        let field = FieldPath::new("metadata").child("name");
        FieldError::invalid(&field, name, "must be spec.names.plural+\".\"+spec.group")
    })
}

fn check_spec(definition: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let group = text(spec, "/group");
    let field = path.child("group");
    let problems = dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid(&field, group, problems.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&field, group, detail));
    }
    let scopes = ["Cluster", "Namespaced"];
    errors.extend(check_choice(text(spec, "/scope"), &scopes, &path.child("scope")));
    errors.extend(versions::check(spec, &path));
    errors.extend(check_names(spec.get("names").unwrap_or(&Value::Null), &path.child("names")));
    errors.extend(versions::check_shared(spec, &path));
    errors.extend(check_conversion(spec, &path.child("conversion")));
    if flag(spec, "preserveUnknownFields") {
        errors.push(FieldError::invalid(
            &path.child("preserveUnknownFields"),
            BadValue::verbatim("true"),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
    errors
}

fn check_choice(value: &str, choices: &[&str], field: &FieldPath) -> Option<FieldError> {
    match value {
        "" => Some(FieldError::required(field, "")),
        value if choices.contains(&value) => None,
        value => Some(FieldError::not_supported(field, value, choices)),
    }
}

fn check_names(names: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given: Vec<(&str, &str)> = ["plural", "singular", "kind", "listKind"]
        .into_iter()
        .map(|name| (name, names.get(name).and_then(Value::as_str).unwrap_or_default()))
        .collect();
    for (name, _) in given.iter().filter(|(_, value)| value.is_empty()) {
        errors.push(FieldError::required(&path.child(name), ""));
    }
    for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
        let mixed = matches!(*name, "kind" | "listKind");
        let problems =
            if mixed { dns_1035_label(&value.to_lowercase()) } else { dns_1035_label(value) };
        if !problems.is_empty() {
            let hint = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            let detail = format!("{hint}{}", problems.join(","));
            errors.push(FieldError::invalid(&path.child(name), *value, detail));
        }
    }
    let word = |name: &'static str, errors: &mut Vec<FieldError>| {
        let words = names.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, word) in words.filter_map(Value::as_str).enumerate() {
            let problems = dns_1035_label(word);
            if !problems.is_empty() {
                let field = path.child(name).index(index);
                errors.push(FieldError::invalid(&field, word, problems.join(",")));
            }
        }
    };
    word("shortNames", &mut errors);
    let (kind, list_kind) = (text(names, "/kind"), text(names, "/listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), list_kind, detail));
    }
    word("categories", &mut errors);
    errors
}

fn check_conversion(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(conversion) = spec.get("conversion").filter(|it| !it.is_null()) else {
        return Vec::new();
    };
    let strategy = text(conversion, "/strategy");
    let mut errors: Vec<FieldError> =
        check_choice(strategy, &["None", "Webhook"], &path.child("strategy")).into_iter().collect();
    let client = conversion.pointer("/webhook/clientConfig").filter(|it| !it.is_null());
    let versions = list(conversion, "/webhook/conversionReviewVersions");
    let (client_field, versions_field) =
        (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy == "Webhook" {
        if client.is_none() {
            let detail = "required when strategy is set to Webhook";
            errors.push(FieldError::required(&client_field, detail));
        }
        if versions.is_empty() {
            errors.push(FieldError::required(&versions_field, ""));
        }
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&client_field, detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_field, detail));
        }
    }
    errors
}

/// Versions that objects may still be stored in cannot go.
fn check_stored_versions(definition: &Value, stored_in: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("status").child("storedVersions");
    let versions = list(definition, "/spec/versions");
    let mut stored: Vec<&str> =
        list(stored_in, "/status/storedVersions").iter().filter_map(Value::as_str).collect();
    // The server adds the version that objects are stored in from now on.
    let storage = versions.iter().find(|version| flag(version, "storage"));
    if let Some(name) = storage.map(|version| text(version, "/name"))
        && !stored.contains(&name)
    {
        stored.push(name);
    }
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return vec![FieldError::invalid(&path, BadValue::verbatim("null"), detail)];
    }
    let unlisted = versions
        .iter()
        .filter(|version| flag(version, "storage"))
        .map(|version| text(version, "/name"))
        .filter(|name| !stored.contains(name))
        .map(|name| {
            let detail = format!("must have the storage version {name}");
            FieldError::invalid(&path, BadValue::json(&stored), detail)
        });
    let missing = stored
        .iter()
        .enumerate()
        .filter(|(_, name)| versions.iter().all(|version| text(version, "/name") != **name))
        .map(|(index, name)| {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            FieldError::invalid(&path.index(index), *name, detail)
        });
    unlisted.chain(missing).collect()
}

fn check_approval(definition: &Value) -> Option<FieldError> {
    let group = text(definition, "/spec/group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let approved = definition
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(APPROVAL))
        .is_some();
    (protected && !approved).then(|| {
        FieldError::required(
            &FieldPath::new("metadata").child("annotations").key(APPROVAL),
            format!(
                "protected groups must have approval annotation \"{APPROVAL}\", see \
                 https://github.com/kubernetes/enhancements/pull/1111"
            ),
        )
    })
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    list(definition, "/status/conditions").iter().find(|it| text(it, "/type") == kind)
}

/// Names of a definition that another one of the same group has taken, with the reason that the
/// condition states.
fn conflict(definition: &Value, others: &[&Value]) -> Option<(&'static str, String)> {
    let group = text(definition, "/spec/group");
    let own_name = text(definition, "/metadata/name");
    let others: Vec<&Value> = others
        .iter()
        .copied()
        .filter(|other| text(other, "/spec/group") == group)
        .filter(|other| text(other, "/metadata/name") != own_name)
        .collect();
    let taken = |name: &str, fields: &[&str]| {
        others.iter().any(|other| {
            let names = other.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
            fields.iter().any(|field| match names.get(*field) {
                Some(Value::String(text)) => text == name,
                Some(Value::Array(words)) => words.iter().any(|word| word == name),
                _ => false,
            })
        })
    };
    let resources = ["plural", "singular", "shortNames"];
    let kinds = ["kind", "listKind"];
    let names = definition.pointer("/spec/names").unwrap_or(&Value::Null);
    let checks: [(&str, &[&str], &'static str); 4] = [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ];
    checks.into_iter().rev().find_map(|(field, among, reason)| {
        let name = names.get(field).and_then(Value::as_str).filter(|name| !name.is_empty())?;
        taken(name, among).then(|| (reason, format!("{name:?} is already in use")))
    })
}

/// The status of a definition once the server has looked at its names: which are accepted, and
/// whether it is served. `others` are the other definitions.
pub fn established_status(definition: &Value, others: &[&Value], now: Timestamp) -> Value {
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conflict = conflict(definition, others);
    let mut status = definition.get("status").cloned().unwrap_or_else(|| json!({}));
    if !status.get("storedVersions").is_some_and(Value::is_array) {
        status["storedVersions"] = initial_status(definition)["storedVersions"].clone();
    }
    let (accepted, reason, message) = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let was_established =
        condition(definition, "Established").is_some_and(|it| text(it, "/status") == "True");
    let (established, established_reason, established_message) = match (&conflict, was_established)
    {
        (None, _) | (_, true) => {
            ("True", "InitialNamesAccepted", "the initial names have been accepted")
        }
        (Some(_), false) => ("False", "NotAccepted", "not all names are accepted"),
    };
    if conflict.is_none() {
        status["acceptedNames"] =
            definition.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));
    }
    let entry = |kind: &str, state: &str, reason: &str, message: &str| {
        let since = condition(definition, kind)
            .filter(|old| text(old, "/status") == state)
            .map_or(time.as_str(), |old| text(old, "/lastTransitionTime"));
        json!({
            "type": kind,
            "status": state,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        })
    };
    let mut conditions = vec![
        entry("NamesAccepted", accepted, reason, message),
        entry("Established", established, established_reason, established_message),
    ];
    conditions.extend(condition(definition, "Terminating").cloned());
    status["conditions"] = Value::Array(conditions);
    status
}

/// Says in a definition's status that its objects are about to be deleted.
pub fn mark_terminating(definition: &mut Value, now: Timestamp) {
    if condition(definition, "Terminating").is_some() {
        return;
    }
    let conditions = definition.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.push(json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                        begin soon",
        }));
    }
}
