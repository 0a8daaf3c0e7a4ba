//! Replacing objects, whole or in part.

use podscale_api::field_error::distinct;
use podscale_api::field_error::metadata::check_update;
use serde_json::Value;

use super::create::{create, create_tracked, default, is_unlabelled};
use super::{Endpoint, Write, Written, check_identity, version_required};
use crate::apply::{UpdateRequest, track_update};
use crate::registry::View;
use crate::rules::Generation;
use crate::status::{ApiError, ApiResult};
use crate::store::{Object, Refusal};
use crate::value::{copy, fields, integer, is_set, list, metadata, text};
use crate::view::{fill_in_stored, from_storage, to_storage};

/// How often a write that named no version is tried again when others were faster.
const TRIES: usize = 100;

/// What becomes of an object.
pub(crate) enum Proposal {
    /// This is its next version; who owns what has to be worked out.
    Replace(Value),
    /// The same, made from the present version, so that it need not name one.
    Patched(Value),
    /// This is its next version, with its owners noted.
    Applied(Value),
}

/// An object after an update, and whether it is new.
pub(crate) struct Outcome {
    pub written: Written,
    pub created: bool,
}

/// Works out the next version from the present one, which is absent if there is none; both are in
/// the served version.
pub(crate) type Produce<'a> = dyn FnMut(Option<&Value>) -> ApiResult<Proposal> + 'a;

/// Replaces an object; tries again when it changes meanwhile, unless the proposal named a version.
pub(crate) fn update(
    write: &Write<'_>,
    name: &str,
    endpoint: Endpoint,
    create_if_absent: bool,
    produce: &mut Produce<'_>,
) -> ApiResult<Outcome> {
    for _ in 0..TRIES {
        let key = write.key(name);
        let Some(stored) = write.server.store.get(&write.served.storage, &key) else {
            if !create_if_absent {
                return Err(ApiError::not_found(&write.served.info, name));
            }
            let written = create_absent(write, name, produce(None)?)?;
            return Ok(Outcome { written, created: true });
        };
        let step = replace(write, name, endpoint, &stored, produce)?;
        match step {
            Step::Done(written) => return Ok(Outcome { written, created: false }),
            Step::Again => {}
        }
    }
    Err(ApiError::modified(&write.served.info, name))
}

fn create_absent(write: &Write<'_>, name: &str, proposal: Proposal) -> ApiResult<Written> {
    match proposal {
        Proposal::Replace(object) | Proposal::Patched(object) => {
            check_identity(&object, write.namespace, name)?;
            if !text(&object, "/metadata/resourceVersion").is_empty() {
                return Err(ApiError::not_found(&write.served.info, name));
            }
            create(write, object)
        }
        Proposal::Applied(mut object) => {
            check_identity(&object, write.namespace, name)?;
            if write.served.info.namespaced {
                metadata(&mut object).insert("namespace".to_owned(), Value::from(write.namespace));
            }
            let unlabelled = is_unlabelled(&object);
            default(write, &mut object);
            create_tracked(write, object, unlabelled)
        }
    }
}

enum Step {
    Done(Written),
    Again,
}

fn replace(
    write: &Write<'_>,
    name: &str,
    endpoint: Endpoint,
    stored: &std::sync::Arc<Object>,
    produce: &mut Produce<'_>,
) -> ApiResult<Step> {
    let served = write.served;
    let old = stored.value();
    let live = from_storage(served, old.clone());
    let (mut object, tracked, derived) = match produce(Some(&live))? {
        Proposal::Replace(object) => (object, false, false),
        Proposal::Patched(object) => (object, false, true),
        Proposal::Applied(object) => (object, true, true),
    };
    check_identity(&object, write.namespace, name)?;
    let conditional = check_preconditions(write, name, &object, &old, derived)?;
    keep_system_fields(&mut object, &live);
    if endpoint == Endpoint::Object || endpoint == Endpoint::Status {
        default(write, &mut object);
    }
    let mut object = to_storage(served, object)?;
    limit_to(write, endpoint, &mut object, &old);
    if !tracked && endpoint != Endpoint::Binding {
        track(write, endpoint, &live, &mut object);
    }
    match endpoint {
        Endpoint::Object => (served.rules.prepare_update)(&mut object, &old),
        Endpoint::Status => (served.rules.prepare_status)(&mut object, &old),
        Endpoint::Scale | Endpoint::Finalize | Endpoint::Binding => {}
    }
    bump_generation(served.rules.generation, endpoint, &mut object, &old);
    check(write, name, endpoint, &object, &old)?;
    fill_in_stored(served, &mut object);
    if endpoint == Endpoint::Object {
        super::services::allocate(write, &mut object)?;
    }
    if object == old {
        return Ok(Step::Done(Written::Stored(stored.clone())));
    }
    let removed = is_set(object.pointer("/metadata/deletionTimestamp")) && may_go(&object);
    if write.dry_run {
        return Ok(Step::Done(Written::Preview(object)));
    }
    let store = &write.server.store;
    let draft = write.draft(object);
    let result = if removed {
        store.remove(&served.storage, &stored.key, stored.revision, draft)
    } else {
        store.replace(&served.storage, &stored.key, stored.revision, draft)
    };
    match result {
        Ok(written) => Ok(Step::Done(Written::Stored(written))),
        Err(_) if conditional => Err(ApiError::modified(&served.info, name)),
        Err(Refusal::Missing | Refusal::Changed(_) | Refusal::Exists(_)) => Ok(Step::Again),
    }
}

/// Notes what the writer changed, in the words of the version that it speaks.
fn track(write: &Write<'_>, endpoint: Endpoint, live: &Value, object: &mut Value) {
    let (version, time) = (write.served.api_version(), write.server.now_text());
    let request = UpdateRequest {
        shape: write.shape(),
        live,
        writer: write.writer(endpoint, &version, &time),
    };
    if write.served.view == View::Stored {
        track_update(&request, object);
        return;
    }
    let mut shown = from_storage(write.served, object.clone());
    track_update(&request, &mut shown);
    let managers = metadata(&mut shown).remove("managedFields");
    if let Some(managers) = managers {
        metadata(object).insert("managedFields".to_owned(), managers);
    }
}

/// Whether nothing holds an object that is being deleted.
pub(crate) fn may_go(object: &Value) -> bool {
    let namespace = text(object, "/kind") == "Namespace" && text(object, "/apiVersion") == "v1";
    list(object, "/metadata/finalizers").is_empty()
        && integer(object, "/metadata/deletionGracePeriodSeconds").unwrap_or_default() == 0
        && (!namespace || list(object, "/spec/finalizers").is_empty())
}

/// Whether the request named a version; refuses it if that is not the present one.
fn check_preconditions(
    write: &Write<'_>,
    name: &str,
    object: &Value,
    old: &Value,
    derived: bool,
) -> ApiResult<bool> {
    let info = &write.served.info;
    let (uid, actual) = (text(object, "/metadata/uid"), text(old, "/metadata/uid"));
    if !derived && !uid.is_empty() && uid != actual {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object \
             meta: {actual}",
            info.plural,
            write.key(name)
        );
        return Err(ApiError::conflict(info, name, &why));
    }
    let version = text(object, "/metadata/resourceVersion");
    if version.is_empty() || version == "0" {
        if !derived && !write.served.rules.unconditional {
            return Err(ApiError::invalid(&info.group, &info.plural, name, &[version_required()]));
        }
        return Ok(false);
    }
    if let Err(problem) = version.parse::<u64>() {
        let problem = match problem.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let message = format!("strconv.ParseUint: parsing {version:?}: {problem}");
        return Err(ApiError::unexplained(message));
    }
    if version != text(old, "/metadata/resourceVersion") {
        return Err(ApiError::modified(info, name));
    }
    Ok(true)
}

/// Puts back what clients cannot change.
fn keep_system_fields(object: &mut Value, live: &Value) {
    let nothing = Value::Null;
    let old = live.get("metadata").unwrap_or(&nothing);
    let meta = metadata(object);
    for name in
        ["uid", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        if let Some(value) = old.get(name)
            && !is_set(meta.get(name).filter(|given| given.as_str() != Some("")))
        {
            meta.insert(name.to_owned(), value.clone());
        }
    }
    for name in ["generation", "resourceVersion"] {
        match old.get(name) {
            Some(value) => meta.insert(name.to_owned(), value.clone()),
            None => meta.remove(name),
        };
    }
}

/// Each endpoint changes only its part of the object.
fn limit_to(write: &Write<'_>, endpoint: Endpoint, object: &mut Value, live: &Value) {
    let served = write.served;
    match endpoint {
        Endpoint::Object if served.info.has_status() => copy(object, live, "status"),
        Endpoint::Object | Endpoint::Scale | Endpoint::Binding => {}
        Endpoint::Status => {
            if served.custom.is_some() {
                let status = object.get("status").cloned();
                let managed = object.pointer("/metadata/managedFields").cloned();
                *object = live.clone();
                match status {
                    Some(status) => {
                        fields(object).insert("status".to_owned(), status);
                    }
                    None => {
                        fields(object).remove("status");
                    }
                }
                if let Some(managed) = managed {
                    metadata(object).insert("managedFields".to_owned(), managed);
                }
            } else {
                let kept: Vec<String> = live
                    .as_object()
                    .into_iter()
                    .flat_map(|fields| fields.keys().cloned())
                    .filter(|name| name != "metadata" && name != "status")
                    .collect();
                for name in kept {
                    copy(object, live, &name);
                }
            }
        }
        Endpoint::Finalize => {
            let finalizers = object.pointer("/spec/finalizers").cloned();
            copy(object, live, "spec");
            copy(object, live, "status");
            let spec = crate::value::section(object, "spec");
            match finalizers.filter(|value| value.as_array().is_some_and(|list| !list.is_empty())) {
                Some(finalizers) => {
                    spec.insert("finalizers".to_owned(), finalizers);
                }
                None => {
                    spec.remove("finalizers");
                }
            }
        }
    }
}

fn bump_generation(rule: Generation, endpoint: Endpoint, object: &mut Value, old: &Value) {
    let differs = |name: &str| object.get(name) != old.get(name);
    let annotations = |object: &Value| object.pointer("/metadata/annotations").cloned();
    let bump = match rule {
        _ if endpoint == Endpoint::Binding => false,
        Generation::Unused => false,
        Generation::Spec => differs("spec"),
        Generation::SpecOrAnnotations => {
            differs("spec")
                || (endpoint == Endpoint::Object && annotations(object) != annotations(old))
        }
        Generation::Custom => {
            let part = |object: &Value| {
                let mut object = object.clone();
                for name in ["metadata", "status", "apiVersion"] {
                    fields(&mut object).remove(name);
                }
                object
            };
            endpoint != Endpoint::Status && part(object) != part(old)
        }
    };
    if bump {
        let next = integer(old, "/metadata/generation").unwrap_or_default().saturating_add(1);
        metadata(object).insert("generation".to_owned(), Value::from(next));
    }
}

fn check(
    write: &Write<'_>,
    name: &str,
    endpoint: Endpoint,
    object: &Value,
    old: &Value,
) -> ApiResult<()> {
    let served = write.served;
    let nothing = Value::Null;
    let mut errors = check_update(
        object.get("metadata").unwrap_or(&nothing),
        old.get("metadata").unwrap_or(&nothing),
    );
    match endpoint {
        Endpoint::Object | Endpoint::Scale => {
            errors.extend((served.rules.check_update)(object, old));
        }
        Endpoint::Status => errors.extend((served.rules.check_status)(object, old)),
        Endpoint::Finalize | Endpoint::Binding => {}
    }
    if let Some(custom) = &served.custom {
        errors.extend(custom.check(object, Some(old), endpoint != Endpoint::Status));
    }
    write.refuse(name, distinct(errors))?;
    if endpoint == Endpoint::Object { write.admit(name, object, Some(old)) } else { Ok(()) }
}
