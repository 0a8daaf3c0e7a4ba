//! The admission webhook: the API server asks here about autoscalers before it stores them. What it is told is
//! [`podscale_api::admission`]'s; this takes the questions in, within bounds of time and memory.
//!
//! Whoever can reach the port may ask: API servers show no certificate to webhooks unless they are told to, an answer
//! says nothing that whoever asked does not know, and nothing is changed by it.

use crate::metrics::Metrics;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::BodyExt;
use podscale_api::admission::review::{self, Answer, Refused};
use podscale_metrics::answer::Refusal;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where the questions go.
pub const PATH: &str = "/validate";
/// The ValidatingWebhookConfiguration whose `caBundle` is kept current.
pub const CONFIGURATION: &str = "podscale";
/// How long the API server waits for an answer, in seconds. After that it stores the object.
pub const TIMEOUT_SECONDS: u64 = 5;

/// How long reading and answering a question may take, wall-clock.
const DEADLINE: Duration = Duration::from_secs(TIMEOUT_SECONDS);
/// The largest body that is read: API servers take objects of 3 MiB, and a question has two of them.
const BODY_LIMIT: usize = 8 << 20;
/// How much of bodies is held at the same time, in KiB; who would exceed it waits.
const HELD_KIB: usize = 32 * 1024;
/// A larger question takes long to answer, so that is done where nobody waits.
const LARGE_BYTES: usize = 64 << 10;
/// How many of those are answered at the same time: what is read takes many times its text.
const CONCURRENT_LARGE: usize = 2;

/// Answers questions. Clones share the bounds of memory.
#[derive(Clone)]
struct Webhook {
    metrics: Metrics,
    held: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// A body that was read, and the right to hold so much.
struct Held {
    text: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
}

/// The route of the webhook.
pub(super) fn router(metrics: Metrics) -> Router {
    let held = Arc::new(Semaphore::new(HELD_KIB));
    let webhook = Webhook { metrics, held, large: Arc::new(Semaphore::new(CONCURRENT_LARGE)) };
    Router::new().route(PATH, post(answer)).with_state(webhook)
}

impl Webhook {
    async fn answer(&self, request: Request) -> Result<Value, Refusal> {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > BODY_LIMIT as u64) {
            return Err(too_large());
        }
        let held = self.read(request.into_body()).await?;
        let answered = if held.text.len() <= LARGE_BYTES {
            review::answer(&held.text)
        } else {
            let turn = acquire(&self.large, 1).await?;
            let answering = tokio::task::spawn_blocking(move || {
                // Given back when it is answered, also if nobody waits for that any more.
                let (held, _turn) = (held, turn);
                review::answer(&held.text)
            });
            answering.await.map_err(|error| Refusal::internal(&error.to_string()))?
        };
        let Answer { review, refused } =
            answered.map_err(|error| Refusal::bad_request(error.to_string()))?;
        if let Some(Refused { kind, namespace, name, message }) = refused {
            tracing::info!(kind, namespace, name, "refused: {message}");
        }
        Ok(review)
    }

    /// Reads a body. What is held is what has come: whoever only announces much holds up nobody.
    async fn read(&self, mut body: Body) -> Result<Held, Refusal> {
        let mut read = Held { text: Vec::new(), permit: None };
        while let Some(frame) = body.frame().await {
            let unreadable = |error| format!("the body cannot be read: {error}");
            let frame = frame.map_err(|error| Refusal::bad_request(unreadable(error)))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = read.text.len().saturating_add(data.len());
            if length > BODY_LIMIT {
                return Err(too_large());
            }
            let held = read.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let more = acquire(&self.held, length.div_ceil(1024).saturating_sub(held)).await?;
            match &mut read.permit {
                Some(permit) => permit.merge(more),
                None => read.permit = Some(more),
            }
            read.text.extend_from_slice(&data);
        }
        Ok(read)
    }
}

async fn acquire(permits: &Arc<Semaphore>, count: usize) -> Result<OwnedSemaphorePermit, Refusal> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let permit = Arc::clone(permits).acquire_many_owned(count).await;
    permit.map_err(|_| Refusal::unavailable("the server is shutting down".to_owned()))
}

fn too_large() -> Refusal {
    Refusal::too_large(format!("the body is larger than {} MiB", BODY_LIMIT >> 20))
}

async fn answer(State(webhook): State<Webhook>, request: Request) -> Response {
    let began = Instant::now();
    let answer = match tokio::time::timeout(DEADLINE, webhook.answer(request)).await {
        Ok(Ok(review)) => Json(review).into_response(),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => Refusal::timeout(format!("no answer within {TIMEOUT_SECONDS} s")).into_response(),
    };
    webhook.metrics.served(review::GROUP, "create", answer.status().as_u16(), began.elapsed());
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Bytes;
    use axum::http::{Method, StatusCode};
    use futures::stream;
    use serde_json::json;
    use std::convert::Infallible;
    use tower::ServiceExt;

    async fn ask(router: &Router, method: Method, body: Body) -> (StatusCode, Value) {
        let request =
            axum::http::Request::builder().method(method).uri(PATH).body(body).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let code = answer.status();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn question(object: Value) -> Body {
        let question = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE",
                "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "object": object}});
        question.to_string().into()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_sends_nothing_holds_up_nobody() {
        let router = router(Metrics::new());
        let whole = HELD_KIB * 1024 / BODY_LIMIT;
        for _ in 0..=whole {
            let silent = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
            let request = axum::http::Request::post(PATH).header("content-length", BODY_LIMIT);
            tokio::spawn(router.clone().oneshot(request.body(silent).expect("a request")));
        }
        tokio::time::sleep(DEADLINE / 2).await;
        for object in [json!({}), json!({"text": "x".repeat(BODY_LIMIT / 2)})] {
            let (code, answer) = ask(&router, Method::POST, question(object)).await;
            assert_eq!((code, &answer["response"]["allowed"]), (StatusCode::OK, &json!(true)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_read_within_bounds() {
        let metrics = Metrics::new();
        let router = router(metrics.clone());
        let (code, answer) = ask(&router, Method::POST, question(json!({}))).await;
        assert_eq!((code, &answer["response"]["allowed"]), (StatusCode::OK, &json!(true)));
        let (code, answer) = ask(&router, Method::POST, "nonsense".into()).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, StatusCode::BAD_REQUEST);
        assert!(message.starts_with("the body is not an AdmissionReview: expected"), "{message}");
        let chunk = || Ok::<_, Infallible>(Bytes::from(vec![b' '; 1024 * 1024]));
        let endless = Body::from_stream(stream::repeat_with(chunk));
        let (code, answer) = ask(&router, Method::POST, endless).await;
        assert_eq!(
            (code, &answer["message"]),
            (StatusCode::PAYLOAD_TOO_LARGE, &json!("the body is larger than 8 MiB"),)
        );
        let silent = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let (code, _) = ask(&router, Method::POST, silent).await;
        assert_eq!(code, StatusCode::GATEWAY_TIMEOUT);
        let (code, _) = ask(&router, Method::GET, Body::empty()).await;
        assert_eq!(code, StatusCode::METHOD_NOT_ALLOWED);
        let counted = |code: u16| {
            let series = r#"podscale_serve_requests_total{group="admission.k8s.io",verb="create","#;
            metrics.text().contains(&format!("{series}code=\"{code}\"}} 1\n"))
        };
        assert!([200, 400, 413, 504].into_iter().all(counted), "{}", metrics.text());
    }
}
