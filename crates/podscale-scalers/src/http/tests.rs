use crate::tests::{context, soon, spec_of};
use crate::{connect, parse};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A server of tokens that wants the secret in the body, and a Prometheus that takes only the last token.
async fn servers(asked: Arc<AtomicU32>, valid: Arc<AtomicU32>) -> u16 {
    let tokens = asked.clone();
    let token = move |headers: HeaderMap, body: String| {
        let number = tokens.fetch_add(1, Ordering::SeqCst);
        async move {
            let refused = headers.contains_key("authorization");
            let right = body
                == "grant_type=client_credentials&scope=a+b&audience=x&client_id=c&client_secret=hunter2";
            match (refused, right) {
                (true, _) => (StatusCode::UNAUTHORIZED, String::new()),
                (false, true) => {
                    (StatusCode::OK, format!(r#"{{"access_token":"t{number}","expires_in":3600}}"#))
                }
                (false, false) => (StatusCode::BAD_REQUEST, body),
            }
        }
    };
    let query = move |headers: HeaderMap| {
        let wanted = format!("Bearer t{}", valid.load(Ordering::SeqCst));
        let found = headers.get("authorization").and_then(|value| value.to_str().ok());
        let right = found == Some(wanted.as_str());
        async move {
            if !right {
                return (StatusCode::UNAUTHORIZED, "");
            }
            const ANSWER: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"3"]}]}}"#;
            (StatusCode::OK, ANSWER)
        }
    };
    let router = Router::new().route("/token", post(token)).route("/api/v1/query", get(query));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

#[tokio::test]
async fn tokens_are_fetched_once_and_again_when_they_are_refused() {
    let (asked, valid) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
    let port = servers(asked.clone(), valid.clone()).await;
    let text = |secret: &str| {
        format!(
            "serverAddress=http://127.0.0.1:{port};query=up;threshold=1;authModes=oauth;\
             auth.oauthTokenURI=http://127.0.0.1:{port}/token;auth.clientID=c;auth.clientSecret={secret};\
             auth.scopes=a,b;auth.endpointParams=audience=x"
        )
    };
    let mut context = context();
    context.freshness = Duration::ZERO;
    let parsed = parse(&spec_of("prometheus", &text("hunter2"))).expect("a trigger");
    let scaler = connect(parsed, &context).expect("a scaler");
    let poll = async || match scaler.poll(soon()).await {
        Ok(values) => values[0].value.to_string(),
        Err(error) => error.to_string(),
    };
    // The first request is refused, since it has the secret in its header; the second gives t1.
    for _ in 0..3 {
        assert_eq!((poll().await, asked.load(Ordering::SeqCst)), ("3".to_owned(), 2));
    }
    valid.store(3, Ordering::SeqCst);
    assert_eq!((poll().await, asked.load(Ordering::SeqCst)), ("3".to_owned(), 4), "t1 was refused");
    valid.store(99, Ordering::SeqCst);
    let refused = poll().await;
    assert!(refused.contains("refuses the credentials"), "{refused}");

    let parsed = parse(&spec_of("prometheus", &text("planted"))).expect("a trigger");
    let scaler = connect(parsed, &context).expect("a scaler");
    let error = scaler.poll(soon()).await.expect_err("a wrong secret").to_string();
    assert!(error.ends_with("gives no value: it answers 400"), "{error}");
}
