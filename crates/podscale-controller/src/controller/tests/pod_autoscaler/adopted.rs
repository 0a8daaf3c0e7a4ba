//! What `podscale adopt` makes: the changes of size that the HPA has left are counted by the first decision.

use super::costs::Sessions;
use super::*;
use axum::response::{IntoResponse, Response};
use podscale_api::pod_autoscaler::adopt::ADOPTED;

/// An answer as it was before any status was stored.
async fn without_statuses(answer: Response) -> Response {
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    let mut list: Value = serde_json::from_slice(&body).expect("JSON");
    for item in list["items"].as_array_mut().into_iter().flatten() {
        item.as_object_mut().expect("an object").remove("status");
    }
    Json(list).into_response()
}

/// The watch of HPAs may be ahead of that of PodAutoscalers: the HPA is gone, but what it has left is not seen yet.
#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_behind_does_not_make_the_size_jump() {
    let cluster = Cluster::with_definition().await;
    cluster.resize(2).await;
    let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 600});
    let mut object = pa("web", json!({"behavior": {"scaleUp": {"policies": [policy]}}}));
    object["metadata"]["annotations"] = json!({ADOPTED: "{}"});
    cluster.send("POST", PAS, &object).await;
    let change =
        json!({"from": 1, "to": 2, "time": cluster.clock.now().to_string(), "reason": "load"});
    let status = json!({"status": {"decisions": [change]}});
    cluster.send("PATCH", &format!("{PAS}/web/status"), &status).await;

    let lag = |request: Request<Body>, next: Next| async move {
        let uri = request.uri();
        let lists = uri.path().ends_with("/v1alpha1/podautoscalers")
            && !uri.query().unwrap_or_default().contains("watch=");
        let answer = next.run(request).await;
        if lists { without_statuses(answer).await } else { answer }
    };
    let client = Client::new(cluster.server.router().layer(from_fn(lag)), "default");
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 5;
    let controller = cluster.control_custom(&client, &load, Arc::new(Sessions(&[])));
    until("it is decided", async || {
        let found = cluster.condition("web", "ScalingLimited").await;
        found.is_some_and(|[_, reason, _]| reason == "ScaleUpLimit")
    })
    .await;
    assert_eq!(cluster.replicas().await, 2);
    controller.stop().await;
}
