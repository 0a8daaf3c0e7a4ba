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

mod refusal;

use refusal::refusal;

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
mod tests;
