//! KEDA's objects in the demonstration.

use super::*;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use podscale_controller::metrics::Metrics;
use podscale_controller::record::{Limits, Recorder};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_wakes_its_consumer_and_lets_it_sleep_again() {
    let quiet = Scenario::load("triggers").expect("a built-in one").without_load();
    let config = Config { speed: 20.0, ..Config::of(quiet) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-triggers");
    let _ = std::fs::remove_dir_all(&folder);
    let limits = Limits { bytes: 1 << 24, age: Duration::from_secs(3600) };
    let (recorder, writing) =
        Recorder::start(&folder, limits, Metrics::default()).expect("a folder");
    let demo = Demo::start(config, vec![Arc::new(recorder)]).await.expect("starts");
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
    writing.finish();
    what_if(&folder);
}

/// What would have been different, had one pod had to do with a longer queue.
fn what_if(recordings: &Path) {
    let edit = "spec.triggers[0].metadata.targetValue=400";
    let output = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["simulate", "-o", "json", "--set", edit, "--recording"])
        .arg(recordings)
        .output()
        .expect("the program starts");
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let consumer = &json["autoscalers"][0];
    assert_eq!(consumer["autoscaler"], "default/consumer", "{json}");
    let hours = |run: &str| consumer[run]["podHours"].as_f64().expect("pod-hours");
    assert!(hours("changed") < hours("unchanged"), "{consumer}");
    let left_out = json["leftOut"][0].as_str().unwrap_or_default();
    assert!(left_out.contains("triggers[0] (cron) is a schedule, not a load"), "{json}");
}
