//! What is exported of a PodAutoscaler says that it is one.

use super::*;
use podscale_api::pod_autoscaler::{API_VERSION, KIND, crd};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers";
/// The size that an autoscaler which is no HPA wants.
const DESIRED: &str = "podscale_desired_replicas";

#[tokio::test(flavor = "multi_thread")]
async fn spans_logs_and_metrics_of_a_pod_autoscaler_carry_its_kind() {
    let Some(program) = program() else { return };
    let (client, url) = serve().await;
    create(&client, DEFINITIONS, crd::definition()).await;
    put_deployment(&client).await;
    let mut object = autoscaler("web", 3);
    (object["apiVersion"], object["kind"]) = (API_VERSION.into(), KIND.into());
    object["spec"]["metrics"][0]["name"] = json!("work");
    create(&client, OBJECTS, object).await;
    let (folder, port) = (Folder::new("kinds"), free_port());
    let collector = Collector::start(&program, &folder, port);
    let endpoint = format!("http://127.0.0.1:{port}");
    let _replica = Replica::start_with(
        &folder.kubeconfig(&url),
        &["--otlp-endpoint", &endpoint, "--sync-period", "1s"],
        &[("OTEL_BSP_SCHEDULE_DELAY", "100"), ("OTEL_METRIC_EXPORT_INTERVAL", "300")],
    );
    until_size(&client, 3).await;
    until("the span of the change", async || rescale(&collector.spans()).is_some()).await;
    let decide = rescale(&collector.spans()).expect("it was there");
    for (key, value) in [
        ("podscale.kind", KIND),
        ("podscale.autoscaler", "web"),
        ("podscale.target", "Deployment/web"),
        ("podscale.replicas.to", "3"),
    ] {
        assert_eq!(attribute(&decide, key), value, "{key} of {decide:#}");
    }
    until("a metric was read", async || {
        collector.spans().iter().any(|span| {
            span["name"] == "read metric" && attribute(span, "podscale.metric.name") == "cpu"
        })
    })
    .await;
    until("the metrics", async || {
        let of_kind = |point: &&Value| attribute(point, "kind") == KIND;
        let counted = collector.points("podscale_decisions_total", "sum");
        let up = |point: &&Value| attribute(point, "outcome") == "up";
        let desired = collector.points(DESIRED, "gauge");
        let is_it = |point: &&Value| {
            attribute(point, "name") == "web" && attribute(point, "namespace") == SPACE
        };
        counted.iter().filter(of_kind).filter(up).any(|point| point["asInt"] == "1")
            && desired.iter().filter(of_kind).filter(is_it).any(|point| point["asInt"] == "3")
    })
    .await;
}
