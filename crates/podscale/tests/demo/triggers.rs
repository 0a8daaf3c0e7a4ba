//! KEDA's objects in the demonstration.

use super::*;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_wakes_its_consumer_and_lets_it_sleep_again() {
    let quiet = Scenario::load("triggers").expect("a built-in one").without_load();
    let config = Config { speed: 20.0, ..Config::of(quiet) };
    let demo = Demo::start(config, Vec::new()).await.expect("starts");
    let (client, dashboard) = (outside(&demo).await, address(&demo.dashboard_url()));
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let has = async |is_wanted: fn(i32) -> bool| {
        let spec = deployments.get("consumer").await.expect("a deployment").spec;
        is_wanted(spec.replicas?).then_some(())
    };
    until("a consumer that sleeps", async || has(|replicas| replicas == 0).await).await;
    let answer = call(dashboard, "PUT", "/load/default/consumer", "{\"enqueue\": 400}").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    until("a consumer that works", async || has(|replicas| replicas > 1).await).await;
    until("a consumer that sleeps again", async || has(|replicas| replicas == 0).await).await;

    let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
    let objects: Api<DynamicObject> =
        Api::default_namespaced_with(client, &ApiResource::from_gvk(&kind));
    let object = objects.get("consumer").await.expect("a ScaledObject");
    let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    assert_eq!(ready.map(|ready| &ready["status"]), Some(&"True".into()), "{conditions:?}");
    let metrics = page(dashboard, "/metrics").await;
    let value = "keda_scaler_metrics_value{namespace=\"default\",metric=\"s0-metric-api-queue\"";
    assert!(metrics.contains(value), "{metrics}");
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
}
