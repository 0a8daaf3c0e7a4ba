//! Creating objects.

use podscale_api::field_error::distinct;
use podscale_api::field_error::metadata::{check_create, check_finalizer_names};
use serde_json::Value;

use super::{Endpoint, Write, Written, check_namespace};
use crate::apply::{UpdateRequest, track_update};
use crate::registry::View;
use crate::rules::Generation;
use crate::rules::cluster::check_new_event;
use crate::status::{ApiError, ApiResult};
use crate::store::Refusal;
use crate::types::decode::{compact, zero};
use crate::types::{self, Type};
use crate::value::{fields, metadata, text};
use crate::view::{fill_in_stored, from_storage, to_storage};

/// Longest prefix that leaves room for five random characters.
const PREFIX_LIMIT: usize = 58;
/// How often a generated name that is taken is generated anew.
const NAME_TRIES: usize = 8;

/// Creates an object of the served version.
pub(crate) fn create(write: &Write<'_>, mut object: Value) -> ApiResult<Written> {
    check_namespace(&object, write.namespace)?;
    if write.served.info.namespaced {
        metadata(&mut object).insert("namespace".to_owned(), Value::from(write.namespace));
    }
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        return Err(ApiError::unexplained(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    wipe(&mut object);
    let unlabelled = is_unlabelled(&object);
    default(write, &mut object);
    if matches!(write.served.view, View::Autoscaling(_)) {
        // What an older version cannot say shows up in it as annotations, and those have owners too.
        let mut shown = from_storage(write.served, to_storage(write.served, object.clone())?);
        track(write, &mut shown);
        if let Some(managers) = metadata(&mut shown).remove("managedFields") {
            metadata(&mut object).insert("managedFields".to_owned(), managers);
        }
    } else {
        track(write, &mut object);
    }
    create_tracked(write, object, unlabelled)
}

/// Whether an object comes without labels.
pub(crate) fn is_unlabelled(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.is_none_or(serde_json::Map::is_empty)
}

/// Fills in defaults of the served version.
pub(crate) fn default(write: &Write<'_>, object: &mut Value) {
    if matches!(write.served.view, View::Autoscaling(_)) {
        // The conversion fills in the rest, and tells an empty list from an absent one.
        crate::autoscaling::default(object);
        return;
    }
    if write.served.view != View::EventsV1 {
        (write.served.rules.default)(object);
    }
    if let Some(custom) = &write.served.custom {
        custom.fill_defaults(object);
    }
    if let Some(ty) = &write.served.ty {
        compact(types::kubernetes(), ty, object);
    }
}

/// Drops what only the server may set.
fn wipe(object: &mut Value) {
    let meta = metadata(object);
    for name in
        ["resourceVersion", "selfLink", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        meta.remove(name);
    }
}

/// Notes what the creator of an object set.
pub(crate) fn track(write: &Write<'_>, object: &mut Value) {
    let (version, time) = (write.served.api_version(), write.server.now_text());
    let blank = write.blank();
    let request = UpdateRequest {
        shape: write.shape(),
        live: &blank,
        writer: write.writer(Endpoint::Object, &version, &time),
    };
    track_update(&request, object);
}

/// Creates an object whose owners have been noted already; `unlabelled` tells whether its creator gave
/// it no labels.
pub(crate) fn create_tracked(
    write: &Write<'_>,
    object: Value,
    unlabelled: bool,
) -> ApiResult<Written> {
    let served = write.served;
    let mut object = to_storage(served, object)?;
    let prefix = text(&object, "/metadata/generateName").to_owned();
    let generates = text(&object, "/metadata/name").is_empty() && !prefix.is_empty();
    let mut tries = 0;
    loop {
        if generates {
            let prefix: String = prefix.chars().take(PREFIX_LIMIT).collect();
            let name = format!("{prefix}{}", write.server.new_suffix());
            metadata(&mut object).insert("name".to_owned(), Value::from(name));
        }
        let name = text(&object, "/metadata/name").to_owned();
        write.require_namespace(&name)?;
        prepare(write, &mut object);
        check(write, &name, &object)?;
        fill_in_stored(served, &mut object);
        // What is made under a generated name is a copy, which labels filled in before do not follow.
        if unlabelled && (!generates || is_unlabelled(&object)) {
            (served.rules.finish_unlabelled)(&mut object);
        }
        super::services::allocate(write, &mut object)?;
        let key = write.key(&name);
        if write.dry_run {
            if write.server.store.get(&served.storage, &key).is_some() {
                return Err(ApiError::already_exists(&served.info, &name));
            }
            return Ok(Written::Preview(object));
        }
        match write.server.store.create(&served.storage, &key, write.draft(object.clone())) {
            Ok(stored) => return Ok(Written::Stored(stored)),
            Err(_) if generates && tries < NAME_TRIES => tries += 1,
            Err(Refusal::Exists(_) | Refusal::Missing | Refusal::Changed(_)) => {
                return Err(ApiError::already_exists(&served.info, &name));
            }
        }
    }
}

/// Sets what only the server may set.
fn prepare(write: &Write<'_>, object: &mut Value) {
    let served = write.served;
    let now = write.server.now_text();
    let uid = write.server.new_uid();
    wipe(object);
    let meta = metadata(object);
    meta.insert("uid".to_owned(), Value::from(uid));
    meta.insert("creationTimestamp".to_owned(), Value::from(now));
    if served.rules.generation != Generation::Unused {
        meta.insert("generation".to_owned(), Value::from(1));
    }
    if served.info.has_status() && served.info.plural != "nodes" {
        match storage_type(write).as_ref().and_then(empty_status) {
            Some(status) => {
                fields(object).insert("status".to_owned(), status);
            }
            None => {
                fields(object).remove("status");
            }
        }
    }
    (served.rules.prepare_create)(object);
}

/// The type of the version that is stored.
fn storage_type(write: &Write<'_>) -> Option<Type> {
    if matches!(write.served.view, View::Autoscaling(_)) {
        return types::kubernetes().find("autoscaling/v2.HorizontalPodAutoscaler");
    }
    write.served.ty.clone()
}

fn empty_status(ty: &Type) -> Option<Value> {
    let Type::Struct(id) = ty else { return None };
    let field = types::kubernetes().structure(*id)?.field("status")?;
    Some(zero(types::kubernetes(), &field.ty))
}

/// Checks a new object as it will be stored.
fn check(write: &Write<'_>, name: &str, object: &Value) -> ApiResult<()> {
    let served = write.served;
    let nothing = Value::Null;
    let given = object.get("metadata").unwrap_or(&nothing);
    let mut errors = check_create(given, served.info.namespaced, served.rules.name);
    // Autoscalers and definitions check their metadata themselves.
    if served.custom.is_none() {
        errors.extend(check_finalizer_names(given));
    }
    if served.view == View::EventsV1 {
        errors.extend(check_new_event(object));
        if !errors.is_empty() {
            return Err(ApiError::invalid("", "Event", name, &errors));
        }
    }
    errors.extend((served.rules.check)(object));
    if let Some(custom) = &served.custom {
        errors.extend(custom.check(object, None, true));
    }
    write.refuse(name, distinct(errors))?;
    write.admit(name, object, None)
}
