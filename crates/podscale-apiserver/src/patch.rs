//! Changing an object by a patch: JSON patch, merge patch, strategic merge patch.

mod strategic;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::status::{ApiError, ApiResult};
use crate::types::Type;

/// Most operations that one JSON patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// The kinds of patch besides server-side apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, which knows how lists merge.
    Strategic,
}

/// Applies a patch; `ty` is the object's type where it is built in.
pub fn apply(
    kind: PatchKind,
    ty: Option<&Type>,
    mut object: Value,
    body: &[u8],
) -> ApiResult<Value> {
    match kind {
        PatchKind::Json => {
            let operations = read_operations(body)?;
            json_patch::patch(&mut object, &operations).map_err(|_| rejected())?;
            Ok(object)
        }
        PatchKind::Merge => {
            merge(&mut object, read_object(body)?);
            Ok(object)
        }
        PatchKind::Strategic => match ty {
            Some(ty) => strategic::apply(ty, object, read_object(body)?),
            None => Err(ApiError::unsupported_media_type(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ])),
        },
    }
}

fn read_operations(body: &[u8]) -> ApiResult<Vec<json_patch::PatchOperation>> {
    let given: Value =
        serde_json::from_slice(body).map_err(|_| ApiError::bad_request("invalid JSON patch"))?;
    let what = match &given {
        Value::Array(_) => "",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    if !what.is_empty() {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {what} into Go value of type \
             []handlers.jsonPatchOp"
        )));
    }
    let operations: Vec<json_patch::PatchOperation> =
        serde_json::from_value(given).map_err(|_| rejected())?;
    if operations.len() > MAX_OPERATIONS {
        return Err(ApiError::bad_request(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    Ok(operations)
}

fn rejected() -> ApiError {
    ApiError::unprocessable("the server rejected our request due to an error in our request")
}

fn read_object(body: &[u8]) -> ApiResult<Map<String, Value>> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(ApiError::bad_request("invalid JSON patch")),
    }
}

/// RFC 7386: nulls delete, objects merge, all else replaces.
fn merge(target: &mut Value, patch: Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        match value {
            Value::Null => {
                fields.remove(&name);
            }
            Value::Object(inner) => merge(fields.entry(name).or_insert(Value::Null), inner),
            other => {
                fields.insert(name, other);
            }
        }
    }
}
