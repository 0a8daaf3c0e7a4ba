//! One call of the API server: within a deadline, with a bounded answer, and with errors in the
//! words that Kubernetes' own clients use, since people read them in conditions and events.

use crate::cause::innermost;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::RuntimeFlavor;

/// How long an answer may take; wall-clock, since it is the network's.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// How often a request is sent at most while the server is busy and names a time to retry after.
const MAX_ATTEMPTS: u32 = 10;
/// The largest answer that is read.
const ANSWER_LIMIT_BYTES: usize = 512 * 1024 * 1024;
/// An answer larger than this takes long to read: tens of thousands of pods.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
/// The largest refusal that is read.
const REFUSAL_LIMIT_BYTES: usize = 64 * 1024;

/// Why a call had no success. Its text is what conditions and events show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server answered, but not with what was asked for.
    #[error("{message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The machine-readable reason, possibly empty.
        reason: String,
        /// What the server says, or what its code means if it says nothing readable.
        message: String,
    },
    /// There was no answer.
    #[error("{0}")]
    Unreachable(String),
    /// The answer makes no sense.
    #[error("{0}")]
    Unreadable(String),
    /// The answer took too long.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl CallError {
    /// The HTTP status code, if there was an answer.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            CallError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the object had changed since it was read.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, CallError::Refused { code: 409, reason, .. } if reason != "AlreadyExists")
    }

    /// Whether an object of that name exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        matches!(self, CallError::Refused { reason, .. } if reason == "AlreadyExists")
    }

    /// Whether the object, or what serves it, does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }
}

/// What a call is about, as error texts name it.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The resource, with its group: `pods.metrics.k8s.io`.
    pub resource: &'a str,
    /// The object, if it is one.
    pub name: &'a str,
}

/// What a server answered, before it is decoded.
#[derive(Debug)]
pub struct Answer {
    /// The form it says it has; empty if it says none.
    pub content_type: String,
    /// What it sent.
    pub body: Vec<u8>,
}

impl Answer {
    /// The answer as JSON; while it is a large one, other tasks go on elsewhere.
    ///
    /// # Errors
    /// It is not JSON, or of another shape.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
        if self.body.len() > LARGE_BYTES && matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
            tokio::task::block_in_place(|| serde_json::from_slice(&self.body))
        } else {
            serde_json::from_slice(&self.body)
        }
    }
}

/// Reads an object.
///
/// # Errors
/// The server refused, could not be reached, or made no sense.
pub async fn get<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    about: About<'_>,
) -> Result<T, CallError> {
    decoded("GET", path, get_answer(client, path, about, &AtomicUsize::new(0)).await?)
}

/// Reads an answer as it comes. `size` remembers how large the last one was, so that the room of a
/// large one need not grow by copying what has come in.
///
/// # Errors
/// The server refused or could not be reached.
pub async fn get_answer(
    client: &Client,
    path: &str,
    about: About<'_>,
    size: &AtomicUsize,
) -> Result<Answer, CallError> {
    exchange(client, "GET", path, Vec::new(), about, size).await
}

/// Sends an object with a verb such as `PUT` and reads the answer.
///
/// # Errors
/// The server refused, could not be reached, or made no sense.
pub async fn send<T: DeserializeOwned>(
    client: &Client,
    verb: &'static str,
    path: &str,
    object: &impl Serialize,
    about: About<'_>,
) -> Result<T, CallError> {
    let body = serde_json::to_vec(object).map_err(|e| CallError::Unreadable(e.to_string()))?;
    decoded(verb, path, send_body(client, verb, path, body, about).await?)
}

/// Sends what is JSON already, and reads the answer as it comes.
///
/// # Errors
/// The server refused or could not be reached.
pub async fn send_body(
    client: &Client,
    verb: &'static str,
    path: &str,
    body: Vec<u8>,
    about: About<'_>,
) -> Result<Answer, CallError> {
    exchange(client, verb, path, body, about, &AtomicUsize::new(0)).await
}

fn decoded<T: DeserializeOwned>(
    verb: &'static str,
    path: &str,
    answer: Answer,
) -> Result<T, CallError> {
    answer.json().map_err(|error| {
        CallError::Unreadable(format!("the answer to {verb} {path} cannot be read: {error}"))
    })
}

async fn exchange(
    client: &Client,
    verb: &'static str,
    path: &str,
    body: Vec<u8>,
    about: About<'_>,
    size: &AtomicUsize,
) -> Result<Answer, CallError> {
    // Thousands may be about to call while few do, so what a call needs is not part of each of them.
    let answer = Box::pin(async {
        let (content_type, body) = open_with_retries(client, verb, path, body, about).await?;
        Ok(Answer { content_type, body: read(body, ANSWER_LIMIT_BYTES, size).await? })
    });
    tokio::time::timeout(DEADLINE, answer).await.map_err(|_| CallError::Late(DEADLINE))?
}

/// As [`open`], but retries an answer of 429 or 5xx that has a `Retry-After` header with a number of
/// seconds. Without one nothing is retried here: Kubernetes' own client does the same, and the next
/// reconcile comes soon.
async fn open_with_retries(
    client: &Client,
    verb: &'static str,
    path: &str,
    body: Vec<u8>,
    about: About<'_>,
) -> Result<(String, Body), CallError> {
    let mut attempts = 1;
    loop {
        let answer = send_request(client, verb, path, body.clone()).await?;
        match retry_after(&answer) {
            Some(delay) if attempts < MAX_ATTEMPTS => {
                attempts += 1;
                tokio::time::sleep(delay).await;
            }
            _ => {
                let form = answer.headers().get("content-type").and_then(|f| f.to_str().ok());
                let form = form.unwrap_or_default().to_owned();
                return Ok((form, body_of(answer, verb, about).await?));
            }
        }
    }
}

/// Sends a request and gives the body of the answer, if it is one of success. Without a deadline.
///
/// # Errors
/// The server refused or could not be reached.
pub async fn open(
    client: &Client,
    verb: &'static str,
    path: &str,
    body: Vec<u8>,
    about: About<'_>,
) -> Result<Body, CallError> {
    body_of(send_request(client, verb, path, body).await?, verb, about).await
}

/// After how long a busy server wants the request to be sent again, if it says so.
fn retry_after(answer: &http::Response<Body>) -> Option<Duration> {
    let status = answer.status();
    if status.as_u16() != 429 && !status.is_server_error() {
        return None;
    }
    let seconds = answer.headers().get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

async fn body_of(
    answer: http::Response<Body>,
    verb: &'static str,
    about: About<'_>,
) -> Result<Body, CallError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer.into_body());
    }
    // Upstream's clients repeat a refusal only if it says that it is text, or does not say what it is.
    let form = answer.headers().get("content-type").and_then(|form| form.to_str().ok());
    let is_text = form.is_none_or(|form| form.starts_with("text/"));
    let text = read(answer.into_body(), REFUSAL_LIMIT_BYTES, &AtomicUsize::new(0)).await;
    let text = text.unwrap_or_default();
    Err(refusal(status.as_u16(), verb, &text, is_text, about))
}

async fn send_request(
    client: &Client,
    verb: &'static str,
    path: &str,
    body: Vec<u8>,
) -> Result<http::Response<Body>, CallError> {
    let mut request = http::Request::builder().method(verb).uri(path);
    if !body.is_empty() {
        let form =
            if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        request = request.header("content-type", form);
    }
    let request = request.header("accept", "application/json").body(Body::from(body));
    let request = request.map_err(|error| CallError::Unreachable(error.to_string()))?;
    let answer = client.send(request).await;
    answer.map_err(|error| CallError::Unreachable(innermost(&error)))
}

async fn read(body: Body, limit: usize, size: &AtomicUsize) -> Result<Vec<u8>, CallError> {
    let mut body = Limited::new(body, limit);
    // A little more than the last time, since it will hardly ever be just as large.
    let expected = size.load(Ordering::Relaxed);
    let mut answer = Vec::with_capacity(expected.saturating_add(expected / 16).min(limit));
    while let Some(frame) = body.frame().await {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => answer.extend_from_slice(&data),
            // What follows a body is of no use here.
            Ok(Err(_)) => {}
            Err(error) if error.is::<LengthLimitError>() => {
                let text = format!("the answer is larger than {limit} bytes");
                return Err(CallError::Unreadable(text));
            }
            Err(error) => return Err(CallError::Unreachable(error.to_string())),
        }
    }
    size.store(answer.len(), Ordering::Relaxed);
    Ok(answer)
}

/// A refusal in the server's own words, or in those that its code stands for.
fn refusal(code: u16, verb: &str, body: &[u8], is_text: bool, about: About<'_>) -> CallError {
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

/// A name as one segment of a path.
#[must_use]
pub fn segment(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:*@".contains(&byte);
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
    let mut text = String::with_capacity(name.len() + 8);
    for byte in name.bytes() {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Cow::Owned(text)
}

/// Parameters as the query of a path, with its question mark; those without a value are left out.
#[must_use]
pub fn query(parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters.iter().filter(|(_, value)| !value.is_empty()));
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_are_retried_only_with_retry_after() {
        let about = About { resource: "pods", name: "" };
        for (busy, code, header, expected) in [
            (2, 429, Some("3"), "answered after 6 s and 3 requests"),
            (1, 503, Some("1"), "answered after 1 s and 2 requests"),
            (1, 429, None, "refused with 429 after 0 s and 1 requests"),
            (99, 429, Some("1"), "refused with 429 after 9 s and 10 requests"),
            (99, 429, Some("20"), "no answer within 30 s after 30 s and 2 requests"),
        ] {
            let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
            let counted = std::sync::Arc::clone(&asked);
            let router = axum::Router::new().fallback(move || {
                let number = counted.fetch_add(1, Ordering::Relaxed);
                let mut answer = http::Response::new("{}".to_owned());
                if number < busy {
                    *answer.status_mut() = http::StatusCode::from_u16(code).expect("a code");
                    if let Some(pause) = header {
                        let pause = http::HeaderValue::from_static(pause);
                        answer.headers_mut().insert("retry-after", pause);
                    }
                }
                async move { answer }
            });
            let (client, began) = (Client::new(router, "default"), tokio::time::Instant::now());
            let answer: Result<serde_json::Value, _> = get(&client, "/x", about).await;
            let ended = match answer {
                Ok(_) => "answered".to_owned(),
                Err(CallError::Refused { code, .. }) => format!("refused with {code}"),
                Err(error) => error.to_string(),
            };
            let asked = asked.load(Ordering::Relaxed);
            let seconds = began.elapsed().as_secs();
            assert_eq!(format!("{ended} after {seconds} s and {asked} requests"), expected);
        }
    }

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

    #[test]
    fn names_stay_in_their_segment() {
        for (name, expected) in
            [("web-1.x", "web-1.x"), ("*", "*"), ("a/b?c", "a%2Fb%3Fc"), ("ü", "%C3%BC")]
        {
            assert_eq!(segment(name), expected);
        }
        assert_eq!(query(&[("a", "x y"), ("b", ""), ("c", "1,2")]), "?a=x+y&c=1%2C2");
        assert_eq!(query(&[("b", "")]), "");
    }
}
