//! Requests that write objects.

use axum::response::Response;
use http::StatusCode;
use podscale_api::field_error::metadata::check_field_manager;
use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::filter::Filter;
use super::params::ListParams;
use super::{Call, list, respond};
use crate::apply::{ApplyRequest, track_apply};
use crate::definitions;
use crate::patch::{self, PatchKind};
use crate::status::{self, ApiError, ApiResult};
use crate::value::{fields, metadata, text};
use crate::view::from_storage;
use crate::write::decode::{self, FieldValidation, Format};
use crate::write::delete::{DeleteOptions, Deleted, Propagation};
use crate::write::update::Proposal;
use crate::write::{Endpoint, Write, create as creating, delete as deleting, update as updating};

const BODY_TYPES: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// What a write needs, from the request.
pub(super) struct Context {
    pub manager: String,
    pub dry_run: bool,
    pub validation: FieldValidation,
}

impl Context {
    pub(super) fn of(call: &Call, kind: &str) -> ApiResult<Self> {
        let manager = call.manager();
        let errors = check_field_manager(&manager, &FieldPath::new("fieldManager"));
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors));
        }
        Ok(Self {
            manager,
            dry_run: call.params.dry_run(kind)?,
            validation: call.params.field_validation(kind)?,
        })
    }

    pub(super) fn write<'a>(&'a self, call: &'a Call) -> Write<'a> {
        Write {
            server: &call.server,
            served: &call.served,
            namespace: call.namespace(),
            manager: &self.manager,
            dry_run: self.dry_run,
        }
    }
}

/// The format of the body.
pub(super) fn body_format(call: &Call) -> ApiResult<Format> {
    // Custom resources have no protobuf form.
    format_of(call.content_type(), !call.served.info.custom)
}

/// The format that a content type names.
pub(super) fn format_of(content_type: &str, protobuf: bool) -> ApiResult<Format> {
    match content_type {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" | "text/yaml" => Ok(Format::Yaml),
        "application/vnd.kubernetes.protobuf" if protobuf => Ok(Format::Protobuf),
        _ => Err(ApiError::unsupported_media_type(BODY_TYPES)),
    }
}

/// Creates an object.
pub(super) fn create(call: &Call) -> ApiResult<Response> {
    let context = Context::of(call, "CreateOptions")?;
    let format = body_format(call)?;
    if call.served.info.namespaced && call.path.namespace.is_none() {
        return Err(ApiError::method_not_allowed());
    }
    let decoded = decode::object(&call.served, &call.body, format, context.validation)?;
    let write = context.write(call);
    let written = creating::create(&write, decoded.object)?;
    let mut warnings = decoded.problems;
    warnings.extend(written.warnings(&call.served));
    let written = definitions::after_write(&write, written);
    let response = respond::object(call, StatusCode::CREATED, written)?;
    Ok(respond::with_warnings(response, &warnings))
}

/// Replaces an object, or a part of it.
pub(super) fn update(call: &Call, endpoint: Endpoint) -> ApiResult<Response> {
    let context = Context::of(call, "UpdateOptions")?;
    let format = body_format(call)?;
    let decoded = decode::object(&call.served, &call.body, format, context.validation)?;
    let write = context.write(call);
    let create_if_absent = endpoint == Endpoint::Object && call.served.rules.create_on_update;
    let mut produce = |_: Option<&Value>| Ok(Proposal::Replace(decoded.object.clone()));
    let outcome = updating::update(&write, call.name(), endpoint, create_if_absent, &mut produce)?;
    let code = if outcome.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut warnings = decoded.problems.clone();
    if outcome.created {
        warnings.extend(outcome.written.warnings(&call.served));
    }
    let written = definitions::after_write(&write, outcome.written);
    let response = respond::object(call, code, written)?;
    Ok(respond::with_warnings(response, &warnings))
}

/// Changes an object by a patch, or applies a configuration.
pub(super) fn patch(call: &Call, endpoint: Endpoint) -> ApiResult<Response> {
    let kind = match call.content_type() {
        "application/apply-patch+yaml" => return apply(call, endpoint),
        other => patch_kind(other)?,
    };
    if kind == PatchKind::Strategic && call.served.ty.is_none() {
        return Err(ApiError::unsupported_media_type(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ]));
    }
    let context = Context::of(call, "PatchOptions")?;
    if call.params.get("force").is_some() {
        let path = FieldPath::new("force");
        let error = FieldError::forbidden(&path, "may not be specified for non-apply patch");
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
    }
    let write = context.write(call);
    let mut problems = Vec::new();
    let mut produce = |live: Option<&Value>| {
        let live = live.cloned().unwrap_or_default();
        let version = text(&live, "/metadata/resourceVersion").to_owned();
        let mut patched = patch::apply(kind, call.served.ty.as_ref(), live, &call.body)?;
        // Only a version that the patch itself names is a condition.
        if text(&patched, "/metadata/resourceVersion") == version {
            metadata(&mut patched).remove("resourceVersion");
        }
        decode::check_kind(&call.served, &patched)?;
        let shown = patched.to_string();
        let decoded = decode::plain(&call.served, patched, Vec::new(), context.validation)
            .map_err(|message| {
                let error = FieldError::invalid(&FieldPath::new("patch"), shown.as_str(), message);
                ApiError::invalid("", "", "", &[error])
            })?;
        problems = decoded.problems;
        Ok(Proposal::Patched(decoded.object))
    };
    let outcome = updating::update(&write, call.name(), endpoint, false, &mut produce)?;
    let written = definitions::after_write(&write, outcome.written);
    let response = respond::object(call, StatusCode::OK, written)?;
    Ok(respond::with_warnings(response, &problems))
}

/// The kind of patch that a content type names.
pub(super) fn patch_kind(content_type: &str) -> ApiResult<PatchKind> {
    match content_type {
        "application/json-patch+json" => Ok(PatchKind::Json),
        "application/merge-patch+json" => Ok(PatchKind::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchKind::Strategic),
        _ => Err(ApiError::not_a_patch()),
    }
}

/// Applies a configuration.
fn apply(call: &Call, endpoint: Endpoint) -> ApiResult<Response> {
    let context = Context::of(call, "PatchOptions")?;
    if call.params.text("fieldManager").is_empty() {
        let path = FieldPath::new("fieldManager");
        let error = FieldError::required(&path, "is required for apply patch");
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
    }
    let (mut config, duplicates) = decode::parse(&call.body, Format::Yaml, None)
        .map_err(|error| ApiError::bad_request(format!("error encoding patch: yaml: {error}")))?;
    check_applied_kind(call, &config)?;
    if config.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let duplicates: Vec<String> =
        duplicates.into_iter().map(|path| format!("duplicate field {path:?}")).collect();
    // The configuration itself stays as it was written: what it leaves out, it does not own.
    let checked = decode::plain(&call.served, config.clone(), duplicates, context.validation)
        .map_err(|message| {
            ApiError::bad_request(format!("error strict decoding patch: {message}"))
        })?;
    refuse_undeclared(call, &config)?;
    let meta = metadata(&mut config);
    if meta.get("name").is_none_or(Value::is_null) {
        meta.insert("name".to_owned(), json!(call.name()));
    }
    drop_nulls(&mut config);
    let write = context.write(call);
    let version = call.served.api_version();
    let time = call.server.now_text();
    let force = call.params.flag("force");
    let mut produce = |live: Option<&Value>| {
        let blank = json!({ "metadata": {} });
        let request = ApplyRequest {
            shape: write.shape(),
            live: live.unwrap_or(&blank),
            config: &config,
            writer: write.writer(endpoint, &version, &time),
            force,
        };
        let mut merged = track_apply(&request)?;
        if config.pointer("/metadata/resourceVersion").is_none() {
            metadata(&mut merged).remove("resourceVersion");
        }
        fields(&mut merged).insert("apiVersion".to_owned(), json!(version));
        fields(&mut merged).insert("kind".to_owned(), json!(call.served.info.kind));
        let decoded = decode::plain(&call.served, merged, Vec::new(), FieldValidation::Ignore)
            .map_err(ApiError::bad_request)?;
        Ok(Proposal::Applied(decoded.object))
    };
    let creates = endpoint == Endpoint::Object;
    let outcome = updating::update(&write, call.name(), endpoint, creates, &mut produce)?;
    let code = if outcome.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut warnings = checked.problems;
    if outcome.created {
        warnings.extend(outcome.written.warnings(&call.served));
    }
    let written = definitions::after_write(&write, outcome.written);
    let response = respond::object(call, code, written)?;
    Ok(respond::with_warnings(response, &warnings))
}

/// Refuses configurations of something else.
fn check_applied_kind(call: &Call, config: &Value) -> ApiResult<()> {
    let info = &call.served.info;
    let (version, kind) = (text(config, "/apiVersion"), text(config, "/kind"));
    if version == info.api_version() && kind == info.kind {
        return Ok(());
    }
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")))
}

/// Refuses fields that nobody could own, since the type does not have them.
fn refuse_undeclared(call: &Call, config: &Value) -> ApiResult<()> {
    let unknown = decode::unknown_fields(&call.served, config.clone());
    if unknown.is_empty() {
        return Ok(());
    }
    let info = &call.served.info;
    let fields: Vec<String> =
        unknown.iter().map(|path| format!(".{path}: field not declared in schema")).collect();
    Err(ApiError::unexplained(format!(
        "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {}",
        text(config, "/metadata/namespace"),
        text(config, "/metadata/name"),
        info.group,
        info.version,
        info.kind,
        if let [only] = fields.as_slice() {
            only.clone()
        } else {
            format!("errors:\n  {}", fields.join("\n  "))
        },
    )))
}

/// Nulls in a configuration say nothing.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn delete_options(call: &Call) -> ApiResult<DeleteOptions> {
    let mut options = DeleteOptions {
        grace_seconds: call.params.integer("gracePeriodSeconds")?,
        propagation: match call.params.text("propagationPolicy") {
            "" => None,
            policy => Some(Propagation::parse(policy)?),
        },
        dry_run: call.params.dry_run("DeleteOptions")?,
        ..DeleteOptions::default()
    };
    if let Some(orphan) = call.params.optional_flag("orphanDependents") {
        options.propagation =
            Some(if orphan { Propagation::Orphan } else { Propagation::Background });
    }
    if !call.body.is_empty() {
        // Options have a protobuf form even where the objects have none.
        let format = format_of(call.content_type(), true)?;
        let (body, _) = decode::parse(&call.body, format, Some("meta/v1.DeleteOptions"))
            .map_err(ApiError::bad_request)?;
        options.read(&body)?;
    }
    Ok(options)
}

/// What a deletion does to dependents where the client does not say: the client is told.
fn default_propagation(call: &Call, options: &mut DeleteOptions) -> Vec<String> {
    if options.propagation.is_some() || !call.served.rules.orphans_dependents {
        return Vec::new();
    }
    options.propagation = Some(Propagation::Orphan);
    vec![
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
         this warning"
            .to_owned(),
    ]
}

/// Deletes an object.
pub(super) fn delete(call: &Call) -> ApiResult<Response> {
    let mut options = delete_options(call)?;
    let warnings = default_propagation(call, &mut options);
    let context = Context {
        manager: call.manager(),
        dry_run: options.dry_run,
        validation: FieldValidation::Ignore,
    };
    let write = context.write(call);
    definitions::before_delete(&write, call.name(), &options);
    let deleted = deleting::delete(&write, call.name(), &options)?;
    if !options.dry_run {
        definitions::after_delete(&write, call.name());
    }
    let response = match deleted {
        Deleted::Gone(written) if call.served.rules.returns_deleted => {
            respond::object(call, StatusCode::OK, written)?
        }
        Deleted::Gone(written) => {
            let object = written.into_value();
            let uid = text(&object, "/metadata/uid");
            let status = status::deleted(&call.served.info, call.name(), uid);
            respond::render(call, StatusCode::OK, &status)?
        }
        Deleted::Pending(written) => respond::object(call, StatusCode::OK, written)?,
    };
    Ok(respond::with_warnings(response, &warnings))
}

/// Deletes all objects that a list with the same parameters would give.
pub(super) fn delete_collection(call: &Call) -> ApiResult<Response> {
    let mut options = delete_options(call)?;
    let warnings = default_propagation(call, &mut options);
    let params = ListParams::parse(&call.params, false)?;
    let page = list::page(call, &params, &Filter::of(call)?)?;
    let manager = call.manager();
    let mut items = Vec::with_capacity(page.items.len());
    for item in page.items {
        let write = Write {
            server: &call.server,
            served: &call.served,
            namespace: item.namespace(),
            manager: &manager,
            dry_run: options.dry_run,
        };
        definitions::before_delete(&write, item.name(), &options);
        match deleting::delete(&write, item.name(), &options) {
            Ok(Deleted::Gone(written) | Deleted::Pending(written)) => {
                if !options.dry_run {
                    definitions::after_delete(&write, item.name());
                }
                let mut item = from_storage(&call.served, written.into_value());
                if !call.served.info.custom {
                    fields(&mut item).remove("kind");
                    fields(&mut item).remove("apiVersion");
                }
                items.push(item);
            }
            // Someone else was faster.
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({
        "kind": call.served.info.list_kind,
        "apiVersion": call.served.info.api_version(),
        "metadata": { "resourceVersion": call.server.store.revision().to_string() },
        "items": items,
    });
    let response = respond::render(call, StatusCode::OK, &list)?;
    Ok(respond::with_warnings(response, &warnings))
}
