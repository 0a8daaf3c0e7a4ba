//! The server on a real socket: TLS, tokens, HTTP/2, an orderly end, and protobuf bodies.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

mod support;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use podscale_apiserver::{ApiServer, Certificates, Config};
use serde_json::json;
use tower::ServiceExt;

use support::{config_map, send};

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

async fn client(url: &str, certificates: &Certificates, token: &str) -> kube::Client {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": {
            "server": url, "certificate-authority-data": certificates.authority_data() } }],
        "users": [{ "name": "u", "user": { "token": token } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    let kubeconfig: kube::config::Kubeconfig =
        serde_json::from_value(kubeconfig).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    kube::Client::try_from(config.expect("a config")).expect("a client")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_with_a_token_and_an_orderly_end() {
    let certificates = Certificates::generate(&["127.0.0.1", "localhost"]).expect("certificates");
    let server = ApiServer::new(Config { token: Some("secret".to_owned()), ..Config::default() });
    let serving = server.serve(loopback(), Some(&certificates)).await.expect("serves");
    let good: Api<ConfigMap> =
        Api::namespaced(client(&serving.url(), &certificates, "secret").await, "default");
    good.create(&PostParams::default(), &config_map("a", "1")).await.expect("created");
    let listed = good.list(&ListParams::default()).await.expect("listed");
    assert_eq!(listed.items.len(), 1);

    let bad: Api<ConfigMap> =
        Api::namespaced(client(&serving.url(), &certificates, "wrong").await, "default");
    let refused = bad.list(&ListParams::default()).await.expect_err("refused");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");

    let reviews: Api<TokenReview> = Api::all(client(&serving.url(), &certificates, "secret").await);
    for (token, accepted) in [("secret", true), ("wrong", false), ("", false)] {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = reviews.create(&PostParams::default(), &review).await.expect("reviewed");
        let status = answer.status.expect("a status");
        assert_eq!(status.authenticated.unwrap_or_default(), accepted, "{token:?}: {status:?}");
    }

    // A watch does not keep the server from stopping.
    let events = good.watch(&WatchParams::default(), "0").await.expect("watches");
    let watching = tokio::spawn(futures::StreamExt::collect::<Vec<_>>(events));
    tokio::time::sleep(Duration::from_millis(100)).await;
    serving.stop().await;
    let seen = watching.await.expect("ends");
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn a_taken_port_is_said_so() {
    let server = ApiServer::new(Config::default());
    let serving = server.serve(loopback(), None).await.expect("serves");
    let error = server.serve(serving.address(), None).await.expect_err("taken");
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
    serving.stop().await;
}

#[tokio::test]
async fn protobuf_bodies_are_read() {
    // A Namespace named "pb" with the label a=b, as typed clients send it.
    let metadata = [b"\n\x02pb".as_slice(), b"Z\x06\n\x01a\x12\x01b"].concat();
    let mut raw = vec![b'\n', u8::try_from(metadata.len()).expect("short")];
    raw.extend(&metadata);
    let mut body = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12".to_vec();
    body.push(u8::try_from(raw.len()).expect("short"));
    body.extend(&raw);
    let server = ApiServer::new(Config::default());
    let body = String::from_utf8(body).expect("plain bytes");
    let kind = "application/vnd.kubernetes.protobuf";
    let answer = send(&server, "POST", "/api/v1/namespaces", kind, "", body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    assert_eq!(answer.body["metadata"]["name"], "pb");
    assert_eq!(answer.body["metadata"]["labels"]["a"], "b");
    // What a real server says to each.
    for (body, expected) in [
        (
            "abc",
            "the object provided is unrecognized (must be of type Namespace): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (616263)",
        ),
        (
            "k8s\0\n\u{7f}",
            "the object provided is unrecognized (must be of type Namespace): unexpected EOF (6b3873000a7f)",
        ),
        (
            "k8s\0",
            "the object provided is unrecognized (must be of type Namespace): empty body (6b387300)",
        ),
        (
            "k8s\0\n\u{f}\n\u{2}v1\u{12}\tNamespace\u{12}\u{2}\u{8}\u{1}",
            "Namespace in version \"v1\" cannot be handled as a Namespace: proto: wrong wireType = 0 for field ObjectMeta",
        ),
    ] {
        let answer = send(&server, "POST", "/api/v1/namespaces", kind, "", body.to_owned()).await;
        assert_eq!((answer.code, answer.body["message"].as_str()), (400, Some(expected)));
    }
}

/// The content types of answers, as a real server gives them.
#[tokio::test]
async fn answers_come_in_the_form_that_is_accepted() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    const TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    let table_or_json = format!("{TABLE},application/json");
    let server = ApiServer::new(Config::default());
    for (path, accept, code, expected) in [
        ("/api/v1/namespaces/default", PROTOBUF, 200, PROTOBUF),
        ("/api/v1/namespaces", PROTOBUF, 200, PROTOBUF),
        ("/api/v1/namespaces/none", PROTOBUF, 404, PROTOBUF),
        ("/api/v1/namespaces/none", "application/yaml", 404, "application/yaml"),
        ("/api/v1/namespaces", TABLE, 406, "application/json"),
        ("/api/v1/namespaces", &table_or_json, 200, "application/json"),
        (
            "/api/v1/namespaces?watch=1&timeoutSeconds=0",
            PROTOBUF,
            200,
            "application/vnd.kubernetes.protobuf;stream=watch",
        ),
        (
            "/openapi/v2",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            200,
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        ),
    ] {
        let request = http::Request::get(path).header("accept", accept);
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let response = server.router().oneshot(request).await.expect("infallible");
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        assert_eq!((response.status().as_u16(), kind), (code, Some(expected)), "{path} {accept}");
    }
}
