//! Creating objects.

use podscale_api::field_error::distinct;
use podscale_api::field_error::metadata::check_create;
use serde_json::Value;

use super::{Endpoint, Write, Written, check_namespace};
use crate::apply::{UpdateRequest, track_update};
use crate::rules::Generation;
use crate::status::{ApiError, ApiResult};
use crate::store::Refusal;
use crate::types::{self, Type, decode::zero};
use crate::value::{fields, metadata, text};
use crate::view::to_storage;

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
    default(write, &mut object);
    track(write, &mut object);
    create_tracked(write, object)
}

/// Fills in defaults of the served version.
pub(crate) fn default(write: &Write<'_>, object: &mut Value) {
    if write.served.view == crate::registry::View::AutoscalingV1 {
        crate::autoscaling_v1::default(object);
    } else if write.served.view != crate::registry::View::EventsV1 {
        (write.served.rules.default)(object);
    }
    if let Some(custom) = &write.served.custom {
        custom.fill_defaults(object);
    }
}

fn track(write: &Write<'_>, object: &mut Value) {
    let (version, time) = (write.served.api_version(), write.server.now_text());
    let blank = write.blank();
    let request = UpdateRequest {
        shape: write.shape(),
        live: &blank,
        writer: write.writer(Endpoint::Object, &version, &time),
    };
    track_update(&request, object);
}

/// Creates an object whose owners have been noted already.
pub(crate) fn create_tracked(write: &Write<'_>, object: Value) -> ApiResult<Written> {
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
    let meta = metadata(object);
    for name in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        meta.remove(name);
    }
    meta.insert("uid".to_owned(), Value::from(uid));
    meta.insert("creationTimestamp".to_owned(), Value::from(now));
    match served.rules.generation {
        Generation::Unused => {
            meta.remove("generation");
        }
        _ => {
            meta.insert("generation".to_owned(), Value::from(1));
        }
    }
    if served.info.has_status() && served.info.plural != "nodes" {
        match storage_type(write).as_ref().and_then(|ty| empty_status(ty)) {
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
    if write.served.view == crate::registry::View::AutoscalingV1 {
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
    errors.extend((served.rules.check)(object));
    if let Some(custom) = &served.custom {
        errors.extend(custom.check(object, None, true));
    }
    write.refuse(name, distinct(errors))
}
