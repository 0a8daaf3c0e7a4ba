//! ScaledJobs in the demonstration: a queue, Jobs for it, pods that do their work and end.

use super::*;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;

const QUEUE: &str = "/load/default/mail";

fn is_unfinished(job: &Job) -> bool {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    !conditions
        .into_iter()
        .any(|it| matches!(&*it.type_, "Complete" | "Failed") && it.status == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_gets_jobs_until_it_is_empty() {
    let quiet = Scenario::load("jobs").expect("a built-in one").without_load();
    let config = Config { speed: 20.0, ..Config::of(quiet) };
    let heard = Arc::new(Lines::default());
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::clone(&heard) as _];
    let demo = Demo::start(config, observers).await.expect("starts");
    let (client, dashboard) = (outside(&demo).await, address(&demo.dashboard_url()));
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledJob");
    let objects: Api<DynamicObject> =
        Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind));
    let said = async |condition: &str| {
        let object = objects.get("mail").await.expect("a ScaledJob");
        let all = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|it| it["type"] == condition)?;
        Some(format!("{} {}", found["status"].as_str()?, found["reason"].as_str()?))
    };
    let says = async |condition: &str, wanted: &str| {
        (said(condition).await.as_deref() == Some(wanted)).then_some(())
    };
    until("nothing to do", async || says("Active", "False ScalerNotActive").await).await;
    let listed = async || jobs.list(&ListParams::default()).await.expect("Jobs").items;
    assert!(listed().await.is_empty(), "no Jobs for an empty queue");

    let answer = call(dashboard, "PUT", QUEUE, "{\"enqueue\": 200}").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let some = until("Jobs that work", async || {
        let all = listed().await;
        (all.iter().filter(|job| is_unfinished(job)).count() > 1).then_some(all)
    })
    .await;
    assert!(some.len() <= 8, "no more than the maximum: {}", some.len());
    until("it is told why", async || {
        let lines = heard.0.lock().join("\n");
        (lines.starts_with("mail: +") && lines.contains("1 of 1 triggers active")).then_some(())
    })
    .await;
    let metadata = &some[0].metadata;
    let labels = metadata.labels.clone().expect("labels");
    assert_eq!(labels["scaledjob.keda.sh/name"], "mail");
    let owner = metadata.owner_references.as_ref().and_then(|all| all.first()).expect("an owner");
    assert_eq!((&*owner.kind, &*owner.name), ("ScaledJob", "mail"));
    until("it is said", async || says("Ready", "True ScaledJobReady").await).await;

    until("all are done", async || {
        let all = listed().await;
        let done = !all.is_empty() && !all.iter().any(is_unfinished);
        (done && says("Active", "False ScalerNotActive").await.is_some()).then_some(())
    })
    .await;
    until("few are kept", async || (listed().await.len() <= 5).then_some(())).await;
    let shown = page(dashboard, "/api/autoscalers/default/mail?kind=scaledjobs.keda.sh").await;
    for part in ["\"kind\":\"ScaledJob\"", "Jobs are unfinished", "are created"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let metrics = page(dashboard, "/metrics").await;
    assert!(
        metrics.contains("podscale_decisions_total{outcome=\"up\",kind=\"ScaledJob\"}"),
        "{metrics}"
    );
    assert!(metrics.contains("type=\"scaledjob\""), "{metrics}");

    objects.delete("mail", &DeleteParams::default()).await.expect("deleted");
    until("they go together", async || {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let pods = pods.list(&ListParams::default()).await.expect("pods").items;
        (listed().await.is_empty() && pods.is_empty()).then_some(())
    })
    .await;
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
}
