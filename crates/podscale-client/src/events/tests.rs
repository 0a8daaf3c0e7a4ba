use super::*;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;

/// Everything that is recorded is written, even after the stop, and what is gone is made anew.
#[tokio::test(start_paused = true)]
async fn writes_what_is_queued_and_creates_again_what_is_gone() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&log);
    let router = Router::new().fallback(move |method: Method, uri: Uri, body: Bytes| {
        let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = format!("{method} {} {}", sent["count"], sent["message"]);
        asked.lock().push(text);
        assert!(uri.path().starts_with("/api/v1/namespaces/shop/events"), "{uri}");
        let code = if method == "PATCH" { StatusCode::NOT_FOUND } else { StatusCode::CREATED };
        async move { (code, Json(json!({}))) }
    });
    let (recorder, pending) = channel("tester");
    let about = ObjectReference {
        namespace: Some("shop".into()),
        name: Some("web".into()),
        ..ObjectReference::default()
    };
    recorder.record(about.clone(), Severity::Normal, "Same", "a");
    recorder.record(about.clone(), Severity::Normal, "Same", "a");
    recorder.record(about, Severity::Warning, "Other", "b");
    drop(recorder);
    let (_stop, stopped) = watch::channel(true);
    write(Client::new(router, "default"), Clock::wall(), pending, stopped).await;
    let expected = ["POST 1 \"a\"", "PATCH 2 \"a\"", "POST 2 \"a\"", "POST 1 \"b\""];
    assert_eq!(*log.lock(), expected);
}

#[tokio::test(start_paused = true)]
async fn tries_again_while_nobody_answers_but_not_when_refused() {
    for (refuse, expected) in [(false, 3), (true, 1)] {
        let tries = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&tries);
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let mut tries = seen.lock();
            *tries += 1;
            let code = if refuse { 403 } else { 201 };
            let answer = http::Response::builder().status(code);
            let answer = answer.body(kube::client::Body::from(b"{}".to_vec())).unwrap();
            let answer = if refuse || *tries >= 3 {
                Ok(answer)
            } else {
                Err(std::io::Error::other("no route"))
            };
            async move { answer }
        });
        let (recorder, pending) = channel("tester");
        recorder.record(ObjectReference::default(), Severity::Normal, "Same", "a");
        drop(recorder);
        let (_stop, stopped) = watch::channel(false);
        write(Client::new(service, "default"), Clock::wall(), pending, stopped).await;
        assert_eq!(*tries.lock(), expected);
    }
}
