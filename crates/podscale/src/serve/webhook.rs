//! The admission webhook: the API server asks here about autoscalers before it stores them. What it is told is
//! [`podscale_api::admission`]'s; this takes the questions in, within bounds of time and memory.
//!
//! Whoever can reach the port may ask: API servers show no certificate to webhooks unless they are told to, an answer
//! says nothing that whoever asked does not know, and nothing is changed by it.

use crate::metrics::Metrics;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use podscale_api::admission::review::{self, Answer, Refused};
use podscale_metrics::answer::Refusal;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Where the questions go.
pub const PATH: &str = "/validate";
/// The ValidatingWebhookConfiguration whose `caBundle` is kept current.
pub const CONFIGURATION: &str = "podscale";
/// How long the API server waits for an answer, in seconds. After that it stores the object.
pub const TIMEOUT_SECONDS: u64 = 5;

/// How long reading and answering a question may take, wall-clock.
const DEADLINE: Duration = Duration::from_secs(TIMEOUT_SECONDS);
/// The largest body that is read: API servers take objects of 3 MiB, and a question has two of them.
const BODY_LIMIT_KIB: u32 = 8 * 1024;
/// How much of bodies is held at the same time; who would exceed it waits.
const HELD_KIB: usize = 32 * 1024;

/// Answers questions. Clones share the bound of memory.
#[derive(Clone)]
struct Webhook {
    metrics: Metrics,
    held: Arc<Semaphore>,
}

/// The route of the webhook.
pub(super) fn router(metrics: Metrics) -> Router {
    let webhook = Webhook { metrics, held: Arc::new(Semaphore::new(HELD_KIB)) };
    Router::new().route(PATH, post(answer)).with_state(webhook)
}

impl Webhook {
    async fn answer(&self, request: Request) -> Result<Value, Refusal> {
        let (head, body) = request.into_parts();
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        // One that does not say how long it is may be as long as any.
        let limit = length.map_or(BODY_LIMIT_KIB, |bytes| {
            u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).max(1)
        });
        if limit > BODY_LIMIT_KIB {
            return Err(too_large());
        }
        let stopping = |_| Refusal::unavailable("the server is shutting down".to_owned());
        let _held = self.held.acquire_many(limit).await.map_err(stopping)?;
        let bytes = usize::try_from(limit).unwrap_or_default().saturating_mul(1024);
        let body = Limited::new(body, bytes).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return too_large();
            }
            Refusal::bad_request(format!("the body cannot be read: {error}"))
        })?;
        let answered = review::answer(&body.to_bytes());
        let Answer { review, refused } =
            answered.map_err(|error| Refusal::bad_request(error.to_string()))?;
        if let Some(Refused { kind, namespace, name, message }) = refused {
            tracing::info!(kind, namespace, name, "refused: {message}");
        }
        Ok(review)
    }
}

fn too_large() -> Refusal {
    Refusal::too_large(format!("the body is larger than {} MiB", BODY_LIMIT_KIB / 1024))
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
    use axum::body::{Body, Bytes};
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

    #[tokio::test(start_paused = true)]
    async fn questions_are_read_within_bounds() {
        let metrics = Metrics::new();
        let router = router(metrics.clone());
        let question = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE",
                "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "object": {}}});
        let (code, answer) = ask(&router, Method::POST, question.to_string().into()).await;
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
