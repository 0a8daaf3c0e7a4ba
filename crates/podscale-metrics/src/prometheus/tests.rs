use super::*;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const ONE: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"7"]}]}}"#;

type Seen = Arc<Mutex<Vec<String>>>;

/// Serves every request with one function of method, path, headers and body.
async fn serve<F>(answer: F) -> (String, Seen)
where
    F: Fn(&Method, &str, &HeaderMap, &str) -> Response + Clone + Send + Sync + 'static,
{
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        let body = String::from_utf8_lossy(&body).into_owned();
        log.lock().push(format!("{method} {} {body}", uri.path()));
        answer(&method, uri.path(), &headers, &body)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
    (url, seen)
}

fn file(name: &str, text: &str) -> PathBuf {
    let path =
        std::env::temp_dir().join(format!("podscale-prometheus-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("written");
    path
}

#[tokio::test]
async fn the_path_of_the_address_goes_first_and_queries_are_posted() {
    let (url, seen) = serve(|_, _, _, _| ONE.into_response()).await;
    let client = Client::new(Config::new(format!("{url}/prom/"))).expect("a client");
    let answer = client.query(r#"up{a="ä&="}"#).await.expect("an answer");
    assert_eq!(answer.vector.samples[0].value, 7.0);
    let expected = "POST /prom/api/v1/query query=up%7Ba%3D%22%C3%A4%26%3D%22%7D&timeout=10000ms";
    assert_eq!(seen.lock()[0], expected);
    let client = client.with_max_age(Some(Duration::from_secs(90)));
    client.query("up").await.expect("an answer");
    let expected = "POST /prom/api/v1/query query=up&timeout=10000ms&lookback_delta=90000ms";
    assert_eq!(seen.lock()[1], expected);
}

#[tokio::test]
async fn where_posting_is_not_allowed_it_reads() {
    let (url, seen) = serve(|method, _, _, _| match *method {
        Method::GET => ONE.into_response(),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    })
    .await;
    let client = Client::new(Config::new(url)).expect("a client");
    assert!(client.query("up").await.is_ok());
    assert_eq!(seen.lock().len(), 2);
}

#[tokio::test]
async fn a_new_token_is_sent_at_once_when_the_old_one_is_refused() {
    let (url, seen) = serve(|_, _, headers, _| {
        let token = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
        let scope = headers.get("x-scope").and_then(|v| v.to_str().ok());
        match (token, scope) {
            (Some("Bearer new"), Some("a")) => ONE.into_response(),
            _ => StatusCode::UNAUTHORIZED.into_response(),
        }
    })
    .await;
    let token = file("token", "old\n");
    let credentials = Credentials {
        token_file: Some(token.clone()),
        headers: vec!["X-Scope: a".to_owned()],
        ..Credentials::default()
    };
    let client = Client::new(Config { credentials, ..Config::new(url) }).expect("a client");
    let refused = client.query("up").await.expect_err("refused");
    assert_eq!((refused.code(), refused.kind()), (Some(401), "unauthorized"));
    std::fs::write(&token, "new\n").expect("written");
    assert!(client.query("up").await.is_ok());
    assert_eq!(seen.lock().len(), 4);
    std::fs::remove_file(&token).expect("removed");
    assert!(client.query("up").await.is_ok(), "the last token is still good");
}

#[tokio::test]
async fn users_have_passwords() {
    let (url, _) = serve(|_, _, headers, _| {
        let sent = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
        // "me:secret" in base64.
        if sent == Some("Basic bWU6c2VjcmV0") {
            ONE.into_response()
        } else {
            StatusCode::FORBIDDEN.into_response()
        }
    })
    .await;
    let password = file("password", "secret");
    let credentials = Credentials {
        username: Some("me".to_owned()),
        password_file: Some(password.clone()),
        ..Credentials::default()
    };
    let client = Client::new(Config { credentials, ..Config::new(url) }).expect("a client");
    assert!(client.query("up").await.is_ok());
    std::fs::remove_file(password).expect("removed");
}

#[tokio::test]
async fn what_cannot_be_used_has_its_own_error() {
    let (url, _) = serve(|_, path, _, _| match path {
        "/moved/api/v1/query" => {
            (StatusCode::FOUND, [(header::LOCATION, "http://elsewhere/")]).into_response()
        }
        "/page/api/v1/query" => "<html>login</html>".into_response(),
        "/large/api/v1/query" => "x".repeat(5000).into_response(),
        _ => StatusCode::BAD_GATEWAY.into_response(),
    })
    .await;
    for (path, expected) in [
        (
            "/moved",
            "answered 302 and names another address, \"http://elsewhere/\": configure that one",
        ),
        (
            "/page",
            "the answer is not one of Prometheus' API: it looks like a web page: <html>login</html>",
        ),
        ("/large", "the answer is larger than 4096 bytes; let the query or the rule select less"),
        ("/other", "answered 502"),
    ] {
        let config = Config { most_bytes: 4096, ..Config::new(format!("{url}{path}")) };
        let client = Client::new(config).expect("a client");
        assert_eq!(client.query("up").await.expect_err(path).to_string(), expected);
    }
    let closed = Client::new(Config::new("http://127.0.0.1:9")).expect("a client");
    assert_eq!(closed.query("up").await.expect_err("closed").kind(), "unreachable");
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let config = Config { timeout: Duration::from_millis(50), ..Config::new(url) };
    let late = Client::new(config).expect("a client").query("up").await.expect_err("late");
    assert_eq!(late.to_string(), "no answer within 0.05 s");
}

#[tokio::test]
async fn very_many_series_are_read_within_a_bound_or_refused() {
    let series: Vec<String> = (0..100_000)
        .map(|n| format!(r#"{{"metric":{{"namespace":"n","pod":"pod-{n}"}},"value":[1,"{n}"]}}"#))
        .collect();
    let body = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}"#,
        series.join(",")
    );
    let (url, _) = serve(move |_, _, _, _| body.clone().into_response()).await;
    for (most_series, expected) in [(100_000, Ok(100_000)), (99_999, Err("too_large"))] {
        let config = Config { most_series, timeout: Duration::from_secs(60), ..Config::new(&*url) };
        let answer = Client::new(config).expect("a client").query("up").await;
        let found = answer.map(|answer| answer.vector.samples.len()).map_err(|error| error.kind());
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn warnings_are_heard_once_for_each_answer() {
    let warns = ONE.replace("\"data\"", "\"warnings\":[\"a store is down\"],\"data\"");
    let (url, _) = serve(move |_, _, _, body| match body.contains("partial") {
        true => warns.clone().into_response(),
        false => ONE.into_response(),
    })
    .await;
    let heard = Seen::default();
    let log = Arc::clone(&heard);
    let client = Client::new(Config::new(url)).expect("a client").on_warnings(move |query, all| {
        log.lock().push(format!("{query}: {}", all.join(" ")));
    });
    let queries = Queries::new(Arc::new(client));
    for query in ["up", "partial", "partial"] {
        assert!(queries.get(query, Duration::from_secs(60)).await.is_ok());
    }
    assert_eq!(*heard.lock(), ["partial: a store is down"]);
}

#[tokio::test]
async fn all_who_ask_the_same_share_an_answer() {
    let (url, seen) = serve(|_, _, _, body| {
        if body.contains("wrong") {
            StatusCode::BAD_REQUEST.into_response()
        } else {
            ONE.into_response()
        }
    })
    .await;
    let queries = Queries::new(Arc::new(Client::new(Config::new(url)).expect("a client")));
    let minute = Duration::from_secs(60);
    let all = (0..50).map(|_| queries.get("up", minute));
    assert!(futures::future::join_all(all).await.iter().all(Result::is_ok));
    assert_eq!(seen.lock().len(), 1);
    assert!(queries.get("up", Duration::ZERO).await.is_ok());
    assert_eq!(seen.lock().len(), 2, "too old");
    for _ in 0..3 {
        assert_eq!(queries.get("wrong", minute).await.expect_err("wrong").code(), Some(400));
    }
    assert_eq!(seen.lock().len(), 3, "failures are shared");
}

type Certified = rcgen::CertifiedKey<rcgen::KeyPair>;

fn certificate() -> Certified {
    rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("made")
}

/// Answers over TLS; clients must show a certificate if there is one to trust.
async fn serve_tls(own: &Certified, client: Option<&Certified>) -> String {
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(client.cert.der().clone()).expect("trusted");
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                provider,
            );
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let config = builder.with_single_cert(vec![own.cert.der().clone()], key.expect("a key"));
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config.expect("a server")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let length = ONE.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
                );
                let _ = stream.write_all(format!("{head}{ONE}").as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    url
}

fn client(url: &str, tls: Tls) -> Client {
    Client::new(Config { tls, ..Config::new(url) }).expect("a client")
}

#[tokio::test]
async fn certificates_are_checked_unless_they_need_not_be() {
    let own = certificate();
    let url = serve_tls(&own, None).await;
    let ca = file("ca.pem", &own.cert.pem());
    let other = file("other.pem", &certificate().cert.pem());
    let trust = |path: &PathBuf| Tls { ca_file: Some(path.clone()), ..Tls::default() };
    for (tls, works) in [
        (trust(&ca), true),
        (Tls { insecure: true, ..Tls::default() }, true),
        (trust(&other), false),
    ] {
        let answer = client(&url, tls.clone()).query("up").await;
        assert_eq!(answer.is_ok(), works, "{tls:?}: {answer:?}");
    }
    let none = file("none.pem", "nothing");
    let config = Config { tls: trust(&none), ..Config::new(&*url) };
    let error = Client::new(config).err().expect("refused").to_string();
    assert!(error.contains("it holds no certificate"), "{error}");

    let changing = client(&url, trust(&ca));
    for (pem, works) in
        [(certificate().cert.pem(), false), ("nothing".to_owned(), false), (own.cert.pem(), true)]
    {
        std::fs::write(&ca, pem).expect("written");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(11)).await;
        tokio::time::resume();
        assert_eq!(changing.query("up").await.is_ok(), works, "files are read again");
    }
    for path in [ca, other, none] {
        std::fs::remove_file(path).expect("removed");
    }
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let (own, mine) = (certificate(), certificate());
    let url = serve_tls(&own, Some(&mine)).await;
    let shown = file("shown.pem", &mine.cert.pem());
    let key = file("key.pem", &mine.signing_key.serialize_pem());
    let with = Tls { insecure: true, identity: Some((shown.clone(), key.clone())), ca_file: None };
    let without = Tls { identity: None, ..with.clone() };
    assert!(client(&url, with).query("up").await.is_ok());
    assert_eq!(client(&url, without).query("up").await.expect_err("refused").kind(), "unreachable");
    for path in [shown, key] {
        std::fs::remove_file(path).expect("removed");
    }
}
