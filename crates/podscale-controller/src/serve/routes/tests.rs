use super::*;
use crate::connections::{self, Limits};
use crate::serve::tls::{Shown, Tls, certified};
use axum::Json;
use axum::http::{HeaderMap, Uri};
use podscale_metrics::external;
use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt;

/// Another provider, which shows what it was asked.
async fn other(folder: &Path) -> String {
    let signed = generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("ca.crt"), signed.cert.pem()).expect("written");
    std::fs::write(folder.join("token"), "secret\n").expect("written");
    let pem = signed.cert.pem();
    let key = signed.signing_key.serialize_pem();
    let shown = Shown::new(certified(pem.as_bytes(), key.as_bytes()).expect("usable"));
    let answer = async |uri: Uri, headers: HeaderMap| {
        let token = headers.get(header::AUTHORIZATION).and_then(|token| token.to_str().ok());
        Json(json!({"asked": uri.path(), "query": uri.query(), "token": token}))
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tls, router) = (Tls::new(shown).expect("TLS"), Router::new().fallback(answer));
    let limits = Limits::default();
    tokio::spawn(connections::serve_with(listener, tls, router, limits, std::future::pending()));
    format!("https://localhost:{port}")
}

#[tokio::test]
async fn names_lead_to_other_providers() {
    let folder = std::env::temp_dir().join(format!("podscale-routes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (url, place) = (other(&folder).await, folder.display());
    let text = format!(
        "routes:\n- {{prefix: s0-, url: '{url}', caFile: {place}/ca.crt, tokenFile: {place}/token}}\n\
         - {{matches: '^azure_.*_total$', url: 'https://localhost:1', caFile: {place}/ca.crt, tokenFile: {place}/token}}\n"
    );
    let routes = Routes::parse(&text).expect("routes");
    let router = routes.around(external::router(Arc::new(NoMetrics)));
    let ask = async |path: &str| {
        let uri = format!("/apis/external.metrics.k8s.io/v1beta1{path}");
        let request = Request::get(uri).body(Body::empty()).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice::<Value>(&body).expect("JSON"))
    };
    let (code, body) = ask("/namespaces/shop/s0-kafka?labelSelector=a%3Db").await;
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-kafka";
    assert_eq!(code, 200, "{body}");
    assert_eq!(
        body,
        json!({"asked": path, "query": "labelSelector=a%3Db", "token": "Bearer secret"})
    );
    for (path, code) in [
        ("/namespaces/shop/azure_messages_total", 503),
        ("/namespaces/shop/azure_messages", 404),
        ("/namespaces/s0-shop/depth", 404),
        ("", 200),
    ] {
        assert_eq!(ask(path).await.0, code, "{path}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn routes_that_make_no_sense_are_refused() {
    let missing = "caFile: /nonexistent/ca.crt";
    for (route, words) in [
        ("{caFile: x}", "route 1: give one of prefix and matches"),
        ("{prefix: a, matches: b, caFile: x}", "route 1: give one of prefix and matches"),
        ("{matches: '(', caFile: x}", "route 1: regex parse error"),
        ("{prefix: a, caFile: x}", "route 1: give one of service and url"),
        (
            "{prefix: a, url: 'http://x', caFile: x}",
            "route 1: http://x does not begin with https://",
        ),
        (&format!("{{prefix: a, url: 'https://x', {missing}}}"), "route 1: /nonexistent/ca.crt: "),
        (
            &format!("{{prefix: a, service: {{namespace: b, name: c}}, {missing}}}"),
            "route 1: /nonexistent",
        ),
        ("{prefix: a, servce: b}", ""),
    ] {
        let error = Routes::parse(&format!("routes: [{route}]")).expect_err(route).to_string();
        assert!(error.starts_with(words), "{route}: {error}");
    }
    assert!(Routes::parse("routes: []").expect("no routes").is_empty());
}

#[tokio::test]
async fn the_file_is_followed_and_a_wrong_version_changes_nothing() {
    let folder = std::env::temp_dir().join(format!("podscale-followed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let url = other(&folder).await;
    let good_authority = std::fs::read(folder.join("ca.crt")).expect("an authority");
    let (place, path) = (folder.display(), folder.join("routes.yaml"));
    let text = |prefix: &str| {
        format!(
            "routes: [{{prefix: {prefix}, url: '{url}', caFile: {place}/ca.crt, tokenFile: {place}/token}}]"
        )
    };
    std::fs::write(&path, text("a-")).expect("written");
    let (routes, metrics) = (Routes::read(&path).expect("routes"), Metrics::new());
    let (_, contents) = &**routes.file.as_ref().expect("a file");
    let mut follower =
        Follower::new(path.clone(), contents.clone(), routes.clone(), metrics.clone());
    let router = routes.around(external::router(Arc::new(NoMetrics)));
    let code = async |metric: &str| {
        let uri = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{metric}");
        let request = Request::get(uri).body(Body::empty()).expect("a request");
        router.clone().oneshot(request).await.expect("an answer").status().as_u16()
    };
    // What is written, whether it is good, and what becomes of the metrics a-x and b-x.
    let wrong = text("b-").replace("prefix", "prefx");
    for (what, text, good, codes) in [
        ("another name", text("b-"), true, [404, 200]),
        ("an unknown field", wrong, false, [404, 200]),
        ("no YAML", "routes: [".to_owned(), false, [404, 200]),
        ("no routes", "routes: []".to_owned(), true, [404, 404]),
        ("the first name", text("a-"), true, [200, 404]),
    ] {
        std::fs::write(&path, text).expect("written");
        for _ in 0..2 {
            follower.look().await;
        }
        assert_eq!([code("a-x").await, code("b-x").await], codes, "{what}");
        let errors = format!("podscale_external_routes_errors {}\n", i32::from(!good));
        assert!(metrics.text().contains(&errors), "{what}: {}", metrics.text());
    }
    // The authority changes, and comes back; then the file itself goes.
    let another = generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    for (pem, expected) in [(another.cert.pem().into_bytes(), 503), (good_authority, 200)] {
        std::fs::write(folder.join("ca.crt"), pem).expect("written");
        follower.look().await;
        assert_eq!(code("a-x").await, expected);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    follower.look().await;
    assert!(metrics.text().contains("podscale_external_routes_errors 1\n"));
    let loads = "podscale_external_routes_loads_total{outcome=\"error\"} 3\n";
    assert!(metrics.text().contains(loads), "each is counted once: {}", metrics.text());
}
