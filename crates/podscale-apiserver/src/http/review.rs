//! Questions about access: whoever has the token of the server may do everything.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::mutate::{Context, body_format};
use super::{Call, respond, same_secret};
use crate::status::{ApiError, ApiResult};
use crate::value::{fields, text};
use crate::write::create::track;
use crate::write::decode::{self, FieldValidation};

/// Whether the token of a review is the one that requests must carry, if they must carry any.
fn is_accepted(call: &Call, review: &Value) -> bool {
    let token = call.server.config.token.as_ref();
    token.is_none_or(|token| same_secret(text(review, "/spec/token").as_bytes(), token.as_bytes()))
}

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
        "TokenReview" if is_accepted(call, &review) => {
            json!({ "authenticated": true, "user": user })
        }
        "TokenReview" => json!({ "error": "the token is not that of this server" }),
        _ => return Err(ApiError::method_not_allowed()),
    };
    let context = Context::of(call, "CreateOptions")?;
    track(&context.write(call), &mut review);
    fields(&mut review).insert("status".to_owned(), status);
    respond::render(call, StatusCode::CREATED, &review)
}
