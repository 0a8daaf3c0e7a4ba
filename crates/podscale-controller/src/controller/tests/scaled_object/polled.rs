//! A server that answers queries as Prometheus does, on loopback. Time is real here: a server of its own does not wait
//! for virtual time.

use super::*;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What the server answers, and whom.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) value: Mutex<u32>,
    pub(super) token: Mutex<&'static str>,
}

/// Starts the server; its address.
pub(super) async fn serve(answers: &Arc<Answers>, running: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let answers = Arc::clone(answers);
    let answer = any(move |headers: HeaderMap| {
        let sent = headers.get("authorization").and_then(|value| value.to_str().ok());
        let right = format!("Bearer {}", *answers.token.lock());
        let is_right = sent == Some(right.as_str());
        let value = answers.value.lock().to_string();
        let vector = json!({"status": "success", "data": {"resultType": "vector",
            "result": [{"metric": {}, "value": [1, value]}]}});
        let code = if is_right { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        async move { (code, Json(vector)) }
    });
    let router = Router::new().route("/api/v1/query", answer);
    running.spawn(async move { axum::serve(listener, router).await.expect("it serves") });
    address
}

#[tokio::test]
async fn a_query_with_a_token_scales_and_another_token_is_picked_up() {
    let cluster = Cluster::with_keda().await;
    let (answers, mut running) = (Arc::new(Answers::default()), JoinSet::new());
    let address = serve(&answers, &mut running).await;
    *answers.token.lock() = "hunter2";
    *answers.value.lock() = 30;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"},
        "data": {"old": "aHVudGVyMg==", "new": "aHVudGVyMw=="}});
    cluster.send("POST", SECRETS, &secret).await;
    let keys = |key: &str| {
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
            "metadata": {"name": "keys"}, "spec": {"secretTargetRef":
                [{"parameter": "bearerToken", "name": "tokens", "key": key}]}})
    };
    cluster.send("POST", AUTHENTICATIONS, &keys("old")).await;
    let query = json!([{"type": "prometheus", "authenticationRef": {"name": "keys"}, "metadata":
        {"serverAddress": address, "query": "sum(jobs)", "threshold": "10", "authModes": "bearer"}}]);
    let quick = json!({"pollingInterval": 1, "fallback": {"failureThreshold": 1, "replicas": 2}});
    let controller = cluster.control_triggers(Config::default());
    cluster.send("POST", OBJECTS, &object(query, quick)).await;
    until("the query is asked", async || cluster.replicas().await == 3).await;
    *answers.token.lock() = "hunter3";
    until("the old token is refused", async || {
        cluster.said("web", "Fallback").await == ["True", "FallbackExists"]
    })
    .await;
    let health = cluster.object("web").await["status"]["health"]["s0-prometheus"].take();
    assert_eq!(health["status"], "Failing");
    cluster.send("PATCH", &format!("{AUTHENTICATIONS}/keys"), &keys("new")).await;
    until("the new token is used", async || {
        cluster.said("web", "Fallback").await == ["False", "NoFallbackFound"]
    })
    .await;
    *answers.value.lock() = 40;
    until("it goes on", async || cluster.replicas().await == 4).await;
    controller.stop().await;
    let texts =
        [cluster.object("web").await, cluster.get("/api/v1/namespaces/default/events").await];
    for text in texts {
        assert!(!text.to_string().contains("hunter"), "{text}");
    }
}
