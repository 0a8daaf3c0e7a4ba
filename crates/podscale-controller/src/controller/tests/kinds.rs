//! Autoscalers of several kinds and one name, side by side: whoever hears of decisions shows which kind each
//! is of.

use super::*;
use crate::dashboard::{self, Hub};
use crate::record::{Limits, Recorder};
use crate::telemetry::DecisionMetrics;
use http_body_util::BodyExt;
use podscale_api::{chpa, crds, pod_autoscaler};
use tower::ServiceExt;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// An autoscaler called `web` of each kind, each with a target of its own.
async fn of_each_kind() -> Cluster {
    let cluster = Cluster::with(json!({})).await;
    for definition in crds::all() {
        cluster.send("POST", CRDS, &definition).await;
    }
    let web = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    for name in ["one", "two"] {
        let mut other = web.clone();
        other["metadata"] = json!({"name": name});
        other["spec"]["selector"]["matchLabels"]["app"] = json!(name);
        other["spec"]["template"]["metadata"]["labels"]["app"] = json!(name);
        cluster.send("POST", DEPLOYMENTS, &other).await;
        let status = json!({"status": {"replicas": 1}});
        cluster.send("PATCH", &format!("{DEPLOYMENTS}/{name}/status"), &status).await;
    }
    for (version, kind, plural, target) in [
        (pod_autoscaler::API_VERSION, pod_autoscaler::KIND, pod_autoscaler::PLURAL, "one"),
        (chpa::API_VERSION, chpa::KIND, chpa::PLURAL, "two"),
    ] {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"},
            "spec": {"minReplicas": 3, "maxReplicas": 9, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}}});
        let path = format!("/apis/{version}/namespaces/default/{plural}");
        until("the kind is served", async || {
            let about = About { resource: "", name: "" };
            call::get::<Value>(&cluster.client("tester"), &path, about).await.is_ok()
        })
        .await;
        cluster.send("POST", &path, &object).await;
    }
    cluster
}

/// What the dashboard answers, which `podscale explain` and `podscale top` ask as well.
async fn ask(hub: &Hub, path: &str) -> Value {
    let request = Request::builder().uri(path).header(header::HOST, "localhost");
    let request = request.body(Body::empty()).expect("a request");
    let answer = dashboard::router(hub.clone()).oneshot(request).await.expect("an answer");
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&body).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn whoever_hears_of_decisions_shows_the_kind() {
    let folder = recordings::folder("kinds");
    let cluster = of_each_kind().await;
    let (metrics, hub) = (Metrics::new(), Hub::new(cluster.clock));
    let (recorder, writing) =
        Recorder::start(&folder, Limits::default(), metrics.clone()).expect("a folder");
    let observers: Vec<Arc<dyn Observer>> =
        vec![Arc::new(recorder), Arc::new(hub.clone()), Arc::new(DecisionMetrics(metrics.clone()))];
    let watchers = Watchers { observers, metrics: metrics.clone(), ..Watchers::default() };
    let (client, dialects) = (cluster.client("podscale/0"), dialect::built_in());
    let (config, role) = (Config::default(), Role::alone());
    let controller = Controller::start(&client, cluster.clock, config, dialects, watchers, role);
    for target in ["web", "one", "two"] {
        until(target, async || {
            cluster.get(&format!("{DEPLOYMENTS}/{target}")).await["spec"]["replicas"] == 3
        })
        .await;
    }
    tokio::time::sleep(MINUTE).await;
    let list = ask(&hub, "/api/autoscalers").await["autoscalers"].take();
    let rows = list.as_array().cloned().unwrap_or_default();
    let mut shown: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", row["kind"].as_str().unwrap_or_default(), row["target"]))
        .collect();
    shown.sort();
    let expected = [
        "CHPA \"Deployment/two\"",
        "HorizontalPodAutoscaler \"Deployment/web\"",
        "PodAutoscaler \"Deployment/one\"",
    ];
    assert_eq!(shown, expected);
    for (resource, target) in [(pod_autoscaler::RESOURCE, "one"), (chpa::RESOURCE, "two")] {
        let one = ask(&hub, &format!("/api/autoscalers/default/web?kind={resource}")).await;
        let first = one["past"]["latest"]["lines"][0].as_str().unwrap_or_default().to_owned();
        assert!(first.starts_with(&format!("Deployment {target} ")), "{one}");
    }
    let text = metrics.text();
    for kind in ["HorizontalPodAutoscaler", "CHPA", "PodAutoscaler"] {
        let series = format!("podscale_decisions_total{{outcome=\"up\",kind=\"{kind}\"}} 1");
        assert!(text.contains(&series), "no {series} in\n{text}");
    }
    let name = "horizontal_pod_autoscaler_controller_desired_replicas";
    for series in [
        format!("{name}{{namespace=\"default\",hpa_name=\"web\"}} 3"),
        "podscale_desired_replicas{kind=\"CHPA\",namespace=\"default\",name=\"web\"} 3".to_owned(),
        "podscale_desired_replicas{kind=\"PodAutoscaler\",namespace=\"default\",name=\"web\"} 3"
            .to_owned(),
    ] {
        assert!(text.contains(&series), "no {series} in\n{text}");
    }
    let path = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers/web";
    cluster.send("DELETE", path, &json!({})).await;
    until("its series goes, and no other", async || {
        let text = metrics.text();
        !text.contains("podscale_desired_replicas{kind=\"PodAutoscaler\"")
            && text.contains("podscale_desired_replicas{kind=\"CHPA\"")
    })
    .await;
    controller.stop().await;
    writing.finish();
    let (names, _) = recordings::replay(&folder);
    for begins in ["default/web 2", "default/web CHPA 2", "default/web PodAutoscaler 2"] {
        assert!(names.iter().any(|name| name.starts_with(begins)), "{names:?}");
    }
}
