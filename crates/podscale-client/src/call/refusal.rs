//! Refusals in the words that Kubernetes' own clients use.

use super::{About, CallError};
use std::borrow::Cow;
use std::fmt::Write;

/// A refusal in the server's own words, or in those that its code stands for.
pub(super) fn refusal(
    code: u16,
    verb: &str,
    body: &[u8],
    is_text: bool,
    about: About<'_>,
) -> CallError {
    #[derive(serde::Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Status {
        kind: String,
        message: String,
        reason: String,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    if status.kind == "Status" && !status.message.is_empty() {
        return CallError::Refused { code, reason: status.reason, message: status.message };
    }
    let text = if is_text { String::from_utf8_lossy(body) } else { "unknown".into() };
    let mut message = words(code, text.trim()).into_owned();
    let (verb, resource, name) = (verb.to_lowercase(), about.resource, about.name);
    let _ = match (resource.is_empty(), name.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => write!(message, " ({verb} {resource})"),
        (false, false) => write!(message, " ({verb} {resource} {name})"),
    };
    CallError::Refused { code, reason: status.reason, message }
}

/// What Kubernetes' clients say of an answer that is no Status.
fn words(code: u16, text: &str) -> Cow<'static, str> {
    Cow::Borrowed(match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return Cow::Owned(text.to_owned()),
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => {
            let quoted = podscale_api::quote::quote(text);
            return Cow::Owned(format!(
                "an error on the server ({quoted}) has prevented the request from succeeding"
            ));
        }
        _ => {
            return Cow::Owned(format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_kubernetes_clients_put_them() {
        let status = r#"{"kind":"Status","message":"pods \"x\" not found","reason":"NotFound"}"#;
        let cases = [
            (404, status, "", r#"pods "x" not found"#),
            (
                503,
                "service unavailable",
                "",
                "the server is currently unable to handle the request (GET pods.metrics.k8s.io)",
            ),
            (
                404,
                "404 page not found",
                "*",
                "the server could not find the requested resource (GET pods.metrics.k8s.io *)",
            ),
            (
                500,
                "oh \"no\"\n",
                "",
                r#"an error on the server ("oh \"no\"") has prevented the request from succeeding (GET pods.metrics.k8s.io)"#,
            ),
            (
                418,
                "",
                "",
                "the server responded with the status code 418 but did not return more information (GET pods.metrics.k8s.io)",
            ),
        ];
        for (code, body, name, expected) in cases {
            let about = About { resource: "pods.metrics.k8s.io", name };
            let error = refusal(code, "GET", body.as_bytes(), true, about);
            assert_eq!(error.to_string(), expected.replace("GET", "get"), "{code} {body}");
            assert_eq!(error.code(), Some(code));
        }
        let about = About { resource: "widgets", name: "web" };
        let error = refusal(500, "PUT", b"what?", false, about).to_string();
        let unknown = r#"an error on the server ("unknown") has prevented the request from succeeding (put widgets web)"#;
        assert_eq!(error, unknown, "what is no text is not repeated");
    }
}
