//! Questions about access: everything is allowed here.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::mutate::{Context, body_format};
use super::{Call, respond};
use crate::status::{ApiError, ApiResult};
use crate::value::fields;
use crate::write::create::track;
use crate::write::decode::{self, FieldValidation};

/// Answers a review.
pub(super) fn create(call: &Call) -> ApiResult<Response> {
    let format = body_format(call)?;
    let decoded = decode::object(&call.served, &call.body, format, FieldValidation::Ignore)?;
    let mut review = decoded.object;
    let user = json!({
        "username": "system:admin",
        "groups": ["system:masters", "system:authenticated"],
    });
    let status: Value = match call.served.info.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({ "allowed": true })
        }
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        }),
        "SelfSubjectReview" => json!({ "userInfo": user }),
        "TokenReview" => json!({ "authenticated": true, "user": user }),
        _ => return Err(ApiError::method_not_allowed()),
    };
    let context = Context::of(call, "CreateOptions")?;
    track(&context.write(call), &mut review);
    fields(&mut review).insert("status".to_owned(), status);
    respond::render(call, StatusCode::CREATED, &review)
}
