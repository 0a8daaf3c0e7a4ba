//! What several tests share: clients in this process, reliable or not.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use podscale_apiserver::ApiServer;
use serde_json::Value;
use tower::ServiceExt;

/// Seeded random numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A kube client that talks to the server without a socket.
pub fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.router(), "default")
}

/// The same over a network that refuses some requests and breaks streams after a while.
pub fn flaky(server: &ApiServer, seed: u64) -> kube::Client {
    let router = server.router();
    let count = Arc::new(AtomicU64::new(seed));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let router = router.clone();
        let mut random = Random::new(count.fetch_add(1, Ordering::Relaxed).wrapping_mul(7919));
        async move {
            if random.below(10) == 0 {
                let mut refused = Response::new(Body::from("busy"));
                *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok(refused);
            }
            let response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
            let pieces = 1 + random.below(12);
            let clean = random.below(2) == 0;
            let (parts, body) = response.into_parts();
            let mut left = pieces;
            let cut = body.into_data_stream().map(move |piece| {
                left = left.saturating_sub(1);
                match piece {
                    Ok(piece) if left > 0 => Ok(piece),
                    Ok(piece) if clean => Ok(piece),
                    _ => Err(std::io::Error::other("the connection broke")),
                }
            });
            let cut = cut.take(usize::try_from(pieces).unwrap_or(1));
            Ok::<_, std::convert::Infallible>(Response::from_parts(parts, Body::from_stream(cut)))
        }
    });
    kube::Client::new(service, "default")
}

/// A small object.
pub fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.data = Some(BTreeMap::from([("value".to_owned(), value.to_owned())]));
    object
}

/// An answer: its code and its body, as JSON where it is.
pub struct Answer {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

/// Sends one request without a socket.
pub async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    content_type: &str,
    accept: &str,
    body: String,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("user-agent", "tests/1");
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    if !accept.is_empty() {
        request = request.header("accept", accept);
    }
    let request = request.body(Body::from(body)).expect("a request");
    let response = server.router().oneshot(request).await.expect("infallible");
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap_or_default().to_owned()).collect();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { code, body, warnings }
}

/// Sends JSON with a bearer token; the code and the JSON of the answer.
pub async fn send_as(
    server: &ApiServer,
    token: &str,
    verb: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let request = Request::builder().method(verb).uri(path);
    let request = request
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string())).expect("a request");
    let answer = server.router().oneshot(request).await.unwrap_or_else(|never| match never {});
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}
