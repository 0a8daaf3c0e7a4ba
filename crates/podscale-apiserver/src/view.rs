//! Objects between the version they are stored in and the versions they are served in.

use podscale_api::hpa::convert::Version;
use serde_json::{Map, Value};

use crate::autoscaling;
use crate::registry::{Served, View};
use crate::status::{ApiError, ApiResult};
use crate::types;
use crate::types::decode::decode;
use crate::value::fields;

/// The names of an event's fields: as stored, as in events.k8s.io/v1.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A stored object in the version that is served.
pub(crate) fn from_storage(served: &Served, mut object: Value) -> Value {
    let info = &served.info;
    match served.view {
        View::Stored => object,
        View::Renamed => {
            fields(&mut object)
                .insert("apiVersion".to_owned(), Value::from(served.info.api_version()));
            object
        }
        View::Autoscaling(version) => {
            let converted = autoscaling::from_v2(object, version);
            match version {
                Version::V1 => converted,
                // Its type says what is written when empty, and ends before some newer fields.
                _ => canonical(&types::name_of(&info.group, &info.version, &info.kind), converted),
            }
        }
        View::EventsV1 => event_from_core(object),
    }
}

/// An object of the served version as it is stored.
pub(crate) fn to_storage(served: &Served, mut object: Value) -> ApiResult<Value> {
    match served.view {
        View::Stored => Ok(object),
        View::Renamed => {
            if let Some(custom) = &served.custom {
                let version = custom.storage_api_version.as_str();
                fields(&mut object).insert("apiVersion".to_owned(), Value::from(version));
            }
            Ok(object)
        }
        View::Autoscaling(_) => autoscaling::to_v2(&object).map_err(ApiError::bad_request),
        View::EventsV1 => Ok(event_to_core(object)),
    }
}

/// Fills in what the stored version has and the served one could not say. That comes after the checks: they
/// are about what was sent.
pub(crate) fn fill_in_stored(served: &Served, object: &mut Value) {
    if matches!(served.view, View::Autoscaling(_)) {
        (served.rules.default)(object);
    }
}

fn rename(object: Value, version: &str, names: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(given) = object else { return object };
    let mut renamed = Map::new();
    for (name, value) in given {
        let name = names(&name).map_or(name, str::to_owned);
        renamed.insert(name, value);
    }
    renamed.insert("apiVersion".to_owned(), Value::from(version));
    Value::Object(renamed)
}

fn event_from_core(object: Value) -> Value {
    let renamed = rename(object, "events.k8s.io/v1", |name| {
        EVENT_FIELDS.iter().find(|(core, _)| *core == name).map(|(_, new)| *new)
    });
    canonical("events/v1.Event", renamed)
}

fn event_to_core(object: Value) -> Value {
    let renamed = rename(object, "v1", |name| {
        EVENT_FIELDS.iter().find(|(_, new)| *new == name).map(|(core, _)| *core)
    });
    canonical("core/v1.Event", renamed)
}

/// The two types leave out different fields when they are empty.
fn canonical(name: &str, object: Value) -> Value {
    let types = types::kubernetes();
    let Some(ty) = types.find(name) else { return object };
    decode(types, &ty, object.clone()).map_or(object, |decoded| decoded.value)
}
