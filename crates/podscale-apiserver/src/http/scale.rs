//! Workloads seen as an `autoscaling/v1` Scale.

use axum::response::Response;
use http::StatusCode;
use podscale_api::LabelSelector;
use podscale_api::field_error::{FieldError, FieldPath};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::accept::Form;
use super::mutate::{Context, format_of, patch_kind};
use super::{Call, respond};
use crate::patch::{self, PatchKind};
use crate::resource::ScalePaths;
use crate::status::{ApiError, ApiResult};
use crate::table::{Printer, partial_object_metadata};
use crate::types;
use crate::types::decode::decode as decode_type;
use crate::value::{fields, integer, text};
use crate::view::from_storage;
use crate::write::decode::{self, FieldValidation, Format};
use crate::write::update::{Proposal, update as replace};
use crate::write::{Endpoint, check_namespace};

/// The parts of a dotted path such as `.spec.replicas`.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|step| !step.is_empty())
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(object, |value, step| value.get(step))
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for step in steps(path) {
        place = fields(place).entry(step).or_insert(Value::Null);
    }
    *place = value;
}

/// The Scale of an object.
fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let count = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata = Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{name}")) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    let replicas = count(&paths.spec_replicas);
    if replicas != 0 {
        spec.insert("replicas".to_owned(), Value::from(replicas));
    }
    let mut status = json!({ "replicas": count(&paths.status_replicas) });
    if let Some(selector) = paths.selector.as_deref().and_then(|path| selector(at(object, path)?)) {
        fields(&mut status).insert("selector".to_owned(), Value::from(selector));
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    })
}

/// A selector as text, whether it is an object, a map of labels, or a text already.
fn selector(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Object(given)
            if given.contains_key("matchLabels") || given.contains_key("matchExpressions") =>
        {
            let selector = LabelSelector::deserialize(value).ok()?.to_selector().ok()?;
            Some(selector.to_string())
        }
        Value::Object(labels) => {
            let pairs: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            (!pairs.is_empty()).then(|| pairs.join(","))
        }
        _ => None,
    }
}

fn respond_with(call: &Call, object: Value, paths: &ScalePaths) -> ApiResult<Response> {
    let scale = scale_of(&object, paths);
    let shown = match call.output.form {
        Form::Object => scale,
        Form::Metadata => partial_object_metadata(&scale),
        Form::Table => {
            let metadata = json!({ "resourceVersion": scale.pointer("/metadata/resourceVersion") });
            let printer = Printer::built_in("autoscaling", "scales");
            let include = crate::table::IncludeObject::Metadata;
            printer.table([&scale], metadata, include, true, call.server.now())
        }
    };
    respond::render(call, StatusCode::OK, &shown)
}

/// Reads a Scale.
pub(super) fn get(call: &Call, paths: &ScalePaths) -> ApiResult<Response> {
    let key = crate::store::key(call.namespace(), call.name());
    let found = call.server.store.get(&call.served.storage, &key);
    let found = found.ok_or_else(|| ApiError::not_found(&call.served.info, call.name()))?;
    respond_with(call, from_storage(&call.served, found.value()), paths)
}

/// Replaces a Scale.
pub(super) fn update(call: &Call, paths: &ScalePaths) -> ApiResult<Response> {
    // A Scale has a protobuf form even where the object has none.
    let format = format_of(call.content_type(), true)?;
    let (body, _) = decode::parse(&call.body, format, Some("autoscaling/v1.Scale"))
        .map_err(ApiError::bad_request)?;
    write(call, paths, &mut |_| Ok(body.clone()))
}

/// Changes a Scale by a patch.
pub(super) fn patch(call: &Call, paths: &ScalePaths) -> ApiResult<Response> {
    let applied = call.content_type() == "application/apply-patch+yaml";
    let kind = if applied { PatchKind::Merge } else { patch_kind(call.content_type())? };
    let ty = types::kubernetes().find("autoscaling/v1.Scale");
    let body = if applied {
        let parsed = decode::parse(&call.body, Format::Yaml, None);
        parsed.map_err(ApiError::bad_request)?.0.to_string().into_bytes()
    } else {
        call.body.to_vec()
    };
    write(call, paths, &mut |live| {
        let version = text(&live, "/metadata/resourceVersion").to_owned();
        let mut patched = patch::apply(kind, ty.as_ref(), live, &body)?;
        // Only a version that the patch itself names is a condition.
        if text(&patched, "/metadata/resourceVersion") == version {
            crate::value::metadata(&mut patched).remove("resourceVersion");
        }
        Ok(patched)
    })
}

fn read_scale(call: &Call, scale: Value) -> ApiResult<(i64, Value)> {
    let kind = text(&scale, "/kind").to_owned();
    let kind = if kind.is_empty() { "Scale".to_owned() } else { kind };
    let refuse = |message: String| {
        ApiError::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a Scale: {message}"
        ))
    };
    if kind != "Scale" {
        return Err(refuse(format!(
            "converting (v1.{kind}) to (autoscaling.Scale): unknown conversion"
        )));
    }
    let known = types::kubernetes();
    let ty = known
        .find("autoscaling/v1.Scale")
        .ok_or_else(|| ApiError::internal("the type of Scale is not known"))?;
    let scale = decode_type(known, &ty, scale).map_err(refuse)?.value;
    check_namespace(&scale, call.namespace())?;
    let name = text(&scale, "/metadata/name");
    if !name.is_empty() && name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    let replicas = integer(&scale, "/spec/replicas").unwrap_or_default();
    if replicas < 0 {
        let path = FieldPath::new("spec").child("replicas");
        let error = FieldError::invalid(&path, replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid("autoscaling", "Scale", call.name(), &[error]));
    }
    Ok((replicas, scale))
}

fn write(
    call: &Call,
    paths: &ScalePaths,
    make: &mut dyn FnMut(Value) -> ApiResult<Value>,
) -> ApiResult<Response> {
    let mut context = Context::of(call, "UpdateOptions")?;
    context.validation = FieldValidation::Ignore;
    let writing = context.write(call);
    let mut produce = |live: Option<&Value>| {
        let live = live.cloned().unwrap_or_default();
        let (replicas, scale) = read_scale(call, make(scale_of(&live, paths))?)?;
        let mut object = live;
        set(&mut object, &paths.spec_replicas, Value::from(replicas));
        let meta = crate::value::metadata(&mut object);
        for name in ["resourceVersion", "uid"] {
            match scale.pointer(&format!("/metadata/{name}")) {
                Some(value) => meta.insert(name.to_owned(), value.clone()),
                None => meta.remove(name),
            };
        }
        Ok(Proposal::Patched(object))
    };
    let outcome = replace(&writing, call.name(), Endpoint::Scale, false, &mut produce)?;
    respond_with(call, from_storage(&call.served, outcome.written.into_value()), paths)
}
