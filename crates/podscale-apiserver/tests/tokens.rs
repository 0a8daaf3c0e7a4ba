//! Tokens of service accounts, as `kubectl create token` asks for them.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

mod support;

use jiff::{SignedDuration, Timestamp};
use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::send_as;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

struct Fixture {
    server: ApiServer,
    /// Seconds that have passed.
    passed: Arc<AtomicI64>,
}

impl Fixture {
    async fn new() -> Fixture {
        let passed = Arc::new(AtomicI64::new(0));
        let (began, later) = (Timestamp::now(), Arc::clone(&passed));
        let clock = move || began + SignedDuration::from_secs(later.load(Ordering::Relaxed));
        let server = ApiServer::new(Config {
            clock: Arc::new(clock),
            token: Some("secret".to_owned()),
            ..Config::default()
        });
        let fixture = Fixture { server, passed };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "editor"}});
        let (code, _) = fixture.send("secret", "POST", ACCOUNTS, account).await;
        assert_eq!(code, 201);
        fixture
    }

    async fn send(&self, token: &str, verb: &str, path: &str, body: Value) -> (u16, Value) {
        send_as(&self.server, token, verb, path, body).await
    }

    async fn request(&self, name: &str, spec: Value) -> (u16, Value) {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": spec});
        self.send("secret", "POST", &format!("{ACCOUNTS}/{name}/token"), body).await
    }

    async fn token(&self, spec: Value) -> String {
        let (code, answer) = self.request("editor", spec).await;
        assert_eq!(code, 201, "{answer}");
        answer["status"]["token"].as_str().expect("a token").to_owned()
    }

    /// What a request with this token is answered with.
    async fn asks(&self, token: &str) -> u16 {
        self.send(token, "GET", ACCOUNTS, Value::Null).await.0
    }

    async fn review(&self, token: &str, audiences: &[&str]) -> Value {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences}});
        self.send("secret", "POST", REVIEWS, body).await.1["status"].take()
    }
}

#[tokio::test]
async fn a_token_is_its_accounts_until_it_expires_or_that_goes() {
    let fixture = Fixture::new().await;
    let (code, answer) = fixture.request("editor", json!({})).await;
    assert_eq!((code, &answer["kind"]), (201, &json!("TokenRequest")));
    assert_eq!(answer["spec"]["audiences"], json!([AUDIENCE]));
    assert_eq!(answer["spec"]["expirationSeconds"], 3600);
    let token = answer["status"]["token"].as_str().expect("a token");
    assert_eq!(token.split('.').count(), 3, "a JSON Web Token");
    assert_eq!((fixture.asks(token).await, fixture.asks("wrong").await), (200, 401));
    let review = fixture.review(token, &[]).await;
    assert_eq!(review["user"]["username"], "system:serviceaccount:default:editor");
    assert_eq!(
        (&review["authenticated"], &review["audiences"]),
        (&json!(true), &json!([AUDIENCE]))
    );
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let (_, answer) = fixture.send(token, "POST", who, body).await;
    let name = &answer["status"]["userInfo"]["username"];
    assert_eq!(name, "system:serviceaccount:default:editor");

    fixture.passed.store(3599, Ordering::Relaxed);
    assert_eq!(fixture.asks(token).await, 200);
    fixture.passed.store(3600, Ordering::Relaxed);
    assert_eq!(fixture.asks(token).await, 401, "it has expired");
    assert!(fixture.review(token, &[]).await["authenticated"].is_null());

    let token = fixture.token(json!({"expirationSeconds": 600})).await;
    assert_eq!(fixture.asks(&token).await, 200);
    let path = format!("{ACCOUNTS}/editor");
    fixture.send("secret", "DELETE", &path, json!({})).await;
    assert_eq!(fixture.asks(&token).await, 401, "its account is gone");
}

#[tokio::test]
async fn a_token_for_others_is_not_for_this_server() {
    let fixture = Fixture::new().await;
    let token = fixture.token(json!({"audiences": ["vault", "nats"]})).await;
    assert_eq!(fixture.asks(&token).await, 401);
    assert!(fixture.review(&token, &[]).await["authenticated"].is_null());
    let review = fixture.review(&token, &["nats", "x"]).await;
    assert_eq!((&review["authenticated"], &review["audiences"]), (&json!(true), &json!(["nats"])));
}

#[tokio::test]
async fn a_token_goes_with_what_it_is_bound_to() {
    let fixture = Fixture::new().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let secrets = "/api/v1/namespaces/default/secrets";
    fixture.send("secret", "POST", secrets, secret).await;
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}});
    let token = fixture.token(bound).await;
    assert_eq!(fixture.asks(&token).await, 200);
    fixture.send("secret", "DELETE", &format!("{secrets}/s"), json!({})).await;
    assert_eq!(fixture.asks(&token).await, 401);
}

#[tokio::test]
async fn what_cannot_be_issued_is_refused() {
    let fixture = Fixture::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (name, account) in [("own", "editor"), ("others", "default")] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}});
        let (code, answer) = fixture.send("secret", "POST", pods, pod).await;
        assert_eq!(code, 201, "{answer}");
    }
    let own = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "own"}});
    fixture.token(own).await;
    let bound =
        |kind: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": "x"}});
    for (name, spec, code, says) in [
        ("nobody", json!({}), 404, "serviceaccounts \"nobody\" not found"),
        (
            "editor",
            json!({"expirationSeconds": 10}),
            422,
            "spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes",
        ),
        ("editor", json!({"expirationSeconds": 1i64 << 33}), 422, "larger than 2^32 seconds"),
        ("editor", bound("Pod"), 404, "pods \"x\" not found"),
        (
            "editor",
            bound("Service"),
            400,
            "cannot bind token for serviceaccount to a type /v1, Kind=Service",
        ),
        (
            "editor",
            json!({"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}),
            400,
            "to a type apps/v1, Kind=Deployment",
        ),
        (
            "editor",
            json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "others"}}),
            400,
            "cannot bind token for serviceaccount \"editor\" to pod running with different \
             serviceaccount name.",
        ),
    ] {
        let (found, answer) = fixture.request(name, spec.clone()).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(found == code && message.contains(says), "{spec}: {found} {message}");
    }
}

#[tokio::test]
async fn a_server_without_a_token_knows_nobody_by_one() {
    let server = ApiServer::new(Config::default());
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": "made up"}});
    let (code, answer) = send_as(&server, "", "POST", REVIEWS, body).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["status"], json!({"error": "the token is not that of this server"}));
}
