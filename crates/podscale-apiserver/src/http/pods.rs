//! What only pods have: binding and logs; eviction is in `eviction.rs`.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::mutate::{Context, body_format};
use super::{Call, respond};
use crate::status::{ApiError, ApiResult};
use crate::types::decode::time_text;
use crate::value::{fields, is_set, list, section, text};
use crate::write::decode;
use crate::write::update::{Proposal, update};
use crate::write::{Endpoint, check_namespace};

pub(super) fn success(call: &Call) -> ApiResult<Response> {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    respond::render(call, StatusCode::CREATED, &status)
}

pub(super) fn read(call: &Call, kind: &str) -> ApiResult<Value> {
    let ty = if kind == "Binding" { "core/v1.Binding" } else { "policy/v1.Eviction" };
    let format = body_format(call)?;
    let (body, _) = decode::parse(&call.body, format, Some(ty)).map_err(ApiError::bad_request)?;
    check_namespace(&body, call.namespace())?;
    let name = text(&body, "/metadata/name");
    if !name.is_empty() && name != call.name() {
        return Err(ApiError::bad_request(format!(
            "name in URL does not match name in {kind} object"
        )));
    }
    Ok(body)
}

/// Puts a pod on a node.
pub(super) fn bind(call: &Call) -> ApiResult<Response> {
    let body = read(call, "Binding")?;
    let context = Context::of(call, "CreateOptions")?;
    let node = text(&body, "/target/name").to_owned();
    if node.is_empty() {
        return Err(ApiError::bad_request("target.name: Required value"));
    }
    let now = time_text(call.server.now());
    let mut produce = |live: Option<&Value>| {
        let mut pod = live.cloned().unwrap_or_default();
        let refuse = |why: String| Err(ApiError::conflict(&binding_info(call), call.name(), &why));
        if is_set(pod.pointer("/metadata/deletionTimestamp")) {
            return refuse(format!(
                "pod {} is being deleted, cannot be assigned to a host",
                call.name()
            ));
        }
        let placed = text(&pod, "/spec/nodeName");
        if !placed.is_empty() {
            return refuse(format!("pod {} is already assigned to node {placed:?}", call.name()));
        }
        section(&mut pod, "spec").insert("nodeName".to_owned(), Value::from(node.as_str()));
        let mut conditions: Vec<Value> = list(&pod, "/status/conditions")
            .iter()
            .filter(|condition| text(condition, "/type") != "PodScheduled")
            .cloned()
            .collect();
        conditions.push(json!({
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": now,
        }));
        section(&mut pod, "status").insert("conditions".to_owned(), Value::Array(conditions));
        crate::value::metadata(&mut pod).remove("resourceVersion");
        Ok(Proposal::Patched(pod))
    };
    update(&context.write(call), call.name(), Endpoint::Binding, false, &mut produce)?;
    success(call)
}

fn binding_info(call: &Call) -> crate::resource::ResourceInfo {
    let mut info = call.served.info.clone();
    info.plural = "pods/binding".to_owned();
    info
}

/// The log of a pod; nothing runs in it, so it says nothing.
pub(super) fn log(call: &Call) -> ApiResult<Response> {
    let key = crate::store::key(call.namespace(), call.name());
    let found = call.server.store.get(&call.served.storage, &key);
    let found = found.ok_or_else(|| ApiError::not_found(&call.served.info, call.name()))?;
    let mut pod = found.value();
    let wanted = call.params.text("container");
    let known =
        list(&pod, "/spec/containers").iter().any(|container| text(container, "/name") == wanted);
    if !wanted.is_empty() && !known {
        let why = format!("container {wanted} is not valid for pod {}", call.name());
        return Err(ApiError::bad_request(why));
    }
    fields(&mut pod);
    Ok(super::plain(StatusCode::OK, ""))
}
