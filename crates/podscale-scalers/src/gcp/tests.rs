//! Tokens against a server in place of Google's, which checks what it is asked.

use super::*;
use crate::identity::Identity;
use crate::tests::{context, soon, spec_of};
use crate::{Scaler, connect, parse};
use axum::Router;
use axum::http::{HeaderMap as Headers, Uri};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// What must not be seen.
const PLANTED: &str = "hunter2";
const ANSWER: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"3"]}]}}"#;
const MACHINE: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// The RSA key of the tests of encrypted keys.
fn pem() -> &'static str {
    let file = include_str!("../tls/keys.pem");
    let (_, rest) = file.split_once("# openssl genpkey -algorithm RSA\n").expect("a key");
    rest.split("# ").next().expect("a key")
}

/// What a token is asked for with, in words.
fn describe(body: &str) -> String {
    let form: HashMap<String, String> =
        form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    if let Some(assertion) = form.get("assertion") {
        let (message, signature) = assertion.rsplit_once('.').expect("a signature");
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem().as_bytes()).expect("a key");
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("a key");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
        public.verify(message.as_bytes(), &signature).expect("it is signed");
        let parts: Vec<Value> = message
            .split('.')
            .map(|part| URL_SAFE_NO_PAD.decode(part).expect("base64"))
            .map(|part| serde_json::from_slice(&part).expect("JSON"))
            .collect();
        assert_eq!(parts[0], json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
        assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
        let claims = &parts[1];
        assert_eq!(claims["exp"].as_i64(), claims["iat"].as_i64().map(|began| began + 3600));
        assert!(claims["aud"].as_str().is_some_and(|aud| aud.ends_with("/token")), "{claims}");
        return format!("{} {} {}", claims["iss"], claims["scope"], claims["iat"]);
    }
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    let field = |name: &str| form[name].clone();
    [field("audience"), field("scope"), field("subject_token"), field("subject_token_type")]
        .join(" ")
}

async fn start() -> (String, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (by_form, of_machine, taken_on) = (asked.clone(), asked.clone(), asked.clone());
    let granted = format!(r#"{{"access_token":"{PLANTED}","expires_in":3599}}"#);
    let other = granted.clone();
    let token = async move |body: String| {
        by_form.lock().push(describe(&body));
        granted
    };
    let machine = async move |headers: Headers, uri: Uri| {
        assert_eq!(headers["metadata-flavor"], "Google");
        of_machine.lock().push(uri.query().unwrap_or_default().to_owned());
        other
    };
    let impersonate = async move |headers: Headers, body: String| {
        assert_eq!(headers["authorization"], format!("Bearer {PLANTED}"));
        taken_on.lock().push(body);
        format!(r#"{{"accessToken":"{PLANTED}","expireTime":"2026-11-18T00:00:00Z"}}"#)
    };
    let query = async |headers: Headers| match headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
    {
        Some(found) if found == format!("Bearer {PLANTED}") => (StatusCode::OK, ANSWER),
        _ => (StatusCode::UNAUTHORIZED, ""),
    };
    let router = Router::new()
        .route("/token", post(token))
        .route(MACHINE, get(machine))
        .route("/impersonate", post(impersonate))
        .route("/api/v1/query", get(query));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked)
}

fn with_variables(variables: &[(&str, &str)]) -> Context {
    let known: BTreeMap<String, Secret> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect();
    let mut context = context();
    context.freshness = Duration::ZERO;
    context.variables = Arc::new(move |name| known.get(name).cloned());
    context.clock = Arc::new(|| "2026-11-16T07:00:00Z".parse().expect("a time"));
    context
}

fn trigger(context: &Context, text: &str, key: Option<&str>) -> Result<Box<dyn Scaler>, String> {
    let mut spec = spec_of("prometheus", &format!("query=up;threshold=1;{text}"));
    match key {
        Some(key) => drop(spec.auth.insert("GoogleApplicationCredentials".to_owned(), key.into())),
        None => spec.identity = Some(Identity::Gcp),
    }
    let parsed = parse(&spec).map_err(|errors| errors.to_string())?;
    assert!(!format!("{parsed:?}").contains("PRIVATE"), "{parsed:?}");
    connect(parsed, context).map_err(|error| error.to_string())
}

async fn poll(scaler: &dyn Scaler) -> String {
    let polled = match scaler.poll(soon()).await {
        Ok(values) => values[0].value.to_string(),
        Err(error) => error.to_string(),
    };
    assert!(!polled.contains(PLANTED), "{polled}");
    polled
}

fn key(address: &str) -> String {
    json!({"type": "service_account", "client_email": "a@shop.iam", "private_key": pem(),
        "private_key_id": "k1", "token_uri": format!("{address}/token")})
    .to_string()
}

/// A file of a test, which is removed by it.
fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("podscale-gcp-{name}-{}", std::process::id()));
    std::fs::write(&path, text).expect("written");
    path
}

#[tokio::test]
async fn tokens_come_from_the_machine_from_keys_and_from_those_who_vouch() {
    let (address, asked) = start().await;
    let host = address.trim_start_matches("http://");
    let subject = file("subject", r#"{"id":"token-of-cluster"}"#);
    let external = |more: Value| {
        let mut external = json!({"type": "external_account", "audience": "//iam/pool",
            "subject_token_type": "urn:jwt", "token_url": format!("{address}/token"),
            "credential_source": {"file": subject.display().to_string(),
                "format": {"type": "json", "subject_token_field_name": "id"}}});
        for (name, value) in more.as_object().expect("fields") {
            external[name] = value.clone();
        }
        external.to_string()
    };
    let of_key = file("key", &key(&address));
    let direct = file("direct", &external(json!({})));
    let taken_on = json!({"service_account_impersonation_url": format!("{address}/impersonate")});
    let taken_on = file("taken-on", &external(taken_on));
    let paths = [&of_key, &direct, &taken_on].map(|path| path.display().to_string());
    let monitoring = "https://www.googleapis.com/auth/monitoring.read";
    let by_key = format!("\"a@shop.iam\" \"{monitoring}\" 1794812400");
    let exchanged = |scope: &str| format!("//iam/pool {scope} token-of-cluster urn:jwt");
    let platform = "https://www.googleapis.com/auth/cloud-platform";
    let lent = json!({"scope": [monitoring], "lifetime": "3600s"}).to_string();
    let machine = "scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fmonitoring.read".to_owned();
    for (variables, key, expected) in [
        (vec![("GCE_METADATA_HOST", host)], None, vec![machine]),
        (vec![(FILE, paths[0].as_str())], None, vec![by_key.clone()]),
        (vec![(FILE, paths[1].as_str())], None, vec![exchanged(monitoring)]),
        (vec![(FILE, paths[2].as_str())], None, vec![exchanged(platform), lent]),
        (vec![], Some(key(&address)), vec![by_key]),
    ] {
        let context = with_variables(&variables);
        let text = format!("serverAddress={address}");
        let found = trigger(&context, &text, key.as_deref()).expect("a trigger");
        assert_eq!((poll(&*found).await, poll(&*found).await), ("3".to_owned(), "3".to_owned()));
        assert_eq!(asked.lock().drain(..).collect::<Vec<_>>(), expected, "{variables:?}");
    }
    for path in [subject, of_key, direct, taken_on] {
        std::fs::remove_file(path).expect("removed");
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_used_are_named_and_not_shown() {
    let context = with_variables(&[]);
    let there =
        "serverAddress=https://monitoring.googleapis.com/v1/projects/p/location/global/prometheus";
    let unverified = format!("{there};unsafeSsl=true");
    let other_host = format!("{there};customHeaders=X-Scope=a,host=evil.test");
    for (text, key, expected) in [
        (there, None, "ok"),
        (&unverified, None, "only sent to servers whose certificates are verified"),
        (&other_host, None, "may not name another host"),
        (&unverified, Some(key("https://oauth2.googleapis.com")), "ok"),
        ("serverAddress=https://evil.test", None, "serverAddress is none of the cloud"),
        (
            "serverAddress=http://monitoring.googleapis.com",
            None,
            "serverAddress is none of the cloud",
        ),
        ("serverAddress=https://evil.test", Some(key("https://oauth2.googleapis.com")), "ok"),
        (there, Some("planted".to_owned()), "it does not hold credentials in JSON"),
        (
            there,
            Some(r#"{"type":"authorized_user"}"#.to_owned()),
            "its type is neither service_account nor",
        ),
        (there, Some(r#"{"type":"service_account"}"#.to_owned()), "lacks a field that it needs"),
        (
            "serverAddress=https://h;credentialsFromEnvFile=FILE",
            Some(key("https://h")),
            "credentialsFromEnvFile names a file of the controller",
        ),
    ] {
        let found = trigger(&context, text, key.as_deref());
        let found = found.map_or_else(|problem| problem, |_| "ok".to_owned());
        assert!(found.contains(expected), "{text}: {found}");
        assert!(!found.contains("planted"), "{found}");
    }
    let wrong = key("https://h").replace("PRIVATE KEY", "PUBLIC KEY");
    let found = trigger(&context, "serverAddress=http://127.0.0.1:1", Some(&wrong));
    let found = poll(&*found.expect("a trigger")).await;
    assert!(found.contains("private_key of the service account cannot be used"), "{found}");
}
