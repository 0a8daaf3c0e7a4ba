//! AdmissionReviews of `admission.k8s.io/v1`: the question that an API server asks before it stores an object, and the
//! answer to it.

use serde::Deserialize;
use serde_json::value::RawValue;
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

/// The largest object that is checked: what is read takes many times its text, and autoscalers have a few KiB.
const MOST_BYTES: usize = 256 * 1024;

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
struct Review<'a> {
    api_version: String,
    kind: String,
    #[serde(borrow, deserialize_with = "null_default")]
    request: Request<'a>,
}

/// The objects stay text until it is known that they are of a kind that is checked.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request<'a> {
    uid: String,
    kind: GroupKind,
    sub_resource: String,
    name: String,
    namespace: String,
    operation: String,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
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
    let name = request.name();
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

impl Request<'_> {
    /// What the object is called, which its metadata says if the name was generated.
    fn name(&self) -> String {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Named {
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Metadata {
            name: String,
        }
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let text = object_text(self.object).unwrap_or_default();
        serde_json::from_str(text)
            .map_or_else(|_| String::new(), |named: Named| named.metadata.name)
    }

    /// What is said of the object; nothing where it goes, or where only a part such as its status is written.
    fn judge(&self, known: &Kind) -> Result<Verdict, ReviewError> {
        let writes = ["CREATE", "UPDATE"].contains(&&*self.operation);
        if !writes || !self.sub_resource.is_empty() {
            return Ok(Verdict::default());
        }
        let Some(text) = object_text(self.object) else {
            let (operation, name) = (self.operation.clone(), self.name.clone());
            return Err(ReviewError::NoObject { operation, kind: known.kind, name });
        };
        if text.len() > MOST_BYTES {
            let most = MOST_BYTES / 1024;
            let warning = format!("Podscale does not check objects of more than {most} KiB");
            return Ok(Verdict { causes: Vec::new(), warnings: vec![warning] });
        }
        let object = serde_json::from_str(text)?;
        Ok(known.judge(&object, self.old()?.as_ref()))
    }

    /// What is compared of the object that is written over. One whose spec is too large to be checked cannot have that
    /// of an object that is.
    fn old(&self) -> Result<Option<Value>, ReviewError> {
        #[derive(Deserialize)]
        struct Old<'a> {
            #[serde(borrow, default)]
            spec: Option<&'a RawValue>,
        }
        let Some(text) = object_text(self.old_object) else { return Ok(None) };
        let Old { spec } = serde_json::from_str(text)?;
        match spec.map(RawValue::get) {
            None => Ok(Some(json!({}))),
            Some(spec) if spec.len() > MOST_BYTES => Ok(None),
            Some(spec) => Ok(Some(json!({"spec": serde_json::from_str::<Value>(spec)?}))),
        }
    }
}

/// The text of an object, if it is one.
fn object_text(text: Option<&RawValue>) -> Option<&str> {
    text.map(RawValue::get).filter(|text| text.starts_with('{'))
}
