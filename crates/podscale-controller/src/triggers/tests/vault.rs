//! HashiCorp Vault as a source of credentials.

use super::*;
use axum::Json;
use axum::http::HeaderMap;
use axum::routing::{get, put};
use tokio::net::TcpListener;

/// A Vault that knows the token `t` and the service account's token, counts logins, and has a secret of either version.
async fn serve() -> (String, Arc<Mutex<u32>>) {
    let logins = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&logins);
    let log_in = async move |Json(body): Json<Value>| {
        *counted.lock() += 1;
        let known = body["role"] == "reader" && body["jwt"] == PLANTED;
        match known {
            true => (StatusCode::OK, Json(json!({"auth": {"client_token": "t"}}))),
            false => (StatusCode::FORBIDDEN, Json(json!({"errors": ["permission denied"]}))),
        }
    };
    let only_with_token = |data: Value| {
        get(async move |headers: HeaderMap| {
            let known = headers.get("x-vault-token").is_some_and(|token| token == "t");
            let in_team = headers.get("x-vault-namespace").is_some_and(|name| name == "team");
            match known && in_team {
                true => (StatusCode::OK, Json(json!({"data": data}))),
                false => (StatusCode::FORBIDDEN, Json(json!({"errors": ["permission denied"]}))),
            }
        })
    };
    let issue =
        async |Json(body): Json<Value>| Json(json!({"data": {"private_key": body["common_name"]}}));
    let router = Router::new()
        .route("/v1/auth/kubernetes/login", put(log_in))
        .route("/v1/kv/data/redis", only_with_token(json!({"data": {"password": PLANTED}})))
        .route("/v1/old/redis", only_with_token(json!({"password": PLANTED, "port": 1})))
        .route("/v1/pki/issue/web", put(issue));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, logins)
}

fn spec(address: &str, change: Value) -> Value {
    let mut vault = json!({"address": address, "namespace": "team", "authentication": "token",
        "credential": {"token": "t"},
        "secrets": [{"parameter": "password", "path": "kv/data/redis", "key": "password"}]});
    for (field, value) in change.as_object().expect("fields") {
        vault[field] = value.clone();
    }
    json!({"hashiCorpVault": vault})
}

#[tokio::test]
async fn credentials_come_from_vault_with_either_way_to_log_in() {
    let (address, logins) = serve().await;
    let (triggers, _) = started(everywhere());
    let secret = |path: &str, kind: &str, key: &str| {
        let pki = json!({"commonName": "web"});
        json!([{"parameter": "password", "path": path, "type": kind, "key": key, "pkiData": pki}])
    };
    let kubernetes = |account: Value| {
        json!({"authentication": "kubernetes", "mount": "kubernetes", "role": "reader",
            "credential": account})
    };
    let reader = json!({"serviceAccountName": "reader"});
    let there = "s0-redis-jobs";
    let (gone, silent) = ("http://127.0.0.1:1", "is not supported");
    for (name, spec, expected) in [
        ("by-token", spec(&address, json!({})), there),
        (
            "of-v2",
            spec(&address, json!({"secrets": secret("kv/data/redis", "secretV2", "password")})),
            there,
        ),
        (
            "of-v1",
            spec(&address, json!({"secrets": secret("/old/redis", "secret", "password")})),
            there,
        ),
        (
            "of-either",
            spec(&address, json!({"secrets": secret("old/redis", "", "password")})),
            there,
        ),
        (
            "issued",
            spec(&address, json!({"secrets": secret("pki/issue/web", "pki", "private_key")})),
            there,
        ),
        ("by-account", spec(&address, kubernetes(reader.clone())), there),
        (
            "wrong-version",
            spec(&address, json!({"secrets": secret("old/redis", "secretV2", "password")})),
            "has no text with the key",
        ),
        (
            "no-text-there",
            spec(&address, json!({"secrets": secret("old/redis", "", "port")})),
            "has no text with the key \"port\"",
        ),
        (
            "nothing",
            spec(&address, json!({"secrets": secret("kv/data/web", "", "password")})),
            "gives no value: it answers 404",
        ),
        (
            "wrong-token",
            spec(&address, json!({"credential": {"token": "x"}})),
            "refuses the credentials",
        ),
        ("no-token", spec(&address, json!({"credential": null})), "could not get Vault token"),
        (
            "no-account",
            spec(&address, kubernetes(json!({}))),
            "credential.serviceAccountName is needed",
        ),
        (
            "no-role",
            spec(&address, json!({"authentication": "kubernetes"})),
            "mount and role are needed",
        ),
        ("other-way", spec(&address, json!({"authentication": "ldap"})), silent),
        ("other-address", spec("vault:8200", json!({})), "the address of Vault cannot be used"),
        ("away", spec(gone, json!({})), "unsure: "),
    ] {
        let object = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
        triggers.authentications.put(object, false);
        let found = outcome(&triggers, &redis(name, &[("listName", "jobs")])).await;
        let fits = if expected == there { found == there } else { found.contains(expected) };
        assert!(fits, "{name}: {found}");
        assert!(!found.contains(PLANTED), "{name}: {found}");
    }
    assert_eq!(*logins.lock(), 1);
}

#[tokio::test]
async fn many_that_refer_to_it_log_in_once() {
    let (address, logins) = serve().await;
    let (triggers, _) = started(everywhere());
    let by_account = json!({"authentication": "kubernetes", "mount": "kubernetes", "role": "reader",
        "credential": {"serviceAccountName": "reader"}});
    let object =
        json!({"metadata": {"name": "v", "namespace": "shop"}, "spec": spec(&address, by_account)});
    triggers.authentications.put(object, false);
    let (reads, trigger) = (Reads::default(), redis("v", &[("listName", "jobs")]));
    for _ in 0..3 {
        assert!(
            triggers
                .resolve(&Triggered::from(&super::object(&trigger)), &reads)
                .await
                .metrics
                .is_ok()
        );
    }
    assert_eq!(*logins.lock(), 1);
}
