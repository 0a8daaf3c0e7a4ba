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
fn names_stay_in_their_segment() {
    for (name, expected) in
        [("web-1.x", "web-1.x"), ("*", "*"), ("a/b?c", "a%2Fb%3Fc"), ("ü", "%C3%BC")]
    {
        assert_eq!(segment(name), expected);
    }
    assert_eq!(query(&[("a", "x y"), ("b", ""), ("c", "1,2")]), "?a=x+y&c=1%2C2");
    assert_eq!(query(&[("b", "")]), "");
}
