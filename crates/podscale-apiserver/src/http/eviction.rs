//! Evicting pods, as far as their disruption budgets allow it.

use axum::response::Response;
use http::StatusCode;
use podscale_api::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};

use super::mutate::Context;
use super::pods::{read, success};
use super::{Call, respond};
use crate::registry::Served;
use crate::status::{ApiError, ApiResult};
use crate::value::{entry, integer, is_set, list, section, text};
use crate::write::delete::{DeleteOptions, delete};
use crate::write::update::{Proposal, update};
use crate::write::{Endpoint, Write};

const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CONDITION: &str = "DisruptionAllowed";
/// The server itself notes an eviction in the budget.
const MANAGER: &str = "kube-apiserver";
const RETRY_SECONDS: i64 = 10;
/// So many evictions can wait for a controller to take note of them.
const MAX_DISRUPTED_PODS: usize = 2000;

/// Evicts a pod.
pub(super) fn evict(call: &Call) -> ApiResult<Response> {
    let body = read(call, "Eviction")?;
    let context = Context::of(call, "CreateOptions")?;
    let mut options = DeleteOptions { dry_run: context.dry_run, ..DeleteOptions::default() };
    if let Some(given) = body.get("deleteOptions") {
        options.read(given)?;
    }
    let write = context.write(call);
    let pod = write.get(call.name())?.value();
    if is_guarded(&pod)
        && let Some(served) = call.server.registry().find("policy", "v1", "poddisruptionbudgets")
    {
        let budgets = budgets_of(call, &served, &pod);
        match budgets.as_slice() {
            [] => {}
            [budget] => ask(call, &served, budget, &pod, options.dry_run)?,
            _ => return several(call),
        }
    }
    delete(&write, call.name(), &options)?;
    success(call)
}

/// Whether the pod still does something that an eviction would disrupt.
fn is_guarded(pod: &Value) -> bool {
    !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending")
        && !is_set(pod.pointer("/metadata/deletionTimestamp"))
}

fn several(call: &Call) -> ApiResult<Response> {
    let code = StatusCode::INTERNAL_SERVER_ERROR;
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                    does not support.",
        "code": code.as_u16(),
    });
    respond::render(call, code, &status)
}

fn budgets_of(call: &Call, served: &Served, pod: &Value) -> Vec<Value> {
    let labels = pod.pointer("/metadata/labels");
    let label = |key: &str| labels?.get(key)?.as_str();
    let selects = |budget: &Value| {
        let selector = budget.pointer("/spec/selector").filter(|selector| !selector.is_null())?;
        let selector = LabelSelector::deserialize(selector).ok()?.to_selector().ok()?;
        Some(selector.is_empty() || selector.matches(label))
    };
    let snapshot = call.server.store.snapshot(&served.storage);
    snapshot
        .objects
        .values()
        .filter(|object| object.namespace() == call.namespace())
        .map(|object| object.value())
        .filter(|budget| selects(budget) == Some(true))
        .collect()
}

/// Takes one disruption from the budget, if the pod needs one.
fn ask(call: &Call, served: &Served, budget: &Value, pod: &Value, dry_run: bool) -> ApiResult<()> {
    if !is_ready(pod) {
        let always = text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
        let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
        if always || (healthy >= desired && desired > 0) {
            return Ok(());
        }
    }
    let write = Write {
        server: &call.server,
        served,
        namespace: call.namespace(),
        manager: MANAGER,
        dry_run,
    };
    let now = call.server.now_text();
    let mut produce = |live: Option<&Value>| {
        let mut budget = live.cloned().unwrap_or_default();
        check(&budget)?;
        take_one(&mut budget, call.name(), &now);
        crate::value::metadata(&mut budget).remove("resourceVersion");
        Ok(Proposal::Patched(budget))
    };
    let name = text(budget, "/metadata/name");
    update(&write, name, Endpoint::Status, false, &mut produce).map(|_| ())
}

fn is_ready(pod: &Value) -> bool {
    list(pod, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "Ready" && text(condition, "/status") == "True"
    })
}

fn count(budget: &Value, name: &str) -> i64 {
    budget.pointer(&format!("/status/{name}")).and_then(Value::as_i64).unwrap_or_default()
}

fn cause(message: String) -> Vec<Value> {
    vec![json!({ "reason": "DisruptionBudget", "message": message })]
}

/// Refuses the eviction unless the budget has room.
fn check(budget: &Value) -> ApiResult<()> {
    let name = text(budget, "/metadata/name");
    if count(budget, "observedGeneration")
        < integer(budget, "/metadata/generation").unwrap_or_default()
    {
        let message =
            format!("The disruption budget {name} is still being processed by the server.");
        let mut error = ApiError::too_many_requests(VIOLATION, cause(message));
        if let Some(Value::Object(details)) = &mut error.details {
            details.insert("retryAfterSeconds".to_owned(), json!(RETRY_SECONDS));
        }
        return Err(error);
    }
    let pending = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if pending.is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        let message = format!(
            "The disruption budget {name} does not allow evicting pods currently: too many \
             pending evictions not confirmed by PDB controller"
        );
        return Err(ApiError::too_many_requests(VIOLATION, cause(message)));
    }
    if count(budget, "disruptionsAllowed") > 0 {
        return Ok(());
    }
    Err(ApiError::too_many_requests(VIOLATION, cause(refusal(budget, name))))
}

fn refusal(budget: &Value, name: &str) -> String {
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    let condition = list(budget, "/status/conditions").iter().find(|condition| {
        text(condition, "/type") == CONDITION
            && text(condition, "/status") == "False"
            && !text(condition, "/message").is_empty()
    });
    let told = condition.map(|one| (text(one, "/reason"), text(one, "/message")));
    match told {
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {message}"
        ),
        _ if healthy <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): \
             {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Notes the eviction, so that the pod counts as gone before it is.
fn take_one(budget: &mut Value, pod: &str, now: &str) {
    let left = count(budget, "disruptionsAllowed").saturating_sub(1);
    let generation = count(budget, "observedGeneration");
    let status = entry(budget, "status");
    section(status, "disruptedPods").insert(pod.to_owned(), json!(now));
    crate::value::fields(status).insert("disruptionsAllowed".to_owned(), json!(left));
    if left > 0 {
        return;
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if text(condition, "/type") != CONDITION {
            continue;
        }
        let turned = text(condition, "/status") != "False";
        let condition = crate::value::fields(condition);
        condition.insert("status".to_owned(), json!("False"));
        condition.insert("reason".to_owned(), json!("InsufficientPods"));
        condition.insert("message".to_owned(), json!(""));
        condition.insert("observedGeneration".to_owned(), json!(generation));
        if turned {
            condition.insert("lastTransitionTime".to_owned(), json!(now));
        }
    }
}
