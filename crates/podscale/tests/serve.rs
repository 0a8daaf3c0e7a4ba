//! The server of metrics APIs on the embedded API server: its certificate, whom it trusts, and rules
//! from a ConfigMap, while they change.

// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

use axum::http::{Request, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};
use podscale_apiserver::ApiServer;
use podscale_client::clock::Clock;
use podscale_client::events;
use podscale_controller::metrics::Metrics;
use podscale_controller::readiness::Readiness;
use podscale_controller::serve::routes::Routes;
use podscale_controller::serve::rule_reports::RuleReports;
use podscale_controller::serve::rules::RuleWatch;
use podscale_controller::serve::{self, CertificateSource, Context, Served, Server};
use podscale_metrics::answer::{Answering, decimal};
use podscale_metrics::external::{ExternalMetrics, ExternalRequest, ExternalValue};
use podscale_metrics::prometheus;
use podscale_metrics::rules::engine::{Engine as RuleEngine, Timings};
use podscale_metrics::rules::reload::Reloader;
use podscale_metrics::rules::{KnownResources, RuleSet};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long anything may take before the test gives up: generous, since machines can be busy.
const PATIENCE: Duration = Duration::from_secs(120);
const TRUST: &str = "extension-apiserver-authentication";

/// One external metric.
struct Depth;

impl ExternalMetrics for Depth {
    fn metrics(&self) -> Vec<String> {
        vec!["depth".to_owned()]
    }

    fn values<'a>(&'a self, request: &'a ExternalRequest) -> Answering<'a, Vec<ExternalValue>> {
        let labels = [("queue", "a")].into_iter().collect();
        let time = jiff::Timestamp::UNIX_EPOCH;
        let value = ExternalValue { labels, time, window: None, value: decimal(42.0) };
        Box::pin(async move {
            if request.metric == "depth" { Ok(vec![value]) } else { Err(request.not_found()) }
        })
    }
}

/// An API server that knows the token `good` and lets its user do everything.
fn api_server() -> Client {
    let token = async |Json(review): Json<Value>| {
        let good = review["spec"]["token"] == "good";
        Json(json!({"status": {"authenticated": good, "user": {"username": "robot"}}}))
    };
    let access = async |Json(review): Json<Value>| {
        Json(json!({"status": {"allowed": review["spec"]["user"] == "robot"}}))
    };
    let server = ApiServer::new(podscale_apiserver::Config::default());
    let router = Router::new()
        .route("/apis/authentication.k8s.io/v1/tokenreviews", post(token))
        .route("/apis/authorization.k8s.io/v1/subjectaccessreviews", post(access))
        .fallback_service(server.router());
    Client::new(router, "default")
}

async fn send(client: &Client, verb: &str, path: &str, object: &Value) -> (StatusCode, Value) {
    let form = if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(verb).uri(path).header("content-type", form);
    let body = if object.is_null() { Vec::new() } else { object.to_string().into_bytes() };
    let answer = client.send(request.body(Body::from(body)).expect("a request")).await;
    let answer = answer.expect("an answer");
    let code = answer.status();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn create(client: &Client, path: &str, object: Value) {
    let (code, body) = send(client, "POST", path, &object).await;
    assert!(code.is_success(), "{path}: {body}");
}

async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn start(client: &Client, served: Served) -> Server {
    let config = serve::Config {
        address: ([127, 0, 0, 1], 0).into(),
        plain_address: None,
        service: ("kube-system".to_owned(), "podscale-metrics".to_owned()),
        certificate: CertificateSource::Own { secret: "podscale-serving".to_owned() },
        routes: Routes::default(),
    };
    let context = Context {
        client: client.clone(),
        clock: Clock::wall(),
        metrics: Metrics::new(),
        readiness: Readiness::new(),
    };
    Server::start(config, served, context).await.expect("a server")
}

/// The authorities in the Secret.
async fn authorities(client: &Client) -> String {
    let path = "/api/v1/namespaces/kube-system/secrets/podscale-serving";
    let (_, secret) = send(client, "GET", path, &Value::Null).await;
    let text = secret["data"]["ca.crt"].as_str().expect("authorities");
    String::from_utf8(STANDARD.decode(text).expect("base64")).expect("PEM")
}

/// Asks a server that must show a certificate of these authorities.
async fn ask(
    server: &Server,
    authorities: &str,
    path: &str,
    headers: &[(&str, &str)],
    certificate: Option<&(String, String)>,
) -> (u16, Value) {
    let mut config = Config::new(format!("https://{}", server.address()).parse().expect("a URL"));
    let roots = CertificateDer::pem_slice_iter(authorities.as_bytes());
    config.root_cert = Some(roots.map(|root| root.expect("a certificate").to_vec()).collect());
    config.tls_server_name = Some("podscale-metrics.kube-system.svc".to_owned());
    if let Some((certificate, key)) = certificate {
        config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
    }
    let client = Client::try_from(config).expect("a client");
    let request =
        headers.iter().fold(Request::get(path), |r, (name, value)| r.header(*name, *value));
    let answer = client.send(request.body(Body::empty()).expect("a request")).await;
    let answer = answer.expect("an answer over TLS");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// An authority and a front proxy that it signed.
fn front_proxy() -> (String, (String, String)) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("params");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).expect("signed").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("params");
    params.distinguished_name.push(DnType::CommonName, "front-proxy");
    let signed = params.signed_by(&key, &issuer).expect("signed").pem();
    (pem, (signed, key.serialize_pem()))
}

fn trust(authority: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": TRUST}, "data": {
        "requestheader-client-ca-file": authority, "requestheader-allowed-names": "[\"front-proxy\"]",
        "requestheader-username-headers": "[\"X-Remote-User\"]",
        "requestheader-group-headers": "[\"X-Remote-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]"}})
}

const VALUES: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/depth";

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_a_certificate_and_trust_whom_the_api_server_trusts() {
    let client = api_server();
    let (first_authority, first_proxy) = front_proxy();
    let maps = "/api/v1/namespaces/kube-system/configmaps";
    create(&client, maps, trust(&first_authority)).await;
    let registration = "v1beta1.external.metrics.k8s.io";
    let registrations = "/apis/apiregistration.k8s.io/v1/apiservices";
    create(&client, registrations, json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": registration}, "spec": {"group": "external.metrics.k8s.io", "version": "v1beta1",
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "podscale-metrics"}}})).await;
    let served = Served { external: Some(Arc::new(Depth)), ..Served::default() };
    let (first, second) = tokio::join!(start(&client, served.clone()), start(&client, served));
    let authorities = authorities(&client).await;
    for server in [&first, &second] {
        let (code, _) = ask(server, &authorities, "/livez", &[], None).await;
        assert_eq!(code, 200);
    }
    until("the caBundle is written", async || {
        let path = format!("{registrations}/{registration}");
        let (_, object) = send(&client, "GET", &path, &Value::Null).await;
        (object["spec"]["caBundle"] == STANDARD.encode(&authorities)).then_some(())
    })
    .await;
    let token = [("authorization", "Bearer good")];
    let (code, list) = ask(&first, &authorities, VALUES, &token, None).await;
    assert_eq!((code, &list["items"][0]["value"]), (200, &json!("42")), "{list}");
    let robot = [("x-remote-user", "robot")];
    let by = async |proxy: &(String, String)| {
        ask(&first, &authorities, VALUES, &robot, Some(proxy)).await.0
    };
    until("the front proxy is trusted", async || (by(&first_proxy).await == 200).then_some(()))
        .await;
    let (next_authority, next_proxy) = front_proxy();
    assert_eq!(by(&next_proxy).await, 401);
    let change = trust(&next_authority);
    let (code, _) = send(&client, "PATCH", &format!("{maps}/{TRUST}"), &change).await;
    assert!(code.is_success());
    until("another one is trusted", async || (by(&next_proxy).await == 200).then_some(())).await;
    assert_eq!(by(&first_proxy).await, 401, "the old one is not any more");
    let (code, body) = ask(&first, &authorities, VALUES, &[], None).await;
    assert_eq!(code, 403, "{body}");
    first.stop().await;
    second.stop().await;
}

/// As in the demo, where nobody asks through an API server.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_api_server_publishes_nothing_tokens_are_enough() {
    let client = api_server();
    let served = Served { external: Some(Arc::new(Depth)), ..Served::default() };
    let server = start(&client, served).await;
    let authorities = authorities(&client).await;
    let (code, _) = ask(&server, &authorities, "/readyz", &[], None).await;
    assert_eq!(code, 200, "requests are sent again while the answer is 503");
    let token = [("authorization", "Bearer good")];
    let (code, list) = ask(&server, &authorities, VALUES, &token, None).await;
    assert_eq!(code, 200, "{list}");
    server.stop().await;
}

/// No token and no certificate is shown: API servers show none, and it need not know whom they trust.
#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_answers_everybody_and_needs_no_other_rights() {
    let client = api_server();
    let codes = async |server: &Server| {
        let authorities = authorities(&client).await;
        let mut codes = Vec::new();
        for path in ["/readyz", "/validate", "/metrics"] {
            codes.push(ask(server, &authorities, path, &[], None).await.0);
        }
        codes
    };
    let alone = start(&client, Served { webhook: true, ..Served::default() }).await;
    assert_eq!(codes(&alone).await, [200, 405, 404], "a question is posted");
    let (authority, _) = front_proxy();
    create(&client, "/api/v1/namespaces/kube-system/configmaps", trust(&authority)).await;
    let metrics = Served { external: Some(Arc::new(Depth)), webhook: true, ..Served::default() };
    let beside = start(&client, metrics).await;
    assert_eq!(codes(&beside).await, [200, 405, 403]);
    alone.stop().await;
    beside.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_version_of_the_rules_leaves_the_last_good_one_in_use() {
    let client = api_server();
    let rules = |count: usize| {
        let rule = "- {seriesQuery: a, metricsQuery: a, resources: {namespaced: false}}\n";
        format!("externalRules:\n{}", rule.repeat(count))
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    create(
        &client,
        maps,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules"},
        "data": {"config.yaml": rules(1)}}),
    )
    .await;
    let (recorder, pending) = events::channel("podscale");
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let writing = tokio::spawn(events::write(client.clone(), Clock::wall(), pending, stopped));
    let nobody = prometheus::Client::new(prometheus::Config::new("http://127.0.0.1:9"));
    let known = Arc::new(KnownResources::everyday());
    let (nobody, timings) = (Arc::new(nobody.expect("a client")), Timings::default());
    let engine = Arc::new(RuleEngine::new(nobody, RuleSet::default(), known, timings));
    let metrics = Metrics::new();
    let location = "default/rules".parse().expect("a location");
    let reports = Arc::new(RuleReports::new(metrics.clone(), Some(recorder)));
    let watch = RuleWatch { client: client.clone(), location, metrics: metrics.clone(), reports };
    let following = tokio::spawn(watch.follow(Reloader::new(Arc::clone(&engine))));
    let set = async |text: &str| {
        let change = json!({"data": {"config.yaml": text}});
        let (code, _) = send(&client, "PATCH", &format!("{maps}/rules"), &change).await;
        assert!(code.is_success());
    };
    let is = |count: usize| engine.rules().external().len() == count;
    let errors = |count: usize| {
        let line = format!("podscale_metric_rules_errors {count}\n");
        metrics.text().contains(&line).then_some(())
    };
    until("the first version is used", async || is(1).then_some(())).await;
    for (wrong, problem) in [
        ("externalRules: [{seriesQuery: a}]", "externalRules[0].metricsQuery: must be set"),
        ("", "is empty; to drop all rules, say rules: []"),
    ] {
        set(wrong).await;
        until("an event says what is wrong", async || {
            let path = "/api/v1/namespaces/default/events";
            let (_, list) = send(&client, "GET", path, &Value::Null).await;
            let says = |event: &Value| {
                event["reason"] == "InvalidMetricRules"
                    && event["message"].as_str().is_some_and(|text| text.contains(problem))
            };
            list["items"].as_array()?.iter().any(says).then_some(())
        })
        .await;
        assert_eq!(errors(1), Some(()), "{wrong}");
        assert!(is(1), "{wrong}");
    }
    set(&rules(2)).await;
    until("the next good version is used", async || is(2).then_some(())).await;
    until("nothing is wrong", async || errors(0)).await;
    let (code, _) = send(&client, "DELETE", &format!("{maps}/rules"), &Value::Null).await;
    assert!(code.is_success());
    until("that it is gone is counted", async || errors(1)).await;
    assert!(is(2), "the last rules stay in use");
    following.abort();
    writing.abort();
}
