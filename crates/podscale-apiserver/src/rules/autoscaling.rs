//! HorizontalPodAutoscalers, in the version they are stored in; the rules themselves are
//! `podscale-api`'s.

use podscale_api::field_error::FieldError;
use podscale_api::hpa::convert;
use podscale_api::hpa::default::default_hpa;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::hpa::validate;
use serde::Deserialize;
use serde_json::Value;

use crate::value::fields;

fn read(object: &Value) -> Option<HorizontalPodAutoscaler> {
    // The object has been through the decoder of its type, so it reads.
    HorizontalPodAutoscaler::deserialize(object).ok()
}

/// Fills in an autoscaler.
pub(crate) fn default(object: &mut Value) {
    let Some(mut hpa) = read(object) else { return };
    default_hpa(&mut hpa);
    if let Ok(spec) = serde_json::to_value(&hpa.spec) {
        fields(object).insert("spec".to_owned(), spec);
    }
    remove_annotations_of_versions(object);
}

/// What other versions keep in annotations is in the fields of this one; such an annotation means nothing here.
fn remove_annotations_of_versions(object: &mut Value) {
    let metadata = fields(object).get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return;
    };
    let before = annotations.len();
    annotations.retain(|name, _| !convert::is_of_a_version(name));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

/// Checks an autoscaler.
pub(crate) fn check(object: &Value) -> Vec<FieldError> {
    read(object).map_or_else(Vec::new, |hpa| validate::check_create(&hpa))
}

/// Checks an autoscaler that replaces another.
pub(crate) fn check_update(new: &Value, old: &Value) -> Vec<FieldError> {
    match (read(new), read(old)) {
        (Some(new), Some(old)) => validate::check_update(&new, &old),
        _ => Vec::new(),
    }
}

/// Checks an autoscaler's new status.
pub(crate) fn check_status(new: &Value, old: &Value) -> Vec<FieldError> {
    match (read(new), read(old)) {
        (Some(new), Some(old)) => validate::check_status_update(&new, &old),
        _ => Vec::new(),
    }
}
