//! AdmissionReviews of `admission.k8s.io/v1`: the question that an API server asks before it stores an object, and the
//! answer to it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Kind, Refusal, Verdict, find};
use crate::serde_form::null_default;

/// The group of these types.
pub const GROUP: &str = "admission.k8s.io";
/// Group and version; API servers of every supported Kubernetes speak it.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// Their version.
pub const VERSION: &str = "v1";
/// The kind of questions and of answers.
pub const KIND: &str = "AdmissionReview";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It is no JSON, or a field has the wrong type.
    #[error("the body is not an {KIND}: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is something else.
    #[error(
        "the body is not an {KIND} of {API_VERSION}: its kind is {kind:?} and its apiVersion {api_version:?}"
    )]
    Other {
        /// Its kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// Nobody could tell what an answer belongs to.
    #[error("the {KIND} has no request with a uid")]
    NoRequest,
    /// There is nothing to check.
    #[error("the request to {operation} {kind} {name:?} has no object")]
    NoObject {
        /// What is done.
        operation: String,
        /// The kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The AdmissionReview that says it.
    pub review: Value,
    /// What was refused, if it was.
    pub refused: Option<Refused>,
}

/// An object that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Review {
    api_version: String,
    kind: String,
    #[serde(deserialize_with = "null_default")]
    request: Request,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    uid: String,
    kind: GroupKind,
    sub_resource: String,
    name: String,
    namespace: String,
    operation: String,
    object: Value,
    old_object: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupKind {
    group: String,
    kind: String,
}

/// Answers an AdmissionReview.
///
/// # Errors
/// The body is none.
pub fn answer(body: &[u8]) -> Result<Answer, ReviewError> {
    let Review { api_version, kind, request } = serde_json::from_slice(body)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(ReviewError::Other { kind, api_version });
    }
    if request.uid.is_empty() {
        return Err(ReviewError::NoRequest);
    }
    let mut response = json!({"uid": request.uid, "allowed": true});
    let Some(known) = find(&request.kind.group, &request.kind.kind) else {
        let GroupKind { group, kind } = &request.kind;
        response["warnings"] = json!([format!("Podscale does not check {kind}.{group}")]);
        return Ok(answered(response, None));
    };
    let Verdict { causes, warnings } = request.judge(known)?;
    if !warnings.is_empty() {
        response["warnings"] = warnings.into();
    }
    if causes.is_empty() {
        return Ok(answered(response, None));
    }
    let name = request.name().to_owned();
    let Refusal { message, details } = known.refusal(&name, &causes);
    response["allowed"] = false.into();
    response["status"] = json!({
        "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid", "message": message,
        "details": details,
    });
    let refused = Refused { kind: known.kind, namespace: request.namespace, name, message };
    Ok(answered(response, Some(refused)))
}

fn answered(response: Value, refused: Option<Refused>) -> Answer {
    let review = json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
    Answer { review, refused }
}

impl Request {
    /// What the object is called, which its metadata says if the name was generated.
    fn name(&self) -> &str {
        let generated = || self.object.pointer("/metadata/name").and_then(Value::as_str);
        Some(&*self.name).filter(|name| !name.is_empty()).or_else(generated).unwrap_or_default()
    }

    /// What is said of the object; nothing where it goes, or where only a part such as its status is written.
    fn judge(&self, known: &Kind) -> Result<Verdict, ReviewError> {
        let writes = ["CREATE", "UPDATE"].contains(&&*self.operation);
        if !writes || !self.sub_resource.is_empty() {
            return Ok(Verdict::default());
        }
        if !self.object.is_object() {
            let (operation, name) = (self.operation.clone(), self.name.clone());
            return Err(ReviewError::NoObject { operation, kind: known.kind, name });
        }
        let old = Some(&self.old_object).filter(|old| old.is_object());
        Ok(known.judge(&self.object, old))
    }
}
