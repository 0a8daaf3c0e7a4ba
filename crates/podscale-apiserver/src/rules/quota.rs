//! ResourceQuotas and LimitRanges. They are stored and checked; nothing is counted or limited.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use podscale_api::Quantity;
use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use podscale_api::names::label_key_errors;
use serde_json::{Map, Value};

use super::go_value::internal;
use super::pod_spec::{check_name, shown};
use crate::value::{fields, is_set, list, text};

/// What can be counted in a namespace; these are whole numbers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const COMPUTE: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
const EPHEMERAL: [&str; 3] =
    ["ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"];
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const OPPOSITES: [[&str; 2]; 2] =
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

fn is_quota_name(name: &str) -> bool {
    COUNTED.contains(&name)
        || COMPUTE.contains(&name)
        || EPHEMERAL.contains(&name)
        || name == "requests.storage"
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && label_key_errors(&format!("requests.{name}")).is_empty()
}

fn check_resource_name(name: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_name(name, path, label_key_errors);
    if errors.is_empty() && !name.contains('/') && !is_quota_name(name) && name != "storage" {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

/// Checks amounts of a quota.
fn check_amounts(amounts: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, value) in amounts.and_then(Value::as_object).into_iter().flatten() {
        let path = path.key(name);
        errors.extend(check_resource_name(name, &path));
        if !name.contains('/') && !is_quota_name(name) {
            let detail = "must be a standard resource for quota";
            errors.push(FieldError::invalid(&path, name.as_str(), detail));
        }
        errors.extend(check_amount(name, value, &path));
    }
    errors
}

/// Checks an amount of a resource.
pub(super) fn check_amount(name: &str, value: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(amount) = quantity(value) else { return Vec::new() };
    let shown = amount.to_string();
    let mut errors = Vec::new();
    if amount.sign().is_lt() {
        errors.push(FieldError::invalid(path, shown.as_str(), NOT_NEGATIVE));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && amount.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, shown.as_str(), "must be an integer"));
    }
    errors
}

/// Checks a ResourceQuota.
pub(crate) fn check_quota(quota: &Value) -> Vec<FieldError> {
    let spec = quota.get("spec").unwrap_or(&Value::Null);
    let path = FieldPath::new("spec");
    let mut errors = check_amounts(spec.get("hard"), &path.child("hard"));
    errors.extend(check_scopes(spec, &path.child("scopes")));
    if is_set(spec.get("scopeSelector")) {
        errors.extend(check_scope_selector(spec, &path));
    }
    errors
}

fn hard_names(spec: &Value) -> impl Iterator<Item = &str> {
    spec.get("hard").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str())
}

fn scope_covers(scope: &str, name: &str) -> bool {
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => name == "pods" || COMPUTE.contains(&name),
        _ => true,
    }
}

fn misfits(spec: &Value, scope: &str) -> usize {
    hard_names(spec).filter(|name| is_quota_name(name) && !scope_covers(scope, name)).count()
}

fn conflicts(scopes: &HashSet<&str>) -> usize {
    OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).count()
}

fn check_scopes(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let scopes: Vec<&str> = list(spec, "/scopes").iter().filter_map(Value::as_str).collect();
    let refuse = |detail: &str| FieldError::invalid(path, BadValue::json(&scopes), detail);
    let mut errors = Vec::new();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.push(refuse("unsupported scope"));
        }
        let misfits = misfits(spec, scope);
        errors.extend((0..misfits).map(|_| refuse("unsupported scope applied to resource")));
    }
    let conflicts = conflicts(&scopes.iter().copied().collect());
    errors.extend((0..conflicts).map(|_| refuse("conflicting scopes")));
    errors
}

fn check_scope_selector(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let path = path.child("scopeSelector").child("matchExpressions");
    let nothing = Value::Null;
    let selector = spec.get("scopeSelector").unwrap_or(&nothing);
    let mut errors = Vec::new();
    let mut scopes = HashSet::new();
    for expression in list(selector, "/matchExpressions") {
        let (scope, operator) = (text(expression, "/scopeName"), text(expression, "/operator"));
        if !SCOPES.contains(&scope) {
            let path = path.child("scopeName");
            errors.push(FieldError::invalid(&path, scope, "unsupported scope"));
        }
        let misfits = misfits(spec, scope);
        errors.extend((0..misfits).map(|_| {
            let shown = internal("core/v1.ScopeSelector", selector);
            FieldError::invalid(&path, shown, "unsupported scope applied to resource")
        }));
        let plain =
            SCOPES.contains(&scope) && !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if plain && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or \
                          ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
        errors.extend(check_scope_values(expression, operator, &path));
        scopes.insert(scope);
    }
    errors.extend(
        (0..conflicts(&scopes))
            .map(|_| FieldError::invalid(&path, shown(spec.get("scopes")), "conflicting scopes")),
    );
    errors
}

fn check_scope_values(expression: &Value, operator: &str, path: &FieldPath) -> Option<FieldError> {
    let values = list(expression, "/values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope \
                          selector";
            Some(FieldError::required(&path.child("values"), detail))
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope \
                          selector";
            Some(FieldError::invalid(&path.child("values"), BadValue::json(&values), detail))
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        other => {
            let detail = "not a valid selector operator";
            Some(FieldError::invalid(&path.child("operator"), other, detail))
        }
    }
}

/// Checks a ResourceQuota that replaces another.
pub(crate) fn check_quota_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_quota(new);
    let scopes = |quota: &Value| -> BTreeSet<String> {
        let scopes = list(quota, "/spec/scopes").iter().filter_map(Value::as_str);
        scopes.map(str::to_owned).collect()
    };
    if scopes(new) != scopes(old) {
        let path = FieldPath::new("spec").child("scopes");
        let given = shown(new.pointer("/spec/scopes"));
        errors.push(FieldError::invalid(&path, given, "field is immutable"));
    }
    errors
}

/// Checks a ResourceQuota's new status.
pub(crate) fn check_quota_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("status");
    let mut errors = check_amounts(new.pointer("/status/hard"), &path.child("hard"));
    errors.extend(check_amounts(new.pointer("/status/used"), &path.child("used")));
    errors
}

/// A quota whose requests can never be used up.
pub(crate) fn quota_warnings(quota: &Value) -> Vec<String> {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
    let amount = |name: &str| hard.and_then(|hard| quantity(hard.get(name)?));
    ["cpu", "memory", "storage", "ephemeral-storage"]
        .into_iter()
        .filter_map(|name| {
            let bare = matches!(name, "cpu" | "memory").then_some(name.to_owned());
            let mut names = [Some(format!("requests.{name}")), bare].into_iter().flatten();
            let (request_name, request) =
                names.find_map(|name| amount(&name).map(|amount| (name, amount)))?;
            let limit_name = format!("limits.{name}");
            let limit = amount(&limit_name).filter(|limit| request > *limit)?;
            Some(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} \
                 ({limit})"
            ))
        })
        .collect()
}

/// Fills in a LimitRange: what containers ask for follows from what they may have.
pub(crate) fn default_limit_range(range: &mut Value) {
    let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        if text(limit, "/type") != "Container" {
            continue;
        }
        let limit = fields(limit);
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            fill(limit, from, to);
        }
    }
}

fn fill(limit: &mut Map<String, Value>, from: &str, to: &str) {
    let given = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
    let target = fields(limit.entry(to).or_insert(Value::Null));
    for (name, amount) in given {
        target.entry(name).or_insert(amount);
    }
}

/// Checks a LimitRange.
pub(crate) fn check_limit_range(range: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec").child("limits");
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, limit) in list(range, "/spec/limits").iter().enumerate() {
        let path = path.index(index);
        let kind = text(limit, "/type");
        errors.extend(check_limit_type(kind, &path.child("type")));
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        errors.extend(check_limit(limit, kind, &path));
    }
    errors
}

fn check_limit_type(kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_name(kind, path, label_key_errors);
    let standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.is_empty() && !kind.contains('/') && !standard {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    errors
}

fn check_limit_resource(kind: &str, name: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_resource_name(name, path);
    if !matches!(kind, "Pod" | "Container") {
        return errors;
    }
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if !name.contains('/') && !standard && !name.starts_with("hugepages-") {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid(path, name, detail));
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

fn check_limit(limit: &Value, kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut amounts: BTreeMap<&str, BTreeMap<&str, Quantity>> = BTreeMap::new();
    for part in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let given = limit.get(part).and_then(Value::as_object);
        if kind == "Pod" && part.starts_with("default") {
            if given.is_some_and(|given| !given.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(part), detail));
            }
            continue;
        }
        for (name, value) in given.into_iter().flatten() {
            errors.extend(check_limit_resource(kind, name, &path.child(part).key(name)));
            if let Some(value) = quantity(value) {
                amounts.entry(name).or_default().insert(part, value);
            }
        }
    }
    let storage = |part: &str| amounts.get("storage").is_some_and(|it| it.contains_key(part));
    if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    for (name, amounts) in &amounts {
        errors.extend(check_limit_order(name, amounts, path));
    }
    errors
}

/// Each amount of one resource fits the others.
fn check_limit_order(
    name: &str,
    amounts: &BTreeMap<&str, Quantity>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // What is smaller, what is larger, the field that is blamed, the value that is shown, the words.
    for (low, high, blamed, shown, words) in [
        ("min", "max", "min", "min", ["min value", "max value"]),
        (
            "min",
            "defaultRequest",
            "defaultRequest",
            "defaultRequest",
            ["min value", "default request value"],
        ),
        (
            "defaultRequest",
            "max",
            "defaultRequest",
            "defaultRequest",
            ["default request value", "max value"],
        ),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "defaultRequest",
            ["default request value", "default limit value"],
        ),
        ("min", "default", "default", "min", ["min value", "default value"]),
        ("default", "max", "default", "max", ["default value", "max value"]),
    ] {
        if let (Some(low), Some(high)) = (amounts.get(low), amounts.get(high))
            && low > high
        {
            let [low_words, high_words] = words;
            let detail = format!("{low_words} {low} is greater than {high_words} {high}");
            let shown = amounts.get(shown).map(ToString::to_string).unwrap_or_default();
            let path = path.child(blamed).key(name);
            errors.push(FieldError::invalid(&path, shown.as_str(), detail));
        }
    }
    errors.extend(check_ratio(name, amounts, path));
    let (limit, request) = (amounts.get("default"), amounts.get("defaultRequest"));
    if let (Some(limit), Some(request)) = (limit, request)
        && limit != request
        && !(is_native(name) && !name.starts_with("hugepages-"))
    {
        let path = path.child("defaultRequest").key(name);
        let detail =
            format!("default value {limit} must equal to defaultRequest value {request} in {name}");
        errors.push(FieldError::invalid(&path, request.to_string().as_str(), detail));
    }
    errors
}

fn check_ratio(
    name: &str,
    amounts: &BTreeMap<&str, Quantity>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let Some(ratio) = amounts.get("maxLimitRequestRatio") else { return Vec::new() };
    let path = path.child("maxLimitRequestRatio").key(name);
    let shown = ratio.to_string();
    let mut errors = Vec::new();
    if ratio.milli_value() < 1000 {
        let detail = format!("ratio {ratio} is less than 1");
        errors.push(FieldError::invalid(&path, shown.as_str(), detail));
    }
    if let (Some(min), Some(max)) = (amounts.get("min"), amounts.get("max")) {
        let limit = max.as_approximate_f64() / min.as_approximate_f64();
        if ratio.as_approximate_f64() > limit {
            let detail = format!("ratio {ratio} is greater than max/min = {limit:.6}");
            errors.push(FieldError::invalid(&path, shown.as_str(), detail));
        }
    }
    errors
}

/// Checks a LimitRange that replaces another.
pub(crate) fn check_limit_range_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    check_limit_range(new)
}
