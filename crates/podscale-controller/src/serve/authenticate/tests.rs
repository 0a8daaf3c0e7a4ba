use super::*;
use crate::serve::trust::Trust;
use axum::routing::post;
use axum::{Json, Router};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An authority, and certificates that it signed.
struct Signer {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Signer {
    fn new(name: &str) -> Signer {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Signer { issuer: Issuer::new(params, key), pem }
    }

    fn peer(&self, name: &str, groups: &[&str]) -> Peer {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Peer::showing(&[certificate.der().clone()])
    }
}

/// An API server that knows the token `good`, and counts.
fn server(asked: &Arc<AtomicU32>) -> Client {
    let count = Arc::clone(asked);
    let answer = move |Json(review): Json<Value>| {
        count.fetch_add(1, Ordering::Relaxed);
        let good = review["spec"]["token"] == "good";
        let user =
            json!({"username": "robot", "uid": "7", "groups": ["robots"], "extra": {"a/b": ["c"]}});
        let status = if good {
            json!({"authenticated": true, "user": user})
        } else {
            json!({"error": "no"})
        };
        async move { Json(json!({"status": status})) }
    };
    let router = Router::new().route("/apis/authentication.k8s.io/v1/tokenreviews", post(answer));
    Client::new(router, "default")
}

fn trusted(clients: &Signer, proxy: &Signer) -> Trusted {
    let config_map = json!({"data": {
        "client-ca-file": clients.pem, "requestheader-client-ca-file": proxy.pem,
        "requestheader-allowed-names": "[\"front-proxy\"]",
        "requestheader-username-headers": "[\"X-Remote-User\"]",
        "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
        "requestheader-group-headers": "[\"X-Remote-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
    }});
    let trusted = Trusted::default();
    trusted.set(Trust::read(&config_map).unwrap());
    trusted
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

#[tokio::test]
async fn somebody_is_known_by_proxy_certificate_or_token() {
    let (clients, proxy, stranger) = (Signer::new("c"), Signer::new("p"), Signer::new("s"));
    let asked = Arc::new(AtomicU32::new(0));
    let authenticator = Authenticator::new(server(&asked), trusted(&clients, &proxy));
    let remote = [("x-remote-user", "jane"), ("x-remote-group", "dev"), ("x-remote-group", "ops")];
    let nobody = Peer::default();
    for (what, peer, shown, expected) in [
        (
            "the front proxy",
            proxy.peer("front-proxy", &[]),
            headers(&remote),
            "jane dev,ops,system:authenticated",
        ),
        ("another of its authority", proxy.peer("somebody", &[]), headers(&remote), "401"),
        ("a stranger", stranger.peer("front-proxy", &[]), headers(&remote), "401"),
        (
            "headers without a certificate",
            nobody.clone(),
            headers(&remote),
            "system:anonymous system:unauthenticated",
        ),
        (
            "a user's certificate",
            clients.peer("joe", &["dev"]),
            headers(&remote),
            "joe dev,system:authenticated",
        ),
        ("a certificate without a name", clients.peer("", &["dev"]), headers(&[]), "401"),
        ("the proxy for nobody", proxy.peer("front-proxy", &[]), headers(&[]), "401"),
        (
            "a token",
            nobody.clone(),
            headers(&[("authorization", "Bearer good")]),
            "robot robots,system:authenticated",
        ),
        ("a wrong token", nobody.clone(), headers(&[("authorization", "bearer bad")]), "401"),
        (
            "a password",
            nobody.clone(),
            headers(&[("authorization", "Basic eDp5")]),
            "system:anonymous system:unauthenticated",
        ),
        (
            "a token with a stranger's certificate",
            stranger.peer("x", &[]),
            headers(&[("authorization", "Bearer good")]),
            "robot robots,system:authenticated",
        ),
    ] {
        let found = match authenticator.authenticate(&peer, &shown).await {
            Ok(user) => format!("{} {}", user.name, user.groups.join(",")),
            Err(_) => "401".to_owned(),
        };
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "each token is asked about once");
    assert_eq!(authenticator.remembered(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_verified_again_when_trust_changes_or_time_passes() {
    let (clients, others) = (Signer::new("c"), Signer::new("o"));
    let trusted = trusted(&clients, &clients);
    let peer = clients.peer("joe", &[]);
    let chain = peer.certificates.clone().unwrap();
    let first = judge(&peer, &chain, &trusted.now(), Instant::now());
    let again = judge(&peer, &chain, &trusted.now(), Instant::now());
    assert!(Arc::ptr_eq(&first, &again) && matches!(first.user, Some(Ok(_))));
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    let later = judge(&peer, &chain, &trusted.now(), Instant::now());
    assert!(!Arc::ptr_eq(&first, &later));
    let data = json!({"data": {"client-ca-file": others.pem}});
    trusted.set(Trust::read(&data).unwrap());
    let changed = judge(&peer, &chain, &trusted.now(), Instant::now());
    assert!(matches!(changed.user, Some(Err(CertificateProblem::Unverified(_)))));
}

#[test]
fn headers_say_who_somebody_is() {
    let (clients, proxy) = (Signer::new("c"), Signer::new("p"));
    let trust = trusted(&clients, &proxy).now();
    let proxy = trust.proxy.as_ref().unwrap();
    let user = of_headers(
        proxy,
        &headers(&[
            ("x-remote-user", "jane"),
            ("x-remote-uid", "42"),
            ("x-remote-group", "dev"),
            ("x-remote-extra-example.com%2fscopes", "read"),
            ("x-remote-extra-example.com%2fscopes", "write"),
            ("x-other", "x"),
        ]),
    );
    let user = user.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "42"));
    let scopes = vec!["read".to_owned(), "write".to_owned()];
    assert_eq!(user.extra, [("example.com/scopes".to_owned(), scopes)].into());
    assert_eq!(of_headers(proxy, &headers(&[("x-remote-group", "dev")])), None);
}

#[test]
fn a_wrong_config_map_is_not_used() {
    let signer = Signer::new("p");
    for (key, value, words) in [
        ("client-ca-file", "nonsense", "client-ca-file has no usable certificates"),
        ("requestheader-allowed-names", "front-proxy", "requestheader-allowed-names is no list"),
        (
            "requestheader-username-headers",
            "[\"X Remote\"]",
            "requestheader-username-headers has \"X Remote\"",
        ),
    ] {
        let mut config_map = json!({"data": {"requestheader-client-ca-file": signer.pem}});
        config_map["data"][key] = value.into();
        let error = Trust::read(&config_map).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let nobody = Trust::read(&json!({})).unwrap();
    assert!(nobody.proxy.is_none());
    assert_eq!(nobody.without_config_map(), "only tokens are trusted until there is one");
    for key in ["client-ca-file", "requestheader-client-ca-file"] {
        let somebody = Trust::read(&json!({"data": {key: signer.pem}})).unwrap();
        assert_eq!(somebody.without_config_map(), "whom it named before stays trusted");
    }
}
