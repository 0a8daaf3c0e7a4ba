//! Questions about access: whoever has the token of the server may do everything.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::mutate::{Context, body_format};
use super::{Call, respond, token};
use crate::status::{ApiError, ApiResult};
use crate::tokens::{ISSUER, same_secret};
use crate::value::{fields, list, text};
use crate::write::create::track;
use crate::write::decode::{self, FieldValidation};

/// Whether a token is the one that requests must carry, if they must carry any.
fn is_accepted(call: &Call, given: &str) -> bool {
    let token = call.server.config.token.as_ref();
    token.is_none_or(|token| same_secret(given.as_bytes(), token.as_bytes()))
}

fn administrator() -> Value {
    json!({
        "username": "system:admin",
        "groups": ["system:masters", "system:authenticated"],
    })
}

/// Whose the token of a review is, for one of the audiences that the review names.
fn token_status(call: &Call, review: &Value) -> Value {
    let given = text(review, "/spec/token");
    let Some(claims) = token::claims(&call.server, given) else {
        return if is_accepted(call, given) {
            json!({ "authenticated": true, "user": administrator() })
        } else {
            json!({ "error": "the token is not that of this server" })
        };
    };
    let asked: Vec<&str> =
        list(review, "/spec/audiences").iter().filter_map(Value::as_str).collect();
    let asked = if asked.is_empty() { vec![ISSUER] } else { asked };
    let meant = |audience: &&String| asked.contains(&audience.as_str());
    let audiences: Vec<&String> = claims.audiences.iter().filter(meant).collect();
    if audiences.is_empty() {
        return json!({ "error": "the token is for another audience" });
    }
    json!({ "authenticated": true, "user": token::user(&claims), "audiences": audiences })
}

/// Answers a review.
pub(super) fn create(call: &Call) -> ApiResult<Response> {
    let format = body_format(call)?;
    let decoded = decode::object(&call.served, &call.body, format, FieldValidation::Ignore)?;
    let mut review = decoded.object;
    let status: Value = match call.served.info.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({ "allowed": true })
        }
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        }),
        "SelfSubjectReview" => {
            let claims = token::claims(&call.server, token::carried(&call.headers));
            json!({ "userInfo": claims.as_ref().map_or_else(administrator, token::user) })
        }
        "TokenReview" => token_status(call, &review),
        _ => return Err(ApiError::method_not_allowed()),
    };
    let context = Context::of(call, "CreateOptions")?;
    track(&context.write(call), &mut review);
    fields(&mut review).insert("status".to_owned(), status);
    respond::render(call, StatusCode::CREATED, &review)
}
